"""Select the older units of a log that a new summary should replace, and decide if a summary may be appended now. Pure functions.

The numbered steps are in the package's charter (`__init__.py`); this file is steps 2 and 3.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from session.edits import is_structural
from session.items import Compaction, Item, Message, MessageCategory
from session.providers.anthropic.blocks import CARRIED, is_server_call
from session.providers.native_compaction import is_sealed
from session.session import Session
from session.summary import is_own_summary
from session.units import CONTEXT, HELD, KIND_CALL

from ..decision.edits import NOT_TOLD
from ..decision.view import View

KEPT_PARTS = 4
"""Inside turns, the newest units stay: up to 1/4 of the room that the items which cannot be summarised leave below the trigger."""
WORTHWHILE_PARTS = 8
"""Units with at least 1/8 of the trigger's tokens, or of `max_context_items`, are worth a summary."""
MIN_UNITS = 2
"""Fewest units that a summary inside turns stands for, and that a strategy must choose."""


@dataclass(frozen=True, slots=True)
class SelectionRule:
    """The units to summarise: by a strategy's choice, else by turns, else by size.

    Attributes:
        keep_turns: Newest turns that are kept if enough turns are older. The current turn is then always kept.
        trigger: A log with more tokens than this is too large.
        chosen: Positions of the units that a strategy chose; all other units are kept. None if no strategy chooses.
        min_count: Turns, or chosen units, that make a summary worthwhile.
        min_tokens: Tokens that make a summary worthwhile.
        items_max: A log with more visible items than this is too large; None for no limit.
        is_forced: True if the caller wants a summary in any case. A response at the end of the log is then complete.
        keep_user_messages: True to leave the user's own messages out.
    """

    keep_turns: int
    trigger: int
    chosen: frozenset[int] | None = None
    min_count: int = 2
    min_tokens: int = 0
    items_max: int | None = None
    is_forced: bool = False
    keep_user_messages: bool = False


class SummaryUnit(NamedTuple):
    """A unit to be summarised.

    Attributes:
        first: Position of its first visible item.
        last: Position of the item that joined it last: its age.
        source_index: Position of its content in the conversation. For an earlier summary, the last item that it stands for.
        items: Its visible items.
        ids: Items that the new summary stands for because of it: the whole unit, and everything that an earlier summary stood for.
        tokens: Tokens of its visible items.
        cleared_tokens: Their tokens once results are cleared, which costs no summary.
        is_summary: True for an earlier summary.
    """

    first: int
    last: int
    source_index: int
    items: tuple[Item, ...]
    ids: frozenset[str]
    tokens: int
    cleared_tokens: int
    is_summary: bool


def select_units(view: View, session: Session, rule: SelectionRule) -> tuple[SummaryUnit, ...]:
    """Return the units to summarise, in the order of the conversation. Empty if there is too little, or no summary may be appended now.

    Earlier summaries are included, wherever they stand. The view is the log without a trim.
    """
    if not can_append_summary(view, is_response_complete=rule.is_forced):
        return ()
    units = summarisable_units(view, session)
    candidates = tuple(unit for unit in units if not (rule.keep_user_messages and _starts_turn(unit.items[0])))
    if rule.chosen is not None:
        selected = _chosen_units(candidates, rule, rule.chosen)
    else:
        selected = _older_turns(view, candidates, rule)
        if not _is_worthwhile(selected, rule):
            selected = _oldest_units(view, candidates, rule) or (selected if rule.is_forced else ())
    return tuple(sorted(selected, key=lambda unit: unit.source_index))


def _chosen_units(candidates: Sequence[SummaryUnit], rule: SelectionRule, chosen: Collection[int]) -> Sequence[SummaryUnit]:
    """Return the units that a strategy chose, with the earlier summaries."""
    units = [unit for unit in candidates if unit.is_summary or unit.first in chosen]
    return units if sum(not unit.is_summary for unit in units) >= rule.min_count else ()


def _older_turns(view: View, candidates: Sequence[SummaryUnit], rule: SelectionRule) -> Sequence[SummaryUnit]:
    """Return the units older than the newest turns, with the earlier summaries. Empty if these are too few turns."""
    turn_starts = [at for at in view.visible() if _starts_turn(view.log.items[at])]
    keep_turns = max(rule.keep_turns, 1)
    kept_from = turn_starts[-keep_turns] if len(turn_starts) >= keep_turns else 0
    units = [unit for unit in candidates if unit.is_summary or unit.last < kept_from]
    turns = {bisect_right(turn_starts, unit.first) for unit in units if not unit.is_summary}
    turns.discard(0)  # items before the first turn do not form a turn
    return units if len(turns) >= rule.min_count else ()


