"""Days, periods and time zones on the command line."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_window.cli.days import MONTHS, PERIODS, WEEKDAYS, day_named, period_named, zone_named
from tests.spend.logs import answer, write
from tests.support.shell import Shell

CONTEXT = click.Context(click.Command("spend"))
OPTION = click.Option(["--since"])


def day(text: str, today: date) -> date:
    named = day_named(CONTEXT, OPTION, text)
    assert named is not None
    return named(today)


@given(st.dates())
def test_words_name_days(today: date) -> None:
    assert day(today.isoformat(), date(2026, 1, 1)) == today
    assert day("Today", today) == today
    assert day("0d", today) == today
    for number, word in enumerate(WEEKDAYS):
        named = day(word, today) if today > date(1, 1, 7) else today
        assert named == today or (named.weekday() == number and timedelta(0) <= today - named < timedelta(7))
    if today > date(1, 1, 8):
        assert (day("yesterday", today), day("7d", today)) == (today - timedelta(1), today - timedelta(7))


@given(st.dates(date(2, 1, 1)), st.sampled_from(PERIODS), st.sampled_from(["", "this ", "Last  "]))
def test_a_period_has_begun_and_the_one_before_is_over(today: date, word: str, before: str) -> None:
    """Months and years are whole; what has begun holds today, or ends with the latest day of its name."""
    period = period_named(before + word, today)
    if period is None:
        assert before.strip() == "Last"
        assert word in ("today", "yesterday") or word.startswith("last")
        return
    first, last = period
    assert first <= last
    assert first <= today
    is_month = word.endswith("month") or word in MONTHS
    assert (last - first).days + 1 in ((28, 29, 30, 31) if is_month and last != today else range(1, 367))
    if "last" in f"{before}{word}".lower():
        assert last < today
        later = period_named(word.removeprefix("last "), today)
        assert later is not None
        assert later[0] - last == timedelta(1) or (word in (*WEEKDAYS, *MONTHS) and later[0] >= first)


def test_days_are_named_as_people_write_them() -> None:
    today = date(2026, 11, 28)
    for text, first, last in (
        ("2026-04", date(2026, 4, 1), date(2026, 4, 30)),
        ("2025", date(2025, 1, 1), date(2025, 12, 31)),
        ("Apr", date(2026, 4, 1), date(2026, 4, 30)),
        ("december", date(2025, 12, 1), date(2025, 12, 31)),
        ("february 2024", date(2024, 2, 1), date(2024, 2, 29)),
        ("last week", date(2026, 11, 16), date(2026, 11, 22)),
        ("last saturday", date(2026, 11, 21), date(2026, 11, 21)),
        ("last 7 days", date(2026, 11, 22), today),
        ("7d", date(2026, 11, 21), today),
    ):
        assert period_named(text, today) == (first, last)
        until = day_named(CONTEXT, click.Option(["--until"]), text)
        assert until is not None
        assert (day(text, today), until(today)) == (first, first if text == "7d" else last)


@pytest.mark.parametrize(
    "text", ["", "tomorrow", "2026-02-30", "-3d", "d", "99999999d", "2026-3", "٣d", "2026-13", "last", "april 9", "april x"]
)
def test_no_day_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is no day; pass one such as"):
        day_named(CONTEXT, OPTION, text)


@pytest.mark.parametrize("text", ["", "Nowhere/City", "../../etc/passwd", "/etc/localtime", "\0", "Europe"])
def test_no_time_zone_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is no time zone of this machine"):
        zone_named(CONTEXT, OPTION, text)


def test_a_time_zone_moves_days(shell: Shell, tmp_path: Path) -> None:
    log = write(tmp_path / "a.jsonl", answer("m", 1, timestamp="2026-03-25T23:30:00Z"))
    for zone, expected in (("UTC", "2026-03-25"), ("Asia/Tokyo", "2026-03-26"), ("America/New_York", "2026-03-25")):
        (row,) = json.loads(shell("spend", log, "--timezone", zone, "--json")[1])["rows"]
        assert row["name"] == expected
    assert len(json.loads(shell("spend", log, "--timezone", "Asia/Tokyo", "--since", "2026-03-26", "--json")[1])["rows"]) == 1
    assert not json.loads(shell("spend", log, "--timezone", "UTC", "--since", "2026-03-26", "--json")[1])["rows"]


def test_a_period_stands_before_the_logs(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = datetime.now(UTC)
    times = [now, now - timedelta(1), now - timedelta(40)]
    log = write(tmp_path / "a.jsonl", *(answer(f"m{index}", 1, timestamp=time.isoformat()) for index, time in enumerate(times)))

    def requests(*words: object) -> int:
        total: int = json.loads(shell("spend", *words, "--timezone", "UTC", "--json")[1])["total"]["requests"]
        return total

    assert (requests(log), requests("today", log), requests("yesterday", log)) == (3, 1, 1)
    assert requests("month", log) == (1 if now.day == 1 else 2)
    assert requests("week", log) == (1 if now.weekday() == 0 else 2)
    assert json.loads(shell("spend", "today", log, "--json")[1])["by"] == "project"
    assert json.loads(shell("spend", "week", log, "--json")[1])["by"] == "day"
    month_before = requests("last", "month", log)
    assert month_before == requests("last month", log) == requests("--since", "last month", "--until", "last month", log)
    assert month_before + requests("this", "month", log) == 3
    code, _, err = shell("spend", "today", log, "--since", "2026-01-01")
    assert (code, "leave out --since" in err) == (2, True)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "today").mkdir()
    write(tmp_path / "today" / "b.jsonl", answer("x", 1))
    assert requests("today") == 1  # a folder of this name is one
    assert requests("today", log) == 4


def test_zones_are_those_of_the_system() -> None:
    assert zone_named(CONTEXT, OPTION, "Europe/Berlin") == ZoneInfo("Europe/Berlin")
    assert zone_named(CONTEXT, OPTION, "utc") is UTC
    assert zone_named(CONTEXT, OPTION, None) is None
