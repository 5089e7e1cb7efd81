"""The interface of strategies: measured units and a budget in, choices out. Values only.

Choices are checked and applied in `strategy.py`. The strategies of this library are in `context_window.strategies`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Protocol, TypeAlias

from session.items import FunctionCall, FunctionCallOutput, Item, MessageCategory

from .plan import Action, Reason

CHOICES = (Action.CLEAR, Action.SUMMARISE, Action.DROP)
"""Actions that a strategy may choose for a unit."""

STRATEGY_REASONS = (Reason.BY_STRATEGY, Reason.OUT_OF_WINDOW, Reason.OVER_SHARE, Reason.OVER_BUDGET, Reason.TOO_MANY_ITEMS)
"""Reasons that it may state. The others are facts of the log."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A strategy's choice for one unit. Made by the methods of `MeasuredUnit`.

    Attributes:
        head: The unit.
        action: CLEAR, SUMMARISE or DROP it. Only `manage` writes summaries, before it trims. A trim ignores SUMMARISE.
        reason: The reason that the plan will state.
        always: True to do it in any case. False to do it only while the view is above the goal of the trim, so that a strategy can simply
            list all units in the order in which they may go.
    """

    head: int
    action: Action
    reason: Reason = Reason.BY_STRATEGY
    always: bool = False


@dataclass(frozen=True, slots=True)
class MeasuredUnit:
    """Items of the view that are kept or dropped together, as a strategy sees them: their figures, and the items themselves.

    Attributes:
        head: The position of the unit's first item in the log. Identifies the unit.
        places: The positions of its items that are in the view.
        category: The category that they count for.
        tokens: Their tokens in the view.
        clearing_saves: Tokens that clearing it would save; 0 if nothing can be cleared.
        protected: Why no trim may take it now: SYSTEM, PINNED, SUMMARY, FRONTIER or FIRST_MESSAGE. None if it may be taken.
        begins_turn: True for a message of the user. Passages of category CONTEXT do not begin a turn.
        age: Number of units in the view that are newer and begin a turn; 0 in the current turn.
        is_shortened: True if a digest shows lines of it, or a placeholder stands for one of its contents.
        contents: Its items in the view, as they are in the log, in the order of `places`.
    """

    head: int
    places: tuple[int, ...]
    category: MessageCategory
    tokens: int
    clearing_saves: int
    protected: Reason | None
    begins_turn: bool
    age: int = 0
    is_shortened: bool = False
    contents: tuple[Item, ...] = field(default=(), compare=False, repr=False)

    @property
    def items(self) -> int:
        """Number of its items in the view."""
        return len(self.places)

    @property
    def ids(self) -> tuple[str, ...]:
        """Ids of its items in the view."""
        return tuple(item.id for item in self.contents)

    @property
    def calls(self) -> tuple[FunctionCall, ...]:
        """Its tool calls, in order."""
        return tuple(item for item in self.contents if isinstance(item, FunctionCall))

    @property
    def outputs(self) -> tuple[FunctionCallOutput, ...]:
        """Its tool outputs, in order."""
        return tuple(item for item in self.contents if isinstance(item, FunctionCallOutput))

    @property
    def tool_names(self) -> tuple[str, ...]:
        """The tools that it calls, in order."""
        return tuple(call.name for call in self.calls)

    @property
    def free(self) -> bool:
        """True if it may be taken."""
        return self.protected is None

    def clear(self, reason: Reason = Reason.BY_STRATEGY, *, always: bool = False) -> Choice:
        """Return the choice to clear it: placeholders replace outputs and long values in calls' arguments, where that is smaller."""
        return Choice(self.head, Action.CLEAR, reason, always)

    def summarise(self, reason: Reason = Reason.BY_STRATEGY) -> Choice:
        """Return the choice to replace it by a summary, which `manage` writes."""
        return Choice(self.head, Action.SUMMARISE, reason)

    def drop(self, reason: Reason = Reason.BY_STRATEGY, *, always: bool = False) -> Choice:
        """Return the choice to leave it out of the view."""
        return Choice(self.head, Action.DROP, reason, always)


@dataclass(frozen=True, slots=True)
class Extraction:
    """A strategy's choice to keep only the most valuable lines of some units. Made by `keep_lines`. Always applied.

    Attributes:
        heads: The units.
        tokens: Tokens that these units may have together afterwards.
        reason: The reason that the plan will state.
    """

    heads: tuple[int, ...]
    tokens: int
    reason: Reason = Reason.BY_STRATEGY

    action: ClassVar[Action] = Action.EXTRACT


