"""The part of a manager that says what its budget is and what is used of it, as the last view or analysis left it."""

from __future__ import annotations

from session.items import MessageCategory
from session.units import PRIORITY

from .config import ContextWindow, TokenBudget, check_amount
from .ledger import Ledger, known_category
from .switching import Switching
from .trimming.limits import portion


class Spending(Switching):
    """Budgets by category, and what each holds."""

    context_window: ContextWindow
    _ledger: Ledger

    @property
    def total_budget(self) -> int:
        """Tokens that a request may cost, tool definitions included."""
        return self._settings.budget.tokens

    @property
    def available_tokens(self) -> int:
        """Tokens left; negative when over the budget."""
        settings, noted = self._figures()
        return settings.budget.tokens - noted.total

    def get_budget(self, category: MessageCategory | str) -> TokenBudget:
        """What a category may hold and holds.

        Raises:
            BudgetError: There is no such category.
        """
        known = known_category(category)
        share = self.context_window.shares.exact[PRIORITY.index(known)]
        settings, noted = self._figures()
        return TokenBudget(known, float(share), portion(share, settings.budget.tokens), noted.used(known))

    def update_usage(self, category: MessageCategory | str, tokens: int) -> None:
        """Adds tokens that no session holds to a category, until a session is analysed, trimmed or processed.

        Raises:
            BudgetError: There is no such category, or the number is negative or no whole number.
        """
        self._ledger.add(known_category(category), check_amount("tokens", tokens, least=0))

    def reset_usage(self, category: MessageCategory | str | None = None) -> None:
        """Sets one category to zero, or everything, as if no session had been seen.

        Raises:
            BudgetError: There is no such category.
        """
        self._ledger.reset(None if category is None else known_category(category))

    def is_over_budget(self, category: MessageCategory | str | None = None) -> bool:
        """Whether a category holds more than its share, or everything together more than the budget.

        Raises:
            BudgetError: There is no such category.
        """
        if category is None:
            return self.available_tokens < 0
        return self.get_budget(category).available < 0
