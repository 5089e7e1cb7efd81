"""What a summary is due of: the older units of a log for which none stands yet. Numbers and items in, units out; nobody is asked.

A summary may be appended where the model is about to be called, and nowhere else: inside a response it would part what belongs together.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from session.editing import stays
from session.items import Compaction, Item, Message, MessageCategory
from session.session import Session
from session.summary import is_own_summary
from session.units import HELD, KIND_CALL, SYSTEM

from ..following import Following
from ..trimming.fold import Fold


@dataclass(frozen=True, slots=True)
class Keep:
    """What is left as it is.

    Attributes:
        turns: The newest turns; the one that goes on is always left.
        items: The newest items, whole units, in place of turns; None to go by turns.
        least: Turns older than that (or units, where it goes by items) that are worth a summary.
        ended: Whether a response that the log ends in is known to be whole.
    """

    turns: int
    items: int | None = None
    least: int = 2
    ended: bool = False


@dataclass(frozen=True, slots=True)
class Told:
    """A unit that is to be summed up.

    Attributes:
        items: Its items that the view shows.
        ids: What the new summary stands for with it: the whole unit, and what an earlier summary stood for.
        tokens: What it costs in the view.
        is_summary: Whether it is an earlier summary.
    """

    items: tuple[Item, ...]
    ids: frozenset[str]
    tokens: int
    is_summary: bool


def due_now(following: Following, session: Session, keep: Keep) -> tuple[Told, ...]:
    """As `due`, of a session that was followed to its end; none where no summary may stand there."""
    if not may_stand(following.fold, following.items, ended=keep.ended):
        return ()
    return due(following.fold, following.items, session.position, keep)


def due(fold: Fold, items: Sequence[Item], position: Callable[[str], int | None], keep: Keep) -> tuple[Told, ...]:
    """The units to sum up, in the order in which they were said; none where no summary is due.

    What stays as it is: SYSTEM, instructions, pinned items, the frontier, calls that wait, and the units that those are in. An earlier
    summary is among the units, wherever it stands.

    Args:
        fold: The log folded, with nothing trimmed for want of room: what it shows, no summary stands for.
        items: The log.
        position: Where the item with an id stands in it.
        keep: What is left as it is.
    """
    groups = fold.groups
    openings = [place for place in fold.shown if _opens(items[place])]
    start = _start(fold, items, openings, keep)
    units: dict[int, list[int]] = {}
    for place in fold.shown:
        units.setdefault(groups.head[place], []).append(place)
    found: list[tuple[int, Told]] = []
    live = set()
    for head, shown in units.items():
        summary = is_own_summary(items[head])
        if groups.held[head] == HELD or fold.in_frontier(head) or (groups.last[head] >= start and not summary):
            continue
        members = list(groups.members(head))
        if any(stays(items[place]) for place in members):
            continue
        if not summary:
            live.add(shown[0] if keep.items is not None else bisect_right(openings, shown[0]))
        earlier = _stands_for(items[head], fold, position)
        ids = frozenset(earlier).union(items[place].id for place in members)
        said = max(earlier.values(), default=head)  # a summary was said where what it stands for was
        found.append((said, Told(tuple(items[place] for place in shown), ids, sum(map(fold.tokens, shown)), summary)))
    if keep.items is None:
        live.discard(0)  # what comes before the first turn is none
    if len(live) < keep.least:
        return ()
    return tuple(told for _, told in sorted(found, key=lambda one: one[0]))


def _stands_for(item: Item, fold: Fold, position: Callable[[str], int | None]) -> dict[str, int]:
    """What an earlier summary stands for, and where that is: without what has been pinned since, and whatever else has to stay."""
    groups = fold.groups
    listed = item.replaces if isinstance(item, Compaction) else ()
    places = ((id, place) for id in listed if (place := position(id)) is not None and place < len(groups))
    return {id: place for id, place in places if groups.held[groups.head[place]] != HELD}


def replaced(told: Collection[Told], items: Sequence[Item]) -> tuple[str, ...]:
    """The ids that a summary of these units stands for, in the log's order."""
    ids = frozenset[str]().union(*(one.ids for one in told))
    return tuple(item.id for item in items if item.id in ids)


def may_stand(fold: Fold, items: Sequence[Item], *, ended: bool) -> bool:
    """Whether a summary may be appended now: the model is about to be called, and has not been given one since its last response."""
    groups = fold.groups
    if groups.in_response and not ended:
        return False
    since = range(groups.frontier, len(items))
    if any(is_own_summary(items[place]) for place in since):
        return False
    waiting = [place for place in since if groups.kind[place] == KIND_CALL and not groups.answered[place]]
    return not waiting or groups.last_user > waiting[-1]  # a user who goes on has given up on them


def _start(fold: Fold, items: Sequence[Item], openings: Sequence[int], keep: Keep) -> int:
    """Where what is left as it is begins."""
    if keep.items is None:
        turns = max(keep.turns, 1)
        return openings[-turns] if len(openings) >= turns else 0
    newest = [place for place in fold.shown if fold.groups.rank[place] != SYSTEM and not is_own_summary(items[place])]
    if not keep.items:
        return len(items)
    return newest[-keep.items] if len(newest) >= keep.items else 0


def _opens(item: Item) -> bool:
    """Whether the item opens a turn."""
    return isinstance(item, Message) and item.role == "user" and item.category is not MessageCategory.CONTEXT
