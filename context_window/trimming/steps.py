"""One trim: the decision itself. The steps are those of docs/how-it-works.md, "From a log to a view", in their order.

0. What a summary stands for goes; then images, when there are too many; then what the strategies choose; then items; then
   tokens. Of a view that only its strategies may take from, nothing else goes but what a summary stands for.
   The goal is the target; a little more where what may not be taken leaves little room (`goal_of`).
1. Pass one takes from a category only while it is above its share of the goal, pass two down to nothing. In each pass
   SYSTEM_OUTPUT, then DIALOG, then CONTEXT.
2. In SYSTEM_OUTPUT outputs are cleared first, and only then are units dropped; the oldest first, everywhere.
3. Still over the budget: the outputs that the model is about to read are truncated, the room shared out fairly.
4. Still over: that is as small as it gets.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import dropwhile

from session.units import CONTEXT, DIALOG, FREE, HELD, KIND_OUTPUT, NONE, SYSTEM_OUTPUT

from .consult import consult
from .limits import portion
from .offered import clearable_in, items_goal, tokens_goal
from .plan import Reason
from .state import ViewState
from .tally import Exhausted

TRIM_ORDER = (SYSTEM_OUTPUT, DIALOG, CONTEXT)
"""Lowest priority first. SYSTEM is never touched."""


def trim(view: ViewState) -> None:
    """Makes the view fit its limits, as far as what is protected allows."""
    limits, tally = view.limits, view.tally
    if tally.compacted:
        take_compacted(view)
    if tally.images > limits.images_max and not limits.final:
        take_images(view)
    for adviser in limits.advisers:
        consult(view, adviser)
    if not limits.final:
        _take_by_priority(view)
    view.settle()


def _take_by_priority(view: ViewState) -> None:
    limits = view.limits
    if limits.items_max is not None and sum(view.tally.items) > limits.items_max:
        take_items(view, items_goal(view, limits))
    if view.total > limits.trigger:
        take_tokens(view, tokens_goal(view, limits))
        if view.total > limits.budget:
            truncate_frontier(view)


def take_compacted(view: ViewState) -> None:
    """Drops what a summary stands for, whole units only; what is in the frontier waits until it is not.

    A unit of which a part is summarised is not waited for: another summary brings it up again.
    """
    groups = view.groups
    waiting = []
    for place in view.tally.compacted:
        head = groups.head[place]
        if view.gone(place) or groups.held[head] == HELD or not view.is_summarised(head):
            continue
        if view.in_frontier(head):
            waiting.append(place)
        else:
            view.drop(head, Reason.COMPACTED)
    view.tally.compacted = waiting


def take_images(view: ViewState) -> None:
    """Replaces all images but the newest; those in SYSTEM, pinned and frontier items wait until they are in none."""
    groups, tally = view.groups, view.tally
    live = [(place, *image) for place in tally.pictured for image in view.live_images(place)]
    for place, part, saved in live[: max(0, len(live) - view.limits.images_kept)]:
        frontier = place >= groups.frontier or place == groups.last_user
        if not (frontier or view.keeps_images(place)):
            view.replace_image(place, part, saved)
            if saved < 0:  # an output that was passed over, since it cost less than its placeholder, may be worth clearing now
                queue = view.queues[SYSTEM_OUTPUT]
                tally.cleared_to = min(tally.cleared_to, bisect_left(queue, groups.last[groups.head[place]]))
    tally.pictured = list(dropwhile(view.keeps_images, filter(view.live_images, tally.pictured)))


def take_tokens(view: ViewState, goal: int) -> None:
    """Clears and drops until the view costs no more than the goal."""
    tally = view.tally
    outputs = clearable(view)
    units = {rank: droppable(view, rank) for rank in TRIM_ORDER}
    before: list[tuple[int, int]] = []
    for reason, floors in _passes(view, goal, Reason.OVER_SHARE, Reason.OVER_BUDGET):
        before = list(zip(tally.tokens, tally.items, strict=True))
        for rank in TRIM_ORDER:
            while view.total > goal and tally.tokens[rank] > floors[rank]:
                if rank == SYSTEM_OUTPUT and (output := next(outputs, None)) is not None:
                    view.clear(output, reason)
                elif (head := next(units[rank], None)) is not None:
                    view.drop(head, reason)
                else:
                    break
    view.passed_below = frozenset(rank for rank, sums in enumerate(before) if sums != (tally.tokens[rank], tally.items[rank]))


def take_items(view: ViewState, goal: int) -> None:
    """Drops until the view has no more items than the goal, by the same passes: clearing would not help."""
    tally = view.tally
    units = {rank: droppable(view, rank) for rank in TRIM_ORDER}
    for reason, floors in _passes(view, goal, Reason.TOO_MANY_ITEMS, Reason.TOO_MANY_ITEMS):
        for rank in TRIM_ORDER:
            while sum(tally.items) > goal and tally.items[rank] > floors[rank] and (head := next(units[rank], None)) is not None:
                view.drop(head, reason)


def _passes(view: ViewState, goal: int, first: Reason, second: Reason) -> tuple[tuple[Reason, Sequence[int]], ...]:
    """The two passes: why each takes, and what it leaves each category."""
    shares = [portion(share, goal) for share in view.limits.shares]
    return (first, shares), (second, [NONE] * len(shares))


def truncate_frontier(view: ViewState) -> None:
    """Truncates the outputs after the last response to what the rest leaves of the budget, the room shared out fairly: none gets
    more while one that could use it has less.

    Each output's part is fixed before any is cut: what a cut leaves of its part goes to no other. More room is then less for none.
    """
    groups, measures = view.groups, view.measures
    outputs = [
        place
        for place in range(groups.frontier, len(view))
        if groups.kind[place] == KIND_OUTPUT and not view.gone(place) and groups.own[place] == FREE
    ]
    most = [view.tokens(place) for place in outputs]
    least = [min(view.tokens(place), measures.shortened(place, 0).tokens) for place in outputs]
    room = view.room_for(outputs)
    for place, part in zip(outputs, fair_parts(room, least, most), strict=True):
        _shorten(view, place, part)
    limits = view.limits
    if room <= sum(least) and view.is_filled and limits.items_max is None and not limits.advisers and not view.tally.compacted:
        saved = sum(most) - sum(map(view.tokens, outputs))
        view.exhausted = Exhausted(len(view), sum(most), sum(least), saved)


def extend(view: ViewState, trim: Exhausted) -> bool:
    """Make a trim that has taken all there is good for the items that have come since, and return True if it is the one for them.

    It is where they leave no more room than there was: then each output is as small as it gets, as are those before. Else nothing
    is changed.
    """
    groups = view.groups
    outputs = [place for place in range(trim.length, len(view)) if groups.kind[place] == KIND_OUTPUT and groups.own[place] == FREE]
    least = [min(view.tokens(place), view.measures.shortened(place, 0).tokens) for place in outputs]
    tokens, lowest = trim.tokens + sum(map(view.tokens, outputs)), trim.least + sum(least)
    room = view.room_before(tokens, trim.saved)
    if room is None or room > lowest or view.total_before(trim.saved) <= view.limits.budget:
        return False
    saved = trim.saved + sum(map(view.tokens, outputs))
    for place, part in zip(outputs, least, strict=True):
        _shorten(view, place, part)
    view.exhausted = Exhausted(len(view), tokens, lowest, saved - sum(map(view.tokens, outputs)))
    return True


def fair_parts(room: int, least: Sequence[int], most: Sequence[int]) -> list[int]:
    """The room shared out: one level for all, but for those that cannot be so small or need not be so large. The newest get the rest."""

    def parts(level: int) -> list[int]:
        return [min(max(level, low), high) for low, high in zip(least, most, strict=True)]

    levels = range(max(most, default=0) + 1)
    level = max(0, bisect_right(levels, room, key=lambda level: sum(parts(level))) - 1)
    shared = parts(level)
    left = room - sum(shared)
    for one in reversed(range(len(shared))):
        if left > 0 and least[one] <= level < most[one]:
            shared[one] += 1
            left -= 1
    return shared


def _shorten(view: ViewState, place: int, limit: int) -> None:
    """Makes the output cost at most `limit`, where it can be. Its images are whole: they are not replaced in the frontier."""
    if view.tokens(place) > limit:
        cut = view.measures.shortened(place, limit)
        if cut.tokens < view.tokens(place):
            view.truncate(place, cut)


# What may be taken, in the order of taking. These are asked only for what is then taken: they move the view's marks.


def droppable(view: ViewState, rank: int) -> Iterator[int]:
    """Heads of the category's units, oldest first: a unit is as old as what completed it."""
    groups, tally, queue = view.groups, view.tally, view.queues[rank]
    if view.limits.newest_first:
        for place in reversed(queue[: bisect_left(queue, groups.frontier)]):
            if _is_unit(view, place) and not view.in_frontier(groups.head[place]):
                yield groups.head[place]
        return
    for place in tally.aside:
        if groups.rank[place] == rank and not view.in_frontier(groups.head[place]):
            tally.aside = tuple(other for other in tally.aside if other != place)
            if _is_unit(view, place):
                yield groups.head[place]
    while tally.dropped_to[rank] < len(queue) and (place := queue[tally.dropped_to[rank]]) < groups.frontier:
        tally.dropped_to[rank] += 1
        if not _is_unit(view, place):
            continue
        if view.in_frontier(groups.head[place]):
            tally.aside += (place,)  # the last user message: it may go when another one is the last
        else:
            yield groups.head[place]


def clearable(view: ViewState) -> Iterator[int]:
    """Outputs whose placeholder is smaller than they are, of the oldest unit first."""
    groups, tally, queue = view.groups, view.tally, view.queues[SYSTEM_OUTPUT]
    if view.limits.newest_first:
        for place in reversed(queue[: bisect_left(queue, groups.frontier)]):
            yield from reversed(list(_clearable_in(view, place)))
        return
    while tally.cleared_to < len(queue) and (place := queue[tally.cleared_to]) < groups.frontier:
        yield from _clearable_in(view, place)
        tally.cleared_to += 1


def _clearable_in(view: ViewState, place: int) -> Iterator[int]:
    head = view.groups.head[place]
    if _is_unit(view, place) and not view.in_frontier(head):
        yield from clearable_in(view, head)


def _is_unit(view: ViewState, place: int) -> bool:
    """Whether a queued position stands for a unit that can be taken from: it completes it, and something is left of it."""
    groups = view.groups
    head = groups.head[place]
    return groups.last[head] == place and not groups.held[head] and view.has_left(head)
