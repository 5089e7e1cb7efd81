"""The Pydantic AI adapter: a real agent against the strict stub of Anthropic's API, and its messages taken apart and put together."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anthropic
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_ai import Agent
from pydantic_ai.capabilities import ProcessHistory
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import (
    BinaryContent,
    CachePoint,
    CompactionPart,
    DocumentUrl,
    ImageUrl,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    NativeToolCallPart,
    NativeToolReturnPart,
    RetryFeedbackPart,
    RetryInfo,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.usage import RequestUsage

from context_window import ContextOverflowError, RecallError, Usage
from context_window.integrations.pydantic_ai import ContextWindowCapability
from session.providers import validate_anthropic
from session.providers.additions import PREAMBLE
from tests.support.agents import busy, letters, look, manager
from tests.support.managing import manager as bending
from tests.support.stubs import AnthropicStub
from tests.support.stubs.server import Refusal

BUDGET = 3_000
PNG = bytes.fromhex("89504e470d0a1a0a0000000d49484452000000640000006408020000000000")


@asynccontextmanager
async def agent_of(stub: AnthropicStub, *capabilities: Any, **more: Any) -> AsyncIterator[Agent[None, str]]:
    http = anthropic.DefaultAsyncHttpxClient(trust_env=False)
    async with anthropic.AsyncAnthropic(api_key="key", base_url=stub.url, max_retries=0, http_client=http) as client:
        model = AnthropicModel("claude-opus-5", provider=AnthropicProvider(anthropic_client=client))
        agent = Agent(model, capabilities=capabilities, **more)
        agent.tool_plain(look)
        yield agent


async def conversed(stub: AnthropicStub, *capabilities: Any, turns: int, **more: Any) -> list[ModelMessage]:
    history: list[ModelMessage] = []
    async with agent_of(stub, *capabilities, **more) as agent:
        for turn in range(turns):
            history = (await agent.run(f"Question {turn}?", message_history=history)).all_messages()
    return history


def fitted(messages: list[ModelMessage], max_tokens: int = 4_000, **window: Any) -> list[ModelMessage]:
    return asyncio.run(ContextWindowCapability(manager(max_tokens, **window)).fit(messages))


# An agent


@pytest.fixture(scope="module")
def conversation() -> tuple[AnthropicStub, list[ModelMessage], ContextWindowCapability]:
    """Seven turns of an agent with instructions, a system prompt and two tools, one of which is `recall`."""
    capability = ContextWindowCapability(manager(BUDGET))
    with AnthropicStub(busy()) as stub:
        asks: dict[str, Any] = {"instructions": "Be brief.", "system_prompt": "You are careful.", "tools": [capability.recall]}
        history = asyncio.run(conversed(stub, capability, turns=7, **asks))
    return stub, history, capability


Conversation = tuple[AnthropicStub, list[ModelMessage], ContextWindowCapability]


def sizes(stub: AnthropicStub) -> list[int]:
    """What the provider counted for each request."""
    used = [answer["usage"] for answer in stub.answers]
    return [one["input_tokens"] + one["cache_read_input_tokens"] + one["cache_creation_input_tokens"] for one in used]


def test_every_request_of_a_long_conversation_is_taken_and_fits(conversation: Conversation) -> None:
    stub, _, _ = conversation
    assert len(stub.answers) == len(stub.requests) == 21
    assert max(sizes(stub)) <= BUDGET
    assert "taken out" in str(stub.requests[-1])
    for request in stub.requests:
        assert validate_anthropic({name: request[name] for name in ("messages", "system", "tools")}) == []


def test_the_history_keeps_every_message_whole(conversation: Conversation) -> None:
    _, history, _ = conversation
    assert len(history) == 7 * 6
    assert "taken out" not in str(history)


def test_instructions_and_system_prompt_are_in_every_request(conversation: Conversation) -> None:
    stub, _, _ = conversation
    assert all("Be brief." in str(request["system"]) and "You are careful." in str(request["system"]) for request in stub.requests)


def test_the_agent_can_have_recall_as_a_tool(conversation: Conversation) -> None:
    stub, _, capability = conversation
    assert {tool["name"] for tool in stub.requests[-1]["tools"]} == {"recall", "look"}
    id = str(stub.requests[-1]["messages"]).partition("recall id ")[2].partition("]")[0]
    assert capability.recall(id).startswith("found ")
    with pytest.raises(RecallError):
        capability.recall("no-such-id")


def test_as_a_history_processor_it_trims_the_history_itself_and_goes_on_from_it() -> None:
    capability = ContextWindowCapability(manager(BUDGET))
    with AnthropicStub(busy()) as stub:
        history = asyncio.run(conversed(stub, ProcessHistory(capability.fit), turns=7))
    assert max(sizes(stub)) <= BUDGET
    assert len(history) < 5 * 6
    id = placeholders(history)[0].rpartition("recall id ")[2].rstrip("]")
    assert capability.recall(id).startswith("found ")


def placeholders(history: Sequence[ModelMessage]) -> list[str]:
    parts = [part for message in history for part in message.parts if isinstance(part, ToolReturnPart)]
    return [part.content for part in parts if isinstance(part.content, str) and "taken out" in part.content]


def test_what_does_not_fit_is_an_error_of_the_run() -> None:
    async def ask(stub: AnthropicStub) -> None:
        async with agent_of(stub, ContextWindowCapability(manager(300))) as agent:
            await agent.run("x" * 500)

    with AnthropicStub(busy()) as stub, pytest.raises(ContextOverflowError):
        asyncio.run(ask(stub))
    assert stub.requests == []


class Narrow(AnthropicStub):
    """The API, whose window becomes narrow after so many requests: letters of messages alone; where it `shrinks`, too narrow for all."""

    def __init__(self, after: int, window: int, *, shrinks: bool = False) -> None:
        super().__init__(busy())
        self.after, self.window, self.shrinks = after, window, shrinks

    def serve(self, path: str, headers: Any, body: Any) -> Any:
        size = letters(body["messages"])
        if len(self.requests) > self.after and (self.shrinks or size > self.window):
            raise Refusal(f"prompt is too long: {size} tokens > {min(self.window, size - 1)} maximum")
        return super().serve(path, headers, body)


def test_a_prompt_that_the_api_finds_too_long_is_sent_once_more_with_less() -> None:
    with Narrow(9, 2_500) as stub:
        history = asyncio.run(conversed(stub, ContextWindowCapability(manager(100_000)), turns=4, instructions="Be brief."))
    sent = [letters(request["messages"]) for request in stub.requests]
    assert sent[9] > 2_500 >= sent[10]
    assert len(stub.answers) == 12
    assert len(history) == 4 * 6


def test_a_prompt_that_is_too_long_twice_is_an_error_of_the_run() -> None:
    with Narrow(9, 2_500, shrinks=True) as stub, pytest.raises(ModelHTTPError, match="prompt is too long"):
        asyncio.run(conversed(stub, ContextWindowCapability(manager(100_000)), turns=4))
    assert len(stub.requests) == 11


# Messages


def turn(number: int, *, size: int = 300) -> list[ModelMessage]:
    call = ToolCallPart("look", {"q": "a"}, f"c{number}")
    return [
        ModelRequest([UserPromptPart(f"Question {number}?")]),
        ModelResponse(
            [
                ThinkingPart(
                    "Hm.",
                ),
                TextPart("Let me look."),
                call,
            ]
        ),
        ModelRequest([ToolReturnPart("look", "x" * size, f"c{number}")]),
        ModelResponse([TextPart("Done.")]),
    ]


def asked(turns: int, *first: ModelMessage, size: int = 300) -> list[ModelMessage]:
    return [
        *first,
        *(message for number in range(turns) for message in turn(number, size=size)),
        ModelRequest([UserPromptPart("And now?")]),
    ]


def test_what_fits_comes_back_as_the_same_objects() -> None:
    messages = asked(3)
    assert all(one is other for one, other in zip(fitted(messages), messages, strict=True))


def test_kept_messages_are_the_same_objects_and_the_given_ones_are_not_touched() -> None:
    messages = asked(20)
    before = repr(messages)
    kept = fitted(messages)
    assert len(kept) < len(messages)
    assert kept[-1] is messages[-1]
    assert sum(any(one is other for other in messages) for one in kept) > len(kept) // 2
    assert repr(messages) == before


@given(turns=st.integers(0, 12), size=st.integers(0, 600), budget=st.integers(150, 4_000), cut=st.integers(0, 3))
def test_calls_and_returns_stay_together_in_any_budget(turns: int, size: int, budget: int, cut: int) -> None:
    messages = asked(turns, ModelRequest([SystemPromptPart("Be brief."), UserPromptPart("Hello.")]), size=size)[cut and 1 :]
    kept = ContextWindowCapability(bending(budget))._conversations.fit(messages)
    calls = [part.tool_call_id for message in kept for part in message.parts if isinstance(part, ToolCallPart)]
    returns = [part.tool_call_id for message in kept for part in message.parts if isinstance(part, ToolReturnPart)]
    assert calls == returns
    assert kept[-1] is messages[-1]
    first = next(part for message in kept for part in message.parts if not isinstance(part, SystemPromptPart))
    assert isinstance(first, UserPromptPart)
    assert any(isinstance(part, SystemPromptPart) for message in kept for part in message.parts) == (not cut)


def test_where_the_beginning_is_gone_the_user_is_told() -> None:
    kept = fitted(asked(20)[1:], 700)
    assert isinstance(kept[0].parts[0], UserPromptPart)
    assert kept[0].parts[0].content in (PREAMBLE, *(f"Question {number}?" for number in range(20)))
    assert fitted([*asked(1, size=900)[1:]], 400)[0].parts[0].content == PREAMBLE  # type: ignore[union-attr]


def test_of_old_images_the_newest_stays_and_the_words_beside_them_too() -> None:
    pictures: list[ImageUrl | BinaryContent] = [
        ImageUrl("https://example.com/a.png"),
        BinaryContent(PNG, media_type="image/png"),
        ImageUrl("https://example.com/c.png"),
    ]
    asks: list[ModelMessage] = [ModelRequest([UserPromptPart(["See", picture, CachePoint(), "well?"])]) for picture in pictures]
    messages = [one for ask in asks for one in (ask, ModelResponse([TextPart("I see.")]))]
    kept = fitted([*messages, ModelRequest([UserPromptPart("Well?")])])
    shown = [part.content for message in kept for part in message.parts if isinstance(part, UserPromptPart)]
    assert [sum(isinstance(one, ImageUrl | BinaryContent) for one in content) for content in shown[:-1]] == [0, 0, 1]
    assert all(content[0] == "See" and content[-1] == "well?" and isinstance(content[-2], CachePoint) for content in shown[:-1])
    assert "taken out" in str(shown[0])


def test_what_the_framework_keeps_its_books_with_is_never_taken() -> None:
    books: list[ModelMessage] = [
        ModelRequest([UserPromptPart("Go."), CompactionPart("What was before.")]),
        ModelResponse([ToolCallPart("search_tools", {"queries": ["x"]}, "s", tool_kind="tool-search")]),
        ModelRequest([ToolReturnPart("search_tools", {"discovered_tools": []}, "s", tool_kind="tool-search")]),
    ]
    kept = fitted(asked(20, *books), 1_500)
    parts = [part for message in kept for part in message.parts]
    assert any(isinstance(part, CompactionPart) for part in parts)
    assert [part.part_kind for part in parts if getattr(part, "tool_kind", None) == "tool-search"] == ["tool-call", "tool-return"]


def test_a_text_that_is_tied_to_a_thought_by_its_id_is_freed_when_that_goes() -> None:
    said = TextPart("Let me look.", id="msg_1", provider_name="openai")
    call = ToolCallPart("look", {"q": "a"}, "c", id="fc_1", provider_name="openai")
    tied: list[ModelMessage] = [
        ModelRequest([UserPromptPart("Go.")]),
        ModelResponse([ThinkingPart("", id="rs_1", signature="e", provider_name="openai"), said, call]),
        ModelRequest([ToolReturnPart("look", "x" * 900, "c")]),
        ModelResponse([TextPart("Done.", id="msg_2", provider_name="openai")]),
    ]
    kept = fitted([*tied, *asked(6, size=100)], 500)
    texts = {part.content: part.id for message in kept for part in message.parts if isinstance(part, TextPart)}
    assert not any(isinstance(part, ToolCallPart) and part.tool_call_id == "c" for message in kept for part in message.parts)
    assert said.id == "msg_1"
    assert "msg_1" not in texts.values()


def test_every_kind_of_part_is_counted_and_comes_back() -> None:
    odd: list[ModelMessage] = [
        ModelRequest(
            [
                SystemPromptPart("s"),
                UserPromptPart([DocumentUrl("https://example.com/a.pdf"), BinaryContent(b"%PDF", media_type="application/pdf")]),
            ]
        ),
        ModelResponse(
            [NativeToolCallPart("web_search", {"q": "a"}, "n"), NativeToolReturnPart("web_search", {"found": 1}, "n"), TextPart("Found.")]
        ),
        ModelRequest([RetryFeedbackPart("Again, please.", retry=RetryInfo("no_output"))]),
        ModelResponse([ToolCallPart("look", '{"q": broken', "b")]),
        ModelRequest([ToolReturnPart("look", [{"a": 1}, ImageUrl("https://example.com/a.png")], "b", outcome="failed")]),
        ModelResponse([]),
        ModelRequest([UserPromptPart("\ud800 <|endoftext|>")]),
    ]
    assert all(one is other for one, other in zip(fitted(odd), odd, strict=True))


def test_what_the_provider_reported_is_in_the_log_with_whose_tokens_they_are() -> None:
    told = RequestUsage(input_tokens=50, cache_read_tokens=30, cache_write_tokens=15, output_tokens=7)
    capability = ContextWindowCapability(manager())
    answer = ModelResponse([TextPart("Hi.")], usage=told, model_name="claude-opus-5")
    capability._conversations.fit([ModelRequest([UserPromptPart("Go.")]), answer, ModelRequest([UserPromptPart("Well?")])])
    (followed,) = capability._conversations._order
    said = followed.session.items[1]
    assert said.usage == Usage(input_tokens=5, cache_read_tokens=30, cache_write_tokens=15, output_tokens=7)
    assert said.extra == {"model": "claude-opus-5"}
