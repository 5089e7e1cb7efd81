"""`manage`: one function for a list in any format, stable for lists that are made anew at every turn."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_window import ArgumentError, ContextOverflowError, ContextWindow, Extract, UnknownModelError, manage
from context_window.managed_messages import _format_of, _windows
from session.errors import FormatError
from session.providers.anthropic.rules import validate_anthropic
from session.providers.openai_chat.rules import validate_openai_chat

Json = dict[str, Any]
OUTPUT = "".join(f"line {number}: something that was printed\n" for number in range(40))


def anthropic_turn(number: int) -> list[Json]:
    return [
        {"role": "assistant", "content": [{"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {"command": f"ls {number}"}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": f"t{number}", "content": OUTPUT}]},
    ]


def chat_turn(number: int) -> list[Json]:
    call = {"id": f"t{number}", "type": "function", "function": {"name": "Bash", "arguments": f'{{"command": "ls {number}"}}'}}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"t{number}", "content": OUTPUT},
    ]


def old_chat_turn(number: int) -> list[Json]:
    call = {"name": "Bash", "arguments": f'{{"command": "ls {number}"}}'}
    return [
        {"role": "assistant", "content": None, "function_call": call},
        {"role": "function", "name": "Bash", "content": OUTPUT},
    ]


def responses_turn(number: int) -> list[Json]:
    return [
        {"type": "function_call", "call_id": f"t{number}", "name": "Bash", "arguments": f'{{"command": "ls {number}"}}'},
        {"type": "function_call_output", "call_id": f"t{number}", "output": OUTPUT},
    ]


def google_turn(number: int) -> list[Json]:
    return [
        {"role": "model", "parts": [{"functionCall": {"name": "Bash", "args": {"command": f"ls {number}"}}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "Bash", "response": {"output": OUTPUT}}}]},
    ]


def converse_turn(number: int) -> list[Json]:
    return [
        {"role": "assistant", "content": [{"toolUse": {"toolUseId": f"t{number}", "name": "Bash", "input": {"command": f"ls {number}"}}}]},
        {"role": "user", "content": [{"toolResult": {"toolUseId": f"t{number}", "content": [{"text": OUTPUT}]}}]},
    ]


def vercel_turn(number: int) -> list[Json]:
    call = {"type": "tool-call", "toolCallId": f"t{number}", "toolName": "Bash", "input": {"command": f"ls {number}"}}
    output = {"type": "text", "value": OUTPUT}
    return [
        {"role": "assistant", "content": [call]},
        {"role": "tool", "content": [{"type": "tool-result", "toolCallId": f"t{number}", "toolName": "Bash", "output": output}]},
    ]


def smolagents_turn(number: int) -> list[Json]:
    call = {"id": f"t{number}", "type": "function", "function": {"name": "bash", "arguments": {"command": f"ls {number}"}}}
    return [
        {"role": "tool-call", "content": [{"type": "text", "text": f"Calling tools:\n{[call]}"}]},
        {"role": "tool-response", "content": [{"type": "text", "text": f"Observation:\n{OUTPUT}"}]},
    ]


FORMATS: dict[str, tuple[str, Json, Callable[[int], list[Json]]]] = {
    "anthropic": ("claude-sonnet-5-5", {"role": "user", "content": "List them all, one by one."}, anthropic_turn),
    "chat": ("gpt-5", {"role": "user", "content": "List them all, one by one."}, chat_turn),
    "old chat": ("gpt-5", {"role": "user", "content": "List them all, one by one."}, old_chat_turn),
    "responses": ("gpt-5", {"role": "user", "content": [{"type": "input_text", "text": "List them all, one by one."}]}, responses_turn),
    "google": ("gemini-3-pro", {"role": "user", "parts": [{"text": "List them all, one by one."}]}, google_turn),
    "converse": ("claude-sonnet-5-5", {"role": "user", "content": [{"text": "List them all, one by one."}]}, converse_turn),
    "vercel": ("gpt-5", {"role": "user", "content": "List them all, one by one."}, vercel_turn),
    "smolagents": ("gpt-5", {"role": "user", "content": [{"type": "text", "text": "List them all, one by one."}]}, smolagents_turn),
}


def conversation(name: str, turns: int) -> tuple[str, list[Json]]:
    model, first, turn = FORMATS[name]
    return model, [first, *(message for number in range(turns) for message in turn(number))]


def size(messages: list[Json]) -> int:
    return len(json.dumps(messages))


@pytest.mark.parametrize("name", FORMATS)
def test_what_fits_is_returned_as_it_is(name: str) -> None:
    model, messages = conversation(name, 3)
    view = manage(messages, model=model, max_tokens=50_000)
    assert view == messages
    assert all(given is kept for given, kept in zip(messages, view, strict=True))
    assert manage([], model=model) == []


@pytest.mark.parametrize("name", FORMATS)
def test_lists_made_anew_have_the_views_of_a_conversation_that_grows(name: str) -> None:
    """Stateless and stable: nearly every view begins with the one before, and any process returns the same."""
    model, messages = conversation(name, 36)
    lengths = range(1, len(messages) + 1, 2)
    views = []
    for length in lengths:
        _windows.cache_clear()  # as in another process
        views.append(manage(copy.deepcopy(messages[:length]), model=model, max_tokens=5_000))
    remembered = [manage(copy.deepcopy(messages[:length]), model=model, max_tokens=5_000) for length in lengths]
    assert views == remembered
    extended = sum(view[: len(before)] == before for before, view in pairwise(views))
    assert extended >= 30  # of 36; the others are trims
    assert size(views[-1]) < size(messages) / 2
    assert views[-1][0] == messages[0]
    assert views[-1][-2:] == messages[-2:]


@pytest.mark.filterwarnings("ignore:what providers refuse")
@given(st.sampled_from(("anthropic", "chat", "old chat")), st.integers(1, 30), st.integers(0, 3), st.sampled_from((3_000, 6_000, 12_000)))
def test_views_are_valid(name: str, turns: int, cut: int, budget: int) -> None:
    """and the list that was given is not changed"""
    model, messages = conversation(name, turns)
    messages = messages[: len(messages) - cut] or messages
    before = copy.deepcopy(messages)
    try:
        view = manage(messages, model=model, max_tokens=budget)
    except ContextOverflowError:
        return
    assert messages == before
    check = validate_anthropic if name == "anthropic" else validate_openai_chat
    body = {"model": model, "max_tokens": 10}
    if not check({**body, "messages": messages}):
        assert check({**body, "messages": view}) == []


@pytest.mark.parametrize("name", FORMATS)
def test_a_view_that_is_passed_again_is_a_list_like_any_other(name: str) -> None:
    """Not the conversation that it was made of, which another process would not know."""
    model, messages = conversation(name, 30)
    stored = [*manage(messages[:41], model=model, max_tokens=4_000), *messages[41:]]
    remembered = manage(copy.deepcopy(stored), model=model, max_tokens=4_000)
    _windows.cache_clear()
    assert manage(stored, model=model, max_tokens=4_000) == remembered


def test_settings_can_be_passed() -> None:
    model, messages = conversation("anthropic", 40)
    window = ContextWindow(max_tokens=6_000, strategy=Extract())
    assert manage(messages, model=model, window=window) == manage(messages, model=model, max_tokens=6_000)
    tools = [{"name": "Bash", "description": "word " * 9_000, "input_schema": {"type": "object"}}]
    with pytest.raises(ContextOverflowError):
        manage(messages, model=model, max_tokens=6_000, tools=tools)


@pytest.mark.parametrize(
    ("messages", "problem"),
    [
        ([{"content": "x"}], "neither a role nor a type"),
        ([{"id": "1", "role": "user", "parts": [{"type": "text", "text": "hi"}]}], "Vercel's UI messages"),
    ],
)
def test_what_is_no_list_of_these_formats_is_refused(messages: Any, problem: str) -> None:
    with pytest.raises(ArgumentError, match=problem):
        manage(messages, model="claude-sonnet-5-5")


def test_a_model_without_a_known_window_needs_one() -> None:
    messages = [{"role": "user", "content": "hi"}]
    with pytest.raises(UnknownModelError):
        manage(messages, model="my-own-model")
    assert manage(messages, model="my-own-model", max_tokens=1_000) == messages


def test_where_formats_look_alike_the_model_decides() -> None:
    messages = [{"role": "user", "content": "hi"}]
    assert type(_format_of(messages, "claude-sonnet-5-5")).__name__ == "AnthropicWire"
    assert type(_format_of(messages, "gpt-5")).__name__ == "ChatWire"


def test_it_needs_no_extra() -> None:
    """Not the gateway's packages, and no client."""
    blocked = "starlette", "httpx", "uvicorn", "orjson", "anthropic", "openai"
    program = (
        f"import sys; sys.modules.update(dict.fromkeys({blocked!r}))\n"
        "from context_window import manage\n"
        "print(manage([{'role': 'user', 'content': 'hi'}], model='claude-sonnet-5-5'))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[{'role': 'user', 'content': 'hi'}]\n", "")


