"""How a full window is trimmed, by name. What strategies are asked with is in `trimming/choices.py`; who carries out what they
choose, in `trimming/consult.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from inspect import isclass, iscoroutinefunction, signature
from itertools import islice
from typing import Any

from session.items import MessageCategory

from .errors import BudgetError
from .trimming.choices import Adviser, Advisers, Choice, MeasuredUnit, Strategy, StrategyBudget
from .trimming.plan import Reason
from .whole import as_whole


class Composable:
    """What can be put before or after another strategy with `|`: the one on the left is asked first."""

    __slots__ = ()

    def __or__(self, other: Strategy) -> Chain:
        return Chain(_own(self), other)

    def __ror__(self, other: Strategy) -> Chain:
        return Chain(other, _own(self))


@dataclass(frozen=True, slots=True)
class PriorityTrim(Composable):
    """The lowest category first, the oldest first, each category down to its share before any goes below its own.

    Wherever it stands in a chain it comes last, as it does after every other strategy.
    """

    def __call__(self, _units: Sequence[MeasuredUnit], _budget: StrategyBudget, /) -> tuple[Choice, ...]:
        """Nothing beside what is always done: that goes by sums which the engine keeps, and costs nothing a unit."""
        return ()


@dataclass(frozen=True, slots=True)
class SlidingWindow(Composable):
    """The newest units alone, whether or not there is room for more. Where they are too large all the same, `PriorityTrim` follows.

        ContextWindow(strategy=SlidingWindow(40, step=20))  # from 21 to 40 units

    A unit is what stands or falls together: a message, or a response's calls with their reasoning and outputs. System messages stay
    beside the window, and are not counted. What is protected otherwise is in the window first, and stays even where it is more than
    that holds: pinned items, summaries, what the model is about to read, and the user message that it answers.

    Attributes:
        units: How many units stay at the most.
        step: How many leave together. With 1 the window is always full, and every request begins differently from the one before,
            so that the provider's cache is of no use; with more it holds `units - step + 1` units after it has slid.
    """

    units: int
    step: int = 1

    def __post_init__(self) -> None:
        _set_amount(self, "units", least=1)
        _set_amount(self, "step", least=1)
        if self.step > self.units:
            raise BudgetError("SlidingWindow.step", self.step, f"pass units={self.units} or less; more cannot leave together")

    @property
    def above_units(self) -> int:
        """As many units as may stay: with fewer, nothing is to be chosen."""
        return self.units

    def __call__(self, units: Sequence[MeasuredUnit], budget: StrategyBudget, /) -> Iterator[Choice]:
        """As many of the oldest as are too many."""
        if budget.units <= self.units:
            return iter(())
        older = budget.units - (self.units - self.step + 1)
        return islice((unit.drop(Reason.OUT_OF_WINDOW, always=True) for unit in units if unit.free), older)


@dataclass(frozen=True, slots=True)
class DropOldest(Composable):
    """The oldest first, whatever it is, until the view is down to its target.

    Attributes:
        keep_system: Whether system messages stay. False: they go in their turn, unless they are pinned.
    """

    keep_system: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.keep_system, bool):
            raise BudgetError("DropOldest.keep_system", self.keep_system, "pass True or False")

    @property
    def takes_system(self) -> bool:
        """Whether system messages may be among its choices."""
        return not self.keep_system

    def __call__(self, units: Sequence[MeasuredUnit], budget: StrategyBudget, /) -> Iterator[Choice]:
        """All units that may go, the oldest first."""
        for unit in units:
            if unit.free or (self.takes_system and unit.protected is Reason.SYSTEM and unit.tokens):
                yield unit.drop(Reason.OVER_BUDGET if budget.excess else Reason.TOO_MANY_ITEMS)


@dataclass(frozen=True, slots=True)
class Summarize(Composable):
    """All but the newest items are to be summarised. `manage` does so; `process_session` trims as `PriorityTrim` does instead.

    Attributes:
        keep_recent: Items of the newest that stay as they are. Units stay whole: the one that the last of these items is in, too.
    """

    keep_recent: int = 10

    def __post_init__(self) -> None:
        _set_amount(self, "keep_recent", least=0)

    def __call__(self, units: Sequence[MeasuredUnit], _budget: StrategyBudget, /) -> list[Choice]:
        """All units that are older than the newest items, of which system messages and summaries are not counted."""
        older, recent = len(units), 0
        while older and recent < self.keep_recent:
            older -= 1
            counts = units[older].category is not MessageCategory.SYSTEM and units[older].protected is not Reason.SUMMARY
            recent += units[older].items if counts else 0
        return [unit.summarise() for unit in units[:older] if unit.free]


@dataclass(frozen=True, slots=True)
class NeverTrim(Composable):
    """Nothing is ever taken, images included. For an agent that must never lose history: with `strict=True` a log larger than the
    budget is a `ContextOverflowError` with the figures, before the provider refuses it.

        ContextWindow(strategy=NeverTrim(), strict=True)

    After another strategy it says that nothing beside that one's choices may be taken. What a `Compaction` in the log replaces is
    not shown all the same: that is the log's own word.
    """

    @property
    def final(self) -> bool:
        """Nothing else may be taken."""
        return True

    def __call__(self, _units: Sequence[MeasuredUnit], _budget: StrategyBudget, /) -> tuple[Choice, ...]:
        """Nothing."""
        return ()


@dataclass(frozen=True, slots=True, init=False)
class Chain(Composable):
    """Strategies one after the other, each asked about what the one before has left.

        SlidingWindow(40) | DropOldest()

    Attributes:
        parts: The strategies; chains among them are taken apart.
    """

    parts: tuple[Strategy, ...]

    def __init__(self, *parts: Strategy) -> None:
        """
        Args:
            parts: The strategies, in the order in which they are asked.

        Raises:
            BudgetError: One of them is none.
        """
        flat: list[Strategy] = []
        for part in parts:
            check_strategy("Chain", part)
            flat += part.parts if isinstance(part, Chain) else [part]
        object.__setattr__(self, "parts", tuple(flat))

    def __call__(self, units: Sequence[MeasuredUnit], budget: StrategyBudget, /) -> Iterator[Choice]:
        """What each would choose of these units, as if the others took nothing. Trims ask them one by one instead."""
        for part in self.parts:
            yield from part(units, budget)


def _own(strategy: Any) -> Strategy:
    """`Composable` has no `__call__` of its own: what inherits it has."""
    made: Strategy = strategy
    return made


# For those who make limits of them


def parts_of(strategy: Strategy) -> tuple[Strategy, ...]:
    """The strategies that a chain holds, or the one that this is."""
    return strategy.parts if isinstance(strategy, Chain) else (strategy,)


def summarize_of(strategy: Strategy) -> Summarize | None:
    """The `Summarize` that this is or holds, the first; None where there is none."""
    return next((part for part in parts_of(strategy) if isinstance(part, Summarize)), None)


def is_final(strategy: Strategy) -> bool:
    """Whether nothing may be taken beside what it chooses."""
    return any(getattr(part, "final", False) for part in parts_of(strategy))


def advisers_of(strategy: Strategy) -> Advisers:
    """The strategies that a trim asks: without those that choose nothing."""
    return tuple(
        Adviser(
            part,
            _name_of(part),
            above_units=getattr(part, "above_units", None),
            takes_system=getattr(part, "takes_system", False),
        )
        for part in parts_of(strategy)
        if not isinstance(part, PriorityTrim | NeverTrim)
    )


def check_strategy(name: str, strategy: object) -> None:
    """Raises BudgetError where this is no strategy.

    Args:
        name: The setting, for the error.
        strategy: What was passed for one.
    """
    if isclass(strategy) or not callable(strategy):
        raise BudgetError(name, strategy, "pass a PriorityTrim(), another strategy, or a function of (units, budget)")
    if iscoroutinefunction(strategy) or iscoroutinefunction(type(strategy).__call__):
        raise BudgetError(name, strategy, "pass a plain function: a strategy goes by the numbers it is given, and waits for nothing")
    if not _takes_two(strategy):
        raise BudgetError(name, strategy, "pass a function that can be called with (units, budget)")
    try:
        hash(strategy)
    except TypeError as error:
        raise BudgetError(name, strategy, "pass one that can be hashed, such as a frozen dataclass: a strategy must not change") from error
    above = getattr(strategy, "above_units", None)
    if above is not None and (type(above) is not int or above < 0):
        raise BudgetError(f"{name}.above_units", above, "make it None, or a whole number of 0 or more")
    for attribute in ("final", "takes_system"):
        if not isinstance(value := getattr(strategy, attribute, False), bool):
            raise BudgetError(f"{name}.{attribute}", value, "make it True or False")


def _takes_two(strategy: Callable[..., Iterable[Choice]]) -> bool:
    try:
        parameters = signature(strategy)
    except (TypeError, ValueError):  # a builtin that does not tell: asking will
        return True
    try:
        parameters.bind(None, None)
    except TypeError:
        return False
    return True


def _name_of(strategy: Strategy) -> str:
    return str(getattr(strategy, "__name__", None) or type(strategy).__name__)


def _set_amount(strategy: object, field: str, *, least: int) -> None:
    """Makes the field a plain int.

    Raises:
        BudgetError: It is no whole number, or below `least`.
    """
    value = getattr(strategy, field)
    amount = as_whole(value)
    if amount is None or amount < least:
        raise BudgetError(f"{type(strategy).__name__}.{field}", value, f"pass a whole number of {least} or more")
    object.__setattr__(strategy, field, amount)
