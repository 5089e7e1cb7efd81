"""A manager whose numbers a reader can check by eye, and a conversation to put through it."""

from __future__ import annotations

from typing import Any

from context_window import ContextWindow, ContextWindowManager, Session
from tests.support.counting import Letters


def make_manager(max_tokens: int = 1000, **window: Any) -> ContextWindowManager:
    return ContextWindowManager(token_counter=Letters(), context_window=ContextWindow(max_tokens=max_tokens, **window))


def session_of(turns: int, *, size: int = 300) -> Session:
    session = Session(id="s")
    session.add_message("system", "be brief", "sys", 0.0)
    for number in range(turns):
        session.add_message("user", "q" * 36, f"u{number}", 0.0)
        session.add_function_call("read", "{}", f"c{number}")
        session.add_function_output("read", "o" * size, f"c{number}")
        session.add_message("assistant", "a" * 36, f"a{number}", 0.0)
    return session


def ids(session: Session) -> list[str]:
    return [item.id for item in session.items]
