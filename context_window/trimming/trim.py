"""One trim: the decision itself. Rules 3, 5 and 6 of `__init__.py`; what a change does to a view is in `view_state.py`."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import dropwhile

from session.units import CONTEXT, DIALOG, FREE, HELD, KIND_CALL, NONE, SYSTEM_OUTPUT

from .frontier import shorten_unread, shrink_frontier
from .limits import BOUNDLESS, portion
from .plan import Reason
from .results_by_rule import ResultsByRule
from .strategy_runner import consult
from .strategy_units import clearable_in, items_goal, tokens_goal
from .view_state import ViewState

TRIM_ORDER = (SYSTEM_OUTPUT, DIALOG, CONTEXT)
"""Lowest priority first. SYSTEM is never touched."""


def trim(view: ViewState) -> None:
    """Make the view fit its limits, as far as protected items allow."""
    limits, tally = view.limits, view.tally
    edits = tally.edits
    if tally.compacted:
        tally.decided_to = len(view)
        take_compacted(view)
    if tally.images > limits.images_max and not limits.final:
        tally.decided_to = len(view)
        take_images(view)
    for adviser in limits.advisers:
        consult(view, adviser)
    if not limits.final:
        _take_items_by_priority(view)
    if limits.usage_noted_from < BOUNDLESS:  # else the total need not be known
        view.note_usage()
    if not limits.final:
        _take_tokens_by_priority(view)
    if tally.edits > edits:
        view.withdraw_usage_note()
    view.refresh_visible()


def _take_items_by_priority(view: ViewState) -> None:
    """Take items (step 5)."""
    limits = view.limits
    if limits.items_max is not None and sum(view.tally.items) > limits.items_max:
        view.tally.decided_to = len(view)
        take_items(view, items_goal(view, limits))
        drop_kept_results(view, Reason.TOO_MANY_ITEMS)
        if sum(view.tally.items) > limits.items_max:
            drop_first_message(view, Reason.TOO_MANY_ITEMS)


def _take_tokens_by_priority(view: ViewState) -> None:
    """Take tokens, then parts of the frontier (steps 7 and 8)."""
    limits = view.limits
    if any(adviser.shortens_unread for adviser in limits.advisers):
        view.tally.decided_to = len(view)
        if shorten_unread(view):
            return
    if view.total > limits.trigger:
        view.tally.decided_to = len(view)
        take_tokens(view, tokens_goal(view, limits))
        drop_kept_results(view, Reason.OVER_BUDGET)
        if view.total > limits.budget:
            drop_first_message(view, Reason.OVER_BUDGET)
        if view.total > limits.budget:
            shrink_frontier(view)


def drop_kept_results(view: ViewState, reason: Reason) -> None:
    """Drop units that were spared because a rule keeps a result in them (rule 12): the lowest category first, and of it the oldest."""
    groups, limits = view.groups, view.limits
    if view.results is None:
        return
    kept_heads = {groups.head[place] for place in view.results.kept()}
    heads = {head for head in kept_heads if not groups.unit_protection[head] and not view.in_frontier(head)}
    ages = {head: -groups.last[head] if limits.newest_first else groups.last[head] for head in heads}
    for head in sorted(heads, key=lambda head: (-groups.rank[head], ages[head])):
        is_too_large = view.total > limits.budget if reason is Reason.OVER_BUDGET else sum(view.tally.items) > (limits.items_max or 0)
        if is_too_large:
            view.drop(head, reason)


def drop_first_message(view: ViewState, reason: Reason) -> None:
    """Drop the first message if it was kept until now (rule 6). The next one is then the first of the view."""
    place = view.first_message
    if place != NONE and not view.in_frontier(place) and view.groups.unit_protection[place] == FREE:
        view.drop(place, reason)


def take_compacted(view: ViewState) -> None:
    """Drop the units that a summary stands for (step 2). Those in the frontier wait until they have left it.

    A unit that is summarised only in part is forgotten: another summary brings it up again. In a digest its items go one by one.
    """
    groups = view.groups
    in_frontier = []
    for place in view.tally.compacted:
        head = groups.head[place]
        if view.hidden_reason(place) or groups.unit_protection[head] == HELD:
            continue
        if not view.is_summarised(head):
            if view.digests.has(place):
                view.leave([place])
            continue
        if view.in_frontier(head):
            in_frontier.append(place)
        else:
            view.drop(head, Reason.COMPACTED)
    view.tally.compacted = in_frontier


def take_images(view: ViewState) -> None:
    """Replace all images but the newest (step 3). Those in SYSTEM, pinned and frontier items wait."""
    groups, tally = view.groups, view.tally
    images = [(place, *image) for place in tally.with_images for image in view.visible_images(place)]
    for place, part, saved in images[: max(0, len(images) - view.limits.images_kept)]:
        is_frontier = place >= groups.frontier or place == groups.last_user
        if not (is_frontier or view.keeps_images(place)):
            view.replace_image(place, part, saved, Reason.TOO_MANY_IMAGES)
            if saved < 0:  # the output now costs more: clearing it may be worthwhile, even if it was not before
                queue = view.queues[SYSTEM_OUTPUT]
                tally.cleared_to = min(tally.cleared_to, bisect_left(queue, groups.last[groups.head[place]]))
    tally.with_images = list(dropwhile(view.keeps_images, filter(view.visible_images, tally.with_images)))


def take_tokens(view: ViewState, goal: int) -> None:
    """Clear outputs and calls, and drop units, until the total is at most the goal (step 7)."""
    tally, results = view.tally, view.results
    candidates = clearable(view)
    units = {rank: droppable(view, rank) for rank in TRIM_ORDER}
    before_pass: list[tuple[int, int]] = []
    for reason, floors in _passes(view, goal, Reason.OVER_SHARE, Reason.OVER_BUDGET):
        before_pass = list(zip(tally.tokens, tally.items, strict=True))
        for rank in TRIM_ORDER:
            while view.total > goal and tally.tokens[rank] > floors[rank]:
                if rank == SYSTEM_OUTPUT and (place := next(candidates, None)) is not None:
                    view.clear(place, Reason.SUPERSEDED if results is not None and results.is_superseded(place) else reason)
                elif (head := next(units[rank], None)) is not None:
                    view.drop(head, reason)
                else:
                    break
    view.passed_below = frozenset(rank for rank, sums in enumerate(before_pass) if sums != (tally.tokens[rank], tally.items[rank]))


def take_items(view: ViewState, goal: int) -> None:
    """Drop units until the view has at most `goal` items (step 5), in the same passes. Clearing would not help."""
    tally = view.tally
    units = {rank: droppable(view, rank) for rank in TRIM_ORDER}
    for reason, floors in _passes(view, goal, Reason.TOO_MANY_ITEMS, Reason.TOO_MANY_ITEMS):
        for rank in TRIM_ORDER:
            while sum(tally.items) > goal and tally.items[rank] > floors[rank] and (head := next(units[rank], None)) is not None:
                view.drop(head, reason)


def _passes(view: ViewState, goal: int, first: Reason, second: Reason) -> tuple[tuple[Reason, Sequence[int]], ...]:
    """Return the two passes (rule 5): the reason each gives, and the amount by rank down to which it takes."""
    shares = [portion(share, goal) for share in view.limits.shares]
    return (first, shares), (second, [NONE] * len(shares))


# Candidates in the order of taking. Ask only for as many as are then taken: the iterators move the marks of the view (rule 7).


def droppable(view: ViewState, rank: int) -> Iterator[int]:
    """Yield the heads of a category's units, oldest first."""
    groups, tally, queue = view.groups, view.tally, view.queues[rank]
    if view.limits.newest_first:
        for place in reversed(queue[: bisect_left(queue, groups.frontier)]):
            if _is_unit(view, place) and not view.is_spared(groups.head[place]):
                yield groups.head[place]
        return
    for place in tally.deferred:
        if groups.rank[place] == rank and not view.is_spared(groups.head[place]):
            tally.deferred = tuple(other for other in tally.deferred if other != place)
            if _is_unit(view, place):
                yield groups.head[place]
    while tally.dropped_to[rank] < len(queue) and (place := queue[tally.dropped_to[rank]]) < groups.frontier:
        tally.dropped_to[rank] += 1
        if not _is_unit(view, place):
            continue
        if view.is_spared(groups.head[place]):
            tally.deferred += (place,)  # the last user message may go once there is a newer one, the first one as the last of all
        else:
            yield groups.head[place]


