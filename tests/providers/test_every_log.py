"""What holds for every log in every wire format: it is valid, survives a round trip, and extends what a shorter log sends."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st

from session import Message, Session
from session.providers import validate_anthropic, validate_google, validate_openai_chat, validate_openai_responses
from session.providers.anthropic import from_anthropic, to_anthropic
from session.providers.google import from_google, to_google
from session.providers.native_compaction import is_native
from session.providers.openai_chat import from_openai_chat, to_openai_chat
from session.providers.openai_responses import from_openai_responses, to_openai_responses
from session.units import request_points
from tests.providers.test_providers_google import signed_logs
from tests.providers.test_providers_openai_responses import OUR_LOGS
from tests.support.any_logs import answers, cut, is_new_prompt, logs, marked, outputs_due
from tests.support.strategies import sessions
from tests.support.twin import is_replaced


@dataclass(frozen=True)
class Format:
    """A wire format.

    Attributes:
        name: Its name.
        write: Converts a session.
        read: Converts a payload back.
        validate: Validates a payload.
        logs: Logs of any items, many of them as the provider makes them.
        has_system_apart: True if the system prompt is not among the messages.
    """

    name: str
    write: Callable[[Session], Any]
    read: Callable[[Any], Session]
    validate: Callable[[Any], list[Any]]
    logs: st.SearchStrategy[Session]
    has_system_apart: bool = True

    def flat(self, session: Session) -> list[Any]:
        """Return the blocks of all messages with their roles, or the messages of a format without blocks."""
        if not self.has_system_apart:
            return list(self.write(session))
        return [(message["role"], block) for message in self.write(session)[0] for block in message.get("content", message.get("parts"))]


FORMATS = (
    Format("anthropic", to_anthropic, lambda payload: from_anthropic(*payload), validate_anthropic, sessions() | logs()),
    Format("google", to_google, lambda payload: from_google(*payload), validate_google, sessions() | signed_logs()),
    Format("chat", to_openai_chat, from_openai_chat, validate_openai_chat, sessions() | logs(), has_system_apart=False),
    Format(
        "responses",
        to_openai_responses,
        from_openai_responses,
        validate_openai_responses,
        OUR_LOGS,
        has_system_apart=False,
    ),
)
formats = pytest.mark.parametrize("of", FORMATS, ids=lambda of: of.name)
PATIENT = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


def _validate_for_a_reasoning_model(messages: list[Any]) -> list[Any]:
    return validate_openai_chat({"messages": messages, "model": "o3"} if messages else messages)


VARIANTS: tuple[Any, ...] = (
    *(pytest.param(of, of.write, of.validate, id=of.name) for of in FORMATS),
    pytest.param(FORMATS[0], partial(to_anthropic, caching=True), validate_anthropic, id="anthropic with marks"),
    pytest.param(FORMATS[2], partial(to_openai_chat, reasoning_model=True), _validate_for_a_reasoning_model, id="chat, reasoning"),
)


@pytest.mark.parametrize(("of", "write", "validate"), VARIANTS)
@PATIENT
@given(data=st.data())
def test_every_log_is_valid(of: Format, write: Callable[[Session], Any], validate: Callable[[Any], list[Any]], data: st.DataObject) -> None:
    """Complete or cut at a request point, it passes the rules of docs/provider-rules.md, and does not change."""
    session = data.draw(of.logs)
    before = json.dumps(session.to_dict())
    for end in {*request_points(session), len(session.items)}:
        payload = write(cut(session, end))
        assert validate(payload) == []
        json.dumps(payload, allow_nan=False).encode()
    assert json.dumps(session.to_dict()) == before


@formats
@PATIENT
@given(data=st.data())
def test_a_payload_read_back_is_sent_again_unchanged(of: Format, data: st.DataObject) -> None:
    """A payload that is read and written again is the same payload, and equal payloads give equal items."""
    session = data.draw(of.logs)
    for end in sorted({*request_points(session)[-2:], len(session.items)}):
        payload = of.write(cut(session, end))
        back = of.read(payload)
        assert of.write(back) == payload
        assert back.to_dict()["items"] == of.read(json.loads(json.dumps(payload))).to_dict()["items"]


@formats
@PATIENT
@given(data=st.data())
def test_a_longer_log_extends_the_messages_of_a_shorter_one(of: Format, data: st.DataObject) -> None:
    """Between edits each request's messages extend the previous one's. A late output is an edit, and so is a new prompt among them."""
    session = data.draw(of.logs)
    points = request_points(session)
    late = any(call < point < position for call, position in answers(session).items() for point in points if point < len(session.items))
    event(f"late answers: {late}")
    previous: list[Any] = []
    start = 0
    for end in points:
        messages = of.flat(cut(session, end))
        if not late and (of.has_system_apart or not any(map(is_new_prompt, session.items[start:end]))):
            assert messages[: len(previous)] == previous
        previous, start = messages, end


@pytest.mark.parametrize("of", [of for of in FORMATS if not of.has_system_apart], ids=lambda of: of.name)
@PATIENT
@given(session=sessions() | logs())
def test_every_text_and_call_is_sent_in_order(of: Format, session: Session) -> None:
    """Every text is sent, in order except system messages between a call and its output, and every call with its own output."""
    view = marked(session)
    payload = of.write(view)
    texts = [text for message in payload if message.get("role") != "tool" for text in _texts(message) if text.startswith("text ")]
    items = list(view.items)
    said = [item.text for place, item in enumerate(items) if isinstance(item, Message) and not is_replaced(items, place)]
    assert sorted(texts) == sorted(said)
    from_others = [item.text for item in items if isinstance(item, Message) and item.role in ("user", "assistant")]
    assert [text for text in texts if text in from_others] == from_others
    results = [message.get("content", message.get("output")) for message in payload if _is_result(message)]
    assert results == outputs_due(view)


def _texts(message: dict[str, Any]) -> list[str]:
    content = message.get("content") or []
    return [content] if isinstance(content, str) else [part["text"] for part in content if "text" in part]


def _is_result(message: dict[str, Any]) -> bool:
    return message.get("role") == "tool" or message.get("type") == "function_call_output"


@cache
def _adapter(name: str) -> Any:
    """Return the adapter of the client's types, built once: building takes longer than a few dozen checks."""
    from anthropic.types import MessageParam
    from openai.types.chat import ChatCompletionMessageParam
    from openai.types.responses import ResponseInputItemParam
    from pydantic import TypeAdapter

    types: dict[str, Any] = {
        "anthropic": list[MessageParam],
        "chat": list[ChatCompletionMessageParam],
        "responses": list[ResponseInputItemParam],
    }
    return TypeAdapter(types[name])


def _with_lists(checked: Any) -> Any:
    """Return a copy with lists for pydantic's lazy iterators, which check their members when they are read."""
    if isinstance(checked, dict):
        return {key: _with_lists(member) for key, member in checked.items()}
    return [_with_lists(member) for member in checked] if isinstance(checked, Iterable) and not isinstance(checked, str) else checked


@pytest.mark.parametrize("of", [of for of in FORMATS if of.name != "google"], ids=lambda of: of.name)
@settings(PATIENT, max_examples=40)
@given(session=sessions())
def test_every_payload_matches_the_sdk_types(of: Format, session: Session) -> None:
    assume(not any(map(is_native, session.items)))  # only the types of Anthropic's beta have those
    messages = of.write(session)[0] if of.has_system_apart else of.write(session)
    assert _with_lists(_adapter(of.name).validate_python(messages)) == messages
