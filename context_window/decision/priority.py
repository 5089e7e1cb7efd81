"""Rules: items and tokens are taken by priority, the lowest category first and of it the oldest (rule 4)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from session.units import CONTEXT, DIALOG, FREE, KIND_CALL, KIND_OUTPUT, NONE, SYSTEM_OUTPUT

from .limits import goal_of, portion
from .plan import Reason
from .view import Rule, View

TRIM_ORDER = (SYSTEM_OUTPUT, DIALOG, CONTEXT)
"""Lowest priority first. SYSTEM is never touched."""


class ItemLimit(Rule):
    """Drops units down to a goal if the view has too many items. Clearing would not help."""

    def decide(self, view: View) -> View:
        """Return the view with no more items than allowed, as far as protected items permit."""
        most = view.limits.items_max
        if most is None or sum(view.items) <= most or view.limits.final:
            return view
        draft, goal = view.draft(), items_goal(view)
        units = {rank: droppable(draft, rank) for rank in TRIM_ORDER}
        for floors in _floors(draft, goal):
            for rank in TRIM_ORDER:
                while sum(draft.items) > goal and draft.items[rank] > floors[rank] and (head := next(units[rank], None)) is not None:
                    draft.drop(head, Reason.TOO_MANY_ITEMS)
        for head in _kept_units(draft):
            if sum(draft.items) > most:
                draft.drop(head, Reason.TOO_MANY_ITEMS)
        if sum(draft.items) > most:
            _drop_first_message(draft, Reason.TOO_MANY_ITEMS)
        return draft


class TokenLimit(Rule):
    """Clears outputs and calls, and drops units, down to a goal if the request costs too much."""

    def decide(self, view: View) -> View:
        """Return the view that costs no more than the goal, as far as protected items permit."""
        limits = view.limits
        if limits.final or view.total <= limits.trigger:
            return view
        if limits.shortens_unread and view.total <= limits.budget:
            return view  # what the model has not read yet was cut so that it fits (`frontier.py`)
        draft, goal = view.draft(), tokens_goal(view)
        candidates = clearable(draft)
        units = {rank: droppable(draft, rank) for rank in TRIM_ORDER}
        for reason, floors in zip((Reason.OVER_SHARE, Reason.OVER_BUDGET), _floors(draft, goal), strict=True):
            for rank in TRIM_ORDER:
                while draft.total > goal and draft.tokens[rank] > floors[rank]:
                    if rank == SYSTEM_OUTPUT and (at := next(candidates, None)) is not None:
                        draft.clear(at, Reason.SUPERSEDED if draft.log.results.is_superseded(at, draft.edits) else reason)
                    elif (head := next(units[rank], None)) is not None:
                        draft.drop(head, reason)
                    else:
                        break
        for head in _kept_units(draft):
            if draft.total > limits.budget:
                draft.drop(head, Reason.OVER_BUDGET)
        if draft.total > limits.budget:
            _drop_first_message(draft, Reason.OVER_BUDGET)
        return draft


def tokens_goal(view: View) -> int:
    """Return the tokens that a trim goes down to."""
    return goal_of(view.limits.trigger, view.limits.target, view.total_of(view.protected()))


def items_goal(view: View) -> int:
    """Return the number of items that a trim goes down to; 0 if their number is not limited."""
    most = view.limits.items_max
    return 0 if most is None else goal_of(most, view.limits.items_target, len(list(view.protected())))


def _floors(view: View, goal: int) -> tuple[Sequence[int], Sequence[int]]:
    """Return the amounts by rank down to which the first pass takes, and the second."""
    return [portion(share, goal) for share in view.limits.shares], [NONE] * len(view.limits.shares)


# Candidates in the order of taking


def droppable(view: View, rank: int) -> Iterator[int]:
    """Yield the heads of a category's units that may be dropped, oldest first."""
    for head in by_age(view, rank):
        if view.is_free(head) and not view.is_spared(head):
            yield head


def clearable(view: View) -> Iterator[int]:
    """Yield the outputs and calls that clearing makes smaller: unit by unit, the oldest first."""
    log, is_newest_first = view.log, view.limits.newest_first
    if not view.limits.clears_by_age:
        last, head, kind = log.groups.last, log.groups.head, log.groups.kind
        early = sorted(log.results.early(view.edits), key=lambda at: (last[head[at]], kind[at] == KIND_CALL, at), reverse=is_newest_first)
        for at in early:
            is_candidate = log.groups.rank[at] == SYSTEM_OUTPUT and view.is_free(head[at]) and at in clearable_in(view, head[at])
            if is_candidate and (at in log.results.first or log.results.is_superseded(at, view.edits)):
                yield at
    for unit in by_age(view, SYSTEM_OUTPUT):
        if view.is_free(unit):
            yield from reversed(list(clearable_in(view, unit))) if is_newest_first else clearable_in(view, unit)


def clearable_in(view: View, head: int) -> Iterator[int]:
    """Yield what clearing would make smaller: the unit's outputs in order, then its calls."""
    groups = view.log.groups
    for kind in (KIND_OUTPUT, KIND_CALL) if view.limits.clear_call_inputs else (KIND_OUTPUT,):
        for at in groups.members(head):
            if groups.kind[at] != kind or not view.shown[at] or view.is_shortened(at) or view.is_kept_result(at):
                continue
            if view.cleared_tokens(at) < view.costs[at]:
                yield at


def by_age(view: View, rank: int) -> list[int]:
    """Return the heads of a category's units with visible items, oldest first: a unit is as old as the item that completed it."""
    groups = view.log.groups
    heads = dict.fromkeys(groups.head[at] for at in view.visible() if groups.rank[at] == rank)
    return sorted(heads, key=groups.last.__getitem__, reverse=view.limits.newest_first)


def _kept_units(view: View) -> list[int]:
    """Return the units that only a rule for a tool spares (rule 11): the lowest category first, and of it the oldest."""
    groups, log = view.log.groups, view.log
    heads = {groups.head[at] for at in log.results.kept(view.edits)}
    free = [head for head in heads if view.is_free(head) and not log.is_waiting(head)]
    ages = {head: -groups.last[head] if view.limits.newest_first else groups.last[head] for head in free}
    return sorted(free, key=lambda head: (-groups.rank[head], ages[head]))


def _drop_first_message(view: View, reason: Reason) -> None:
    """Drop the first message if it was kept until now, unless the user's words are left alone. The next one is then the view's first."""
    at, limits = view.first_message, view.limits
    is_left_alone = limits.keep_first_message and not limits.clamp_messages
    if at != NONE and not is_left_alone and not view.log.in_frontier(at) and view.log.groups.unit_protection[at] == FREE:
        view.drop(at, reason)
