"""Compaction in the adapters: the framework's own model writes the summary, and the framework keeps every message."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from context_window.integrations.conversation_tracker import ConversationTracker
from tests.support.agents import manager
from tests.support.compacting import SHORT, Writer
from tests.support.lines import Line, LineAdapter, conversations, talk

MARK = "Sum up the conversation"


def summaries(lines: list[Line]) -> list[int]:
    return [index for index, line in enumerate(lines) if SHORT in line.text]


# The tracker


@pytest.mark.parametrize("is_async", [False, True])
def test_a_summary_stands_before_the_messages_that_are_kept(is_async: bool) -> None:
    tracker, llm, messages = conversations(manager(2_000, compaction=True)), Writer(), talk("a", 20)
    fitted = asyncio.run(tracker.afit(messages, llm=llm)) if is_async else tracker.fit(messages, llm=llm)
    assert len(llm.prompts) == 1
    (index,) = summaries(fitted)
    assert index == 2  # after the preamble and the task
    kept = fitted[index + 1 :]
    assert kept == messages[-len(kept) :]
    assert kept[-1] is messages[-1]
    assert len(fitted) < len(messages)


def test_a_system_prompt_outside_the_messages_stands_in_the_way_of_no_summary() -> None:
    tracker, messages = conversations(manager(2_000, compaction=True)), talk("a", 20)
    fitted = tracker.fit(messages, system="Be brief.", llm=Writer())
    assert len(summaries(fitted)) == 1
    assert fitted[-1] is messages[-1]


def test_the_summary_is_remembered_and_later_requests_extend_the_first() -> None:
    tracker, llm, messages = conversations(manager(2_000, compaction=True)), Writer(), talk("a", 20)
    first = tracker.fit(messages, llm=llm)
    messages += [Line("model", "Now this."), Line("user", "Thanks.")]
    second = tracker.fit(messages, llm=llm)
    assert second[: len(first)] == first
    assert second[summaries(second)[0]] == first[summaries(first)[0]]
    assert len(llm.prompts) == 1


def test_a_stored_fitted_list_continues_the_conversation() -> None:
    tracker, llm = conversations(manager(2_000, compaction=True)), Writer()
    fitted = tracker.fit(talk("a", 20), llm=llm)
    again = tracker.fit([*fitted, Line("model", "Now this."), Line("user", "Thanks.")], llm=llm)
    assert again[: len(fitted)] == fitted
    assert len(llm.prompts) == 1


def test_a_second_summary_replaces_the_first() -> None:
    tracker, llm, messages = conversations(manager(2_000, compaction=True)), Writer(), talk("a", 20)
    tracker.fit(messages, llm=llm)
    messages += [Line("model", "Now this."), *talk("b", 20)]
    fitted = tracker.fit(messages, llm=llm)
    assert len(llm.prompts) == 2
    assert len(summaries(fitted)) == 1
    assert SHORT in llm.prompts[1]


def test_a_failed_summary_costs_nothing_but_the_summary() -> None:
    messages = talk("a", 20)
    fitted = conversations(manager(2_000, compaction=True)).fit(messages, llm=Writer(RuntimeError("down")))
    assert fitted == conversations(manager(2_000)).fit(messages)


def test_without_a_summariser_or_with_compaction_off_messages_are_only_trimmed() -> None:
    messages, llm = talk("a", 20), Writer()
    trimmed = conversations(manager(2_000)).fit(messages, llm=llm)
    assert conversations(manager(2_000, compaction=True)).fit(messages) == trimmed
    assert llm.prompts == []
    configured = ConversationTracker(manager(2_000, compaction=True, summary_llm=llm), LineAdapter())
    assert summaries(configured.fit(messages))


# The frameworks


def test_langchain_asks_the_agents_own_model() -> None:
    pytest.importorskip("langchain")
    from langchain.agents import create_agent
    from langchain_core.messages import AIMessage, HumanMessage

    from context_window.integrations.langchain import ContextWindowMiddleware
    from tests.integrations.test_integrations_langchain import Model, letters, problems_of

    def script(messages: list[Any]) -> AIMessage:
        return AIMessage(SHORT if messages[-1].text.startswith(MARK) else "a" * 300)

    model = Model(script=script)
    middleware = ContextWindowMiddleware(manager(2_000, compaction=True))
    agent = create_agent(model, [], middleware=[middleware])
    messages: list[Any] = []
    for turn in range(10):
        messages = agent.invoke({"messages": [*messages, HumanMessage(f"Question {turn}?")]})["messages"]
    asked = [request for request in model.requests if request[-1].text.startswith(MARK)]
    others = [request for request in model.requests if request not in asked]
    assert 1 <= len(asked) <= 3
    assert all(len(request) == 1 for request in asked)
    assert len(others) == 10
    assert max(map(letters, others)) <= 2_000
    assert [problem for request in others for problem in problems_of(request)] == []
    assert SHORT in str(others[-1][:2])
    assert len(messages) == 20
    assert SHORT not in str(messages)


def test_pydantic_ai_asks_the_runs_own_model() -> None:
    pytest.importorskip("pydantic_ai")
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, UserPromptPart
    from pydantic_ai.models.function import AgentInfo, FunctionModel

    from context_window.integrations.pydantic_ai import ContextWindowCapability

    requests: list[list[ModelMessage]] = []

    def answer(messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
        requests.append(messages)
        return ModelResponse([TextPart(SHORT if MARK in str(messages[-1]) else "a" * 300)])

    window = manager(2_000, compaction=True, coverage=None)  # the usage that this model reports counts words, not letters
    agent = Agent(FunctionModel(answer), capabilities=[ContextWindowCapability(window)])
    history: list[ModelMessage] = []
    for turn in range(10):
        history = asyncio.run(agent.run(f"Question {turn}?", message_history=history)).all_messages()
    asked = [request for request in requests if MARK in str(request[-1])]
    assert 1 <= len(asked) <= 3
    assert len(requests) == 10 + len(asked)
    assert isinstance(requests[-1][0], ModelRequest)
    assert any(isinstance(part, UserPromptPart) and SHORT in str(part.content) for message in requests[-1][:2] for part in message.parts)
    assert len(history) == 20
    assert SHORT not in str(history)


@pytest.mark.parametrize("is_async", [False, True])
def test_langgraphs_hook_asks_the_model_that_it_is_given(is_async: bool) -> None:
    pytest.importorskip("langchain")
    from langchain_core.messages import AIMessage, HumanMessage

    from context_window.integrations.langchain import pre_model_hook
    from tests.integrations.test_integrations_langchain import Model

    model = Model(script=lambda messages: AIMessage(SHORT))
    hook = pre_model_hook(manager(2_000, compaction=True), model=model)
    state = {"messages": [kind(f"{number} " * 60) for number in range(10) for kind in (HumanMessage, AIMessage)] + [HumanMessage("Now?")]}
    shown = (asyncio.run(hook.ainvoke(state)) if is_async else hook.invoke(state))["llm_input_messages"]
    assert len(model.requests) == 1
    assert SHORT in str(shown[:2])
    assert shown[-1] is state["messages"][-1]


@pytest.mark.parametrize("by_name", [False, True])
def test_openai_agents_asks_the_agents_own_model_object(by_name: bool) -> None:
    """For an agent that has only a model's name, the filter asks the model that it is given."""
    pytest.importorskip("agents")
    import openai
    from agents import Agent, OpenAIProvider, RunConfig, Runner
    from agents.models import openai_responses

    from context_window.integrations.openai_agents import ContextWindowFilter
    from tests.support.stubs import OpenAIResponsesStub, Say

    def script(request: Any) -> list[Say]:
        return [Say(SHORT if MARK in str(request["input"][-1]) else "a" * 300)]

    async def run(stub: OpenAIResponsesStub) -> list[Any]:
        http = openai.DefaultAsyncHttpxClient(trust_env=False)
        async with openai.AsyncOpenAI(api_key="key", base_url=f"{stub.url}/v1", max_retries=0, http_client=http) as client:
            model = openai_responses.OpenAIResponsesModel("gpt-5", client)
            agent = Agent("helper", model="gpt-5" if by_name else model)
            shorten = ContextWindowFilter(manager(2_000, compaction=True), model=model if by_name else None)
            provider = OpenAIProvider(openai_client=client)
            config = RunConfig(call_model_input_filter=shorten, model_provider=provider, tracing_disabled=True)
            items: list[Any] = []
            for turn in range(10):
                result = await Runner.run(agent, [*items, {"role": "user", "content": f"Question {turn}?"}], run_config=config)
                items = result.to_input_list()
            return items

    with OpenAIResponsesStub(script) as stub:
        items = asyncio.run(run(stub))
    asked = [request for request in stub.requests if MARK in str(request["input"])]
    assert 1 <= len(asked) <= 3
    assert len(stub.requests) == 10 + len(asked)
    assert SHORT in str(stub.requests[-1]["input"][:2])
    assert len(items) == 20
    assert SHORT not in str(items)
