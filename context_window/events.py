"""What the manager tells its listeners. No content is in an event, only names, ids and numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class WindowEvent:
    """What every event has.

    Attributes:
        session_id: The session it is about.
        tokens: What the request now costs.
        budget: What it may cost.
    """

    session_id: str
    tokens: int
    budget: int

    def __str__(self) -> str:
        percent = 100 * self.tokens // self.budget
        return f"context window at {percent}% capacity ({self.tokens:,}/{self.budget:,} tokens)"


@dataclass(frozen=True, slots=True)
class ThresholdCrossed(WindowEvent):
    """Usage has gone above one of `warn_at`. Told once, until usage has been below it again.

    Attributes:
        threshold: The part of the budget.
    """

    threshold: float


@dataclass(frozen=True, slots=True)
class Trimmed(WindowEvent):
    """A view has lost something that the view before it still had.

    Attributes:
        items: How many items are out of the view, or in it in a smaller form.
        freed: Tokens that all of them would cost more.
    """

    items: int
    freed: int

    def __str__(self) -> str:
        return f"{WindowEvent.__str__(self)}, {self.items:,} item{'s' if self.items != 1 else ''} trimmed: {self.freed:,} tokens freed"


@dataclass(frozen=True, slots=True)
class OverBudget(WindowEvent):
    """A view does not fit although all that could go is gone."""

    def __str__(self) -> str:
        return f"{WindowEvent.__str__(self)}, over budget: what must be kept is {self.tokens - self.budget:,} tokens too large"


Event: TypeAlias = ThresholdCrossed | Trimmed | OverBudget
Listener: TypeAlias = Callable[[Event], None]