def keep_lines(units: Iterable[MeasuredUnit], tokens: int, reason: Reason = Reason.BY_STRATEGY) -> Extraction:
    """Return the choice to keep only the most valuable lines of these units, in a digest; units without any are dropped.

        def lines_of_old_turns(units, budget):
            old = [unit for unit in units if unit.free and unit.age > 1]
            return [keep_lines(old, tokens=budget.target // 4)]

    The lines of all units compete: those stay whose paths, names and numbers the model is most likely to use again. A digest is a message
    in the user's voice, so none of the units' calls, outputs and reasoning stays. A unit stays as it is if its lines would cost as much,
    or competes as a whole if it has no lines. Lines that an earlier choice has left out do not come back.

    Args:
        units: The units. All of them are free.
        tokens: Tokens that they may have together afterwards. With 0 or less, all are dropped.
        reason: The reason that the plan will state.
    """
    return Extraction(tuple(unit.head for unit in units), tokens, reason)


@dataclass(frozen=True, slots=True)
class StrategyBudget:
    """The limits of a view and its use of them, when a strategy is asked. Amounts are tokens unless named otherwise.

    Attributes:
        total: Cost of the request now, `overhead` included. More than the sum of the units and the overhead if the provider has reported
            more than was counted here.
        overhead: The part of it that is not the items': the frame, the tools, additions of converters.
        budget: The most that the request may cost.
        trigger: A view that costs more than this is trimmed.
        target: A trim goes down to this.
        shares: The parts of the target for SYSTEM, CONTEXT, DIALOG and SYSTEM_OUTPUT.
        units: Number of units in the view, without those of SYSTEM.
        items: Number of items in the view.
        items_max: A view with more items than this is trimmed; None for no limit.
        items_target: Number of items that such a trim goes down to.
        kept: Tokens that a trim keeps besides protected units, where the window is chosen automatically; None otherwise.
    """

    total: int
    overhead: int
    budget: int
    trigger: int
    target: int
    shares: tuple[int, int, int, int]
    units: int
    items: int
    items_max: int | None
    items_target: int
    kept: int | None = None

    @property
    def over(self) -> bool:
        """True if the view exceeds a limit, so that it will be trimmed."""
        return self.total > self.trigger or (self.items_max is not None and self.items > self.items_max)

    @property
    def excess(self) -> int:
        """Tokens to take to get down to the target; 0 while the trigger is not exceeded."""
        return self.total - self.target if self.total > self.trigger else 0


class Strategy(Protocol):
    """Chooses which units a full view gives up: a frozen value that can be called, or any plain function.

        def keep_errors(units, budget):
            return [unit.drop() for unit in units if unit.free and not any(output.is_error for output in unit.outputs)]

    It must be pure: the same units and budget always give the same choices. It is asked at request points at which the view exceeds a
    limit. If the view is still too large afterwards, it is trimmed as `PriorityTrim` does. A strategy may have these attributes:

    - `above_units`: It is also asked within the limits if the view has more units than this, without those of SYSTEM.
    - `final`: True if nothing else may be taken. The view may then stay too large, which is an error if the window is `strict`.
    - `takes_system`: True if it may drop units that are protected only by their category, SYSTEM.
    - `shortens_unread`: True if outputs and calls that the model has not read yet are truncated, where that is enough, before anything else
      is taken of what the strategy has left.
    - `restates_work`: True if a trim ends with a note that restates the plan, the last failure and the files under edit.
    """

    def __call__(self, units: Sequence[MeasuredUnit], budget: StrategyBudget, /) -> Iterable[Choice | Extraction]:
        """Return the choices, in the order in which they are to be applied.

        Args:
            units: All units of the view, oldest first; newest first for `trim_session(preserve_recency=False)`. A unit is measured when
                it is looked at. Do not keep the sequence.
            budget: The limits and the use of them.
        """


@dataclass(frozen=True, slots=True)
class Adviser:
    """A strategy with its attributes.

    Attributes:
        strategy: The strategy.
        name: Its name in error messages.
        above_units: It is also asked within the limits if the view has more units than this, without those of SYSTEM. None: never.
        takes_system: True if it may drop units that are protected only by their category.
        shortens_unread: True if the frontier's outputs and calls are truncated before anything that it has left is taken.
        restates_work: True if a note restates the state of the work after a trim.
    """

    strategy: Strategy
    name: str
    above_units: int | None = None
    takes_system: bool = False
    shortens_unread: bool = False
    restates_work: bool = False


Advisers: TypeAlias = tuple[Adviser, ...]
"""Strategies in the order in which they are asked."""
