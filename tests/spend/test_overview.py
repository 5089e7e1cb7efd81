"""`context-window` alone: one screen over all sessions, whose sums are those of `spend`."""

from __future__ import annotations

import json
import re
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_window.cli import run
from context_window.display.glyphs import glyphs_for
from context_window.display.lines import line_width, plain
from context_window.display.overview import overview_lines
from context_window.spend.money import cost_of
from context_window.spend.overview import ALL, Cause, causes_of, overview_of
from context_window.spend.tables import spend_by
from session.transcripts.reported_requests import Request

TODAY = date(2026, 3, 25)
NOON = datetime(2026, 3, 25, 12, tzinfo=UTC).timestamp()
DAY = 86_400


def request(read: int, written: int, seconds: float, session: str = "s", **more: object) -> Request:
    fields = {"cache_read": read, "cache_write": written, "output_tokens": 10, **more}
    return Request("", NOON + seconds, "claude_code", "claude-sonnet-4-5", "/p", session, **fields)  # type: ignore[arg-type]


AMOUNTS = st.sampled_from((0, 0, 1, 500, 40_000, 90_000))
REQUESTS = st.lists(
    st.builds(
        Request,
        st.just(""),
        st.none() | st.floats(NOON - 60 * DAY, NOON),
        st.sampled_from(("claude_code", "codex")),
        st.sampled_from(("claude-sonnet-4-5", "gpt-5", "gpt-5-mini", "o3", "no-such-model", "")),
        st.sampled_from(("/a/b", "/c\x1b[31m", "")),
        st.sampled_from(("s", "t", "")),
        input_tokens=AMOUNTS,
        cache_read=AMOUNTS,
        cache_write=AMOUNTS,
        cache_write_1h=AMOUNTS,
        output_tokens=AMOUNTS,
        reasoning=AMOUNTS,
    ),
    max_size=25,
)


@given(REQUESTS)
def test_the_sums_are_those_of_spend_and_causes_cost_no_more(requests: list[Request]) -> None:
    """Every table adds up to its period, to the cent; all causes together cost at most what the requests did."""
    overview = overview_of(requests, TODAY)
    assert overview.periods[-1].cost == sum((row.cost for row in spend_by("day", requests)), Decimal(0))
    scope = next(row for row in overview.periods if row.name == overview.scope)
    for rows in overview.groups.values():
        assert sum((row.cost for row in rows), Decimal(0)) == scope.cost
        assert sum(row.requests for row in rows) == scope.requests
    assert all(row.cost > 0 for row in overview.causes)
    assert sum((row.cost for row in overview.causes), Decimal(0)) <= scope.cost


@given(REQUESTS, st.integers(40, 140), st.sampled_from([[], ["Codex 5h: 12%\x1b[2J" + "x" * 90], ["Codex", "Claude Code"] * 2]))
def test_it_is_one_screen(requests: list[Request], width: int, limits: list[str]) -> None:
    """At most 24 lines, none wider than the terminal, no control character of a project's name."""
    overview = overview_of(requests, TODAY)
    lines = overview_lines(overview, limits, ["A footnote."], width, glyphs_for("utf-8"))
    assert len(lines) <= 24 or width < 80
    text = "\n".join(map(plain, lines))
    assert not overview.causes or overview.causes[0].advice in text.replace("\n", " ")
    if width >= 80:  # the rows of each property add up to their period
        scope = next(row for row in overview.periods if row.name == overview.scope)
        for name in ("model", "project"):
            rows = re.search(rf"by {name} .*\n((?:.*?  +[\d,]+  +[\d,]+  +\S+\n)*)", text)
            counts = re.findall(r" {2,}([\d,]+) +[\d,]+ +\S+$", rows[1], re.MULTILINE) if rows else []
            assert sum(int(count.replace(",", "")) for count in counts) == (scope.requests if rows else 0)
    assert all(line_width(line) <= width for line in lines)
    assert "\x1b" not in "".join(span.text for line in lines for span in line)


@pytest.mark.parametrize(
    ("later", "cause"),
    [
        (request(0, 50_000, 400), Cause.PAUSE),
        (request(0, 50_000, 60), Cause.LOSS),
        (request(0, 20_000, 60), Cause.COMPACTION),
        (request(45_000, 5_000, 400), None),
        (request(0, 50_000, 400, "another session"), None),
    ],
)
def test_a_loss_of_the_cache_has_a_cause(later: Request, cause: Cause | None) -> None:
    """What was written anew costs what it does beyond reading it."""
    rows = causes_of([request(0, 40_000, 0), later])
    assert [(row.name, row.advice) for row in rows] == ([] if cause is None else [cause.value])
    if cause is not None:
        assert rows[0].cost == min(40_000, later.prompt) * (Decimal("3.75") - Decimal("0.3")) / 1_000_000
        assert rows[0].cost < (cost_of(later) or 0)


def test_a_month_without_requests_shows_all_days() -> None:
    overview = overview_of([request(0, 1_000, -60 * DAY)], TODAY)
    assert (overview.scope, [row.requests for row in overview.periods]) == (ALL, [0, 0, 0, 1])


def test_the_command_alone_shows_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """With the sessions of all tools; without any, the help as before."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "APPDATA", "CONTEXT_WINDOW_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CONTEXT_WINDOW_HOME", str(tmp_path / "cache"))
    assert run([]) == 2
    assert "Usage:" in capsys.readouterr().err
    folder = tmp_path / ".claude" / "projects" / "p"
    folder.mkdir(parents=True)
    usage = {"input_tokens": 5, "cache_creation_input_tokens": 1_000, "cache_read_input_tokens": 0, "output_tokens": 20}
    message = {"id": "m", "role": "assistant", "model": "claude-sonnet-4-5", "usage": usage, "content": [{"type": "text", "text": "Hi."}]}
    line = {
        "type": "assistant",
        "message": message,
        "requestId": "r",
        "sessionId": "s",
        "cwd": "/work",
        "timestamp": "2026-03-25T12:00:00Z",
    }
    (folder / "s.jsonl").write_text(json.dumps({**line, "uuid": "u"}) + "\n", encoding="utf-8")
    assert run([]) == 0
    shown = capsys.readouterr().out
    assert "all sessions" in shown
    assert "claude-sonnet-4-5" in shown
    assert "system prompt and tools" not in shown
    assert run(["spend", "--by", "cause"]) == 0
    assert "system prompt and tools" in capsys.readouterr().out
    assert run([]) == 0
    assert "for system prompt and tools: fewer MCP servers" in capsys.readouterr().out
