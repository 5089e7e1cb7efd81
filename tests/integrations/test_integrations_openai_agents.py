"""The adapter for OpenAI's Agents SDK: real runs against a strict stub of the Responses API, and single items."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_window import Compacted, ContextOverflowError, ContextWindow, ContextWindowManager, WindowEvent
from session.providers import validate_openai_responses
from session.providers.additions import INTERRUPTED, PREAMBLE
from tests.support.agents import busy, letters, look, manager
from tests.support.counting import Letters
from tests.support.lazy import LazyModule
from tests.support.managing import make_manager as bending
from tests.support.stubs import OpenAIResponsesStub, Say, in_order

if TYPE_CHECKING:
    import agents
    import openai
    from agents import run_config
    from agents.models import openai_responses

    from context_window.integrations import openai_agents
else:
    openai_agents = LazyModule("context_window.integrations.openai_agents")
    openai = LazyModule("openai")
    agents = LazyModule("agents")
    openai_responses = LazyModule("agents.models.openai_responses")
    run_config = LazyModule("agents.run_config")

BUDGET = 3_000


async def run_turns(
    stub: OpenAIResponsesStub, context_filter: openai_agents.ContextWindowFilter, turns: int, history: Sequence[Any] = ()
) -> list[Any]:
    http = openai.DefaultAsyncHttpxClient(trust_env=False)
    async with openai.AsyncOpenAI(api_key="key", base_url=f"{stub.url}/v1", max_retries=0, http_client=http) as client:
        model = openai_responses.OpenAIResponsesModel("gpt-5", client)
        tools: list[Any] = [agents.function_tool(look), agents.function_tool(context_filter.recall)]
        agent = agents.Agent(name="a", instructions="Be brief.", tools=tools, model=model)
        for turn in range(turns):
            items = [*history, {"role": "user", "content": f"Question {turn}?"}]
            config = agents.RunConfig(call_model_input_filter=context_filter, tracing_disabled=True)
            history = (await agents.Runner.run(agent, items, run_config=config)).to_input_list()
        return list(history)


def test_every_request_of_a_long_conversation_is_accepted_and_fits_and_the_run_keeps_all() -> None:
    context_filter = openai_agents.ContextWindowFilter(manager(4_000))
    with OpenAIResponsesStub(busy()) as stub:
        history = asyncio.run(run_turns(stub, context_filter, 6))
    assert len(stub.answers) == len(stub.requests) == 18
    assert max(letters(request["input"]) for request in stub.requests) <= 4_000
    for request in stub.requests:
        assert request["instructions"] == "Be brief."
        assert validate_openai_responses(request["input"]) == []
    assert "taken out" not in str(history)
    id = str([request["input"] for request in stub.requests]).partition("; recall id ")[2].partition("]")[0]
    assert context_filter.recall(id).startswith("found ")


@pytest.mark.filterwarnings("ignore:what providers refuse")
def test_an_interrupted_call_gets_an_output_and_blank_messages_are_left_out() -> None:
    calls: list[Any] = [
        {"type": "function_call", "call_id": "a", "name": "look", "arguments": "{}"},
        {"type": "function_call", "call_id": "b", "name": "look", "arguments": "{}"},
        {"type": "custom_tool_call", "call_id": "c", "name": "patch", "input": "x"},
        {"type": "computer_call", "call_id": "d", "id": "cu_1", "action": {"type": "screenshot"}, "status": "completed"},
    ]
    go, output = {"role": "user", "content": "Go."}, {"type": "function_call_output", "call_id": "b", "output": "found"}
    items = [go, *calls, output, {"role": "user", "content": " "}, {"role": "user", "content": "Well?"}]
    kinds = {"a": "function_call_output", "c": "custom_tool_call_output"}
    added = [{"type": kind, "call_id": id, "output": INTERRUPTED} for id, kind in kinds.items()]
    assert fitted(items) == [go, *calls, *added, output, items[-1]]
    with OpenAIResponsesStub(in_order([Say("Done.")])) as stub:
        asyncio.run(run_turns(stub, openai_agents.ContextWindowFilter(manager(BUDGET)), 1, [go, *calls[:3], output]))
    assert stub.requests[0]["input"][-2:] == [output, {"role": "user", "content": "Question 0?"}]


# Items


def fitted(items: list[Any], window_manager: ContextWindowManager | None = None, instructions: str | None = None) -> list[Any]:
    data: run_config.CallModelData[None] = run_config.CallModelData(
        run_config.ModelInputData(items, instructions), agents.Agent(name="a"), None
    )
    return asyncio.run(openai_agents.ContextWindowFilter(window_manager or manager(BUDGET))(data)).input


def step(number: int, *, size: int = 300) -> list[Any]:
    return [
        {"type": "reasoning", "id": f"rs_{number}", "summary": [], "encrypted_content": "e"},
        {"type": "message", "id": f"msg_{number}", "role": "assistant", "status": "completed", "content": text_content("Let me look.")},
        {"type": "function_call", "id": f"fc_{number}", "call_id": f"c{number}", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": f"c{number}", "output": "x" * size},
    ]


def text_content(text: str) -> list[Any]:
    return [{"type": "output_text", "text": text, "annotations": []}]


def conversation(steps: int, *, size: int = 300) -> list[Any]:
    turns = [item for number in range(steps) for item in [{"role": "user", "content": "Go."}, *step(number, size=size)]]
    return [*turns, {"role": "user", "content": "And now?"}]


def test_messages_that_fit_are_the_same_objects() -> None:
    items = conversation(3)
    assert all(fitted_item is item for fitted_item, item in zip(fitted(items), items, strict=True))


def test_a_reduced_answer_has_no_links_to_dropped_reasoning() -> None:
    items = conversation(20)
    before = repr(items)
    fitted_items = fitted(items)
    thoughts = {item["id"] for item in fitted_items if item.get("type") == "reasoning"}
    tied = {item["id"].partition("_")[2] for item in fitted_items if item.get("type") == "message" and "id" in item}
    assert thoughts == {f"rs_{number}" for number in tied}
    assert any(item.get("type") == "message" and "id" not in item for item in fitted_items), "some texts outlive their thoughts"
    assert fitted_items[-1] is items[-1]
    assert repr(items) == before


@given(steps=st.integers(1, 10), size=st.integers(0, 600), budget=st.integers(100, 3_000), cut=st.booleans())
def test_the_result_is_valid_for_any_budget(steps: int, size: int, budget: int, cut: bool) -> None:
    items = conversation(steps, size=size)[1 if cut else 0 :]
    fitted_items: list[Any] = openai_agents.ContextWindowFilter(bending(budget))._conversations.fit(items)
    assert validate_openai_responses(fitted_items) == []
    assert fitted_items[-1] is items[-1]
    assert fitted_items[0].get("content") in ("Go.", "And now?", PREAMBLE) or (cut and fitted_items[0] is items[0])


def test_bookkeeping_items_are_never_taken() -> None:
    books = [
        {"type": "compaction", "id": "cmp_1", "encrypted_content": "e" * 50},
        {
            "type": "computer_call",
            "id": "cu_1",
            "call_id": "k",
            "action": {"type": "screenshot"},
            "status": "completed",
            "pending_safety_checks": [],
        },
        {
            "type": "computer_call_output",
            "call_id": "k",
            "output": {"type": "computer_screenshot", "image_url": "https://example.com/a.png"},
        },
    ]
    fitted_items = fitted([*books, *conversation(20)])
    assert fitted_items[: len(books)] == books or [item for item in fitted_items if item in books] == books


def test_instructions_count_and_an_overflow_is_an_error() -> None:
    assert len(fitted(conversation(6), instructions="i" * 2_000)) < len(fitted(conversation(6)))
    with pytest.raises(ContextOverflowError):
        fitted(conversation(1), instructions="i" * 3_000)


@pytest.mark.parametrize(
    "odd",
    [
        {
            "role": "user",
            "content": [{"type": "input_image", "image_url": "https://example.com/a.png"}, {"type": "input_text", "text": "See"}],
        },
        {"role": "developer", "content": "Be brief."},
        {"type": "a_kind_of_tomorrow", "value": 1},
        {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "a"}},
        {"type": "function_call", "call_id": "", "name": "", "arguments": "{broken"},
        {"type": "function_call_output", "call_id": "nobody", "output": [{"type": "input_text", "text": "\ud800"}]},
        {},
    ],
)
@pytest.mark.filterwarnings("ignore:what providers refuse", "ignore:.*was left out")
def test_an_unusual_item_is_returned_unchanged_or_dropped(odd: dict[str, Any]) -> None:
    fitted_items = fitted([{"role": "user", "content": "Go."}, odd, {"role": "user", "content": "Well?"}])
    assert [item for item in fitted_items if item is odd] in ([odd], [])
    assert fitted_items[0] == {"role": "user", "content": "Go."}
    assert odd in fitted_items or odd["type"] == "function_call_output", "only an answer that nobody asked for may go"


def test_the_long_input_of_an_older_call_is_a_placeholder() -> None:
    written = {"path": "a.py", "text": "x" * 2_000}
    call = {"type": "function_call", "call_id": "w", "name": "write", "arguments": json.dumps(written)}
    patch = {"type": "custom_tool_call", "call_id": "p", "name": "patch", "input": json.dumps(written)}
    outputs = [
        {"type": "function_call_output", "call_id": "w", "output": "ok"},
        {"type": "custom_tool_call_output", "call_id": "p", "output": "ok"},
    ]
    items = [{"role": "user", "content": "Go."}, call, patch, *outputs, *conversation(2)]
    fitted_items = fitted(items)
    assert [item.get("call_id") for item in fitted_items[1:5]] == ["w", "p", "w", "p"]
    for text in (fitted_items[1]["arguments"], fitted_items[2]["input"]):
        assert json.loads(text)["path"] == "a.py"
        assert json.loads(text)["text"].startswith("[text taken out here; recall id ")
    assert json.loads(call["arguments"]) == written


def test_a_summary_by_the_agents_model_is_counted() -> None:
    """Its event has the usage that the run reports."""
    events: list[WindowEvent] = []
    window = ContextWindow(max_tokens=BUDGET)
    watched = ContextWindowManager(token_counter=Letters(), context_window=window, on_event=events.append)

    async def fit(stub: OpenAIResponsesStub) -> None:
        http = openai.DefaultAsyncHttpxClient(trust_env=False)
        async with openai.AsyncOpenAI(api_key="key", base_url=f"{stub.url}/v1", max_retries=0, http_client=http) as client:
            model = openai_responses.OpenAIResponsesModel("gpt-5", client)
            asked = run_config.ModelInputData(conversation(20), None)
            data: run_config.CallModelData[None] = run_config.CallModelData(asked, agents.Agent(name="a", model=model), None)
            await openai_agents.ContextWindowFilter(watched)(data)

    with OpenAIResponsesStub(lambda _: [Say("In short.")]) as stub:
        asyncio.run(fit(stub))
        (answer,) = stub.answers
    (event,) = [event for event in events if isinstance(event, Compacted)]
    assert answer["usage"]["input_tokens"] > 0
    assert (event.usage.total_input, event.usage.output_tokens) == (answer["usage"]["input_tokens"], answer["usage"]["output_tokens"])
