"""The adapters for LangChain's agents and LangGraph's: real agents with a model in the process, and messages taken apart."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import anthropic
import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, ChatMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.checkpoint.memory import InMemorySaver

from context_window import ContextOverflowError, ContextWindow, ContextWindowManager, PromptTooLongError, Trimmed, Usage
from context_window.integrations.langchain import ContextWindowMiddleware, pre_model_hook
from tests.support.agents import busy, look, manager
from tests.support.counting import Letters
from tests.support.managing import manager as bending
from tests.support.stubs import Call, Say

BUDGET = 3_000
Script = Callable[[list[BaseMessage]], AIMessage]


def answering() -> Script:
    """The busy model in LangChain's words."""
    model = busy(thinks=False)

    def answer(messages: list[BaseMessage]) -> AIMessage:
        said = model({})
        calls = [call for call in said if isinstance(call, Call)]
        text = "".join(block.text for block in said if isinstance(block, Say))
        return AIMessage(
            text, tool_calls=[{"name": call.name, "args": dict(call.arguments), "id": str(call.arguments["q"])} for call in calls]
        )

    return answer


class Model(BaseChatModel):
    """A model that remembers what it was asked."""

    script: Any
    seen: list[list[BaseMessage]] = []  # noqa: RUF012 - pydantic copies it

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Any:
        return self

    def _generate(self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        self.seen.append(list(messages))
        return ChatResult(generations=[ChatGeneration(message=self.script(messages))])


def conversed(agent: Any, turns: int = 8) -> list[AnyMessage]:
    state: dict[str, Any] = {}
    for turn in range(turns):
        state = agent.invoke({"messages": [HumanMessage(f"Question {turn}?")]}, {"configurable": {"thread_id": "1"}})
    messages: list[AnyMessage] = state["messages"]
    return messages


def letters(messages: Sequence[BaseMessage]) -> int:
    """Letters of all that is said: texts, names and arguments."""
    return sum(len(str(message.text)) + sum(len(str(call["args"])) for call in getattr(message, "tool_calls", [])) for message in messages)


def faults(messages: Sequence[BaseMessage]) -> list[str]:
    """What a strict provider would say."""
    found: list[str] = []
    waiting: list[Any] = []
    said = [message for message in messages if not isinstance(message, SystemMessage)]
    if said and not isinstance(said[0], HumanMessage):
        found.append("the first message is not the user's")
    for before, message in zip([None, *said], said, strict=False):
        if isinstance(message, ToolMessage):
            if message.tool_call_id not in waiting:
                found.append(f"no call for {message.tool_call_id}")
                continue
            waiting.remove(message.tool_call_id)
        elif waiting:
            found.append(f"no output for {waiting}")
            waiting = []
        if isinstance(message, AIMessage):
            waiting = [call["id"] for call in message.tool_calls]
            if isinstance(before, AIMessage):
                found.append("two answers in a row")
            if not message.content and not message.tool_calls:
                found.append("an empty answer")
    return found


# Agents


def test_every_request_of_a_long_conversation_is_valid_and_fits_and_the_state_keeps_all() -> None:
    middleware, model = ContextWindowMiddleware(manager(BUDGET)), Model(script=answering())
    agent = create_agent(model, [look, middleware.recall], system_prompt="Be brief.", middleware=[middleware], checkpointer=InMemorySaver())
    messages = conversed(agent)
    assert len(model.seen) == 24
    assert max(map(letters, model.seen)) <= BUDGET < letters(messages)
    assert [fault for request in model.seen for fault in faults(request)] == []
    assert all(request[0].content == "Be brief." for request in model.seen)
    assert len(messages) == 8 * 8
    assert "taken out" not in str(messages)
    id = str(model.seen).partition("; recall id ")[2].partition("]")[0]
    assert middleware.recall(id).startswith("found ")


def test_an_agent_that_is_awaited_is_shown_the_same() -> None:
    waited, model = Model(script=answering()), Model(script=answering())
    fitting: list[Any] = [ContextWindowMiddleware(manager(BUDGET)) for _ in range(2)]
    conversed(create_agent(model, [look], middleware=fitting[:1], checkpointer=InMemorySaver()), 4)

    async def ask() -> None:
        agent: Any = create_agent(waited, [look], middleware=fitting[1:], checkpointer=InMemorySaver())
        for turn in range(4):
            await agent.ainvoke({"messages": [HumanMessage(f"Question {turn}?")]}, {"configurable": {"thread_id": "1"}})

    asyncio.run(ask())
    assert [[one.content for one in request] for request in waited.seen] == [[one.content for one in request] for request in model.seen]


def test_langgraphs_hook_gives_the_model_what_fits_and_keeps_the_state() -> None:
    from langgraph.prebuilt import create_react_agent

    model = Model(script=answering())
    hook = pre_model_hook(manager(BUDGET), system="Be brief.", tools=[look])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # its place is taken by create_agent; it is asked for all the same
        agent = create_react_agent(model, [look], prompt="Be brief.", pre_model_hook=hook, checkpointer=InMemorySaver())
    messages = conversed(agent, 6)
    assert max(map(letters, model.seen)) <= BUDGET < letters(messages)
    assert [fault for request in model.seen for fault in faults(request)] == []
    assert len(messages) == 6 * 8
    assert "taken out" in str(model.seen)


def too_long(request: object) -> AIMessage:
    said = httpx.Response(400, request=httpx.Request("POST", "http://localhost"))
    body = {"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long: 4000 tokens > 2000 maximum"}}
    raise anthropic.BadRequestError("too long", response=said, body=body)  # type: ignore[arg-type]  # another httpx, alike in this


