"""Hostile sessions for `growth.py`: each repeats one kind of item. `KINDS` names them."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from session import Compaction, FunctionCall, FunctionCallOutput, Image, Message, Reasoning, Session, Text, Usage
from session.items import AgentConfigUpdate, AgentHandoff

OUTPUT = "line of text\n" * 20
PNG = b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII=")


def turns(_: Session, n: int) -> Iterator[Any]:
    """Ordinary turns."""
    for number in range(n // 4):
        yield Message("user", f"question {number}")
        yield FunctionCall("read", "{}", f"c{number}")
        yield FunctionCallOutput("read", OUTPUT, f"c{number}")
        yield Message("assistant", "answer " * 8)


def parallel(session: Session, n: int) -> Iterator[Any]:
    """One response with n calls, then their outputs."""
    session.append(Message("user", "go"))
    for number in range(n):
        session.append(FunctionCall("read", "{}", f"c{number}"))
    for number in range(n):
        yield FunctionCallOutput("read", OUTPUT, f"c{number}")


def late(session: Session, n: int) -> Iterator[Any]:
    """Outputs long after their calls."""
    for number in range(n):
        session.append(Message("user", f"question {number}"))
        session.append(FunctionCall("read", "{}", f"c{number}"))
    for number in range(n):
        yield FunctionCallOutput("read", OUTPUT, f"c{number}")


def same_id(session: Session, n: int) -> Iterator[Any]:
    """Calls that all have the same id, then outputs that all answer it."""
    for number in range(n // 2):
        session.append(FunctionCall("read", json.dumps({"n": number}), "same"))
    for _ in range(n // 2):
        yield FunctionCallOutput("read", OUTPUT, "same")


def repeated(make: Callable[[int], Any]) -> Callable[[Session, int], Iterator[Any]]:
    """One turn, then n items of the same kind."""

    def items(session: Session, n: int) -> Iterator[Any]:
        session.append(Message("user", "go"))
        session.append(Message("assistant", "yes"))
        for number in range(n):
            yield make(number)

    return items


def among_turns(make: Callable[[int], Any]) -> Callable[[Session, int], Iterator[Any]]:
    """Turns that each consist of an item of the given kind, a question and an answer."""

    def items(_: Session, n: int) -> Iterator[Any]:
        for number in range(n // 3):
            yield make(number)
            yield Message("user", f"question {number}")
            yield Message("assistant", "answer " * 8)

    return items


def picture(number: int) -> Message:
    return Message("user", [Text(f"look {number}"), Image(data=PNG)])


def agents(session: Session, n: int) -> Iterator[Any]:
    """Alternating answers of two agents, each a separate response."""
    session.append(Message("user", "go"))
    for number in range(n):
        yield Message("assistant", "answer", agent_id=f"agent {number % 2}")


def with_report(session: Session, n: int) -> Iterator[Any]:
    """Calls in one response, after an answer with reported usage."""
    session.append(Message("user", "go"))
    session.append(Message("assistant", "yes", usage=Usage(input_tokens=100, output_tokens=5)))
    session.append(Message("user", "go on"))
    yield from parallel(session, n)


def thoughtful(_: Session, n: int) -> Iterator[Any]:
    """Turns with signed reasoning, whose calls are answered late."""
    for number in range(n // 4):
        yield Message("user", f"question {number}")
        yield Reasoning("so " * 20, "sealed")
        yield FunctionCall("read", "{}", f"c{number}")
    for number in range(n // 4):
        yield FunctionCallOutput("read", OUTPUT, f"c{number}")


def compacted(_: Session, n: int) -> Iterator[Any]:
    """Turns, each compacted."""
    last: list[str] = []
    for number in range(n // 3):
        items = [Message("user", f"question {number}"), Message("assistant", "answer")]
        yield from items
        summary = Compaction("summary", [*last, *(item.id for item in items)])
        last = [summary.id]
        yield summary


KINDS: dict[str, Callable[[Session, int], Iterator[Any]]] = {
    "turns": turns,
    "calls in one response": parallel,
    "late answers": late,
    "one call id": same_id,
    "users' messages": repeated(lambda number: Message("user", f"question {number} " * 3)),
    "pinned messages": repeated(lambda number: Message("user", f"question {number} " * 3, pinned=True)),
    "system messages": repeated(lambda number: Message("system", f"rule {number} " * 3)),
    "system messages among turns": among_turns(lambda number: Message("system", f"rule {number} " * 3)),
    "pinned messages among turns": among_turns(lambda number: Message("user", f"question {number} " * 3, pinned=True)),
    "handoffs among turns": among_turns(lambda number: AgentHandoff(f"b{number}", "a")),
    "config updates among turns": among_turns(lambda number: AgentConfigUpdate(f"be {number}")),
    "images among turns": among_turns(picture),
    "pinned images among turns": among_turns(lambda number: replace(picture(number), pinned=True)),
    "calls in one response, with a report": with_report,
    "late answers to thoughts": thoughtful,
    "answers of agents by turns": agents,
    "compactions": compacted,
}
