"""What a tool sends and does not log is an estimate of its own, and no part of any total."""

from __future__ import annotations

from typing import Any

import pytest

from context_window import ContextWindow, ContextWindowManager
from context_window.usage.unlogged import unlogged_tokens
from session.items import Message
from session.session import Session
from session.usage import Usage
from tests.support.counting import Letters


def log_of(tool: str, **metadata: Any) -> Session:
    return Session([Message("user", "x" * 96)], metadata={"source": {"format": tool, "path": "log"}, **metadata})


@pytest.mark.parametrize(
    ("tool", "metadata", "tokens"),
    [
        ("codex", {}, 5_270),
        ("codex", {"sidechain": True}, None),  # nothing was learned of its sub-agents
        ("claude_code", {}, None),  # it depends on the version
        ("claude_code", {"version": 2}, None),
        ("claude_code", {"version": "2.0.42"}, 15_955),
        ("claude_code", {"version": "2.1.35"}, 19_972),
        ("claude_code", {"version": "2.1.114"}, 31_893),
        ("claude_code", {"version": "3.0"}, 31_893),
        ("claude_code", {"version": "2.1.114", "sidechain": True}, 14_296),
        ("aider", {}, None),
        ("copilot_cli", {"tool_tokens": 4_426}, 4_426),  # it says so itself
        ("copilot_cli", {"tool_tokens": "many"}, None),
        ("claude_code", {"version": "2.1.114", "fixed_tokens": 20_624}, 20_624),  # so does `/context`
    ],
)
def test_the_estimate_is_that_of_the_tool_and_its_version(tool: str, metadata: dict[str, Any], tokens: int | None) -> None:
    row = unlogged_tokens(log_of(tool, **metadata).metadata)
    assert (None if row is None else row.tokens) == tokens


@pytest.mark.parametrize("metadata", [{}, {"source": "codex"}, {"source": {"format": ["codex"]}}])
def test_a_session_of_no_known_tool_has_no_estimate(metadata: dict[str, Any]) -> None:
    assert unlogged_tokens(metadata) is None


def test_usage_shows_the_estimate_beside_the_total_until_a_request_is_reported() -> None:
    manager = ContextWindowManager(token_counter=Letters(), context_window=ContextWindow(max_tokens=100_000))
    log = log_of("opencode", sidechain=True)
    report = manager.usage(log)
    assert (report.total, report.to_dict()["unlogged_estimate"]) == (100, 5_923)
    text = " ".join(str(report).split())
    assert "opencode sends more than it logs: 5,923 tokens in 7 sessions of one person, so a request would cost some 4,048 to 8,984" in text
    log.append(Message("assistant", "y", usage=Usage(6_100)))
    report = manager.usage(log)
    assert report.unlogged is None
    assert "estimate from" not in " ".join(str(report).split())


def test_a_tool_s_own_statement_is_no_interval() -> None:
    manager = ContextWindowManager(token_counter=Letters(), context_window=ContextWindow(max_tokens=100_000))
    report = manager.usage(log_of("copilot_cli", tool_tokens=4_426))
    assert report.unlogged is not None
    assert report.unlogged.least == report.unlogged.most == 4_426
    assert "copilot_cli sends more than it logs: it states 4,426 tokens of that, so a request would cost some 4,526" in " ".join(
        str(report).split()
    )