@pytest.mark.parametrize("awaited", [False, True])
def test_a_prompt_that_the_provider_finds_too_long_is_sent_once_more_with_less(awaited: bool) -> None:
    answers: Iterator[Script] = iter([too_long, lambda _: AIMessage("Here."), lambda _: AIMessage("And there.")])

    def script(messages: list[BaseMessage]) -> AIMessage:
        return next(answers)(messages)

    model = Model(script=script)
    middleware = ContextWindowMiddleware(manager(100_000))
    agent: Any = create_agent(model, [look], middleware=[middleware])
    ask = {"messages": conversation(8)}
    state = asyncio.run(agent.ainvoke(ask)) if awaited else agent.invoke(ask)
    assert state["messages"][-1].content == "Here."
    first, second = map(letters, model.seen)
    assert second <= first * 0.55
    agent.invoke({"messages": [*state["messages"], HumanMessage("Where?")]})
    assert letters(model.seen[2]) < first * 0.6, "the conversation stays small"


def test_twice_too_long_and_other_errors_are_raised_as_they_are() -> None:
    middleware = ContextWindowMiddleware(manager(100_000))
    agent: Any = create_agent(Model(script=too_long), [look], middleware=[middleware])
    with pytest.raises(anthropic.BadRequestError):
        agent.invoke({"messages": conversation(8)})
    agent = create_agent(Model(script=lambda _: 1 / 0), [look], middleware=[middleware])
    with pytest.raises(ZeroDivisionError):
        agent.invoke({"messages": conversation(8)})


def test_what_does_not_fit_is_an_error_of_the_run() -> None:
    agent: Any = create_agent(Model(script=answering()), [look], middleware=[ContextWindowMiddleware(manager(300))])
    with pytest.raises(ContextOverflowError):
        agent.invoke({"messages": [HumanMessage("x" * 500)]})


# Messages


def conversation(turns: int, *, size: int = 300) -> list[AnyMessage]:
    messages: list[AnyMessage] = []
    for number in range(turns):
        messages += [
            HumanMessage(f"Question {number}?"),
            AIMessage("Let me look.", tool_calls=[{"name": "look", "args": {"q": "a"}, "id": f"c{number}"}]),
            ToolMessage("x" * size, tool_call_id=f"c{number}"),
            AIMessage("Done."),
        ]
    return [*messages, HumanMessage("And now?")]


