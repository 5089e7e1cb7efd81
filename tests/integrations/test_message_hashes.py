"""Lists of messages are compared with those before, and only what differs is written as JSON and hashed."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, ToolCallPart, ToolReturnPart, UserPromptPart

from context_window.gateway.openai_chat import ChatAdapter
from context_window.integrations.conversation_tracker import ConversationTracker
from context_window.integrations.langchain import _LangChainAdapter
from context_window.integrations.message_adapter import MessageAdapter
from context_window.integrations.message_hashes import NO_MESSAGES, MessageHashes, hash_messages, unchanged
from context_window.integrations.pydantic_ai import _PydanticAdapter
from context_window.integrations.responses_adapter import ResponsesAdapter
from tests.support.agents import manager


def langchain(turn: int) -> list[Any]:
    call = {"name": "look", "args": {"q": [turn]}, "id": f"c{turn}"}
    return [HumanMessage(f"Question {turn}?"), AIMessage("", tool_calls=[call]), ToolMessage("found " * 5, tool_call_id=f"c{turn}")]


def responses(turn: int) -> list[Any]:
    call = {"type": "function_call", "name": "look", "arguments": f'{{"q": {turn}}}', "call_id": f"c{turn}"}
    output = {"type": "function_call_output", "call_id": f"c{turn}", "output": [{"type": "input_text", "text": "found " * 5}]}
    return [{"role": "user", "content": f"Question {turn}?"}, call, output]


def pydantic_ai(turn: int) -> list[Any]:
    call = ToolCallPart("look", {"q": [turn]}, f"c{turn}")
    output = ToolReturnPart("look", {"lines": ["found"] * 5}, f"c{turn}")
    return [ModelRequest([UserPromptPart(f"Question {turn}?")]), ModelResponse([TextPart("I look."), call]), ModelRequest([output])]


ADAPTERS: dict[Callable[[int], list[Any]], Callable[[], MessageAdapter[Any]]] = {
    langchain: _LangChainAdapter,
    responses: ResponsesAdapter,
    pydantic_ai: _PydanticAdapter,
}
frameworks = pytest.mark.parametrize("framework", ADAPTERS)


def hashed_messages(tracker: ConversationTracker[Any], monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return a list that receives every message that the tracker writes as JSON and hashes."""
    hashed: list[Any] = []
    digest = tracker._adapter.digest

    def hash_message(message: Any) -> bytes:
        hashed.append(message)
        return digest(message)

    monkeypatch.setattr(tracker._adapter, "digest", hash_message)
    return hashed


