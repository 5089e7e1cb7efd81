"""A message counts with its present content, even if it is the same object as in an earlier request."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, ToolCallPart, ToolReturnPart, UserPromptPart

from context_window.integrations.conversation_tracker import ConversationTracker
from context_window.integrations.langchain_messages import LangChainAdapter
from context_window.integrations.message_adapter import MessageAdapter
from context_window.integrations.message_hashes import hash_messages
from context_window.integrations.pydantic_ai_messages import PydanticAdapter
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
    langchain: LangChainAdapter,
    responses: ResponsesAdapter,
    pydantic_ai: PydanticAdapter,
}
frameworks = pytest.mark.parametrize("framework", ADAPTERS)


@frameworks
@pytest.mark.parametrize("index", [0, 7, -1])
def test_a_message_that_was_changed_in_place_is_read_again(framework: Callable[[int], list[Any]], index: int) -> None:
    adapter = ADAPTERS[framework]
    messages = [message for turn in range(8) for message in framework(turn)]
    tracker: ConversationTracker[Any] = ConversationTracker(manager(10**6), adapter())
    tracker.fit(messages)
    message: Any = messages[index]
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


VALUES = st.recursive(
    st.none() | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("xy"), inner, max_size=2),
    max_leaves=4,
)
MESSAGES = st.lists(st.fixed_dictionaries({"role": st.just("user"), "content": VALUES}), max_size=5)


@given(st.lists(st.tuples(MESSAGES, st.integers(0, 5)), max_size=3), MESSAGES)
def test_hashes_are_the_same_whatever_lists_are_known(lists: list[tuple[list[Any], int]], messages: list[Any]) -> None:
    """Known lists begin like the messages, or not, and only save work."""
    adapter = ResponsesAdapter()
    known = [hash_messages(adapter, deepcopy([*messages[:kept], *other])) for other, kept in lists]
    assert hash_messages(adapter, messages, known) == hash_messages(adapter, messages)


def test_messages_that_an_earlier_list_begins_with_are_not_hashed_again() -> None:
    """If nobody changes messages, a request costs only its new messages."""
    adapter = _CountingAdapter()
    tracker = ConversationTracker(manager(10**6), adapter, are_frozen=True)
    messages = [{"role": "user", "content": f"message {number}"} for number in range(50)]
    for length in range(1, 51):
        tracker.fit(deepcopy(messages[:length]))
    assert adapter.digests == 50


class _CountingAdapter(ResponsesAdapter):
    digests = 0

    def digest(self, message: dict[str, Any]) -> bytes:
        self.digests += 1
        return super().digest(message)
