"""A framework of three kinds of messages, and an adapter for it: what all adapters share is seen in it without any of theirs."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from context_window import ContextWindowManager
from context_window.integrations.conversations import Conversations
from session.items import FunctionCall, FunctionCallOutput, Item, Message
from session.providers.additions import PREAMBLE
from tests.support.agents import manager


@dataclass(frozen=True)
class Line:
    """A message of a framework that has three kinds of them: `user` and `model` say something, `tool` answers a call of its own."""

    who: str
    text: str


class Lines:
    """The words of that framework."""

    answers_whole = True

    def digest(self, message: Line) -> bytes:
        return hashlib.sha256(f"{message.who}:{message.text}".encode()).digest()

    def items(self, message: Line, ids: Iterator[str]) -> list[Item]:
        if message.who == "tool":
            call_id = next(ids)
            call = FunctionCall("look", "{}", call_id, id=next(ids), created_at=0.0)
            return [call, FunctionCallOutput("", message.text, call_id, id=next(ids), created_at=0.0)]
        return [Message("user" if message.who == "user" else "assistant", message.text, id=next(ids), created_at=0.0)]

    def partly(self, message: Line, items: Sequence[Item], shown: Sequence[Item | None]) -> Line | None:
        texts = [item.text for item in shown if isinstance(item, Message | FunctionCallOutput)]
        return Line(message.who, texts[0]) if texts else None

    def unbound(self, message: Line) -> Line:
        return message

    def joined(self, earlier: Line, later: Line) -> Line:
        return Line(later.who, f"{earlier.text}{later.text}")

    def preamble(self) -> Line:
        return Line("user", PREAMBLE)

    def is_system(self, message: Line) -> bool:
        return False


def conversations(one: ContextWindowManager | None = None, **more: int) -> Conversations[Line]:
    """What an adapter of that framework goes by."""
    return Conversations(one or manager(1_000), Lines(), **more)


def talk(name: str, turns: int) -> list[Line]:
    """A conversation of so many turns, and a question."""
    said = [("user", "Go, {}."), ("tool", "found {} " + "x" * 100), ("model", "Done, {}.")]
    return [Line(who, text.format(f"{name}{turn}")) for turn in range(turns) for who, text in said] + [Line("user", f"And now, {name}?")]
