"""The Pydantic AI adapter: a real agent against a strict stub of Anthropic's API, and single messages."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_ai import Agent, exceptions, messages
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
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.usage import RequestUsage

from context_window import ContextOverflowError, RecallError, SummaryError, Usage
from context_window.integrations.pydantic_ai import ContextWindowCapability
from context_window.integrations.pydantic_ai_summary import summariser_of
from session.providers import validate_anthropic
from session.providers.additions import INTERRUPTED, PREAMBLE
from session.summarizers import SummaryText
from tests.support.agents import busy, letters, look, manager
from tests.support.lazy import LazyModule
from tests.support.managing import make_manager as bending
from tests.support.stubs import AnthropicStub, Say, in_order
from tests.support.stubs.server import Refusal

if TYPE_CHECKING:
    import anthropic
else:
    anthropic = LazyModule("anthropic")

RETRIES = pytest.mark.skipif(not hasattr(exceptions, "RetryModelRequest"), reason="Pydantic AI before 2.64 has no second attempt")

BUDGET = 3_000
PNG = bytes.fromhex("89504e470d0a1a0a0000000d49484452000000640000006408020000000000")


@asynccontextmanager
async def agent_of(stub: AnthropicStub, *capabilities: Any, **options: Any) -> AsyncIterator[Agent[None, str]]:
    # Pydantic AI's model for Claude asks for a newer `anthropic` than this project does.
    claude = pytest.importorskip("pydantic_ai.models.anthropic", reason="needs a newer anthropic", exc_type=ImportError)
    http = anthropic.DefaultAsyncHttpxClient(trust_env=False)
    async with anthropic.AsyncAnthropic(api_key="key", base_url=stub.url, max_retries=0, http_client=http) as client:
        from pydantic_ai.providers.anthropic import AnthropicProvider

        provider = AnthropicProvider(anthropic_client=client)
        model = claude.AnthropicModel("claude-opus-5", provider=provider)
        agent = Agent(model, capabilities=capabilities, **options)
        agent.tool_plain(look)
        yield agent


async def run_turns(stub: AnthropicStub, *capabilities: Any, turns: int, **options: Any) -> list[ModelMessage]:
    history: list[ModelMessage] = []
    async with agent_of(stub, *capabilities, **options) as agent:
        for turn in range(turns):
            history = (await agent.run(f"Question {turn}?", message_history=history)).all_messages()
    return history


def fitted(messages: list[ModelMessage], max_tokens: int = 4_000, **window: Any) -> list[ModelMessage]:
    return asyncio.run(ContextWindowCapability(manager(max_tokens, **window)).fit(messages))


# Agents


@pytest.mark.filterwarnings("ignore:what providers refuse")
def test_an_interrupted_call_gets_a_return_and_blank_messages_are_left_out() -> None:
    history: list[ModelMessage] = [
        ModelRequest([UserPromptPart("Go.")]),
        ModelResponse([ThinkingPart("Hm."), TextPart(""), ToolCallPart("look", {"q": "a"}, "a"), ToolCallPart("look", {"q": "b"}, "b")]),
        ModelRequest([ToolReturnPart("look", "found", "b"), UserPromptPart("Wait.")]),
        ModelResponse([ThinkingPart("Hm."), TextPart(" ")]),
        ModelRequest([UserPromptPart(" ")]),
        ModelResponse([TextPart("Yes.")]),
        ModelRequest([UserPromptPart("Well?")]),
    ]
    kinds = [[part.part_kind for part in message.parts] for message in fitted(history)]
    assert kinds[1:4] == [["thinking", "tool-call", "tool-call"], ["tool-return"], ["tool-return", "user-prompt"]]
    assert kinds[4:] == [["text"], ["user-prompt"]]
    assert fitted(history)[2].parts[0].content == INTERRUPTED  # type: ignore[union-attr]

    async def run() -> None:
        async with agent_of(stub, ContextWindowCapability(manager(BUDGET))) as agent:
            await agent.run("Well?", message_history=[*history[:1], ModelResponse([ToolCallPart("look", {"q": "b"}, "b")]), *history[2:6]])

    with AnthropicStub(in_order([Say("Done.")])) as stub:
        asyncio.run(run())
    assert len(stub.answers) == 1


@pytest.fixture(scope="module")
def conversation() -> tuple[AnthropicStub, list[ModelMessage], ContextWindowCapability]:
    """Seven turns of an agent with instructions, a system prompt and two tools, `recall` among them."""
    capability = ContextWindowCapability(manager(BUDGET))
    with AnthropicStub(busy()) as stub:
        asks: dict[str, Any] = {"instructions": "Be brief.", "system_prompt": "You are careful.", "tools": [capability.recall]}
        history = asyncio.run(run_turns(stub, capability, turns=7, **asks))
    return stub, history, capability


Conversation = tuple[AnthropicStub, list[ModelMessage], ContextWindowCapability]


def sizes(stub: AnthropicStub) -> list[int]:
    """Return the reported input tokens of each request."""
    used = [answer["usage"] for answer in stub.answers]
    return [usage["input_tokens"] + usage["cache_read_input_tokens"] + usage["cache_creation_input_tokens"] for usage in used]


def test_every_request_of_a_long_conversation_is_accepted_and_fits(conversation: Conversation) -> None:
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


def test_as_a_history_processor_it_trims_the_history_itself() -> None:
    capability = ContextWindowCapability(manager(BUDGET))
    with AnthropicStub(busy()) as stub:
        history = asyncio.run(run_turns(stub, ProcessHistory(capability.fit), turns=7))
    assert max(sizes(stub)) <= BUDGET
    id = placeholders(history)[0].rpartition("recall id ")[2].partition("]")[0]
    assert capability.recall(id).startswith("found ")


def placeholders(history: Sequence[ModelMessage]) -> list[str]:
    parts = [part for message in history for part in message.parts if isinstance(part, ToolReturnPart)]
    return [part.content for part in parts if isinstance(part.content, str) and "taken out" in part.content]


def test_an_overflow_is_an_error_of_the_run() -> None:
    async def ask(stub: AnthropicStub) -> None:
        async with agent_of(stub, ContextWindowCapability(manager(300, clamp_messages=False))) as agent:
            await agent.run("x" * 500)

    with AnthropicStub(busy()) as stub, pytest.raises(ContextOverflowError):
        asyncio.run(ask(stub))
    assert stub.requests == []


class NarrowWindow(AnthropicStub):
    """A stub whose window, in letters of messages, shrinks after some requests. If it `shrinks` again, no request fits."""

    def __init__(self, after: int, window: int, *, shrinks: bool = False) -> None:
        super().__init__(busy())
        self.after, self.window, self.shrinks = after, window, shrinks

    def serve(self, path: str, headers: Any, body: Any) -> Any:
        size = letters(body["messages"])
        if len(self.requests) > self.after and (self.shrinks or size > self.window):
            raise Refusal(f"prompt is too long: {size} tokens > {min(self.window, size - 1)} maximum")
        return super().serve(path, headers, body)


@RETRIES
def test_a_prompt_that_the_api_refuses_as_too_long_is_retried_smaller() -> None:
    with NarrowWindow(9, 2_500) as stub:
        history = asyncio.run(run_turns(stub, ContextWindowCapability(manager(100_000)), turns=4, instructions="Be brief."))
    request_letters = [letters(request["messages"]) for request in stub.requests]
    assert request_letters[9] > 2_500 >= request_letters[10]
    assert len(stub.answers) == 12
    assert len(history) == 4 * 6


@RETRIES
def test_a_prompt_that_is_too_long_twice_is_an_error_of_the_run() -> None:
    with NarrowWindow(9, 2_500, shrinks=True) as stub, pytest.raises(ModelHTTPError, match="prompt is too long"):
        asyncio.run(run_turns(stub, ContextWindowCapability(manager(100_000)), turns=4))
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


def history_of(turns: int, *first: ModelMessage, size: int = 300) -> list[ModelMessage]:
    return [
        *first,
        *(message for number in range(turns) for message in turn(number, size=size)),
        ModelRequest([UserPromptPart("And now?")]),
    ]


def test_messages_that_fit_are_the_same_objects() -> None:
    messages = history_of(3)
    assert all(fitted_message is message for fitted_message, message in zip(fitted(messages), messages, strict=True))


def test_kept_messages_are_the_same_objects_and_inputs_are_not_changed() -> None:
    messages = history_of(20)
    before = repr(messages)
    fitted_messages = fitted(messages)
    assert len(fitted_messages) < len(messages)
    assert fitted_messages[-1] is messages[-1]
    assert sum(any(fitted_message is message for message in messages) for fitted_message in fitted_messages) > len(fitted_messages) // 2
    assert repr(messages) == before


@given(turns=st.integers(0, 12), size=st.integers(0, 600), budget=st.integers(150, 4_000), cut=st.integers(0, 3))
def test_calls_and_returns_stay_together_for_any_budget(turns: int, size: int, budget: int, cut: int) -> None:
    messages = history_of(turns, ModelRequest([SystemPromptPart("Be brief."), UserPromptPart("Hello.")]), size=size)[cut and 1 :]
    fitted_messages = ContextWindowCapability(bending(budget))._conversations.fit(messages)
    calls = [part.tool_call_id for message in fitted_messages for part in message.parts if isinstance(part, ToolCallPart)]
    returns = [part.tool_call_id for message in fitted_messages for part in message.parts if isinstance(part, ToolReturnPart)]
    assert calls == returns
    assert fitted_messages[-1] is messages[-1]
    first = next(part for message in fitted_messages for part in message.parts if not isinstance(part, SystemPromptPart))
    assert isinstance(first, UserPromptPart)
    assert any(isinstance(part, SystemPromptPart) for message in fitted_messages for part in message.parts) == (not cut)


def test_a_dropped_beginning_is_replaced_by_a_preamble() -> None:
    fitted_messages = fitted(history_of(20)[1:], 700)
    assert isinstance(fitted_messages[0].parts[0], UserPromptPart)
    assert fitted_messages[0].parts[0].content in (PREAMBLE, *(f"Question {number}?" for number in range(20)))
    assert fitted([*history_of(1, size=900)[1:]], 400)[0].parts[0].content == PREAMBLE  # type: ignore[union-attr]


def test_the_newest_image_stays_and_so_do_the_texts_of_the_others() -> None:
    pictures: list[ImageUrl | BinaryContent] = [
        ImageUrl("https://example.com/a.png"),
        BinaryContent(PNG, media_type="image/png"),
        ImageUrl("https://example.com/c.png"),
    ]
    asks: list[ModelMessage] = [ModelRequest([UserPromptPart(["See", picture, CachePoint(), "well?"])]) for picture in pictures]
    messages = [element for ask in asks for element in (ask, ModelResponse([TextPart("I see.")]))]
    fitted_messages = fitted([*messages, ModelRequest([UserPromptPart("Well?")])], images_max=1)
    contents = [part.content for message in fitted_messages for part in message.parts if isinstance(part, UserPromptPart)]
    assert [sum(isinstance(element, ImageUrl | BinaryContent) for element in content) for content in contents[:-1]] == [0, 0, 1]
    assert all(content[0] == "See" and content[-1] == "well?" and isinstance(content[-2], CachePoint) for content in contents[:-1])
    assert "taken out" in str(contents[0])


def test_bookkeeping_parts_are_never_taken() -> None:
    books: list[ModelMessage] = [
        ModelRequest([UserPromptPart("Go."), CompactionPart("What was before.")]),
        ModelResponse([ToolCallPart("search_tools", {"queries": ["x"]}, "s", tool_kind="tool-search")]),
        ModelRequest([ToolReturnPart("search_tools", {"discovered_tools": []}, "s", tool_kind="tool-search")]),
    ]
    fitted_messages = fitted(history_of(20, *books), 1_500)
    parts = [part for message in fitted_messages for part in message.parts]
    assert any(isinstance(part, CompactionPart) for part in parts)
    assert [part.part_kind for part in parts if getattr(part, "tool_kind", None) == "tool-search"] == ["tool-call", "tool-return"]


def test_a_text_loses_its_id_when_its_reasoning_is_dropped() -> None:
    text = TextPart("Let me look.", id="msg_1", provider_name="openai")
    call = ToolCallPart("look", {"q": "a"}, "c", id="fc_1", provider_name="openai")
    tied: list[ModelMessage] = [
        ModelRequest([UserPromptPart("Go.")]),
        ModelResponse([ThinkingPart("", id="rs_1", signature="e", provider_name="openai"), text, call]),
        ModelRequest([ToolReturnPart("look", "x" * 900, "c")]),
        ModelResponse([TextPart("Done.", id="msg_2", provider_name="openai")]),
    ]
    fitted_messages = fitted([*tied, *history_of(6, size=100)], 500)
    texts = {part.content: part.id for message in fitted_messages for part in message.parts if isinstance(part, TextPart)}
    assert not any(isinstance(part, ToolCallPart) and part.tool_call_id == "c" for message in fitted_messages for part in message.parts)
    assert text.id == "msg_1"
    assert "msg_1" not in texts.values()


def _retry_feedback() -> list[ModelMessage]:
    """Return a request with a part that older versions of Pydantic AI do not have."""
    if not hasattr(messages, "RetryFeedbackPart"):
        return []
    return [ModelRequest([messages.RetryFeedbackPart("Again, please.", retry=messages.RetryInfo("no_output"))])]


def test_every_kind_of_part_is_counted_and_returned() -> None:
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
        *_retry_feedback(),
        ModelResponse([ToolCallPart("look", '{"q": broken', "b")]),
        ModelRequest([ToolReturnPart("look", [{"a": 1}, ImageUrl("https://example.com/a.png")], "b", outcome="failed")]),
        ModelResponse([]),
        ModelRequest([UserPromptPart("\ud800 <|endoftext|>")]),
    ]
    assert all(fitted_message is message for fitted_message, message in zip(fitted(odd), odd, strict=True))


def test_reported_usage_is_in_the_log_with_its_model() -> None:
    usage = RequestUsage(input_tokens=50, cache_read_tokens=30, cache_write_tokens=15, output_tokens=7)
    capability = ContextWindowCapability(manager())
    answer = ModelResponse([TextPart("Hi.")], usage=usage, model_name="claude-opus-5")
    capability._conversations.fit([ModelRequest([UserPromptPart("Go.")]), answer, ModelRequest([UserPromptPart("Well?")])])
    (tracked,) = capability._conversations._remembered._last_use
    item = tracked.session.items[1]
    assert item.usage == Usage(input_tokens=5, cache_read_tokens=30, cache_write_tokens=15, output_tokens=7)
    assert item.extra == {"model": "claude-opus-5"}


@pytest.mark.parametrize("as_text", [False, True])
def test_the_long_input_of_an_older_call_is_a_placeholder(as_text: bool) -> None:
    written = {"path": "a.py", "text": "x" * 4_000}
    call = ToolCallPart("write", json.dumps(written) if as_text else written, "w")
    first: list[ModelMessage] = [
        ModelRequest([UserPromptPart("Go.")]),
        ModelResponse([call]),
        ModelRequest([ToolReturnPart("write", "ok", "w")]),
    ]
    part = fitted(history_of(2, *first))[1].parts[0]
    assert isinstance(part, ToolCallPart)
    assert isinstance(part.args, str) == as_text
    assert part.args_as_dict()["path"] == "a.py"
    assert part.args_as_dict()["text"].startswith("[text taken out here; recall id ")
    assert call.args_as_dict() == written


# What summaries cost


REPORTED, COST = (
    RequestUsage(input_tokens=900, cache_read_tokens=200, output_tokens=40),
    Usage(700, cache_read_tokens=200, output_tokens=40),
)


async def summary_that_stops_with(reason: Any) -> str:
    def answer(prompt: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        return ModelResponse([TextPart("In short.")], usage=REPORTED, finish_reason=reason)

    return await summariser_of(FunctionModel(answer))("Sum up.")


def test_a_summary_by_the_runs_model_has_its_usage() -> None:
    summary = asyncio.run(summary_that_stops_with("stop"))
    assert isinstance(summary, SummaryText)
    assert (summary, summary.usage) == ("In short.", COST)


def test_a_summary_that_was_cut_off_has_its_usage() -> None:
    with pytest.raises(SummaryError) as caught:
        asyncio.run(summary_that_stops_with("length"))
    assert caught.value.usage == COST