@frameworks
@pytest.mark.parametrize("load", [list, deepcopy], ids=["same objects", "loaded again"])
@pytest.mark.parametrize("budget", [2_000, 10**6], ids=["trimmed", "whole"])
def test_a_request_hashes_what_has_been_appended(
    framework: Callable[[int], list[Any]], load: Callable[[list[Any]], list[Any]], budget: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A call costs what has been appended: the work on older messages is a comparison, and a hash of each where a trim moved them."""
    tracker: ConversationTracker[Any] = ConversationTracker(manager(budget), ADAPTERS[framework]())
    hashed = hashed_messages(tracker, monkeypatch)
    messages: list[Any] = []
    longest_view, each_request = 0, []
    for turn in range(60):
        messages += framework(turn)
        hashed.clear()
        longest_view = max(longest_view, len(tracker.fit(load(messages))))
        each_request.append(len(hashed))
    assert sorted(each_request)[len(each_request) // 2] <= 6
    assert max(each_request) <= (3 if budget == 10**6 else 3 + longest_view)


@frameworks
@pytest.mark.parametrize("place", [0, 7, -1])
def test_a_message_that_was_changed_in_place_is_read_again(framework: Callable[[int], list[Any]], place: int) -> None:
    adapter = ADAPTERS[framework]
    messages = [message for turn in range(8) for message in framework(turn)]
    tracker: ConversationTracker[Any] = ConversationTracker(manager(10**6), adapter())
    tracker.fit(messages)
    message: Any = messages[place]
    match message:
        case HumanMessage() | ToolMessage():
            message.content = "changed"
        case AIMessage():
            message.tool_calls[0]["args"]["q"].append("changed")
        case ModelRequest(parts=[UserPromptPart() as part]):
            part.content = "changed"
        case ModelRequest(parts=[ToolReturnPart(content=dict(lines))]):
            lines["lines"].append("changed")  # type: ignore[typeddict-item]
        case ModelResponse(parts=[_, ToolCallPart(args=dict(arguments))]):
            arguments["q"].append("changed")  # type: ignore[typeddict-item]
        case {"output": [block]}:
            block["text"] = "changed"
        case {"arguments": _}:
            message["arguments"] = '{"q": "changed"}'
        case _:
            message["content"] = "changed"
    tracker.fit(messages)
    log = next(reversed(tracker._remembered._last_use)).session
    assert "changed" in str(log.to_dict())


@dataclass
class Report:
    """A tool's result of a user's own type."""

    lines: list[str]

    def __eq__(self, other: object) -> bool:
        raise ValueError("the truth value of an array is ambiguous")

    __hash__ = None  # type: ignore[assignment]


def test_a_value_of_an_unknown_type_is_read_at_every_request() -> None:
    report = Report(["one"])
    messages: list[Any] = [ModelRequest([UserPromptPart("Hello")]), ModelResponse([ToolCallPart("look", {}, "c")])]
    messages.append(ModelRequest([ToolReturnPart("look", report, "c")]))
    tracker = ConversationTracker(manager(10**6), _PydanticAdapter())
    tracker.fit(messages)
    report.lines.append("two")
    tracker.fit(messages)
    log = next(reversed(tracker._remembered._last_use)).session
    assert "two" in str(log.to_dict())


class _CountingAdapter(ChatAdapter):
    """Counts the messages that are hashed."""

    digests = 0

    def digest(self, message: dict[str, Any]) -> bytes:
        self.digests += 1
        return super().digest(message)


def test_a_trimmed_view_is_not_hashed_again_at_every_request() -> None:
    """A request costs what is new: messages that show placeholders are the same as at the request before."""
    adapter = _CountingAdapter()
    messages: list[dict[str, Any]] = [{"role": "user", "content": "begin"}]
    tracker = ConversationTracker(manager(4_000), adapter)
    digests = []
    for number in range(60):
        function = {"name": "read", "arguments": "{}"}
        messages.append({"role": "assistant", "tool_calls": [{"id": f"c{number}", "type": "function", "function": function}]})
        messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": "a line of text\n" * 50})
        before = adapter.digests
        sent = tracker.fit([json.loads(json.dumps(message)) for message in messages])
        digests.append(adapter.digests - before)
    assert sum("output taken out" in str(message) for message in sent) > 5
    assert sorted(digests)[len(digests) // 2] <= 4  # the new messages, received and sent


VALUES = st.recursive(
    st.none() | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("xy"), inner, max_size=2),
    max_leaves=4,
)
MESSAGES = st.lists(st.fixed_dictionaries({"role": st.just("user"), "content": VALUES}), max_size=5)


@given(MESSAGES, st.lists(st.integers(-3, 5), max_size=3), MESSAGES, MESSAGES)
def test_hashes_are_the_same_whatever_list_is_known(known: list[Any], kept: list[int], new: list[Any], other: list[Any]) -> None:
    """Whatever `known` and `other` are, the result is the same."""

    def hashes(messages: list[Any], earlier: MessageHashes) -> MessageHashes:
        begins_alike = messages[: len(other)] + other[1:]
        others = hash_messages(ResponsesAdapter(), begins_alike, begins_alike, NO_MESSAGES)
        return hash_messages(ResponsesAdapter(), messages, messages, earlier, other=others)

    messages = [known[place] for place in kept if -len(known) <= place < len(known)] + new
    warm, cold = hashes(messages, hashes(known, NO_MESSAGES)), hash_messages(ResponsesAdapter(), messages, messages, NO_MESSAGES)
    assert (warm.digests, warm.hashes) == (cold.digests, cold.hashes)
    assert warm.snapshots == cold.snapshots


@given(st.data())
def test_messages_that_nobody_changes_need_no_copy(data: st.DataObject) -> None:
    """Their snapshots are the messages themselves, and the hashes are the same."""
    lists = data.draw(st.lists(st.lists(st.fixed_dictionaries({"role": st.just("user"), "content": st.text(max_size=2)}), max_size=4)))
    copied, shared = NO_MESSAGES, NO_MESSAGES
    for messages in lists:
        copied = hash_messages(ResponsesAdapter(), messages, messages, copied)
        shared = hash_messages(ResponsesAdapter(), messages, messages, shared, unchanged)
        assert (shared.digests, shared.hashes) == (copied.digests, copied.hashes)
        assert all(any(kept is one for each in lists for one in each) for kept in shared.snapshots)