DEEP: list[Any] = []
for _ in range(5_000):
    DEEP = [DEEP]
ROUND: dict[str, Any] = {"role": "user"}
ROUND["content"] = [ROUND]


@pytest.mark.parametrize(
    "message",
    [
        {"role": "user", "content": DEEP},
        {"role": "user", "content": [{"type": "text", "text": "x", "y": DEEP}]},
        {"role": "user", "content": [{"type": "text", "text": "x", "n": 10**5_000}]},
        {"role": "user", "content": b"x"},
        {"role": "user", "content": [{"type": "text", "text": {"x"}}]},
        {"role": ["user"], "content": "x"},
        ROUND,
    ],
)
def test_what_is_no_message_is_said_with_our_error(message: Any) -> None:
    """not with one of Python's"""
    with pytest.raises(FormatError, match=r"messages\[1\]"):
        manage([{"role": "user", "content": "Hi"}, message], model="claude-sonnet-5-5")


@pytest.mark.parametrize("kind", [[1], {}, 5, None])
def test_a_block_of_an_odd_type_is_read_or_refused_with_our_error(kind: object) -> None:
    with suppress(FormatError):
        assert manage([{"role": "user", "content": [{"type": kind}]}], model="claude-sonnet-5-5")


def test_idle_conversations_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that manages one conversation after another keeps those of the last minutes only: each view is the same without."""
    monkeypatch.setattr("context_window.gateway.windows.IDLE_SECONDS", 0.0)
    window = ContextWindow(max_tokens=3_210)
    for number in range(5):
        manage([{"role": "user", "content": f"{number}: {OUTPUT}"}], model="gpt-5", window=window)
    assert _windows(window).forget_idle(0.0) == 1
