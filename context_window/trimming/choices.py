"""What a strategy is given and what it gives: measured units and a budget in, choices out. Values only.

How its choices are checked and carried out is in `consult.py`; the strategies that have names are in `context_window.strategies`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from session.items import MessageCategory

from .plan import Action, Reason

CHOICES = (Action.CLEAR, Action.SUMMARISE, Action.DROP)
"""What a strategy may choose for a unit."""

GIVEN = (Reason.BY_STRATEGY, Reason.OUT_OF_WINDOW, Reason.OVER_SHARE, Reason.OVER_BUDGET, Reason.TOO_MANY_ITEMS)
"""Why it may. The other reasons are facts of the log, which no strategy can state."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What is to become of a unit. `MeasuredUnit` makes them.

    Attributes:
        head: The unit.
        action: CLEAR its outputs, SUMMARISE or DROP it. Only `manage` writes summaries, before it trims; a trim passes such a
            choice over.
        reason: Why, as the plan will tell it.
        always: Whether to do it in any case. Else it is done only while the view is still above what the trim aims at, so
            that a strategy may name all units in the order it would give them up in.
    """

    head: int
    action: Action
    reason: Reason = Reason.BY_STRATEGY
    always: bool = False


@dataclass(frozen=True, slots=True)
class MeasuredUnit:
    """Items of the view that stand or fall together, as a strategy sees them: numbers, no content.

    Attributes:
        head: The position in the log of the unit's first item: what the unit is known by.
        places: The positions of those items that are in the view.
        category: What they count for.
        tokens: What they cost in the view.
        clearing_saves: Tokens that clearing its outputs would save; 0 where nothing can be cleared.
        protected: Why no trim may take it now: SYSTEM, PINNED, SUMMARY or FRONTIER. None: it may be taken.
        begins_turn: Whether it is a message of the user's. Passages, which are CONTEXT, begin no turn.
    """

    head: int
    places: tuple[int, ...]
    category: MessageCategory
    tokens: int
    clearing_saves: int
    protected: Reason | None
    begins_turn: bool

    @property
    def items(self) -> int:
        """Items it has in the view."""
        return len(self.places)

    @property
    def free(self) -> bool:
        """Whether it may be taken."""
        return self.protected is None

    def clear(self, reason: Reason = Reason.BY_STRATEGY, *, always: bool = False) -> Choice:
        """The choice to put placeholders for its outputs' contents, where they are smaller."""
        return Choice(self.head, Action.CLEAR, reason, always)

    def summarise(self, reason: Reason = Reason.BY_STRATEGY) -> Choice:
        """The choice to put a summary for it, which `manage` writes."""
        return Choice(self.head, Action.SUMMARISE, reason)

    def drop(self, reason: Reason = Reason.BY_STRATEGY, *, always: bool = False) -> Choice:
        """The choice to leave it out of the view."""
        return Choice(self.head, Action.DROP, reason, always)


@dataclass(frozen=True, slots=True)
class StrategyBudget:
    """What there is and what is used when a strategy is asked. Amounts are tokens unless named otherwise.

    Attributes:
        total: What the request costs now, `overhead` included. Where the provider has reported more than was counted here, more than
            the units and the overhead sum to.
        overhead: What of that is not the items': the frame, the tools, what converters add.
        budget: What it may cost.
        trigger: Above this a view is trimmed.
        target: Down to this.
        shares: The part of the target of SYSTEM, CONTEXT, DIALOG and SYSTEM_OUTPUT.
        units: Units in the view, those of SYSTEM not counted.
        items: Items in the view.
        items_max: More items than this are trimmed; None for any number.
        items_target: Down to so many items.
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

    @property
    def over(self) -> bool:
        """Whether the view exceeds a limit, so that it will be trimmed."""
        return self.total > self.trigger or (self.items_max is not None and self.items > self.items_max)

    @property
    def excess(self) -> int:
        """Tokens that have to go: from what is used down to the target; 0 while the trigger is not exceeded."""
        return self.total - self.target if self.total > self.trigger else 0


class Strategy(Protocol):
    """What chooses which units a full view gives up: a frozen value that can be called, or any plain function.

        def outputs_first(units, budget):
            return [unit.drop() for unit in units if unit.free and unit.clearing_saves]

    It must be pure: the same units and budget, the same choices. It is asked where the model is called, while the view exceeds
    a limit. What it leaves too large is then trimmed as `PriorityTrim` does. It may have these attributes beside:

    - `above_units`: It is asked also under the limits, where the view has more units than this, those of SYSTEM not counted.
    - `final`: True where nothing else may be taken: the view may then stay too large, an error where the window is `strict`.
    - `takes_system`: True where it may drop units that only their category, SYSTEM, protects.
    """

    def __call__(self, units: Sequence[MeasuredUnit], budget: StrategyBudget, /) -> Iterable[Choice]:
        """What to take, the first first.

        Args:
            units: All units of the view in the order of their age, the oldest first; the newest first where
                `trim_session(preserve_recency=False)` asks. They are measured when they are looked at, and not to be kept.
            budget: What there is and what is used.
        """


@dataclass(frozen=True, slots=True)
class Adviser:
    """A strategy, and what its attributes say of it.

    Attributes:
        strategy: The strategy.
        name: What errors call it.
        above_units: It is asked also under the limits, where the view has more units than this, those of SYSTEM not counted;
            None: over the limits only.
        takes_system: Whether it may drop units that only their category protects.
    """

    strategy: Strategy
    name: str
    above_units: int | None = None
    takes_system: bool = False


Advisers: TypeAlias = tuple[Adviser, ...]
"""Strategies in the order in which they are asked."""
