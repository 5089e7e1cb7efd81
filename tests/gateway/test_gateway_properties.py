"""Random conversations through the gateway's windows, in every wire format."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from typing import Any, NamedTuple

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from context_window import ContextOverflowError, ContextWindow, ContextWindowManager, Extract, PriorityTrim, Strategy
from context_window.gateway.anthropic_messages import AnthropicWire
from context_window.gateway.body_json import object_of
from context_window.gateway.fitted_body import ManagedRequest, fitted_body
from context_window.gateway.google_contents import GoogleWire
from context_window.gateway.openai_chat import ChatWire
from context_window.gateway.openai_responses import ResponsesWire
from context_window.gateway.windows import Windows
from context_window.gateway.wire_format import WireFormat
from context_window.integrations.conversation_tracker import ConversationTracker
from context_window.recall import recall_tool
from session.providers import validate_anthropic, validate_google, validate_openai_chat, validate_openai_responses
from session.providers.additions import INTERRUPTED
from session.providers.google.signatures import DUMMY
from tests.support.gateways import bare
from tests.support.stubs import AnthropicStub, GeminiStub, OpenAIChatStub, OpenAIResponsesStub, Say, in_order

Json = dict[str, Any]
NOTE = 60
"""Tokens that are reserved for the line about removed items, and more."""
TOOL = 750
"""Tokens of the recall tool and of the prompt that Anthropic adds for the first tool, and more."""
Step = tuple[str, int, int]
"""A step of a conversation: "user", "say" or "call"; its words; and the number of its calls."""

steps = st.lists(
    st.tuples(st.sampled_from(["user", "say", "call", "call"]), st.integers(1, 300), st.integers(1, 3)), min_size=1, max_size=14
)


def prose(number: int, words: int) -> str:
    """Return about this number of words. Every fourth line is worth more than the others."""
    lines = [f"value_{number}_{line} = parse_rows(source)" if line % 4 == 0 else "and so on" for line in range(words // 3)]
    return "\n".join([f"{number} words", *lines])


def anthropic_body(conversation: list[Step]) -> Json:
    messages: list[Json] = [{"role": "user", "content": "Begin."}]
    for number, (kind, words, calls) in enumerate(conversation):
        text = {"type": "text", "text": prose(number, words)}
        if kind == "user":
            messages += [{"role": "assistant", "content": "Yes."}, {"role": "user", "content": [text]}]
        elif kind == "say":
            messages += [{"role": "assistant", "content": [text]}, {"role": "user", "content": "Go on."}]
        else:
            ids = [f"c{number}_{index}" for index in range(calls)]
            uses = [{"type": "tool_use", "id": id, "name": "read", "input": {"path": "a" * words}} for id in ids]
            results = [{"type": "tool_result", "tool_use_id": id, "content": prose(number, words)} for id in ids]
            messages += [{"role": "assistant", "content": [{"type": "text", "text": "Look."}, *uses]}, {"role": "user", "content": results}]
    content = messages[-1]["content"]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    marked = [*blocks[:-1], {**blocks[-1], "cache_control": {"type": "ephemeral"}}]
    messages[-1] = {**messages[-1], "content": marked}
    return {"model": "claude-sonnet-4-5", "max_tokens": 100, "messages": messages}


def chat_body(conversation: list[Step]) -> Json:
    messages: list[Json] = [{"role": "user", "content": "Begin."}]
    for number, (kind, words, calls) in enumerate(conversation):
        text = prose(number, words)
        if kind == "call":
            functions = [{"name": "read", "arguments": json.dumps({"path": "a" * words})} for _ in range(calls)]
            made = [{"id": f"c{number}_{index}", "type": "function", "function": each} for index, each in enumerate(functions)]
            messages += [{"role": "assistant", "content": None, "tool_calls": made}]
            messages += [{"role": "tool", "tool_call_id": call["id"], "content": text} for call in made]
        else:
            messages += [{"role": "assistant", "content": "Yes."}, {"role": "user", "content": text}]
    return {"model": "gpt-5", "messages": messages}


def responses_body(conversation: list[Step]) -> Json:
    items: list[Json] = [{"role": "user", "content": "Begin."}]
    for number, (kind, words, calls) in enumerate(conversation):
        text = prose(number, words)
        if kind == "call":
            ids = [f"c{number}_{index}" for index in range(calls)]
            items += [
                {"type": "function_call", "call_id": id, "name": "read", "arguments": json.dumps({"path": "a" * words})} for id in ids
            ]
            items += [{"type": "function_call_output", "call_id": id, "output": text} for id in ids]
        else:
            items += [{"role": "assistant", "content": "Yes."}, {"role": "user", "content": text}]
    return {"model": "gpt-5", "input": items}


def google_body(conversation: list[Step]) -> Json:
    contents: list[Json] = [{"role": "user", "parts": [{"text": "Begin."}]}]
    for number, (kind, words, calls) in enumerate(conversation):
        text = prose(number, words)
        if kind == "call":
            made = [{"functionCall": {"name": "read", "args": {"path": "a" * words}}} for _ in range(calls)]
            made[0]["thoughtSignature"] = DUMMY  # type: ignore[assignment]
            answers = [{"functionResponse": {"name": "read", "response": {"output": text}}} for _ in range(calls)]
            contents += [{"role": "model", "parts": made}, {"role": "user", "parts": answers}]
        else:
            contents += [{"role": "model", "parts": [{"text": "Yes."}]}, {"role": "user", "parts": [{"text": text}]}]
    return {"contents": contents}


class WireCase(NamedTuple):
    """A wire format with what a test over all formats needs: a path of its API, a body, and its rules."""

    wire: WireFormat
    path: str
    body_of: Callable[[list[Step]], Json]
    validate: Callable[[Json], list[Any]]


CASES = {
    "anthropic": WireCase(AnthropicWire(), "/v1/messages", anthropic_body, validate_anthropic),
    "chat": WireCase(ChatWire(), "/v1/chat/completions", chat_body, lambda body: validate_openai_chat(body["messages"])),
    "responses": WireCase(ResponsesWire(), "/v1/responses", responses_body, lambda body: validate_openai_responses(body["input"])),
    "google": WireCase(GoogleWire(), "/v1beta/models/gemini-3-pro:generateContent", google_body, validate_google),
}
in_every_format = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


@pytest.mark.no_cover
@in_every_format
@settings(max_examples=max(1, settings().max_examples // 4))  # each example makes a request for every step
@given(conversation=steps, tokens=st.integers(200, 4_000), strategy=st.sampled_from([None, PriorityTrim()]), recall=st.booleans())
def test_every_view_is_valid_and_the_same_in_every_worker(
    case: WireCase, conversation: list[Step], tokens: int, strategy: Strategy | None, recall: bool
) -> None:
    """Whatever the conversation, the window and the strategy: the request is valid, all fields but the messages are the client's, the
    client's objects do not change, a request begins with the one before it if that one has room for the new messages, and a worker that
    sees only the last request sends the same as one that saw all of them. Once a view lacks something, so that the recall tool is due, all
    later ones do, but for those that do not fit without the user's words: they go out as they are. Placeholders name ids only if the model
    has that tool."""
    wire, path, body_of, validate = case
    field = wire.field
    window = ContextWindow(max_tokens=tokens, keep_first_message=True, strategy=strategy)
    windows = Windows(window)
    sent: Json = {}
    bodies: list[Json] = []
    was_shortened = was_unfit = False
    for length in range(1, len(conversation) + 1):
        body = body_of(conversation[:length])
        copy = deepcopy(body)
        previous, (sent, is_unfit) = sent, _sent_or_unfit(windows, wire, path, body, recall=recall)
        bodies.append(body)
        assert body == copy
        assert sent is not body or not was_shortened or is_unfit
        was_shortened |= sent is not body
        was_unfit, is_known = is_unfit, not (is_unfit or was_unfit)
        assert recall or "recall id" not in json.dumps(sent)
        assert validate(sent) == []
        assert {**sent, field: None} == {**body, field: None}
        assert json.dumps(sent).count("cache_control") <= json.dumps(body).count("cache_control")
        if length > 1 and is_known:
            extended = {**body, field: [*previous[field], *body[field][len(bodies[-2][field]) :]]}
            if _tokens(wire, path, extended) + NOTE + (TOOL if recall else _unsent(extended)) <= tokens:
                assert _unmarked(wire, sent[field]) == _unmarked(wire, extended[field])
    fresh = Windows(window)
    assert _sent_or_unfit(fresh, wire, path, body_of(conversation), recall=recall) == (sent, was_unfit)


STUBS = {"anthropic": AnthropicStub, "chat": OpenAIChatStub, "responses": OpenAIResponsesStub, "google": GeminiStub}

HEADERS = {"x-api-key": "k", "x-goog-api-key": "k", "authorization": "Bearer k", "anthropic-version": "2023-06-01"}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("calls", [1, 2])
def test_a_trimmed_view_gives_interrupted_calls_a_result_and_leaves_blank_messages_out(name: str, calls: int) -> None:
    wire, path, body_of, validate = CASES[name]
    conversation: list[Step] = [("user", 300, 1)] * 9 + [("call", 9, calls), ("user", 9, 1)] * 3
    messages = [interrupted for message in body_of(conversation)[wire.field] if (interrupted := _without_first_result(message))]
    empty: Json = {"parts": [{"text": " "}]} if name == "google" else {"content": " "}
    body = {**body_of(conversation), wire.field: [*messages[:-2], {"role": "user", **empty}, *messages[-2:]]}
    assert validate(body) != []
    sent = _sent(Windows(ContextWindow(max_tokens=2_000)), wire, path, body)
    assert validate(sent) == []
    assert json.dumps(sent).count(INTERRUPTED) == 3
    with STUBS[name](in_order([Say("Done.")])) as stub:
        answer = httpx.post(f"{stub.url}{path}", json=sent, headers=HEADERS, trust_env=False)
    assert answer.status_code == 200, answer.text
    assert Windows(ContextWindow(max_tokens=10**6)).fit(wire, _managed(CASES[name], json.dumps(body).encode()).conversation) is None


def _without_first_result(message: Json) -> Json:
    """Return a message without the result of the first call of its step; an empty one if nothing is left."""
    field = "parts" if "parts" in message else "content"
    if isinstance(message.get(field), list):
        left = [
            block
            for index, block in enumerate(message[field])
            if not (_answers_first(block) or (index == 0 and "functionResponse" in block))
        ]
        return {**message, field: left} if left else {}
    return {} if _answers_first(message) else message


def _answers_first(block: Json) -> bool:
    id = block.get("tool_use_id") or block.get("tool_call_id") or (block.get("call_id") if "output" in block else None)
    return str(id).endswith("_0")


@in_every_format
def test_without_a_strategy_the_most_valuable_lines_stay(case: WireCase) -> None:
    body = case.body_of([("call", 190, 1)] * 20 + [("user", 10, 1)])
    unset, extract, priority = (
        _sent(Windows(ContextWindow(max_tokens=4_000, strategy=strategy)), case.wire, case.path, body)
        for strategy in (None, Extract(), PriorityTrim())
    )
    assert unset == extract != priority
    assert case.validate(unset) == []
    assert "[extracts of earlier items]" in json.dumps(unset[case.wire.field])


@pytest.mark.no_cover
@in_every_format
@settings(max_examples=max(1, settings().max_examples // 4))  # each example makes a request for every step
@given(conversation=steps, tokens=st.integers(200, 4_000), branches=st.lists(steps, max_size=3))
def test_a_worker_sends_the_bytes_that_it_would_send_without_having_seen_anything(
    case: WireCase, conversation: list[Step], tokens: int, branches: list[list[Step]]
) -> None:
    """For every request of a conversation that grows, and of others that begin like it. A request that fits goes out as the client's own
    bytes."""
    window = ContextWindow(max_tokens=tokens, keep_first_message=True)
    windows = Windows(window, are_frozen=True)
    requests = [conversation[:length] for length in range(1, len(conversation) + 1)]
    requests += [[*conversation[: len(conversation) // 2], *branch] for branch in branches]
    for request in requests:
        body = json.dumps(case.body_of(request)).encode()
        now, alone = (_fitted_or_none(each, _managed(case, body)) for each in (windows, Windows(window)))
        assert now == alone
        assert now is body or now is None or json.loads(now) != json.loads(body)


def _fitted_or_none(windows: Windows, request: ManagedRequest) -> bytes | None:
    try:
        return fitted_body(windows, request)
    except ContextOverflowError:
        return None


def _managed(case: WireCase, body: bytes) -> ManagedRequest:
    fields = object_of(body) or {}
    conversation = case.wire.conversation(case.path, fields)
    assert conversation is not None
    return ManagedRequest(case.wire, conversation, fields, body)


def _unmarked(wire: WireFormat, messages: list[Json]) -> list[Json]:
    """Return the messages without Anthropic's cache marks, which move."""
    return list(map(bare, messages)) if isinstance(wire, AnthropicWire) else messages


