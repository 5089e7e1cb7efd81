"""`CostLimit`: US dollars from which on a gateway refuses requests, of its own time or of a day."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

from ..models.prices import priced_model

TOO_DEAR = "{what} have cost ${cost:,.2f}, and the gateway was started with a limit of ${most:,.2f} (--max-cost)"


def today() -> date:
    """Return the day in the machine's time zone."""
    return datetime.now().astimezone().date()


class CostLimit:
    """A limit. Costs count as far as the models' prices are known."""

    def __init__(self, most: Decimal, spent_today: Decimal | None) -> None:
        """
        Args:
            most: The limit.
            spent_today: What today's requests have cost so far, if it is the limit of a day; None for one of the gateway.
        """
        self._most, self._is_of_day, self._before = most, spent_today is not None, spent_today or Decimal(0)
        self._day = today()
        priced_model("")  # loads the price list, so that no request passes while the first one's cost is being worked out

    def problem(self, cost: Decimal) -> str | None:
        """Return why a request is refused; None if it may pass.

        Args:
            cost: What the gateway's requests have cost since its start.
        """
        if self._is_of_day and today() != self._day:
            self._day, self._before = today(), -cost
        spent = self._before + cost
        what = "today's requests" if self._is_of_day else "the requests through this gateway"
        return TOO_DEAR.format(what=what, cost=spent, most=self._most) if spent >= self._most else None
