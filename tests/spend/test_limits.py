"""Limits of plans and blocks of five hours: from logs, from the status line, through the cache, and on the screen."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_window.display.limits import limit_sentences
from context_window.kept_limits import FRESH, keep_limits
from context_window.spend import SpendCache, cache_file, read_ledger, spend_by
from context_window.spend.limits import most_used_by, stated_limits
from context_window.spend.tables import UNKNOWN
from context_window.user_folder import LIMITS_FILE
from session.plan_limits import LimitPeriod, PlanLimits
from session.transcripts.reported_requests import Request
from tests.session.test_plan_limits import CLAUDE, CODEX
from tests.spend.logs import answer, write
from tests.support.shell import Shell

HOUR = 3_600.0


def codex_log(path: Path, time: str, limits: object, tokens: int = 10) -> Path:
    usage = {"input_tokens": tokens, "cached_input_tokens": 0, "output_tokens": 1, "total_tokens": tokens + 1}
    return write(
        path,
        {"timestamp": time, "type": "session_meta", "payload": {"id": path.stem, "cwd": "/home/me/shop", "git": {"branch": "fix/tea"}}},
        {"timestamp": time, "type": "turn_context", "payload": {"model": "gpt-5"}},
        {
            "timestamp": time,
            "type": "event_msg",
            "payload": {
                "type": "token_count",
                "info": {"total_token_usage": usage, "last_token_usage": usage},
                "rate_limits": limits,
            },
        },
    )


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CONTEXT_WINDOW_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.mark.usefixtures("home")
def test_the_newest_limits_of_a_tool_stand(tmp_path: Path) -> None:
    """whatever the order of the logs, and from the cache as from the logs"""
    later = CODEX | {"primary": {"used_percent": 80.0, "window_minutes": 300, "resets_at": 1782494662}}
    paths = [
        codex_log(tmp_path / "b.jsonl", "2026-06-26T13:00:00Z", later),
        codex_log(tmp_path / "a.jsonl", "2026-06-26T11:00:00Z", CODEX),
        codex_log(tmp_path / "c.jsonl", "2026-06-26T14:00:00Z", None),
    ]
    for order in (paths, paths[::-1]):
        with SpendCache(cache_file()) as cache:
            (limits,) = read_ledger(order, cache=cache).limits
        assert (limits.tool, limits.plan, limits.periods[0].percent) == ("codex", "pro", 80.0)


def test_the_status_line_keeps_what_only_it_is_told(home: Path) -> None:
    keep_limits("claude_code", CLAUDE, 5.0)
    (limits,) = stated_limits(())
    assert limits.periods == (LimitPeriod(300, 23.5, 1738425600), LimitPeriod(10_080, 41.2, 1738857600))
    assert [path.name for path in home.iterdir()] == [LIMITS_FILE]
    assert (home / LIMITS_FILE).stat().st_mode & 0o777 == 0o600
    older = PlanLimits("claude_code", 1.0, "", (LimitPeriod(300, 1.0, None),))
    assert stated_limits([older]) == [limits]


def test_what_is_kept_changes_when_something_has_or_a_minute_later(home: Path) -> None:
    """and the limits of another tool stay, and of what is not to be read nothing is in the way"""
    keep_limits("codex", CODEX, 100.0)
    keep_limits("claude_code", CLAUDE, 100.0)
    before = (home / LIMITS_FILE).stat()
    keep_limits("claude_code", CLAUDE, 100.0 + FRESH - 1)
    assert (home / LIMITS_FILE).stat() == before
    times = []
    for stated, time in ((CLAUDE, 100.0 + FRESH), (CLAUDE | {"five_hour": {"used_percentage": 30}}, 101.0 + FRESH)):
        keep_limits("claude_code", stated, time)
        times.append([limits.time for limits in stated_limits(())])
    assert times == [[100.0 + FRESH, 100.0], [101.0 + FRESH, 100.0]]
    keep_limits("claude_code", CLAUDE, 100.0)  # what the gateway noted before the status line was told
    assert [limits.time for limits in stated_limits(())] == times[-1]
    keep_limits("codex", CODEX, 9e9)  # by a clock that was wrong
    keep_limits("codex", CODEX, 105.0)
    assert [limits.time for limits in stated_limits(())] == [101.0 + FRESH, 105.0]
    (home / LIMITS_FILE).write_bytes(b"[")
    keep_limits("codex", CODEX, 7.0)
    assert [limits.time for limits in stated_limits(())] == [7.0]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"{",
        b'{"claude_code": 3}',
        b'{"x": {"time": "a"}}',
        b'{"claude_code": {"time": 1%s}}' % (b"0" * 400),
        b"[" * 100_000,
        b"\xff",
    ],
)
def test_a_damaged_file_states_nothing(home: Path, content: bytes) -> None:
    home.mkdir()
    (home / LIMITS_FILE).write_bytes(content)
    assert stated_limits(()) == []
    keep_limits("claude_code", CLAUDE, 5.0)


def test_a_folder_that_cannot_be_written_costs_only_the_limits(home: Path) -> None:
    home.write_text("a file")
    keep_limits("claude_code", CLAUDE, 5.0)
    assert home.read_text() == "a file"
    assert stated_limits(()) == []


def test_what_used_a_period_is_named() -> None:
    limits = PlanLimits("codex", 4 * HOUR, "", (LimitPeriod(300, 10.0, 5 * HOUR),))
    period = limits.periods[0]
    requests = [
        Request("", time, tool, "gpt-5", project, session, input_tokens=tokens)
        for time, tool, project, session, tokens in [
            (1.0, "codex", "/a/shop", "s1", 3_500),
            (2.0, "codex", "/a/shop", "s2", 2_500),
            (2.0, "codex", "/a/tea", "s3", 4_000),
            (3.0, "claude_code", "/a/tea", "s4", 90_000),
            (6 * HOUR, "codex", "/a/tea", "s3", 90_000),
            (-1.0, "codex", "/a/tea", "s3", 90_000),
        ]
    ]
    now = 4 * HOUR + 60
    uses = most_used_by(limits, period, requests)
    assert [(use.project, use.begun, round(use.part, 2)) for use in uses] == [("/a/tea", 2.0, 0.4), ("/a/shop", None, 0.6)]
    assert list(limit_sentences([limits], requests, now, UTC)) == ["Codex 5h: 10%, resets 05:00; 40% in tea, today's session"]
    nameless = [replace(request, session="") for request in requests]
    assert list(limit_sentences([limits], nameless, now, UTC)) == ["Codex 5h: 10%, resets 05:00; 60% in shop"]
    many = [replace(request, session=f"{index}", time=1.0 * index) for index, request in enumerate(requests[:1] * 5)]
    assert list(limit_sentences([limits], many, now, UTC)) == ["Codex 5h: 10%, resets 05:00; 100% in shop"]
    assert most_used_by(limits, period._replace(resets=None), requests) == most_used_by(limits, period, requests[3:]) == []


def test_a_session_is_named_by_the_day_on_which_it_began() -> None:
    day = 24 * HOUR
    limits = PlanLimits("codex", 30 * day, "", (LimitPeriod(300, 10.0, 30 * day + 2 * HOUR),))
    for begun, named in ((29.9, "Fri"), (30.0, "today"), (2.0, "1970-01-03")):
        requests = [Request("", time, "codex", "gpt-5", "", "s", input_tokens=1_000) for time in (begun * day, 30 * day)]
        (sentence,) = limit_sentences([limits], requests, 30 * day, UTC)
        assert sentence.endswith(f"in {UNKNOWN}, {named}'s session")


def test_the_sentences_say_when_it_is_full() -> None:
    periods = LimitPeriod(300, 80.0, 5 * HOUR), LimitPeriod(10_080, 5.0, 90 * HOUR)
    limits = [PlanLimits("codex", 3 * HOUR, "pro", periods)]
    first, second = limit_sentences(limits, [], 3 * HOUR, UTC)
    assert first == "Codex (pro) 5h: 80%, full 03:45, resets 05:00"
    assert second == "Codex (pro) 7d: 5%, resets Sun 18:00"
    first, _ = limit_sentences(limits, [], 6 * HOUR, UTC)
    assert first == "Codex (pro) 5h: 80% at 03:00, reset since"
    assert len(list(limit_sentences(limits, [], 11 * HOUR, UTC))) == 1  # a whole period has passed since


def test_the_screen_and_json_have_them(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell = Shell(capsys, monkeypatch)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / ".codex"))
    now = datetime.now(UTC)
    limits = CODEX | {"primary": {"used_percent": 12.0, "window_minutes": 300, "resets_at": int(now.timestamp()) + 9_000}}
    codex_log(tmp_path / ".codex" / "sessions" / "a.jsonl", now.isoformat(), limits)
    out = shell()[1]
    assert "limits of plans\nCodex (pro) 5h: 12%, resets " in out
    assert json.loads(shell("spend", "--json")[1])["limits"][0]["periods"][0]["percent"] == 12.0
    (row,) = json.loads(shell("spend", "--json", "--by", "branch")[1])["rows"]
    assert row["name"] == "fix/tea"
    assert home.exists()


REQUESTS = st.lists(
    st.builds(
        Request,
        st.just(""),
        st.none() | st.floats(0, 60 * HOUR),
        st.sampled_from(("codex", "claude_code")),
        st.just("gpt-5"),
        st.just("/p"),
        st.just("s"),
        input_tokens=st.integers(1, 9),
    ),
    max_size=12,
)


@given(REQUESTS)
def test_blocks_are_five_hours_from_the_hour_of_their_first_request(requests: list[Request]) -> None:
    """the slow twin takes the oldest request that is left, and all of its tool in the five hours from its hour"""
    expected: dict[str, int] = {}
    for tool in ("codex", "claude_code"):
        left = [request for request in requests if request.tool == tool and request.time is not None]
        while left:
            start = min(request.time or 0 for request in left) // HOUR * HOUR
            inside = [request for request in left if (request.time or 0) < start + 5 * HOUR]
            left = [request for request in left if request not in inside]
            expected[f"{datetime.fromtimestamp(start, UTC):%Y-%m-%d %H:%M} {tool}"] = sum(request.total for request in inside)
    if unknown := [request for request in requests if request.time is None]:
        expected[UNKNOWN] = sum(request.total for request in unknown)
    assert {row.name: row.total for row in spend_by("block", requests, zone=UTC)} == expected


def test_a_branch_is_that_of_the_log(tmp_path: Path) -> None:
    log = write(tmp_path / "a.jsonl", answer("m", 1, gitBranch="main"), answer("n", 1))
    assert {row.name: row.requests for row in spend_by("branch", read_ledger([log]).requests)} == {"main": 1, UNKNOWN: 1}
