"""Days, periods and time zones on the command line: `--since yesterday`, `spend last month`, `--timezone Europe/Berlin`."""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import TypeAlias

import click

from session.redaction import short

Day: TypeAlias = Callable[[date], date]
"""A day that is known once it is known which day today is."""
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
MONTHS = ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december")
PERIODS = ("today", "yesterday", "week", "month", "year", "last week", "last month", "last year", *WEEKDAYS, *MONTHS)
"""Words for periods, besides those with numbers."""
EXAMPLES = "week, last month, monday, april, 2026-04, or 7d"
_DATE = re.compile(r"(\d{4})(?:-(\d\d)(?:-(\d\d))?)?", re.ASCII)
_AGO = re.compile(r"(\d{1,6})d", re.ASCII)
_LAST = re.compile(r"last (\d{1,6}) days", re.ASCII)


def period_named(text: str, today: date) -> tuple[date, date] | None:
    """Return the first and the last day of a period; None if the text names none.

    It is a word of `PERIODS`, `this` and one of these, a date, a month such as `2026-04` or `april 2025`, a year, `last 7 days`, or `7d`
    for those since seven days ago. Weeks begin on Monday. Of weekdays and months by name, the latest that has begun is meant.

    Args:
        text: The text.
        today: The day that it is.
    """
    word = " ".join(text.lower().split()).removeprefix("this ")
    try:
        if found := _AGO.fullmatch(word) or _LAST.fullmatch(word):
            return _before(today, int(found[1]) - word.startswith("last ")), today
        if found := _DATE.fullmatch(word):
            return _dated(*found.groups())
        return _by_name(word, today)
    except (ValueError, OverflowError):  # beyond the calendar
        return None


def _by_name(word: str, today: date) -> tuple[date, date] | None:
    is_last, (name, *rest) = word.startswith("last "), word.removeprefix("last ").split() or [""]
    month = next((number for number, long in enumerate(MONTHS, 1) if name in (long, long[:3])), 0)
    if rest:
        return _dated(rest[0], f"{month:02}") if month and len(rest) == 1 and re.fullmatch(r"\d{4}", rest[0], re.ASCII) else None
    if month:
        return _dated(f"{today.year - (month > today.month or (is_last and month == today.month)):04}", f"{month:02}")
    weekday = next((number for number, long in enumerate(WEEKDAYS) if name in (long, long[:3])), None)
    if weekday is not None:
        back = (today.weekday() - weekday) % 7
        return (_before(today, back or 7 * is_last),) * 2
    starts = {"week": _before(today, today.weekday()), "month": today.replace(day=1), "year": today.replace(month=1, day=1)}
    if name in starts and is_last:
        end = starts[name] - timedelta(1)
        return {"week": end - timedelta(6), "month": end.replace(day=1), "year": end.replace(month=1, day=1)}[name], end
    if name in starts:
        return starts[name], today
    day = {"today": today, "yesterday": _before(today, 1)}.get(name)
    return None if day is None or is_last else (day, day)


def _before(today: date, days: int) -> date:
    return today - timedelta(max(0, min(days, today.toordinal() - 1)))


def _dated(year: str, month: str | None = None, day: str | None = None) -> tuple[date, date]:
    first = date(int(year), int(month or 1), int(day or 1))
    if day:
        return first, first
    last_month = int(month or 12)
    return first, date(first.year, last_month, calendar.monthrange(first.year, last_month)[1])


def day_named(_context: click.Context, option: click.Parameter, value: str | None) -> Day | None:
    """Return a day by its name: the first day of a period for `--since`, the last for `--until`, and for both `7d` for seven days ago.

    Raises:
        BadParameter: The value names none.
    """
    if value is None:
        return None
    is_ago = _AGO.fullmatch(value.strip().lower())
    place = 1 if option.name == "until" and not is_ago else 0
    if period_named(value, date(2000, 1, 1)) is None:
        problem = f"{short(value)} is no day; pass one such as 2026-03-25, yesterday, {EXAMPLES} for seven days ago."
        raise click.BadParameter(problem)
    return lambda today: (period_named(value, today) or (today, today))[place]


def zone_named(_context: click.Context, _option: click.Parameter, value: str | None) -> tzinfo | None:
    """Return a time zone by its name.

    Raises:
        BadParameter: This machine knows none of this name.
    """
    if value is None or value.upper() == "UTC":
        return None if value is None else UTC
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(value)
    except (LookupError, ValueError, OSError):  # no such name, or a folder or a path
        problem = f"{short(value)} is no time zone of this machine; pass a name such as Europe/Berlin or UTC."
        raise click.BadParameter(problem) from None


def today_in(zone: tzinfo | None) -> date:
    """Return the day that it is in a time zone; in the machine's if it is None."""
    return datetime.now(zone).date()
