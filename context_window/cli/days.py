"""Days and time zones on the command line: `--since yesterday`, `spend today`, `--timezone Europe/Berlin`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import partial
from typing import TypeAlias
from zoneinfo import ZoneInfo

import click

from session.redaction import short

Day: TypeAlias = Callable[[date], date]
"""A day that is known once it is known which day today is."""
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
PERIODS: dict[str, tuple[Day, Day]] = {
    "today": (lambda today: today, lambda today: today),
    "yesterday": (lambda today: today - timedelta(1), lambda today: today - timedelta(1)),
    "week": (lambda today: today - timedelta(today.weekday()), lambda today: today),
    "month": (lambda today: today.replace(day=1), lambda today: today),
}
"""The first and the last day of what may stand in the place of a log: this week begins on Monday."""


def _last(weekday: int, today: date) -> date:
    return today - timedelta((today.weekday() - weekday) % 7)


def _ago(days: int, today: date) -> date:
    return today - timedelta(min(days, today.toordinal() - 1))


def day_named(_context: click.Context, _option: click.Parameter, value: str | None) -> Day | None:
    """Return a day by its name: a date, `today`, `yesterday`, a weekday for the last one, or `7d` for seven days ago.

    Raises:
        BadParameter: The value names none.
    """
    if value is None:
        return None
    word = value.strip().lower()
    if word in ("today", "yesterday"):
        return PERIODS[word][0]
    if word in WEEKDAYS:
        return partial(_last, WEEKDAYS.index(word))
    if word.endswith("d") and word[:-1].isascii() and word[:-1].isdigit() and len(word) < 8:
        return partial(_ago, int(word[:-1]))
    try:
        day = datetime.strptime(word, "%Y-%m-%d").date()  # noqa: DTZ007 - a day has no time zone
    except ValueError:
        problem = f"{short(value)} is no day; pass one such as 2026-03-25, yesterday, monday, or 7d for seven days ago."
        raise click.BadParameter(problem) from None
    return lambda _: day


def zone_named(_context: click.Context, _option: click.Parameter, value: str | None) -> tzinfo | None:
    """Return a time zone by its name.

    Raises:
        BadParameter: This machine knows none of this name.
    """
    if value is None or value.upper() == "UTC":
        return None if value is None else UTC
    try:
        return ZoneInfo(value)
    except (LookupError, ValueError, OSError):  # no such name, or a folder or a path
        problem = f"{short(value)} is no time zone of this machine; pass a name such as Europe/Berlin or UTC."
        raise click.BadParameter(problem) from None


def today_in(zone: tzinfo | None) -> date:
    """Return the day that it is in a time zone; in the machine's if it is None."""
    return datetime.now(zone).date()
