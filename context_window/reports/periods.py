"""Divides time into so few periods that a chart of them can be read."""

from __future__ import annotations

from collections.abc import Collection
from datetime import date, timedelta

from ..spend.tables import DAYS

DAYS_MAX, WEEKS_MAX = 92, 2 * 366
"""Days between the first and the last request up to which a period is a day, and up to which it is a week. Beyond, it is a month."""
FILLED_MAX = 40 * 366
"""Days up to which periods without a request are listed too. A damaged log may have requests thousands of years apart."""


def period_for(days: Collection[date]) -> str:
    """Return the grouping of `spend_by` that suits these days: `day`, `week` or `month`."""
    span = (max(days) - min(days)).days if days else 0
    return "day" if span <= DAYS_MAX else "week" if span <= WEEKS_MAX else "month"


def period_names(days: Collection[date]) -> list[str]:
    """Return the names of all periods from the first of these days to the last, in order."""
    if not days:
        return []
    name = DAYS[period_for(days)]
    first, span = min(days), (max(days) - min(days)).days
    listed = [first + timedelta(days=number) for number in range(span + 1)] if span <= FILLED_MAX else sorted(days)
    return list(dict.fromkeys(map(name, listed)))