def fitted(messages: Sequence[AnyMessage], one: ContextWindowManager | None = None, **more: Any) -> list[AnyMessage]:
    return ContextWindowMiddleware(one or manager(BUDGET))._conversations.fit(messages, **more)


def test_what_fits_comes_back_as_the_same_objects() -> None:
    messages = conversation(4)
    assert all(one is other for one, other in zip(fitted(messages), messages, strict=True))


def test_kept_messages_are_the_same_objects_and_the_given_ones_are_not_touched() -> None:
    messages = conversation(20)
    before = repr(messages)
    kept = fitted(messages)
    assert len(kept) < len(messages)
    assert sum(any(one is other for other in messages) for one in kept) > len(kept) // 2
    assert repr(messages) == before


@given(turns=st.integers(0, 10), size=st.integers(0, 600), budget=st.integers(100, 3_000), system=st.booleans(), cut=st.booleans())
def test_what_is_left_is_valid_in_any_budget(turns: int, size: int, budget: int, system: bool, cut: bool) -> None:
    messages = conversation(turns, size=size)
    if cut and turns:
        messages = messages[1:]
    if system:
        messages = [SystemMessage("Be brief."), *messages]
    kept = fitted(messages, bending(budget))
    assert faults(kept) in ([], ["the first message is not the user's"] if kept == messages and cut else [])
    assert kept[-1] is messages[-1]
    assert (kept[0] is messages[0]) or not system


def test_a_prompt_changes_where_a_trim_was_told_and_nowhere_else() -> None:
    told: list[object] = []
    one = ContextWindowManager(token_counter=Letters(), context_window=ContextWindow(max_tokens=BUDGET), on_event=told.append)
    middleware, messages = ContextWindowMiddleware(one), conversation(20)
    before: list[AnyMessage] = []
    trims = 0
    for end in (place for place, message in enumerate(messages, 1) if not isinstance(message, AIMessage)):
        told.clear()
        now = middleware._conversations.fit(messages[:end])
        trimmed = any(isinstance(event, Trimmed) for event in told)
        assert trimmed or (len(now) >= len(before) and all(one is other for one, other in zip(now, before, strict=False)))
        before, trims = now, trims + trimmed
    assert 2 <= trims <= 12


def test_a_message_is_cut_to_what_is_shown_of_it() -> None:
    thinking = {"type": "thinking", "thinking": "Hm.", "signature": "s"}
    call = {"type": "tool_use", "id": "c", "name": "look", "input": {"q": "a"}}
    told: list[str | dict[Any, Any]] = [thinking, {"type": "text", "text": "Let me look.", "id": "msg_1"}, call]
    whole = AIMessage(told, tool_calls=[{"name": "look", "args": {"q": "a"}, "id": "c"}], additional_kwargs={"tool_calls": [call]})
    messages = [HumanMessage("Go."), whole, ToolMessage("x" * 900, tool_call_id="c"), *conversation(6, size=100)]
    kept = fitted(messages, manager(600))
    (copy,) = [one for one in kept if isinstance(one, AIMessage) and "Let me look." in str(one.content) and not one.tool_calls][:1]
    assert {"type": "text", "text": "Let me look."} in copy.content
    assert "thinking" not in str(copy.content)
    assert copy.additional_kwargs == {}
    assert whole.tool_calls
    assert len(whole.content) == 3


