"""Each category's part of the budget: the setting (`Shares`), and one category's part in tokens (`TokenBudget`)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from session.items import MessageCategory

from ..errors import BudgetError
from ..validation import check_ratio, exact_fraction

ROUNDING = Fraction(1, 10**9)
"""Tolerance for a sum of floats meant to be 1: 1/6 and 5/6 exceed it in the 17th digit."""


@dataclass(frozen=True, slots=True)
class Shares:
    """Each category's part of the budget. A category above its share is trimmed before any category is trimmed below its own.

    A share is a floor under pressure, not a limit: while the total fits, a category may use more. Shares are parts of 1 and may sum to
    less.

    Attributes:
        system: Share of SYSTEM.
        context: Share of CONTEXT.
        dialog: Share of DIALOG.
        system_output: Share of SYSTEM_OUTPUT.
    """

    system: float = 0.10
    context: float = 0.35
    dialog: float = 0.50
    system_output: float = 0.05

    def __post_init__(self) -> None:
        for name in ("system", "context", "dialog", "system_output"):
            check_ratio(f"shares.{name}", getattr(self, name), zero=True)
        total = sum(self.exact)
        if total > 1 + ROUNDING:
            raise BudgetError("shares", float(total), "the shares sum to more than 1; lower some of them")

    @property
    def exact(self) -> tuple[Fraction, Fraction, Fraction, Fraction]:
        """The shares by rank, exactly the decimals that were written."""
        return (exact_fraction(self.system), exact_fraction(self.context), exact_fraction(self.dialog), exact_fraction(self.system_output))


@dataclass(frozen=True, slots=True)
class TokenBudget:
    """A category's share of the budget, and its usage.

    Attributes:
        category: The category.
        share: Its part of the whole budget, from 0 to 1.
        tokens: The share in tokens: `floor(share × budget)`.
        used: Tokens in use.
    """

    category: MessageCategory
    share: float
    tokens: int
    used: int

    @property
    def available(self) -> int:
        """Tokens left of the share; negative if the category borrows from others."""
        return self.tokens - self.used
