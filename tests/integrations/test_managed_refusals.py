"""`manage` for lists that a provider refuses: mended with a warning, or refused with our error. Nothing is lost without a word."""

from __future__ import annotations

import copy
import re
import warnings
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_window import ArgumentError, ContextOverflowError, ContextWindow, ContextWindowWarning, Session, manage
from context_window.repair import violations_of
from session.errors import FormatError
from tests.integrations.test_managed_formats import old_chat_problems
from tests.integrations.test_managed_messages import FORMATS, conversation

Json = dict[str, Any]
PROVIDERS: dict[str, Any] = {
    "anthropic": "anthropic",
    "chat": "openai",
    "old chat": "openai",
    "responses": "openai-responses",
    "google": "google",
}
OWN_AFFAIR = (
    "thought_signature",
    "function call turn must come",
    "must end with a user turn",
    "must be the user's",
    "roles must alternate",
    "in a row",
)
"""What a provider mends itself, or what depends on the model: neighbours of one role, who speaks last, signatures."""


def problems(name: str, messages: list[Json]) -> list[str]:
    """What the provider refuses in a list."""
    fields = {"google": "contents", "responses": "input"}
    body = {"model": FORMATS[name][0], "max_tokens": 10, fields.get(name, "messages"): messages}
    found = [*map(str, violations_of(PROVIDERS[name], body)), *(old_chat_problems(messages) if name == "old chat" else ())]
    return [problem for problem in found if not any(words in problem for words in OWN_AFFAIR)]


def with_other_ids(value: Any, old: str, new: str) -> Any:
    """Return JSON with another text where one is an id."""
    if isinstance(value, list):
        return [with_other_ids(member, old, new) for member in value]
    if isinstance(value, dict):
        return {key: new if member == old else with_other_ids(member, old, new) for key, member in value.items()}
    return value


def without_ids(value: Any) -> Any:
    """Return JSON without the fields that name a call."""
    if isinstance(value, list):
        return [without_ids(member) for member in value]
    if isinstance(value, dict):
        names = ("tool_call_id", "tool_use_id", "call_id", "id")
        return {key: without_ids(member) for key, member in value.items() if key not in names}
    return value


def emptied(message: Json) -> Json:
    """Return a message that says nothing."""
    return {**message, **({"parts": [{"text": ""}]} if "parts" in message else {"content": ""} if "content" in message else {})}


DAMAGES: dict[str, Callable[[list[Json], int, int], None]] = {
    "lost": lambda messages, at, _: messages.__delitem__(at),
    "moved": lambda messages, at, to: messages.insert(to, messages.pop(at)),
    "twice": lambda messages, at, to: messages.insert(to, copy.deepcopy(messages[at])),
    "wrong id": lambda messages, at, _: messages.__setitem__(at, with_other_ids(messages[at], f"t{(at - 1) // 2}", "x")),
    "no id": lambda messages, at, _: messages.__setitem__(at, without_ids(messages[at])),
    "blank": lambda messages, at, _: messages.__setitem__(at, emptied(messages[at])),
    "no role": lambda messages, at, _: messages.__setitem__(at, {**messages[at], **({"role": "bot"} if "role" in messages[at] else {})}),
    "said between": lambda messages, at, _: messages.insert(at, copy.deepcopy(messages[0])),
}


@given(
    st.sampled_from(sorted(PROVIDERS)),
    st.integers(1, 8),
    st.lists(st.tuples(st.sampled_from(sorted(DAMAGES)), st.integers(0, 99), st.integers(0, 99)), max_size=2),
    st.sampled_from((2_500, 50_000)),
)
def test_what_a_provider_refuses_is_mended_and_said_or_refused(
    name: str, turns: int, damages: list[tuple[str, int, int]], budget: int
) -> None:
    """What it accepts is neither: it passes unchanged where it fits."""
    model, messages = conversation(name, turns)
    for damage, at, to in damages:
        if len(messages) > 1:
            DAMAGES[damage](messages, at % len(messages), to % len(messages))
    given_ones = copy.deepcopy(messages)
    is_refused = bool(problems(name, messages)) or any(damage == "blank" for damage, _, _ in damages)  # OpenAI takes blank texts
    view, error = list[Json](), ""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            view = manage(messages, model=model, max_tokens=budget)
        except (ContextOverflowError, FormatError) as raised:
            error = str(raised)
    assert messages == given_ones
    if error:
        assert is_refused or "what must be kept needs" in error, error
        assert error.startswith(("messages[", "what must be kept"))
        return
    assert problems(name, view) == []
    assert bool(caught) <= is_refused, [str(warning.message) for warning in caught]
    assert caught or view == messages or budget == 2_500


