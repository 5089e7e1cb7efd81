"""What a summary is due of: the older units of a log for which none stands yet. Numbers and items in, units out; nobody is asked.

A summary may be appended where no response goes on, and nowhere else: inside one it would part what belongs together.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

from session.editing import stays
from session.items import Compaction, Item, Message, MessageCategory
from session.providers.anthropic.blocks import CARRIED, is_server_call
from session.session import Session
from session.summary import is_own_summary
from session.units import HELD, KIND_CALL

from ..following import Following
from ..trimming.fold import Fold


@dataclass(frozen=True, slots=True)
class Keep:
    """What is left as it is.

    Attributes:
        turns: The newest turns; the one that goes on is always left.
        chosen: Positions of what a strategy wants summed up: all else is left. None to go by turns.
        least: Turns older than that, or units that were chosen, that are worth a summary.
        ended: Whether a response that the log ends in is known to be whole.
    """

    turns: int
    chosen: frozenset[int] | None = None
    least: int = 2
    ended: bool = False


@dataclass(frozen=True, slots=True)
class Told:
    """A unit that is to be summed up.

    Attributes:
        place: Where its first item is that the view shows.
        said: Where it was said: of a summary, where the last of what it stands for is.
        items: Its items that the view shows.
        ids: What the new summary stands for with it: the whole unit, and what an earlier summary stood for.
        tokens: What it costs in the view.
        is_summary: Whether it is an earlier summary.
    """

    place: int
    said: int
    items: tuple[Item, ...]
    ids: frozenset[str]
    tokens: int
    is_summary: bool


def due(following: Following, session: Session, keep: Keep) -> tuple[Told, ...]:
    """The units to sum up, in the order in which they were said; none where no summary is due, or none may stand at the log's end.

    An earlier summary is among them, wherever it stands.

    Args:
        following: The log folded, with nothing trimmed for want of room: what it shows, no summary stands for.
        session: The log.
        keep: What is left as it is.
    """
    fold, items = following.fold, following.items
    if not may_stand(fold, items, ended=keep.ended):
        return ()
    openings = [place for place in fold.shown if _opens(items[place])]
    turns = max(keep.turns, 1)
    start = openings[-turns] if len(openings) >= turns else 0
    found = []
    live = set()
    for unit in free(following, session):
        if not unit.is_summary:
            last = fold.groups.last[fold.groups.head[unit.place]]
            if unit.place not in keep.chosen if keep.chosen is not None else last >= start:
                continue
            live.add(bisect_right(openings, unit.place) if keep.chosen is None else unit.place)
        found.append(unit)
    if keep.chosen is None:
        live.discard(0)  # what comes before the first turn is none
    if len(live) < keep.least:
        return ()
    return tuple(sorted(found, key=lambda unit: unit.said))


def free(following: Following, session: Session) -> Iterator[Told]:
    """The units that a summary may stand for, in the order of their first items.

    What has to stay: SYSTEM, instructions, pinned items, the frontier, and the units that those are in.
    """
    fold, items = following.fold, following.items
    groups = fold.groups
    units: dict[int, list[int]] = {}
    for place in fold.shown:
        units.setdefault(groups.head[place], []).append(place)
    for head, shown in units.items():
        if groups.held[head] == HELD or fold.in_frontier(head):
            continue
        members = list(groups.members(head))
        if any(stays(items[place]) for place in members):
            continue
        earlier = _stands_for(items[head], fold, session.position)
        yield Told(
            shown[0],
            max(earlier.values(), default=shown[0]),
            tuple(items[place] for place in shown),
            frozenset(earlier).union(items[place].id for place in members),
            sum(map(fold.tokens, shown)),
            is_own_summary(items[head]),
        )


def replaced(told: Collection[Told], items: Sequence[Item]) -> tuple[str, ...]:
    """The ids that a summary of these units stands for, in the log's order."""
    ids = frozenset[str]().union(*(one.ids for one in told))
    return tuple(item.id for item in items if item.id in ids)


def may_stand(fold: Fold, items: Sequence[Item], *, ended: bool) -> bool:
    """Whether a summary may be appended now: no response goes on, and the model has not been given one since its last response.

    A response is over when its calls are answered, or where it has none and ends in a text; else only where `ended` says so. One that
    ends in a call of the provider's own tools is paused, and goes on.
    """
    groups = fold.groups
    if groups.in_response and not (ended or (isinstance(items[-1], Message) and not _is_paused(items[-1]))):
        return False
    since = range(groups.frontier, len(items))
    if any(is_own_summary(items[place]) for place in since):
        return False
    waiting = [place for place in since if groups.kind[place] == KIND_CALL and not groups.answered[place]]
    return not waiting or groups.last_user > waiting[-1]  # a user who goes on has given up on them


def _is_paused(message: Message) -> bool:
    blocks = message.extra.get(CARRIED)
    return isinstance(blocks, list) and bool(blocks) and isinstance(blocks[-1], dict) and is_server_call(blocks[-1])


def _stands_for(item: Item, fold: Fold, position: Callable[[str], int | None]) -> dict[str, int]:
    """What an earlier summary stands for, and where that is: without what has been pinned since, and whatever else has to stay."""
    groups = fold.groups
    listed = item.replaces if isinstance(item, Compaction) else ()
    places = ((id, place) for id in listed if (place := position(id)) is not None and place < len(groups))
    return {id: place for id, place in places if groups.held[groups.head[place]] != HELD}


def _opens(item: Item) -> bool:
    """Whether the item opens a turn."""
    return isinstance(item, Message) and item.role == "user" and item.category is not MessageCategory.CONTEXT