def _oldest_units(view: View, candidates: Sequence[SummaryUnit], rule: SelectionRule) -> Sequence[SummaryUnit]:
    """Return all but the newest units, wherever turns begin, with the earlier summaries. Empty if it is too little for a summary.

    The newest units stay, up to a part of the room for tokens and of the limit of items, so that the model sees its latest steps.
    """
    room = max(0, rule.trigger - (view.counted - sum(unit.tokens for unit in candidates)))
    kept_tokens, kept_items = room // KEPT_PARTS, None if rule.items_max is None else rule.items_max // KEPT_PARTS
    by_age = sorted((unit for unit in candidates if not unit.is_summary), key=lambda unit: unit.last)
    while by_age:
        kept_tokens -= by_age[-1].tokens
        kept_items = None if kept_items is None else kept_items - len(by_age[-1].items)
        if kept_tokens < 0 or (kept_items is not None and kept_items < 0):
            break
        by_age.pop()
    summaries = [unit for unit in candidates if unit.is_summary]
    units = [*summaries, *by_age]
    is_first = rule.is_forced and not summaries
    return units if len(by_age) >= MIN_UNITS and (is_first or _is_worthwhile(units, rule)) else ()


def _is_worthwhile(units: Sequence[SummaryUnit], rule: SelectionRule) -> bool:
    """True if the units, without earlier summaries and with their results cleared, are a good part of a limit."""
    unsummarised = [unit for unit in units if not unit.is_summary]
    min_items = None if rule.items_max is None else rule.items_max // WORTHWHILE_PARTS
    return sum(unit.cleared_tokens for unit in unsummarised) >= max(1, rule.min_tokens) or (
        min_items is not None and sum(len(unit.items) for unit in unsummarised) >= max(1, min_items)
    )


def summarisable_units(view: View, session: Session) -> Iterator[SummaryUnit]:
    """Yield the units that a summary may stand for, in the order of their first items.

    SYSTEM items, instructions, items of category CONTEXT, pinned items, the log's first user message, which states the task, the frontier,
    and calls without an output are left out, with the units that contain them. So are compactions that only their provider can read.
    """
    log, groups = view.log, view.log.groups
    for head in dict.fromkeys(groups.head[at] for at in view.visible()):
        first, members = log.items[head], list(groups.members(head))
        if groups.unit_protection[head] == HELD or view.is_spared(head) or is_sealed(first):
            continue
        if head in groups.user_messages[:1] or (groups.rank[head] == CONTEXT and not is_own_summary(first)):
            continue
        if any(is_structural(log.items[at]) for at in members):
            continue
        visible = view.visible(members)
        summarised = _summarised_indices(first, view, session) if isinstance(first, Compaction) else ()
        yield SummaryUnit(
            visible[0],
            groups.last[head],
            max(summarised, default=visible[0]),
            tuple(log.items[at] for at in visible),
            frozenset(log.items[at].id for at in (*members, *summarised)),
            sum(map(view.costs.__getitem__, visible)),
            sum(min(view.costs[at], view.cleared_tokens(at)) for at in visible),
            is_own_summary(first),
        )


def loses_more_than_results(view: View) -> bool:
    """True if a trim has taken more than the contents of results, arguments and images, all of which the model can recall by their ids."""
    return any(edit.gone not in (None, *NOT_TOLD) or edit.cut is not None for edit in view.edits.values())


def replaced_ids(units: Collection[SummaryUnit], items: Sequence[Item], session: Session) -> tuple[str, ...]:
    """Return the ids that a summary of these units stands for, in the log's order. The log may have grown since."""
    return tuple(items[at].id for at in session.positions(frozenset[str]().union(*(unit.ids for unit in units))) if at < len(items))


def can_append_summary(view: View, *, is_response_complete: bool) -> bool:
    """True if a summary may be appended now: no response is unfinished, and there is no new summary since the last response.

    A response is complete once its calls have outputs, or if it has no calls and ends in a text. A response that ends in a server-side
    call is paused and not complete.
    """
    groups, items = view.log.groups, view.log.items
    if groups.in_response and not (is_response_complete or (isinstance(items[-1], Message) and not _is_paused(items[-1]))):
        return False
    frontier = range(groups.frontier, len(items))
    if any(is_own_summary(items[at]) for at in frontier):
        return False
    open_calls = [at for at in frontier if groups.kind[at] == KIND_CALL and not groups.answered[at]]
    return not open_calls or groups.last_user > open_calls[-1]  # a later user message means that nobody waits for these calls


def _is_paused(message: Message) -> bool:
    blocks = message.extra.get(CARRIED)
    return isinstance(blocks, list) and bool(blocks) and isinstance(blocks[-1], dict) and is_server_call(blocks[-1])


def _summarised_indices(summary: Compaction, view: View, session: Session) -> list[int]:
    """Return the positions of the items that an earlier summary stands for. Items that were pinned since are left out."""
    groups = view.log.groups
    return [at for at in session.positions(summary.replaces) if at < len(view) and groups.unit_protection[groups.head[at]] != HELD]


def _starts_turn(item: Item) -> bool:
    return isinstance(item, Message) and item.role == "user" and item.category is not MessageCategory.CONTEXT