def test_a_warning_says_what_was_mended_where_and_what_to_do() -> None:
    call = {"id": "a", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
    messages: list[Json] = [
        {"role": "user", "content": "Go."},
        {"role": "assistant", "tool_calls": [call]},
        {"role": "user", "content": " "},
    ]
    problem = r"1 call \(messages\[1\]\) without a result got an error as one; append .* 1 blank message \(messages\[2\]\) left out"
    with pytest.warns(ContextWindowWarning, match=problem) as caught:
        view = manage(messages, model="gpt-5", max_tokens=9_000)
    assert caught[0].filename == __file__
    assert view[:2] == messages[:2]
    assert view[2]["tool_call_id"] == "a"


def test_blank_messages_that_are_all_there_is_are_sent_and_said_so() -> None:
    messages = [{"role": "user", "content": " "}]
    with pytest.warns(ContextWindowWarning, match=r"1 blank message \(messages\[0\]\) sent, as there is no other; do not"):
        assert manage(messages, model="gpt-5") == messages


def test_what_frameworks_write_themselves_is_not_mended() -> None:
    """Their users could do nothing about a warning: smolagents' empty answers, LlamaIndex' empty texts beside calls."""
    for messages in (
        [
            {"role": "user", "content": [{"type": "text", "text": "Go."}]},
            {"role": "assistant", "content": [{"type": "text", "text": ""}]},
            {"role": "tool-call", "content": [{"type": "text", "text": "Calling tools:\n[{'id': 'a', 'function': {'name': 'ls'}}]"}]},
            {"role": "tool-response", "content": [{"type": "text", "text": "Observation:\na.py"}]},
            {"role": "assistant", "content": [{"type": "text", "text": "I cannot call."}]},
            {"role": "tool-response", "content": [{"type": "text", "text": "Error: no call was found."}]},
        ],
        [
            {"role": "user", "additional_kwargs": {}, "blocks": [{"block_type": "text", "text": "Go."}]},
            {
                "role": "assistant",
                "additional_kwargs": {},
                "blocks": [{"block_type": "text", "text": ""}, {"block_type": "tool_call", "tool_call_id": "a", "tool_name": "ls"}],
            },
            {"role": "tool", "additional_kwargs": {"tool_call_id": "a"}, "blocks": [{"block_type": "text", "text": "a.py"}]},
        ],
    ):
        assert manage(messages, model="gpt-5", max_tokens=9_000) == messages


def generated() -> Any:
    yield {"role": "user", "content": "Hi."}


class Said:
    """A message of a class that has only these two."""

    def __init__(self, role: str, content: str, **others: object) -> None:
        self.role, self.content = role, content
        self.__dict__.update(others)


HI: list[Any] = [{"role": "user", "content": "Hi."}]
ERRORS: dict[str, tuple[dict[str, Any], str]] = {
    "a text": ({"messages": "Hi."}, "messages=.*pass a list of messages, each a dictionary or"),
    "nothing": ({"messages": None}, "messages=None: pass a list"),
    "a generator": ({"messages": generated()}, "list(…) makes one of this"),
    "a request": ({"messages": {"messages": HI}}, "of a request, pass its messages"),
    "a session": ({"messages": Session()}, "ContextWindowManager(…).process_session(session)"),
    "texts": ({"messages": ["Hi."]}, "messages[0]='Hi.': pass each message as a dictionary"),
    "lists": ({"messages": [HI]}, "messages[0]=[{...}]: pass each message"),
    "words elsewhere": ({"messages": [{"role": "user", "text": "Hi."}]}, "messages[0]: has no content that can be read, only 'text'; pass"),
    "a class": ({"messages": [Said]}, "messages[0]=<class"),
    "objects with more": ({"messages": [Said("tool", "a", tool_call_id="c")]}, "its tool_call_id would be lost"),
    "no model": ({"model": " "}, "model=' ': pass the model's name"),
    "a model's object": ({"model": 5}, "model=5: pass the model's name"),
    "no budget": ({"max_tokens": 0}, "max_tokens=0: pass a whole number"),
    "a negative budget": ({"max_tokens": -1}, "max_tokens=-1: pass a whole number"),
    "a boolean budget": ({"max_tokens": True}, "max_tokens=True: pass a whole number"),
    "a budget as text": ({"max_tokens": "80000"}, "pass a whole number"),
    "a huge budget": ({"max_tokens": 10**9}, "a request to 'gpt-5' may have 272,000 tokens at most; pass that or less"),
    "a budget twice": ({"max_tokens": 9_000, "window": ContextWindow()}, "pass it in ContextWindow(max_tokens=…)"),
    "a window's fields": ({"window": {"max_tokens": 9_000}}, "pass a ContextWindow(…)"),
    "blocks as system": ({"system": [{"type": "text", "text": "x"}]}, "pass the system prompt as one text"),
    "no list of tools": ({"tools": None}, "tools=None: pass a list of tools"),
    "a tool": ({"tools": {"name": "ls"}}, "pass a list of tools"),
    "a number as tool": ({"tools": [5]}, "pass each tool as its definition"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_an_argument_that_makes_no_sense_is_one_error_that_says_what_to_pass(name: str) -> None:
    arguments, problem = ERRORS[name]
    with pytest.raises((ArgumentError, FormatError), match=re.escape(problem).replace(r"\.\*", ".*")):
        manage(**{"messages": HI, "model": "gpt-5", **arguments})


def test_a_larger_budget_than_we_know_of_can_be_had() -> None:
    assert manage(HI, model="gpt-5", window=ContextWindow(max_tokens=10**9)) == HI


@given(st.integers(2, 30))
def test_objects_that_have_only_a_role_and_a_content_come_back_as_such(turns: int) -> None:
    messages = [Said("assistant" if number % 2 else "user", "word " * 300) for number in range(2 * turns + 1)]
    view = manage(messages, model="gpt-5", max_tokens=4_000)
    assert {type(message) for message in view} == {Said}
    assert view[0] is messages[0]
    assert view[-1] is messages[-1]
    assert sum(len(message.content) for message in view) < 20_000
