"""The pace of a block that is going on: a slow twin adds it up minute by minute."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_window.spend.blocks import HOUR, LENGTH
from context_window.spend.pace import SHORTEST, block_paces
from session.transcripts.reported_requests import Request
from tests.spend.logs import answer, write
from tests.support.shell import Shell

BEGINS = 100 * HOUR


def request(time: float, tokens: int, *, tool: str = "codex", model: str = "gpt-5") -> Request:
    return Request("", time, tool, model, "/p", "s", input_tokens=tokens)


@given(st.lists(st.tuples(st.integers(0, LENGTH - 1), st.integers(1, 10**6)), min_size=1, max_size=8), st.integers(0, LENGTH - 1))
def test_the_pace_goes_on(made: list[tuple[int, int]], passed: int) -> None:
    made = [each for each in made if each[0] <= passed]
    # The block begins with an hour in which there is a request.
    requests = [request(BEGINS + second, tokens) for second, tokens in [(0, 1), *made]]
    paces = list(block_paces(requests, BEGINS + passed))
    if passed < SHORTEST:
        assert paces == []
        return
    (pace,) = paces
    so_far = 1 + sum(tokens for _, tokens in made)
    expected, cost = float(so_far), float(pace.row.cost)
    for _ in range(passed, LENGTH):
        expected += so_far / passed
        cost += float(pace.row.cost) / passed
    assert pace.tokens_at_end == pytest.approx(expected, abs=3, rel=1e-4)
    assert pace.tokens_per_hour == pytest.approx(so_far * HOUR / passed, abs=0.51)
    assert float(pace.cost_at_end or 0) == pytest.approx(cost, rel=1e-6)
    assert (pace.begins, pace.ends) == (BEGINS, BEGINS + LENGTH)


def test_only_blocks_that_go_on_have_one() -> None:
    now = BEGINS + 2 * HOUR
    requests = [
        request(BEGINS + HOUR, 100),
        request(BEGINS + HOUR, 300, tool="claude_code", model="no-such-model"),
        request(now - LENGTH - HOUR, 500, tool="droid"),
        request(now - SHORTEST + 1, 500, tool="pi"),
        request(now + HOUR, 500, tool="qwen"),
        Request("", None, "grok", "gpt-5", "/p", "s", input_tokens=5),
    ]
    claude, codex = block_paces(requests, now)
    assert (claude.row.name, claude.tokens_per_hour, claude.cost_per_hour, claude.cost_at_end) == ("claude_code", 300, None, None)
    assert (codex.row.name, codex.tokens_per_hour, codex.tokens_at_end) == ("codex", 100, 500)
    assert claude.to_dict()["cost_usd_per_hour"] is None


def test_spend_by_block_says_it(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shell = Shell(capsys, monkeypatch)
    now = datetime.now(UTC)
    log = write(tmp_path / "a.jsonl", answer("m", 1_000, timestamp=(now - timedelta(hours=1)).isoformat()))
    old = write(tmp_path / "old.jsonl", answer("n", 1_000))
    out = " ".join(shell("spend", "--by", "block", "--timezone", "UTC", log, old)[1].split())
    begun = (now - timedelta(hours=1)).replace(minute=0)
    end = begun + timedelta(hours=5)
    tokens = re.search(
        rf"claude_code since {begun:%H:%M}: ([\d,]+) tokens and \$[\d.]+ an hour; at this pace ([\d,]+) tokens and \$[\d.]+ when the block "
        rf"ends at {end:%H:%M}\.",
        out,
    )
    assert tokens is not None, out
    rate, at_end = (int(number.replace(",", "")) for number in tokens.groups())
    assert 2_200 < rate <= 2_310 < at_end <= 5 * 2_310
    (going_on,) = json.loads(shell("spend", "--by", "block", "--json", log, old)[1])["going_on"]
    assert going_on["tool"] == "claude_code"
    assert datetime.fromisoformat(going_on["ends"]) == end.replace(second=0, microsecond=0)
    assert json.loads(shell("spend", "--by", "block", "--json", old)[1])["going_on"] == []
    assert "going_on" not in json.loads(shell("spend", "--json", log)[1])
    assert "an hour" not in shell("spend", log)[1]
