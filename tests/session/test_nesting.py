"""Deeply nested data raises our own error, at any place in the input and at any stack depth of the caller."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pytest

from session import Message, Session
from session.errors import FormatError, TranscriptError
from session.providers.anthropic import from_anthropic, to_anthropic
from session.providers.google import from_google
from session.providers.openai_chat import from_openai_chat
from session.providers.openai_responses import from_openai_responses
from session.sanitize import MAX_DEPTH, clean_json
from session.stack import with_room
from session.store import SessionStore
from session.transcripts import read_account, read_transcript

T = TypeVar("T")
STACKS = (0, 400, 700, 900)
"""Stack frames in use at the call, of a limit of 1,000."""


def nested(levels: int, kind: str) -> Any:
    value: Any = 1
    for level in range(levels):
        value = [value] if kind == "list" or (kind == "mixed" and level % 2) else {"a": value}
    return value


def unwound(value: Any) -> None:
    """Take the value apart level by level: Python would need a stack of a million levels to free it."""
    while isinstance(value, list | dict) and value:
        value = value.pop() if isinstance(value, list) else value.popitem()[1]


def called_below(frames: int, function: Callable[[], T]) -> T:
    """Call the function with this number of stack frames in use, including those of the test."""
    depth = len_of_stack()
    return function() if depth >= frames else called_below(frames, function)


def len_of_stack() -> int:
    frame, depth = sys._getframe(), 0
    while (below := frame.f_back) is not None:
        frame, depth = below, depth + 1
    return depth


@pytest.fixture(autouse=True)
def _limit() -> Any:
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(1_000)
    yield
    sys.setrecursionlimit(before)


MESSAGE = {"type": "message", "id": "m", "created_at": 0, "role": "user", "content": [{"type": "text", "text": "x"}]}
CALL = {"type": "function_call", "id": "c", "created_at": 0, "name": "run", "call_id": "c", "arguments": "{}"}
PLACES: dict[str, Callable[[Any], Any]] = {
    "whole": lambda value: value,
    "version": lambda value: saved(MESSAGE, version=value),
    "id": lambda value: saved(MESSAGE, id=value),
    "metadata": lambda value: saved(MESSAGE, metadata={"a": value}),
    "items": lambda value: saved(MESSAGE, items=value),
    "item": lambda value: saved(*[value]),
    "breaks": lambda value: saved(MESSAGE, breaks=[value]),
    "settled": lambda value: saved(MESSAGE, settled=value),
    "extra": lambda value: saved({**MESSAGE, "extra": {"a": value}}),
    "content": lambda value: saved({**MESSAGE, "content": [value]}),
    "text": lambda value: saved({**MESSAGE, "content": [{"type": "text", "text": value}]}),
    "usage": lambda value: saved({**MESSAGE, "usage": {"input_tokens": value}}),
    "category": lambda value: saved({**MESSAGE, "category": value}),
    "arguments": lambda value: saved({**CALL, "arguments": value}),
    "call metadata": lambda value: saved({**CALL, "metadata": {"a": value}}),
    "unknown": lambda value: saved(MESSAGE, unknown=value),
}


def saved(*items: Any, **fields: Any) -> dict[str, Any]:
    return {"version": 1, "id": "s", "items": list(items), **fields}


@pytest.mark.parametrize(
    ("levels", "kind", "stack"),
    [
        *((levels, kind, stack) for levels in (100, 101, 1_000, 20_000) for kind in ("list", "mapping") for stack in STACKS),
        *(pytest.param(1_000_000, "mixed", stack, marks=pytest.mark.long) for stack in (STACKS[0], STACKS[-1])),  # seconds each
    ],
)
def test_from_dict_refuses_deep_nesting_with_our_error(levels: int, kind: str, stack: int) -> None:
    """`Session.from_dict` raises our error for deeply nested input: at any depth, in any place, from any caller."""
    value = nested(levels, kind)
    for make in PLACES.values():
        with pytest.raises(FormatError):
            called_below(stack, partial(Session.from_dict, make(value)))
    unwound(value)


READERS: dict[str, Callable[[Any], Any]] = {
    "clean_json": lambda value: clean_json(value, "x"),
    "extra": lambda value: Message("user", "x", extra={"a": value}),
    "anthropic input": lambda value: from_anthropic(
        [{"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "n", "input": {"a": value}}]}]
    ),
    "anthropic block": lambda value: from_anthropic([{"role": "assistant", "content": [{"type": "new_tool_result", "a": value}]}]),
    "google args": lambda value: from_google([{"role": "model", "parts": [{"function_call": {"name": "n", "args": {"a": value}}}]}]),
    "google part": lambda value: from_google([{"role": "model", "parts": [{"executable_code": value}]}]),
    "chat field": lambda value: from_openai_chat([{"role": "user", "content": "x", "field": value}]),
    "responses item": lambda value: from_openai_responses([{"type": "new", "a": value}]),
    "arguments": lambda value: Session().add_function_call("run", {"a": value}),
}


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("kind", [*(pytest.param(kind, marks=pytest.mark.long) for kind in ("list", "mapping")), "mixed"])
@pytest.mark.parametrize("reader", READERS)
def test_all_entry_points_accept_allowed_depths_from_any_stack_depth(reader: str, kind: str, stack: int) -> None:
    """The result must not depend on the caller's remaining stack."""
    called_below(stack, lambda: READERS[reader](nested(MAX_DEPTH - 8, kind)))
    for levels in (MAX_DEPTH + 1, 1_000, 20_000):
        value = nested(levels, kind)
        with pytest.raises(FormatError, match="nested deeper"):
            called_below(stack, partial(READERS[reader], value))
        unwound(value)


