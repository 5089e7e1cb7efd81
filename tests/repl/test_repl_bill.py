"""What the chat says a session has cost: as it was billed, whatever comes later, and as `context-window spend` counts it."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping
from decimal import Decimal
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from tests.support.chatting import APIS, USAGE_LINE, environment, last_text
from tests.support.shell import Shell
from tests.support.stubs import AnthropicStub, Block, Call, Say

CLAUDE = APIS["anthropic"]
WORDS = "An answer of some words. " * 25
ASKED = 7
"""Messages of the user."""


def answer(request: Mapping[str, Any]) -> list[Say]:
    return [Say("A summary." if "Write at most" in last_text(request) else WORDS)]


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Shell:
    for name, value in {**environment(tmp_path), "HOME": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    return Shell(capsys, monkeypatch)


def test_what_was_paid_stays_paid_and_spend_counts_each_request_once(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """Turns and summaries cost what their model cost; the session and `spend` say the same sum, also after a fork and a load."""
    lines = [f"Question {number}: {'some words of mine ' * 80}" for number in range(ASKED)]
    with AnthropicStub(answer) as stub:
        start = ("chat", *CLAUDE.arguments(stub), "--max-tokens", 3_000)
        monkeypatch.setattr(sys, "stdin", StringIO("\n".join([*lines[:-1], "/model claude-opus-4-1", lines[-1], "/save log.json\n"])))
        out = shell(*start)[1]
        monkeypatch.setattr(sys, "stdin", StringIO(f"/load log.json\n{lines[0]}\n"))
        later = shell(*start)[1]
    assert "summarised" in out
    costs = [(Decimal(turn), Decimal(session)) for *_, turn, session in USAGE_LINE.findall(out)]
    turns = [*costs[: ASKED - 1], costs[-1]]
    assert len(costs) == ASKED + 1
    assert costs[ASKED - 1] == costs[ASKED - 2], "another model changes no price"
    assert sum(turn for turn, _ in turns) == pytest.approx(costs[-1][1], abs=Decimal("0.001"))
    loaded, total = (Decimal(session) for *_, session in USAGE_LINE.findall(later))
    assert loaded == costs[-1][1]
    [row] = json.loads(shell("spend", "--by", "tool", "--json", "--no-cache")[1])["rows"]
    assert (row["name"], row["requests"]) == ("context-window", len(stub.answers))
    assert Decimal(row["cost_usd"]) == pytest.approx(total, abs=Decimal("0.001"))


@pytest.mark.skipif(os.name != "posix", reason="needs a pty")
@pytest.mark.parametrize("end", ["stopped", "broken"])
def test_an_answer_that_does_not_end_costs_at_least_its_input_and_the_text_so_far(tmp_path: Path, end: str) -> None:
    pytest.importorskip("pexpect", reason="needs a pty, which Windows has not")
    from tests.support.console import console

    with AnthropicStub(lambda _: [Say(WORDS)]) as stub:
        stub.halves = lambda _: True
        start = ("chat", "--max-tokens", "20000", *CLAUDE.arguments(stub))
        with console(*start, width=80, cwd=str(tmp_path), environment=environment(tmp_path)) as screen:
            screen.until_prompt()
            screen.type("Tell me a story")
            screen.until("An answer of some words.")
            if end == "stopped":
                screen.press("\x03")
            stub.gate.set()
            screen.until("of 20,000 tokens")
            screen.until_prompt()
            screen.press("\x04")
            assert screen.leave() == 0
    told = "stopped; the log keeps" if end == "stopped" else "the answer broke off, and what is above is not in the log"
    assert told in screen.flat
    [(read, written)] = re.findall(r"about ([\d,]+) tokens of input and at least ([\d,]+) of output", screen.flat)
    assert int(read) >= 100
    assert int(written) >= 10
    [cost] = re.findall(r"turn \$([\d.]+)\+ · session \$\1\+", screen.flat)
    assert float(cost) > 0


def test_a_turn_in_a_small_window_asks_for_few_summaries_and_says_so(shell: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Whichever tools are called: a turn sends at most eight requests for summaries, and then cuts without the model."""
    (tmp_path / "wordtools.py").write_text("def page(number: int) -> str:\n    return f'page {number} word ' * 900\n", encoding="utf-8")

    def script(request: Mapping[str, Any]) -> list[Block]:
        asked = "Write at most" in last_text(request)
        return [Say("A summary.")] if asked else [Call("page", {"number": 1}), Call("page", {"number": 2})]

    with AnthropicStub(script) as stub:
        monkeypatch.setattr(sys, "stdin", StringIO("Read all pages\n"))
        out = shell("chat", *CLAUDE.arguments(stub), "--max-tokens", 2_000, "--tools", "wordtools:page")[1]
    assert 1 <= sum("Write at most" in last_text(request) for request in stub.requests) <= 8
    assert "now older parts are only cut" in " ".join(out.split())
