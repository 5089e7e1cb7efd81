"""A minimal framework with three kinds of messages, and its adapter, for tests of the code that all adapters share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from context_window import ContextWindowManager
from context_window.integrations.conversation_tracker import ConversationTracker
from context_window.integrations.message_adapter import MessageAdapter
from session.items import FunctionCall, FunctionCallOutput, Item, Message
from session.providers.additions import PREAMBLE
from tests.support.agents import manager


@dataclass(frozen=True)
class Line:
    """A message. `user` and `model` are texts; `tool` is a tool call together with its output."""

    who: str
    text: str


class LineAdapter(MessageAdapter[Line]):
    """The adapter of this framework."""

    def __init__(self) -> None:
        super().__init__(Line("user", PREAMBLE))

    def content_json(self, message: Line) -> str:
        return f"{message.who}:{message.text}"

    def items(self, message: Line, ids: Iterator[str]) -> list[Item]:
        if message.who == "tool":
            call_id = next(ids)
            call = FunctionCall("look", "{}", call_id, id=next(ids), created_at=0.0)
            return [call, FunctionCallOutput("", message.text, call_id, id=next(ids), created_at=0.0)]
        return [Message("user" if message.who == "user" else "assistant", message.text, id=next(ids), created_at=0.0)]

    def partial_copy(self, message: Line, items: Sequence[Item], visible: Sequence[Item | None]) -> Line | None:
        texts = [item.text for item in visible if isinstance(item, Message | FunctionCallOutput)]
        return Line(message.who, texts[0]) if texts else None

    def merge_responses(self, earlier: Line, later: Line) -> Line:
        return Line(later.who, f"{earlier.text}{later.text}")

    def user_message(self, text: str) -> Line:
        return Line("user", text)

    def result_message(self, output: FunctionCallOutput, message: Line) -> None:
        """Return None: calls have their outputs with them."""

    def is_system(self, message: Line) -> bool:
        return False


def conversations(window_manager: ContextWindowManager | None = None, **options: Any) -> ConversationTracker[Line]:
    """Return a tracker with this framework's adapter."""
    return ConversationTracker(window_manager or manager(1_000), LineAdapter(), **options)


def talk(name: str, turns: int) -> list[Line]:
    """Return a conversation of `turns` turns, followed by a question."""
    texts = [("user", "Go, {}."), ("tool", "found {} " + "x" * 100), ("model", "Done, {}.")]
    return [Line(who, text.format(f"{name}{turn}")) for turn in range(turns) for who, text in texts] + [Line("user", f"And now, {name}?")]
