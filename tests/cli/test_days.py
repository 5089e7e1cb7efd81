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

from context_window.cli.days import PERIODS, WEEKDAYS, day_named, zone_named
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
        for first, last in PERIODS.values():
            assert first(today) <= last(today) <= today


@pytest.mark.parametrize("text", ["", "tomorrow", "2026-02-30", "-3d", "d", "99999999d", "2026-3", "٣d"])
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
