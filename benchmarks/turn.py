"""Time the parts of one turn of a session whose view has 400, 1,600 and 6,400 items.

    python -m benchmarks.turn [--turns 40] [--median] [part ...]

A turn appends an answer, a tool call and its output. Each part is timed in every turn, so the load of the machine falls on all of them;
the table shows the smallest time of each in milliseconds, or the median, and how much longer it takes with sixteen times the items. 1.0 is
flat. A part that is timed alone, as in an application that converts to one format, finds its messages in the processor's cache.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from context_window import ContextWindow, ContextWindowManager
from context_window.gateway.fitted_body import ManagedRequest, fitted_body
from context_window.gateway.openai_chat import PATH, ChatAdapter, ChatWire
from context_window.gateway.windows import Windows
from context_window.integrations.conversation_tracker import ConversationTracker
from session import FunctionCall, FunctionCallOutput, Message, Session
from session.providers.anthropic.thinking_order import with_thinking_in_order
from session.providers.google import to_google

SIZES = (400, 1_600, 6_400)
MODEL = "claude-sonnet-5-5"
ORDER, ADAPTER, GATEWAY = "with_thinking_in_order", "an adapter, trimmed view", "the gateway's body, trimmed"
"""Parts that work on messages which are made before."""


def characters(text: str) -> int:
    """Count tokens at no cost."""
    return len(text) // 4


def add_turn(session: Session, number: int) -> None:
    """Append a turn, with a question before every tenth."""
    if number % 10 == 0:
        session.append(Message("user", f"question {number} " * 20))
    session.append(Message("assistant", f"I will look at {number}. " * 5))
    arguments = json.dumps({"path": f"/project/{number}.py", "offset": number, "limit": 100})
    session.append(FunctionCall("read", arguments, f"call_{number}"))
    session.append(FunctionCallOutput("read", "line of text\n" * 60, f"call_{number}"))


def times_at(size: int, turns: int, texts: Sequence[str] = (), figure: Callable[[list[float]], float] = min) -> dict[str, float]:
    """Return a figure of the times of each part, in milliseconds.

    Args:
        size: Items of the session at first.
        turns: Turns that are timed.
        texts: The parts: those whose names have one of these in them. Default: all.
        figure: Computes the figure from the times of all turns.
    """
    manager = ContextWindowManager(MODEL, token_counter=characters, context_window=ContextWindow(max_tokens=10**7))
    session, number = Session(), 0
    while len(session.items) < size:
        add_turn(session, number)
        number += 1
    window = ContextWindow(max_tokens=60 * size)  # about three quarters of the session
    tracker = ConversationTracker(ContextWindowManager(MODEL, token_counter=characters, context_window=window), ChatAdapter())
    wire, windows = ChatWire(), Windows(window, are_frozen=True)
    thinking = {"type": "enabled", "budget_tokens": 1_024}
    messages: list[dict[str, Any]] = []
    blocks: list[dict[str, Any]] = []

    def gateway_body() -> bytes:
        fields: dict[str, Any] = {"model": MODEL, "messages": messages}
        conversation = wire.conversation(PATH, fields)
        assert conversation is not None
        return fitted_body(windows, ManagedRequest(wire, conversation, fields, b""))

    parts: dict[str, Callable[[], Any]] = {
        "process_session": lambda: manager.process_session(session),
        "format_token_usage": manager.format_token_usage,
        "to_anthropic_messages": lambda: session.to_anthropic_messages(caching=True),
        "to_openai_messages": session.to_openai_messages,
        "to_openai_responses": session.to_openai_responses,
        "to_google": lambda: to_google(session),
        "anthropic_request": lambda: manager.anthropic_request(session, model=MODEL, max_tokens=1_000),
        ORDER: lambda: with_thinking_in_order(blocks, thinking),
        ADAPTER: lambda: tracker.fit(messages),
        GATEWAY: gateway_body,
        "json.dumps of the request": lambda: json.dumps(session.to_openai_messages()),
        "plan_session": lambda: manager.plan_session(session),
    }
    parts = {name: do for name, do in parts.items() if not texts or any(text in name for text in texts)}
    times: dict[str, list[float]] = {name: [] for name in parts}
    for turn in range(turns):
        add_turn(session, number + turn)
        if ADAPTER in parts or GATEWAY in parts:
            messages = session.to_openai_messages()
        if ORDER in parts:
            blocks, _ = session.to_anthropic_messages()
        for name, do in parts.items():
            begin = time.perf_counter()
            do()
            times[name].append(1e3 * (time.perf_counter() - begin))
    return {name: figure(each) for name, each in times.items()}


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--turns", type=int, default=40, help="turns to time at each size")
    parser.add_argument("--median", action="store_true", help="show medians; otherwise the smallest times")
    parser.add_argument("parts", nargs="*", help="names of parts, or pieces of them; otherwise all")
    asked = parser.parse_args(arguments)
    columns = [times_at(size, asked.turns, asked.parts, statistics.median if asked.median else min) for size in SIZES]
    print(f"{'ms a turn, items in the view:':<30}" + "".join(f"{size:>9,}" for size in SIZES) + "   factor")
    for name in columns[0]:
        figures = [column[name] for column in columns]
        print(f"{name:<30}" + "".join(f"{figure:>9.2f}" for figure in figures) + f"{figures[-1] / figures[0]:>9.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