def test_of_old_images_the_newest_stays_and_the_words_beside_them_too() -> None:
    def picture(number: int) -> HumanMessage:
        return HumanMessage(
            [{"type": "text", "text": f"See {number}"}, {"type": "image_url", "image_url": {"url": f"https://example.com/{number}.png"}}]
        )

    kept = fitted([picture(0), AIMessage("I see."), picture(1), AIMessage("I see."), HumanMessage("Well?")])
    first, second = kept[0].content, kept[2].content
    assert first[0] == {"type": "text", "text": "See 0"}
    assert "taken out" in str(first[1])
    assert second[1]["type"] == "image_url"  # type: ignore[index]


@pytest.mark.parametrize(
    "odd",
    [
        HumanMessage(""),
        AIMessage(""),
        AIMessage([]),
        AIMessage("", invalid_tool_calls=[{"name": None, "args": "{broken", "id": None, "error": None}]),
        AIMessage([{"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}]),
        AIMessage("Hi.", usage_metadata={"input_tokens": 3, "output_tokens": -1, "total_tokens": 2}),
        ChatMessage(content="Hm.", role="developer"),
        ChatMessage(content="Hm.", role="critic"),
        HumanMessage([{"type": "a_kind_of_tomorrow", "value": float("nan")}]),
        HumanMessage("\ud800 <|endoftext|>"),
        HumanMessage("x", additional_kwargs={"object": object()}),
        SystemMessage("Mind this."),
    ],
)
def test_an_odd_message_comes_back_as_it_is(odd: AnyMessage) -> None:
    kept = fitted([HumanMessage("Go."), odd, HumanMessage("Well?")])
    assert kept[1] is odd


def test_an_answer_of_calls_alone_is_no_message_beside_them() -> None:
    call = {"name": "look", "args": {"q": "a"}, "id": "c"}
    one = manager(BUDGET)
    fitted([HumanMessage("Go."), AIMessage("", tool_calls=[call]), ToolMessage("x", tool_call_id="c")], one)
    assert one.usage().messages == 1


def test_what_the_provider_reported_is_in_the_log_with_whose_tokens_they_are() -> None:
    told: Any = {
        "input_tokens": 50,
        "output_tokens": 7,
        "total_tokens": 57,
        "input_token_details": {"cache_read": 30, "cache_creation": 15},
    }
    answer = AIMessage("Hi.", usage_metadata=told, response_metadata={"model_name": "claude-opus-5"})
    middleware = ContextWindowMiddleware(manager(BUDGET))
    middleware._conversations.fit([HumanMessage("Go."), answer, HumanMessage("Well?")])
    (followed,) = middleware._conversations._order
    said = followed.session.items[1]
    assert said.usage == Usage(input_tokens=5, cache_read_tokens=30, cache_write_tokens=15, output_tokens=7)
    assert said.extra == {"model": "claude-opus-5"}


def test_an_answer_that_nobody_asked_for_goes() -> None:
    stray = ToolMessage("x", tool_call_id="nobody", artifact=object())
    assert stray not in fitted([HumanMessage("Go."), stray, HumanMessage("Well?")])


def test_a_refusal_of_ours_is_understood_too() -> None:
    messages = conversation(8)
    middleware = ContextWindowMiddleware(manager(100_000))
    whole = middleware._conversations.fit(messages)
    less = middleware._conversations.fit(messages, refusal=PromptTooLongError("too long", 400))
    assert len(whole) == len(messages)
    assert letters(less) <= letters(whole) * 0.5


def test_what_a_refusal_has_lowered_outlasts_other_errors_and_a_refusal_that_finds_nothing_to_take() -> None:
    middleware, messages = ContextWindowMiddleware(manager(100_000)), conversation(8)
    refusal = PromptTooLongError("too long", 400)
    less = middleware._conversations.fit(messages, refusal=refusal)
    with pytest.raises(ZeroDivisionError):
        middleware._conversations.fit(messages, refusal=ZeroDivisionError())
    for _ in range(20):
        try:
            less = middleware._conversations.fit(messages, refusal=refusal)
        except PromptTooLongError:
            break
    assert middleware._conversations.fit(messages) == less
    assert less == messages[-1:] or len(less) < 4