def clearable(view: ViewState) -> Iterator[int]:
    """Yield the outputs and calls that clearing makes smaller: unit by unit, the oldest first."""
    groups, tally, queue, results = view.groups, view.tally, view.queues[SYSTEM_OUTPUT], view.results
    if results is not None:
        yield from _clearable_early(view, results)
    if view.limits.newest_first:
        for place in reversed(queue[: bisect_left(queue, groups.frontier)]):
            yield from reversed(list(_clearable_at(view, place)))
        return
    tally.held_back = tuple(place for place in tally.held_back if _is_unit(view, place))
    for place in tally.held_back:
        yield from _clearable_at(view, place)
    while tally.cleared_to < len(queue) and (place := queue[tally.cleared_to]) < groups.frontier:
        yield from _clearable_at(view, place)
        if results is not None and results.has_kept(groups.head[place]):
            tally.held_back += (place,)
        tally.cleared_to += 1


def _clearable_early(view: ViewState, results: ResultsByRule) -> Iterator[int]:
    """Yield the outputs and calls that are cleared before others, those of the oldest unit first."""
    groups, tally = view.groups, view.tally
    tally.early = [place for place in tally.early if view.tokens(place) and not view.is_cleared(place)]
    places = sorted(tally.early, key=lambda place: (groups.last[groups.head[place]], groups.kind[place] == KIND_CALL, place))
    for place in reversed(places) if view.limits.newest_first else places:
        head = groups.head[place]
        if results.is_early(place) and groups.rank[head] == SYSTEM_OUTPUT and place in _clearable_at(view, groups.last[head]):
            yield place


def _clearable_at(view: ViewState, place: int) -> Iterator[int]:
    head = view.groups.head[place]
    if _is_unit(view, place) and not view.in_frontier(head):
        yield from clearable_in(view, head)


def _is_unit(view: ViewState, place: int) -> bool:
    """True if a queued position stands for a unit that can be taken from: it completes the unit, and some of the unit is visible."""
    groups = view.groups
    head = groups.head[place]
    return groups.last[head] == place and not groups.unit_protection[head] and view.is_visible(head)
