"""The units of a view as a strategy sees them, and the goals of trims.

A unit is measured when it is looked at: most strategies look at a few of the oldest among many.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import compress, islice
from typing import overload

from session.units import CONTEXT, FREE, HELD, KIND_CALL, KIND_OUTPUT, KIND_USER, PRIORITY, SUMMARY, SYSTEM

from .limits import Limits, goal_of, portion
from .plan import Reason
from .request_size import total_of
from .strategy_api import MeasuredUnit, StrategyBudget
from .view_state import ViewState


class UnitsInView(Sequence[MeasuredUnit]):
    """The units with visible items, in the order in which trims take them. Valid until the view changes."""

    def __init__(self, view: ViewState) -> None:
        self._view = view
        self._heads = sorted(heads_in(view), key=view.groups.last.__getitem__, reverse=view.limits.newest_first)
        self._measured_units: dict[int, MeasuredUnit] = {}
        self._head_set: frozenset[int] | None = None
        self._user_messages: list[int] | None = None

    def __len__(self) -> int:
        return len(self._heads)

    @overload
    def __getitem__(self, place: int) -> MeasuredUnit: ...

    @overload
    def __getitem__(self, place: slice) -> tuple[MeasuredUnit, ...]: ...

    def __getitem__(self, place: int | slice) -> MeasuredUnit | tuple[MeasuredUnit, ...]:
        if isinstance(place, slice):
            return tuple(map(self._measured, self._heads[place]))
        return self._measured(self._heads[place])

    def __iter__(self) -> Iterator[MeasuredUnit]:
        return map(self._measured, self._heads)

    def by_head(self, head: object) -> MeasuredUnit | None:
        """Return the unit with this head, if it is in the view."""
        if type(head) is not int:
            return None
        if head not in self._measured_units:
            if self._head_set is None:
                self._head_set = frozenset(self._heads)
            if head not in self._head_set:
                return None
        return self._measured(head)

    def _measured(self, head: int) -> MeasuredUnit:
        unit = self._measured_units.get(head)
        if unit is None:
            unit = self._measured_units[head] = measure_unit(self._view, head, self._age(head))
        return unit

    def _age(self, head: int) -> int:
        view = self._view
        if self._user_messages is None:
            messages = view.visible_among(view.groups.user_messages)
            self._user_messages = list(compress(messages, map(KIND_USER.__eq__, map(view.groups.kind.__getitem__, messages))))
        return len(self._user_messages) - bisect_right(self._user_messages, view.groups.last[head])


def heads_in(view: ViewState) -> dict[int, None]:
    """Return the heads of the units with visible items, in the log's order."""
    view.refresh_visible()
    return dict.fromkeys(map(view.groups.head.__getitem__, view.visible))


def tokens_goal(view: ViewState, limits: Limits) -> int:
    """Return the tokens that a trim goes down to (rule 5)."""
    protected = _protected_total(view, limits.trigger)
    view.is_filled = protected >= limits.trigger
    return goal_of(limits.trigger, limits.target, protected)


def _protected_total(view: ViewState, enough: int) -> int:
    """Return the total of a request with nothing but protected items. Stop adding once the total reaches `enough`.

    However many items are protected, only as many are added as fit the limit.
    """
    places: list[int] = []
    protected, size = view.protected_places(), 64
    while batch := list(islice(protected, size)):
        places += batch
        size = len(places)
        if (total := total_of(view, places)) >= enough:
            return total
    return total_of(view, places)


def items_goal(view: ViewState, limits: Limits) -> int:
    """Return the number of items that a trim goes down to; 0 if their number is not limited."""
    if limits.items_max is None:
        return 0
    return goal_of(limits.items_max, limits.items_target, sum(1 for _ in islice(view.protected_places(), limits.items_max)))


def budget_of(view: ViewState, limits: Limits) -> StrategyBudget:
    """Return the limits of the view and its use of them, for a strategy."""
    target = tokens_goal(view, limits)
    system, context, dialog, output = (portion(share, target) for share in limits.shares)
    ranks = bytes(map(view.groups.rank.__getitem__, heads_in(view)))  # not a loop: a window that moves at every turn asks at each
    return StrategyBudget(
        total=view.total,
        overhead=view.overhead,
        budget=limits.budget,
        trigger=limits.trigger,
        target=target,
        shares=(system, context, dialog, output),
        units=len(ranks) - ranks.count(SYSTEM),
        items=sum(view.tally.items),
        items_max=limits.items_max,
        items_target=items_goal(view, limits),
    )


def clearable_in(view: ViewState, head: int) -> Iterator[int]:
    """Yield what clearing would make smaller: the unit's outputs in order, then its calls."""
    groups, results = view.groups, view.results
    for kind in (KIND_OUTPUT, KIND_CALL) if view.limits.clear_call_inputs else (KIND_OUTPUT,):
        for place in groups.members(head):
            if groups.kind[place] != kind or view.is_cleared(place) or (results is not None and results.is_kept(place)):
                continue
            if view.digests.has(place):
                continue
            if view.cleared_tokens(place) < view.tokens(place):
                yield place


def measure_unit(view: ViewState, head: int, age: int) -> MeasuredUnit:
    """Return the unit as a strategy sees it; `age` is the number of newer user messages."""
    groups = view.groups
    places = tuple(place for place in groups.members(head) if view.hidden_reason(place) is None)
    rank = groups.rank[head]
    protected = _protection(view, head)
    saves = 0 if protected else sum(view.tokens(place) - view.cleared_tokens(place) for place in clearable_in(view, head))
    return MeasuredUnit(
        head,
        places,
        PRIORITY[rank],
        sum(map(view.tokens, places)),
        saves,
        protected,
        begins_turn=groups.kind[head] == KIND_USER and rank != CONTEXT,
        age=age,
        is_shortened=any(map(view.is_shortened, places)),
        contents=tuple(view.measures[place] for place in places),
    )


def _protection(view: ViewState, head: int) -> Reason | None:
    """Return why no trim may take the unit: the strongest reason. SYSTEM is the weakest, because `takes_system` lifts it."""
    groups = view.groups
    protection = groups.unit_protection[head]
    if protection != FREE and not groups.always_protected.isdisjoint(groups.members(head)):
        return Reason.PINNED
    if protection == SUMMARY:
        return Reason.SUMMARY
    if view.in_frontier(head):
        return Reason.FRONTIER
    if head == view.first_message and protection == FREE:
        return Reason.FIRST_MESSAGE
    return Reason.SYSTEM if protection == HELD or groups.rank[head] == SYSTEM else None
