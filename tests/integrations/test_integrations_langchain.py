"""The adapters for LangChain and LangGraph: real agents with an in-process model, and single messages."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, ChatMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.checkpoint.memory import InMemorySaver

from context_window import (
    Compacted,
    CompactionFailed,
    ContextOverflowError,
    ContextWindow,
    ContextWindowManager,
    ContextWindowWarning,
    PromptTooLongError,
    Trimmed,
    Usage,
    WindowEvent,
)
from context_window.integrations.langchain import ContextWindowMiddleware, pre_model_hook
from session.providers.additions import CLOSING, INTERRUPTED
from tests.support.agents import busy, look, manager
from tests.support.counting import Letters
from tests.support.lazy import LazyModule
from tests.support.managing import make_manager as bending
from tests.support.stubs import Call, Say

if TYPE_CHECKING:
    import anthropic
else:
    anthropic = LazyModule("anthropic")

BUDGET = 3_000
Script = Callable[[list[BaseMessage]], AIMessage]


def scripted() -> Script:
    """Return answers of the scripted model as LangChain messages."""
    model = busy(thinks=False)

    def answer(messages: list[BaseMessage]) -> AIMessage:
        blocks = model({})
        calls = [call for call in blocks if isinstance(call, Call)]
        text = "".join(block.text for block in blocks if isinstance(block, Say))
        return AIMessage(
            text, tool_calls=[{"name": call.name, "args": dict(call.arguments), "id": str(call.arguments["q"])} for call in calls]
        )

    return answer


class Model(BaseChatModel):
    """A model that records its requests."""

    script: Any
    requests: list[list[BaseMessage]] = []  # noqa: RUF012 - pydantic copies it

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Any:
        return self

    def _generate(self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        self.requests.append(list(messages))
        return ChatResult(generations=[ChatGeneration(message=self.script(messages))])


def run_turns(agent: Any, turns: int = 8) -> list[AnyMessage]:
    state: dict[str, Any] = {}
    for turn in range(turns):
        state = agent.invoke({"messages": [HumanMessage(f"Question {turn}?")]}, {"configurable": {"thread_id": "1"}})
    messages: list[AnyMessage] = state["messages"]
    return messages


def letters(messages: Sequence[BaseMessage]) -> int:
    """Return the letters in texts, names and arguments."""
    return sum(len(str(message.text)) + sum(len(str(call["args"])) for call in getattr(message, "tool_calls", [])) for message in messages)


def problems_of(messages: Sequence[BaseMessage]) -> list[str]:
    """Return the problems that a strict provider would report."""
    problems: list[str] = []
    open_calls: list[Any] = []
    conversation = [message for message in messages if not isinstance(message, SystemMessage)]
    if conversation and not isinstance(conversation[0], HumanMessage):
        problems.append("the first message is not the user's")
    for before, message in zip([None, *conversation], conversation, strict=False):
        if isinstance(message, ToolMessage):
            if message.tool_call_id not in open_calls:
                problems.append(f"no call for {message.tool_call_id}")
                continue
            open_calls.remove(message.tool_call_id)
        elif open_calls:
            problems.append(f"no output for {open_calls}")
            open_calls = []
        if isinstance(message, AIMessage):
            open_calls = [call["id"] for call in message.tool_calls]
            if isinstance(before, AIMessage):
                problems.append("two answers in a row")
            if not message.content and not message.tool_calls:
                problems.append("an empty answer")
    return problems


# Agents


def test_every_request_of_a_long_conversation_is_valid_and_fits_and_the_state_keeps_all() -> None:
    middleware, model = ContextWindowMiddleware(manager(BUDGET)), Model(script=scripted())
    agent = create_agent(model, [look, middleware.recall], system_prompt="Be brief.", middleware=[middleware], checkpointer=InMemorySaver())
    messages = run_turns(agent)
    assert len(model.requests) == 24
    assert max(map(letters, model.requests)) <= BUDGET < letters(messages)
    assert [fault for request in model.requests for fault in problems_of(request)] == []
    assert all(request[0].content == "Be brief." for request in model.requests)
    assert len(messages) == 8 * 8
    assert "taken out" not in str(messages)
    id = str(model.requests).partition("; recall id ")[2].partition("]")[0]
    assert middleware.recall(id).startswith("found ")


def test_an_async_agent_gets_the_same_messages() -> None:
    waited, model = Model(script=scripted()), Model(script=scripted())
    fitting: list[Any] = [ContextWindowMiddleware(manager(BUDGET)) for _ in range(2)]
    run_turns(create_agent(model, [look], middleware=fitting[:1], checkpointer=InMemorySaver()), 4)

    async def ask() -> None:
        agent: Any = create_agent(waited, [look], middleware=fitting[1:], checkpointer=InMemorySaver())
        for turn in range(4):
            await agent.ainvoke({"messages": [HumanMessage(f"Question {turn}?")]}, {"configurable": {"thread_id": "1"}})

    asyncio.run(ask())
    assert [[message.content for message in request] for request in waited.requests] == [
        [message.content for message in request] for request in model.requests
    ]


def test_langgraphs_hook_gives_the_model_what_fits_and_keeps_the_state() -> None:
    from langgraph.prebuilt import create_react_agent

    model = Model(script=scripted())
    hook = pre_model_hook(manager(BUDGET), system="Be brief.", tools=[look])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # deprecated for create_agent, but still used
        agent = create_react_agent(model, [look], prompt="Be brief.", pre_model_hook=hook, checkpointer=InMemorySaver())
    messages = run_turns(agent, 6)
    assert max(map(letters, model.requests)) <= BUDGET < letters(messages)
    assert [fault for request in model.requests for fault in problems_of(request)] == []
    assert len(messages) == 6 * 8
    assert "taken out" in str(model.requests)


def too_long(request: object) -> AIMessage:
    response = httpx.Response(400, request=httpx.Request("POST", "http://localhost"))
    body = {"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long: 4000 tokens > 2000 maximum"}}
    raise anthropic.BadRequestError("too long", response=response, body=body)  # type: ignore[arg-type]  # another httpx, alike in this


@pytest.mark.parametrize("awaited", [False, True])
def test_a_prompt_that_the_provider_refuses_as_too_long_is_retried_smaller(awaited: bool) -> None:
    answers: Iterator[Script] = iter([too_long, lambda _: AIMessage("Here."), lambda _: AIMessage("And there.")])

    def script(messages: list[BaseMessage]) -> AIMessage:
        return next(answers)(messages)

    model = Model(script=script)
    middleware = ContextWindowMiddleware(manager(100_000))
    agent: Any = create_agent(model, [look], middleware=[middleware])
    ask = {"messages": conversation(8)}
    state = asyncio.run(agent.ainvoke(ask)) if awaited else agent.invoke(ask)
    assert state["messages"][-1].content == "Here."
    first, second = map(letters, model.requests)
    assert second <= first * 0.55
    agent.invoke({"messages": [*state["messages"], HumanMessage("Where?")]})
    assert letters(model.requests[2]) < first * 0.6, "the conversation stays small"


def test_a_second_refusal_and_other_errors_are_raised_unchanged() -> None:
    middleware = ContextWindowMiddleware(manager(100_000))
    agent: Any = create_agent(Model(script=too_long), [look], middleware=[middleware])
    with pytest.raises(anthropic.BadRequestError):
        agent.invoke({"messages": conversation(8)})
    agent = create_agent(Model(script=lambda _: 1 / 0), [look], middleware=[middleware])
    with pytest.raises(ZeroDivisionError):
        agent.invoke({"messages": conversation(8)})


def test_an_overflow_is_an_error_of_the_run() -> None:
    agent: Any = create_agent(Model(script=scripted()), [look], middleware=[ContextWindowMiddleware(manager(300))])
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


def fitted(messages: Sequence[AnyMessage], window_manager: ContextWindowManager | None = None, **options: Any) -> list[AnyMessage]:
    return ContextWindowMiddleware(window_manager or manager(BUDGET))._conversations.fit(messages, **options)


def test_messages_that_fit_are_the_same_objects() -> None:
    messages = conversation(4)
    assert all(fitted_message is message for fitted_message, message in zip(fitted(messages), messages, strict=True))


def test_kept_messages_are_the_same_objects_and_inputs_are_not_changed() -> None:
    messages = conversation(20)
    before = repr(messages)
    fitted_messages = fitted(messages)
    assert len(fitted_messages) < len(messages)
    assert sum(any(fitted_message is message for message in messages) for fitted_message in fitted_messages) > len(fitted_messages) // 2
    assert repr(messages) == before


@given(turns=st.integers(0, 10), size=st.integers(0, 600), budget=st.integers(100, 3_000), system=st.booleans(), cut=st.booleans())
def test_the_result_is_valid_for_any_budget(turns: int, size: int, budget: int, system: bool, cut: bool) -> None:
    messages = conversation(turns, size=size)
    if cut and turns:
        messages = messages[1:]
    if system:
        messages = [SystemMessage("Be brief."), *messages]
    fitted_messages = fitted(messages, bending(budget))
    assert problems_of(fitted_messages) in ([], ["the first message is not the user's"] if fitted_messages == messages and cut else [])
    assert fitted_messages[-1] is messages[-1]
    assert (fitted_messages[0] is messages[0]) or not system


def test_a_prompt_changes_only_when_a_trim_is_reported() -> None:
    events: list[object] = []
    window_manager = ContextWindowManager(token_counter=Letters(), context_window=ContextWindow(max_tokens=BUDGET), on_event=events.append)
    middleware, messages = ContextWindowMiddleware(window_manager), conversation(20)
    before: list[AnyMessage] = []
    trims = 0
    for end in (number for number, message in enumerate(messages, 1) if not isinstance(message, AIMessage)):
        events.clear()
        after = middleware._conversations.fit(messages[:end])
        trimmed = any(isinstance(event, Trimmed) for event in events)
        is_prefix_same = after[: len(before)] == before
        assert trimmed or (len(after) >= len(before) and is_prefix_same)
        before, trims = after, trims + trimmed
    assert 2 <= trims <= 12


def test_a_message_is_reduced_to_its_visible_items() -> None:
    thinking = {"type": "thinking", "thinking": "Hm.", "signature": "s"}
    call = {"type": "tool_use", "id": "c", "name": "look", "input": {"q": "a"}}
    content: list[str | dict[Any, Any]] = [thinking, {"type": "text", "text": "Let me look.", "id": "msg_1"}, call]
    message = AIMessage(content, tool_calls=[{"name": "look", "args": {"q": "a"}, "id": "c"}], additional_kwargs={"tool_calls": [call]})
    messages = [HumanMessage("Go."), message, ToolMessage("x" * 900, tool_call_id="c"), *conversation(6, size=100)]
    fitted_messages = fitted(messages, manager(600))
    answers = [message for message in fitted_messages if isinstance(message, AIMessage) and not message.tool_calls]
    copy = next(answer for answer in answers if "Let me look." in str(answer.content))
    assert {"type": "text", "text": "Let me look."} in copy.content
    assert "thinking" not in str(copy.content)
    assert copy.additional_kwargs == {}
    assert message.tool_calls
    assert len(message.content) == 3


def test_the_newest_image_stays_and_so_do_the_texts_of_the_others() -> None:
    def picture(number: int) -> HumanMessage:
        return HumanMessage(
            [{"type": "text", "text": f"See {number}"}, {"type": "image_url", "image_url": {"url": f"https://example.com/{number}.png"}}]
        )

    messages: list[AnyMessage] = [picture(0), AIMessage("I see."), picture(1), AIMessage("I see."), HumanMessage("Well?")]
    fitted_messages = fitted(messages, manager(BUDGET, images_max=1))
    first, second = fitted_messages[0].content, fitted_messages[2].content
    assert first[0] == {"type": "text", "text": "See 0"}
    assert "taken out" in str(first[1])
    assert second[1]["type"] == "image_url"  # type: ignore[index]


@pytest.mark.parametrize(
    "odd",
    [
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
@pytest.mark.filterwarnings("ignore:what providers refuse")
def test_an_unusual_message_is_returned_unchanged(odd: AnyMessage) -> None:
    fitted_messages = fitted([HumanMessage("Go."), odd, HumanMessage("Well?")])
    assert fitted_messages[1] is odd


@pytest.mark.filterwarnings("ignore:what providers refuse")
def test_an_interrupted_call_gets_a_result_and_blank_messages_are_left_out() -> None:
    call = {"name": "look", "args": {"q": "a"}, "id": "c"}
    history = [
        HumanMessage("Go."),
        AIMessage("", tool_calls=[call]),
        HumanMessage("Wait."),
        AIMessage(" "),
        HumanMessage(""),
        AIMessage([]),
    ]
    model = Model(script=lambda _: AIMessage("Done."))
    agent: Any = create_agent(model, [look], middleware=[ContextWindowMiddleware(manager(BUDGET))])
    agent.invoke({"messages": [*history, HumanMessage("Well?")]})
    (request,) = model.requests
    assert problems_of(request) == []
    assert [message.text for message in request] == ["Go.", "", INTERRUPTED, "Wait.", "Well?"]
    assert [message.text for message in fitted([HumanMessage("Go."), AIMessage("Yes."), HumanMessage("\n")])][2:] == [CLOSING]
    assert fitted([HumanMessage("")]) == [HumanMessage("")]


def test_an_answer_of_calls_alone_has_no_empty_message() -> None:
    call = {"name": "look", "args": {"q": "a"}, "id": "c"}
    window_manager = manager(BUDGET)
    fitted([HumanMessage("Go."), AIMessage("", tool_calls=[call]), ToolMessage("x", tool_call_id="c")], window_manager)
    assert window_manager.usage().messages == 1


def test_reported_usage_is_in_the_log_with_its_model() -> None:
    usage: Any = {
        "input_tokens": 50,
        "output_tokens": 7,
        "total_tokens": 57,
        "input_token_details": {"cache_read": 30, "cache_creation": 15},
    }
    answer = AIMessage("Hi.", usage_metadata=usage, response_metadata={"model_name": "claude-opus-5"})
    middleware = ContextWindowMiddleware(manager(BUDGET))
    middleware._conversations.fit([HumanMessage("Go."), answer, HumanMessage("Well?")])
    (tracked,) = middleware._conversations._remembered._last_use
    item = tracked.session.items[1]
    assert item.usage == Usage(input_tokens=5, cache_read_tokens=30, cache_write_tokens=15, output_tokens=7)
    assert item.extra == {"model": "claude-opus-5"}


def test_an_answer_without_a_question_is_dropped() -> None:
    stray = ToolMessage("x", tool_call_id="nobody", artifact=object())
    with pytest.warns(ContextWindowWarning, match=r"messages\[1\] was left out: a result names the call 'nobody'"):
        assert stray not in fitted([HumanMessage("Go."), stray, HumanMessage("Well?")])


def test_a_prompt_too_long_error_is_accepted_as_refusal() -> None:
    messages = conversation(8)
    middleware = ContextWindowMiddleware(manager(100_000))
    full = middleware._conversations.fit(messages)
    less = middleware._conversations.fit(messages, refusal=PromptTooLongError("too long", 400))
    assert len(full) == len(messages)
    assert letters(less) <= letters(full) * 0.5


def test_a_lowered_budget_outlasts_other_errors() -> None:
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


def test_the_long_input_of_an_older_call_is_a_placeholder_in_every_form_of_the_call() -> None:
    written = {"path": "a.py", "text": "x" * 3_000}
    blocks: list[str | dict[Any, Any]] = [
        {"type": "text", "text": "I write."},
        {"type": "tool_use", "id": "a", "name": "write", "input": written},
        {"type": "tool_call", "id": "b", "name": "write", "args": written},
    ]
    calls: list[Any] = [{"name": "write", "args": written, "id": "a"}, {"name": "write", "args": written, "id": "b"}]
    message = AIMessage(blocks, tool_calls=calls)
    outputs = [ToolMessage("ok", tool_call_id="a"), ToolMessage("ok", tool_call_id="b")]
    copy = fitted([HumanMessage("Go."), message, *outputs, *conversation(2)], manager(6_500, target_ratio=0.3))[1]
    assert isinstance(copy, AIMessage)
    assert copy.content[0] == blocks[0]
    inputs = [call["args"] for call in copy.tool_calls]
    assert copy.content[1] == {**blocks[1], "input": inputs[0]}  # type: ignore[dict-item]
    assert copy.content[2] == {**blocks[2], "args": inputs[1]}  # type: ignore[dict-item]
    for arguments in inputs:
        assert arguments["path"] == "a.py"
        assert arguments["text"].startswith("[text taken out here; recall id ")
    assert message.tool_calls[0]["args"] == written


# What summaries cost


@pytest.mark.parametrize("reason", ["stop", "length"])
def test_a_summary_by_the_agents_model_is_counted(reason: str) -> None:
    """Its usage is reported if the summary is cut off, too."""
    events: list[WindowEvent] = []
    reported: Any = {"input_tokens": 900, "output_tokens": 40, "total_tokens": 940, "input_token_details": {"cache_read": 200}}
    answer = AIMessage("In short.", usage_metadata=reported, response_metadata={"finish_reason": reason})
    window = ContextWindow(max_tokens=BUDGET)
    watched = ContextWindowManager(token_counter=Letters(), context_window=window, on_event=events.append)
    history = [message for turn in range(40) for message in (HumanMessage(f"Question {turn}? {'x' * 90}"), AIMessage(f"{turn}."))]
    pre_model_hook(watched, model=Model(script=lambda _: answer)).invoke({"messages": [*history, HumanMessage("And now?")]})
    (event,) = [event for event in events if isinstance(event, Compacted | CompactionFailed)]
    assert isinstance(event, Compacted) == (reason == "stop")
    assert event.usage == Usage(700, cache_read_tokens=200, output_tokens=40)
