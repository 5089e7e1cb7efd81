"""Divides time into so few periods that a chart of them can be read, and names some of them below it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import date, timedelta

from ..pages.shapes import TICKS_MAX
from ..spend.tables import DAYS

DAYS_MAX, WEEKS_MAX = 92, 2 * 366
"""Days between the first and the last request up to which a period is a day, and up to which it is a week. Beyond, it is a month."""
FILLED_MAX = 40 * 366
"""Days up to which periods without a request are listed too. A damaged log may have requests thousands of years apart."""
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_TICKED: dict[str, tuple[Callable[[date], bool], ...]] = {
    "day": (
        lambda _: True,
        lambda day: day.toordinal() % 2 == 0,
        lambda day: day.weekday() == 0,
        lambda day: day.toordinal() % 14 == 1,
    ),
    "week": (lambda _: True, lambda day: day.day <= 7, lambda day: day.day <= 7 and day.month % 3 == 1),
    "month": (
        lambda day: day.month % 3 == 1,
        *((lambda day, years=years: day.month == 1 and day.year % years == 0) for years in (1, 2, 5, 10, 100, 1000)),
    ),
}
"""By kind of period: which of them have a name below the chart, the most first. Every 14th day is a Monday."""


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


def period_ticks(period: str, names: Sequence[str]) -> list[str]:
    """Return for each period its name below a chart, such as `9 Mar`; empty texts for those between.

    Args:
        period: `day`, `week` or `month`.
        names: The periods, from `period_names`.
    """
    starts = [date.fromisoformat(name if period != "month" else f"{name}-01") for name in names]
    few = (chosen for rule in _TICKED[period] if 0 < len(chosen := [start for start in starts if rule(start)]) <= TICKS_MAX)
    ticked = set(next(few, starts[:1]))
    is_long = bool(starts) and starts[-1].year - starts[0].year > TICKS_MAX // 4
    return [_tick(period, start, is_long=is_long) if start in ticked else "" for start in starts]


def _tick(period: str, start: date, *, is_long: bool) -> str:
    month = MONTHS[start.month - 1]
    if period == "day":
        return f"{start.day} {month}"
    return str(start.year) if is_long else f"{month} {start.year}"