def _unsent(body: Json) -> int:
    """Return the tokens, and more, of the recall ids that are counted with placeholders and not sent."""
    text = json.dumps(body)
    return 20 * (text.count(" taken out") + text.count("## "))


def _tokens(wire: WireFormat, path: str, body: Json) -> int:
    """Return the tokens of a request."""
    conversation = wire.conversation(path, body)
    assert conversation is not None
    manager = ContextWindowManager(conversation.model, context_window=ContextWindow(max_tokens=10**6))
    ConversationTracker(manager, wire.adapter).fit(conversation.messages, system=conversation.system)
    return manager.get_token_usage()["total"]


def _sent_or_unfit(windows: Windows, wire: WireFormat, path: str, body: Json, *, recall: bool) -> tuple[Json, bool]:
    """Return what is sent, and True if that is the client's own body since what must be kept does not fit."""
    try:
        return _sent(windows, wire, path, body, recall=recall), False
    except ContextOverflowError:
        return body, True


def _sent(windows: Windows, wire: WireFormat, path: str, body: Json, *, recall: bool = False) -> Json:
    conversation = wire.conversation(path, body)
    assert conversation is not None
    if recall:
        conversation = replace(conversation, recall_tool=recall_tool(wire.joined_answer.provider).definition)
    messages = windows.fit(wire, conversation)
    return body if messages is None else wire.with_messages(body, messages)
