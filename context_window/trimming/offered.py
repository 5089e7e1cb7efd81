"""The units of a view as a strategy sees them: measured when they are looked at, since a window of many is asked for its few oldest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import overload

from session.units import CONTEXT, FREE, HELD, KIND_OUTPUT, KIND_USER, PRIORITY, SUMMARY, SYSTEM

from .choices import MeasuredUnit, StrategyBudget
from .limits import Limits, goal_of, portion
from .plan import Reason
from .state import ViewState


class UnitsInView(Sequence[MeasuredUnit]):
    """The units that have something in the view, in the order in which trims take. For as long as the view does not change."""

    def __init__(self, view: ViewState) -> None:
        self._view = view
        self._heads = sorted(heads_in(view), key=view.groups.last.__getitem__, reverse=view.limits.newest_first)
        self._known: dict[int, MeasuredUnit] = {}
        self._all: frozenset[int] | None = None

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
        """The unit that is known by this, if it is in the view."""
        if type(head) is not int:
            return None
        if head not in self._known:
            if self._all is None:
                self._all = frozenset(self._heads)
            if head not in self._all:
                return None
        return self._measured(head)

    def _measured(self, head: int) -> MeasuredUnit:
        unit = self._known.get(head)
        if unit is None:
            unit = self._known[head] = measured(self._view, head)
        return unit


def heads_in(view: ViewState) -> dict[int, None]:
    """The heads of the units that have something in the view, in the log's order."""
    view.settle()
    return dict.fromkeys(map(view.groups.head.__getitem__, view.shown))


def tokens_goal(view: ViewState, limits: Limits) -> int:
    """Tokens that a trim goes down to."""
    stays = _total_staying(view, limits.trigger)
    view.is_filled = stays >= limits.trigger
    return goal_of(limits.trigger, limits.target, stays)


def _total_staying(view: ViewState, enough: int) -> int:
    """Return what the request would cost with nothing but what no trim can take, or a part of that which is enough by itself.

    So the sum of what is kept costs no more than what fits, however much is kept.
    """
    places: list[int] = []
    staying, size = view.staying(), 64
    while more := list(islice(staying, size)):
        places += more
        size = len(places)
        if (total := view.total_of(places)) >= enough:
            return total
    return view.total_of(places)


def items_goal(view: ViewState, limits: Limits) -> int:
    """Items that a trim goes down to, where their number is limited."""
    if limits.items_max is None:
        return 0
    return goal_of(limits.items_max, limits.items_target, sum(1 for _ in islice(view.staying(), limits.items_max)))


def budget_of(view: ViewState, limits: Limits) -> StrategyBudget:
    """What there is and what the view uses of it."""
    target = tokens_goal(view, limits)
    system, context, dialog, output = (portion(share, target) for share in limits.shares)
    rank = view.groups.rank
    return StrategyBudget(
        total=view.total,
        overhead=view.overhead,
        budget=limits.budget,
        trigger=limits.trigger,
        target=target,
        shares=(system, context, dialog, output),
        units=sum(rank[head] != SYSTEM for head in heads_in(view)),
        items=sum(view.tally.items),
        items_max=limits.items_max,
        items_target=items_goal(view, limits),
    )


def clearable_in(view: ViewState, head: int) -> Iterator[int]:
    """The unit's outputs whose placeholder is smaller than they are, in order."""
    groups, measures = view.groups, view.measures
    for place in groups.members(head):
        if groups.kind[place] == KIND_OUTPUT and not view.is_cleared(place) and measures.cleared(place) < view.tokens(place):
            yield place


def measured(view: ViewState, head: int) -> MeasuredUnit:
    """The unit as a strategy sees it."""
    groups = view.groups
    places = tuple(place for place in groups.members(head) if view.gone(place) is None)
    rank = groups.rank[head]
    protected = _protection(view, head)
    saves = 0 if protected else sum(view.tokens(place) - view.measures.cleared(place) for place in clearable_in(view, head))
    return MeasuredUnit(
        head,
        places,
        PRIORITY[rank],
        sum(map(view.tokens, places)),
        saves,
        protected,
        begins_turn=groups.kind[head] == KIND_USER and rank != CONTEXT,
    )


def _protection(view: ViewState, head: int) -> Reason | None:
    """Why no trim may take the unit; the strongest reason, of which being SYSTEM is the weakest: `takes_system` lifts it."""
    groups = view.groups
    held = groups.held[head]
    if held != FREE and not groups.firm.isdisjoint(groups.members(head)):
        return Reason.PINNED
    if held == SUMMARY:
        return Reason.SUMMARY
    if view.in_frontier(head):
        return Reason.FRONTIER
    return Reason.SYSTEM if held == HELD or groups.rank[head] == SYSTEM else None