@pytest.mark.parametrize("stack", STACKS)
def test_allowed_depths_are_saved_and_loaded_from_any_stack_depth(stack: int, tmp_path: Path) -> None:
    arguments = json.dumps({"a": nested(MAX_DEPTH - 8, "mixed")})
    session = Session([Message("user", "x", extra={"a": nested(MAX_DEPTH - 8, "mixed")})])
    session.add_function_call("run", arguments, "c")
    data = called_below(stack, session.to_dict)
    assert data == session.to_dict()
    assert called_below(stack, lambda: Session.from_dict(data)).to_dict() == data
    payload = called_below(stack, lambda: to_anthropic(session))
    assert payload == to_anthropic(session)
    assert payload.messages[1]["content"][0]["input"] == json.loads(arguments)
    store = SessionStore(tmp_path / "store.db")
    called_below(stack, lambda: store.save(session))
    assert called_below(stack, lambda: store.load(session.id)).to_dict() == data
    store.close()
    path = tmp_path / "session.json"
    path.write_text(json.dumps(data))
    assert called_below(stack, lambda: read_transcript(path)).to_dict() == data
    assert called_below(stack, lambda: read_account(path)).sessions[0].to_dict() == data


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("opening", ["[", '{"a":'])
@pytest.mark.parametrize("levels", [101, 1_000, 20_000])
def test_files_of_deep_json_are_refused_with_our_error(levels: int, opening: str, stack: int, tmp_path: Path) -> None:
    closing = "]" if opening == "[" else "}"
    path = tmp_path / "session.json"
    for text in (opening * levels + "1" + closing * levels, '{"version": 1, "id": "s", "items": [], "metadata": {"a": %s}}'):
        path.write_text(text.replace("%s", opening * levels + "1" + closing * levels))
        with pytest.raises(TranscriptError):
            called_below(stack, lambda: read_transcript(path))


def test_errors_of_the_helper_thread_reach_the_caller() -> None:
    def fails() -> None:
        raise FormatError("x", "no")

    with pytest.raises(FormatError, match="x: no"):
        called_below(900, lambda: with_room(fails))
    assert called_below(900, lambda: with_room(len_of_stack)) < 100
