"""Strategies to try guarantees on, some of them strange, and the slow twin of a view that one of them decides on.

They go by nothing but what they are given, as `Strategy` asks; and by no position in the log, so that a view used as a log goes on as
it did.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from hypothesis import strategies as st

from context_window.strategies import (
    DropOldest,
    NeverTrim,
    PriorityTrim,
    SlidingWindow,
    Summarize,
    advisers_of,
    is_final,
    parts_of,
)
from context_window.trimming.choices import Choice, MeasuredUnit, Strategy, StrategyBudget
from context_window.trimming.limits import Limits
from context_window.trimming.placeholders import MARK, cleared
from context_window.trimming.plan import Action, Reason
from session.items import FunctionCallOutput, Message, MessageCategory
from session.session import Session
from tests.support.twin import Twin, cost, is_silent, is_summary, responses


@dataclass(frozen=True)
class Whim:
    """Takes any of the free units, for no reason that anybody could guess: the same ones of the same view.

    Attributes:
        seed: Which whim.
        above_units: As of any strategy.
        final: As of any strategy.
    """

    seed: int
    above_units: int | None = None
    final: bool = False

    def __call__(self, units: Sequence[MeasuredUnit], budget: StrategyBudget, /) -> Iterator[Choice]:
        free = [unit for unit in units if unit.free]
        if self.seed % 3 == 0:
            free.reverse()
        for place, unit in enumerate(free):
            fancy = (place * 5 + unit.items * 7 + unit.tokens * 3 + unit.begins_turn + budget.items + self.seed) % 11
            always = fancy % 4 == 0
            if fancy < 3:
                yield unit.clear(always=always)
            elif fancy == 3:
                yield unit.summarise()
            if 1 < fancy < 7 and fancy != 3:
                yield unit.drop(Reason.BY_STRATEGY if always else Reason.OVER_BUDGET, always=always)


def clear_all_then_drop(units: Sequence[MeasuredUnit], budget: StrategyBudget) -> list[Choice]:
    """A plain function, as users write them."""
    free = [unit for unit in units if unit.free and unit.category is not MessageCategory.CONTEXT]
    return [*(unit.clear() for unit in free), *(unit.drop() for unit in free if budget.over)]


WINDOWS = st.tuples(st.integers(1, 9), st.integers(1, 9)).map(lambda drawn: SlidingWindow(max(drawn), min(drawn)))
NAMED: st.SearchStrategy[Strategy] = st.one_of(
    WINDOWS, st.builds(DropOldest, st.booleans()), st.builds(Summarize, st.integers(0, 9)), st.just(NeverTrim()), st.just(PriorityTrim())
)
WHIMS = st.builds(Whim, st.integers(0, 99), st.sampled_from((None, None, 0, 8)), st.sampled_from((False, False, True)))
ANY: st.SearchStrategy[Strategy] = st.one_of(WHIMS, NAMED, st.just(clear_all_then_drop))


@st.composite
def strategies(draw: st.DrawFn, one: st.SearchStrategy[Strategy] = ANY) -> Strategy:
    """One strategy, or two in a chain."""
    first = draw(one)
    return PriorityTrim() | first | draw(one) if draw(st.integers(0, 3)) == 3 else first


def decided_by(strategy: Strategy, limits: Limits) -> Limits:
    """The limits with the strategy, as the manager makes them. A final strategy knows no limit of items."""
    items_max = None if is_final(strategy) else limits.items_max
    return replace(limits, items_max=items_max, advisers=advisers_of(strategy), final=is_final(strategy))


@dataclass
class StrategicTwin(Twin):
    """The twin of a view that a strategy decides on, from its prose: `Strategy` in trimming/choices.py, the steps in steps.py."""

    strategy: Strategy = PriorityTrim()  # noqa: RUF009 - frozen

    def trim(self) -> None:
        limits, final = self.limits, is_final(self.strategy)
        self.compact()
        if not final:
            self.images()
        for part in parts_of(self.strategy):
            self.ask(part)
        if final:
            return
        if limits.items_max is not None and len(self.in_view()) > limits.items_max:
            self.passes(self.goal(limits.items_max, limits.items_target, weigh=False), weigh=False)
        if self.total() > limits.trigger:
            self.passes(self.goal(limits.trigger, limits.target, weigh=True), weigh=True)
        if self.total() > limits.budget:
            self.truncate()

    def ask(self, part: Strategy) -> None:
        limits = self.limits
        heavy = self.total() > limits.trigger
        many = limits.items_max is not None and len(self.in_view()) > limits.items_max
        above = getattr(part, "above_units", None)
        if not (heavy or many or (above is not None and self.budget().units > above)):
            return
        budget = self.budget()
        for choice in list(part(self.measured(), budget)):
            unit = self.units()[choice.head]
            if choice.action is Action.CLEAR:
                for place in unit:
                    if self.can_clear(place) and (choice.always or (heavy and self.total() > budget.target)):
                        self.cleared.add(place)
                        self.edited(self.wire(place))
            elif choice.action is Action.DROP and set(unit).intersection(self.in_view()):
                too_heavy = heavy and self.total() > budget.target
                too_many = many and len(self.in_view()) > budget.items_target
                if choice.always or too_heavy or too_many:
                    self.drop(unit)

    def can_clear(self, place: int) -> bool:
        item = self.items[place]
        if not isinstance(item, FunctionCallOutput) or place not in self.in_view() or place in self.cleared:
            return False
        return item.extra.get(MARK) != "cleared" and cost(cleared(item)) < cost(self.shown(place))

    def budget(self) -> StrategyBudget:
        limits = self.limits
        target = self.goal(limits.trigger, limits.target, weigh=True)
        system, context, dialog, output = (int(share * target) for share in limits.shares)
        return StrategyBudget(
            total=self.total(),
            overhead=limits.overhead + self.additions(),
            budget=limits.budget,
            trigger=limits.trigger,
            target=target,
            shares=(system, context, dialog, output),
            units=sum(unit.category is not MessageCategory.SYSTEM for unit in self.measured()),
            items=len(self.in_view()),
            items_max=limits.items_max,
            items_target=0 if limits.items_max is None else self.goal(limits.items_max, limits.items_target, weigh=False),
        )

    def measured(self) -> list[MeasuredUnit]:
        shown = set(self.in_view())
        units = {tuple(unit): unit for unit in self.units().values() if shown.intersection(unit)}
        return [self.unit(unit, shown) for unit in sorted(units.values(), key=lambda unit: unit[-1], reverse=self.limits.newest_first)]

    def unit(self, unit: list[int], shown: set[int]) -> MeasuredUnit:
        items, category = [self.items[place] for place in unit], self.category(unit[0])
        system = category is MessageCategory.SYSTEM or any(item.category is MessageCategory.SYSTEM for item in items)
        protected = None
        if any(item.pinned or (is_summary(item) and item.category is MessageCategory.SYSTEM) for item in items):
            protected = Reason.PINNED
        elif any(map(is_summary, items)) and not system:
            protected = Reason.SUMMARY
        elif self.frontier().intersection(unit):
            protected = Reason.FRONTIER
        elif system:
            protected = Reason.SYSTEM
        first = items[0]
        saves = [
            cost(self.shown(place)) - cost(cleared(item))
            for place, item in zip(unit, items, strict=True)
            if self.can_clear(place) and isinstance(item, FunctionCallOutput)
        ]
        return MeasuredUnit(
            unit[0],
            tuple(place for place in unit if place in shown),
            category,
            sum(cost(self.shown(place)) for place in unit if place in shown),
            0 if protected else sum(saves),
            protected,
            begins_turn=isinstance(first, Message)
            and first.role == "user"
            and not is_silent(first)
            and category is not MessageCategory.CONTEXT,
        )


def decided(session: Session, limits: Limits, strategy: Strategy, *, one_shot: bool = False) -> StrategicTwin:
    """The slow form of the view of the whole log."""
    twin = StrategicTwin(list(session.items), session.response_breaks, limits, strategy=strategy)
    for response in [] if one_shot else responses(twin.items, twin.breaks):
        twin.grow(response[0])
        if response[0] >= session.settled:
            twin.trim()
    twin.grow(len(twin.items))
    twin.trim()
    return twin
