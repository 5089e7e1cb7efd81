"""Tool calls of a turn, counted against the limit, and tools that a loop adds to a manager's counts."""

from __future__ import annotations

import pytest

from context_window import ArgumentError, FunctionCall, FunctionCallOutput, Message, MessageCategory, Session
from tests.support.looping import add, manager


def test_calls_are_counted_since_the_last_user_message() -> None:
    limits = manager(max_tool_calls_per_turn=2)
    session = Session([Message("user", "Hi"), FunctionCall("a", "{}", "1"), FunctionCallOutput("a", "x", "1")])
    assert (limits.tool_calls(session).used, limits.tool_calls(session).left) == (1, 1)
    session.append(FunctionCall("a", "{}", "2"))
    session.append(FunctionCall("a", "{}", "3"))
    session.append(Message("user", "a passage", category=MessageCategory.CONTEXT))  # does not start a turn
    assert (limits.tool_calls(session).used, limits.tool_calls(session).left) == (3, 0)
    session.append(Message("user", "Next."))
    assert (limits.tool_calls(session).used, limits.tool_calls(session).left) == (0, 2)
    assert limits.tool_calls(Session()).used == 0


def test_anything_but_a_session_is_an_error() -> None:
    with pytest.raises(ArgumentError):
        manager().tool_calls(3)  # type: ignore[arg-type]


def test_tools_added_by_a_loop_count_from_then_on() -> None:
    limits, session = manager(), Session([Message("user", "Hi")])
    limits.process_session(session)
    without = limits.get_token_usage()["overhead"]
    limits.count_tools([add])
    limits.process_session(session)
    assert limits.get_token_usage()["overhead"] > without
    assert limits.get_token_usage()["overhead"] == manager(tools=[add]).analyze_session(session)["overhead_tokens"]
    limits.count_tools([])
    limits.process_session(session)
    assert limits.get_token_usage()["overhead"] > without
