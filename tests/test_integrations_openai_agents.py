"""The adapter for OpenAI's Agents SDK: a real run against the strict stub of the Responses API, and its items taken and left."""

from __future__ import annotations

import asyncio
from typing import Any

import openai
import pytest
from agents import Agent, RunConfig, Runner, function_tool
from agents.models.openai_responses import OpenAIResponsesModel
from agents.run_config import CallModelData, ModelInputData
from hypothesis import given
from hypothesis import strategies as st

from context_window import ContextOverflowError, ContextWindowManager
from context_window.integrations.openai_agents import ContextWindowFilter
from session.providers import validate_openai_responses
from session.providers.additions import PREAMBLE
from tests.support.agents import busy, letters, look, manager
from tests.support.managing import manager as bending
from tests.support.stubs import OpenAIResponsesStub

BUDGET = 3_000


async def conversed(stub: OpenAIResponsesStub, fitting: ContextWindowFilter, turns: int) -> list[Any]:
    http = openai.DefaultAsyncHttpxClient(trust_env=False)
    async with openai.AsyncOpenAI(api_key="key", base_url=f"{stub.url}/v1", max_retries=0, http_client=http) as client:
        model = OpenAIResponsesModel("gpt-5", client)
        tools: list[Any] = [function_tool(look), function_tool(fitting.recall)]
        agent = Agent(name="a", instructions="Be brief.", tools=tools, model=model)
        history: list[Any] = []
        for turn in range(turns):
            asked = [*history, {"role": "user", "content": f"Question {turn}?"}]
            config = RunConfig(call_model_input_filter=fitting, tracing_disabled=True)
            history = (await Runner.run(agent, asked, run_config=config)).to_input_list()
        return history


def test_every_request_of_a_long_conversation_is_taken_and_fits_and_the_run_keeps_all() -> None:
    fitting = ContextWindowFilter(manager(BUDGET))
    with OpenAIResponsesStub(busy()) as stub:
        history = asyncio.run(conversed(stub, fitting, 6))
    assert len(stub.answers) == len(stub.requests) == 18
    assert max(letters(request["input"]) for request in stub.requests) <= BUDGET
    for request in stub.requests:
        assert request["instructions"] == "Be brief."
        assert validate_openai_responses(request["input"]) == []
    assert "taken out" not in str(history)
    id = str([request["input"] for request in stub.requests]).partition("; recall id ")[2].partition("]")[0]
    assert fitting.recall(id).startswith("found ")


# Items


def fitted(items: list[Any], one: ContextWindowManager | None = None, instructions: str | None = None) -> list[Any]:
    data: CallModelData[None] = CallModelData(ModelInputData(items, instructions), Agent(name="a"), None)
    return asyncio.run(ContextWindowFilter(one or manager(BUDGET))(data)).input


def step(number: int, *, size: int = 300) -> list[Any]:
    return [
        {"type": "reasoning", "id": f"rs_{number}", "summary": [], "encrypted_content": "e"},
        {"type": "message", "id": f"msg_{number}", "role": "assistant", "status": "completed", "content": said("Let me look.")},
        {"type": "function_call", "id": f"fc_{number}", "call_id": f"c{number}", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": f"c{number}", "output": "x" * size},
    ]


def said(text: str) -> list[Any]:
    return [{"type": "output_text", "text": text, "annotations": []}]


def asked(steps: int, *, size: int = 300) -> list[Any]:
    turns = [one for number in range(steps) for one in [{"role": "user", "content": "Go."}, *step(number, size=size)]]
    return [*turns, {"role": "user", "content": "And now?"}]


def test_what_fits_comes_back_as_the_same_objects() -> None:
    items = asked(3)
    assert all(one is other for one, other in zip(fitted(items), items, strict=True))


def test_what_is_left_of_an_answer_is_not_tied_to_the_reasoning_that_is_gone() -> None:
    items = asked(20)
    before = repr(items)
    kept = fitted(items)
    thoughts = {item["id"] for item in kept if item.get("type") == "reasoning"}
    tied = {item["id"].partition("_")[2] for item in kept if item.get("type") == "message" and "id" in item}
    assert thoughts == {f"rs_{number}" for number in tied}
    assert any(item.get("type") == "message" and "id" not in item for item in kept), "some texts outlive their thoughts"
    assert kept[-1] is items[-1]
    assert repr(items) == before


@given(steps=st.integers(1, 10), size=st.integers(0, 600), budget=st.integers(100, 3_000), cut=st.booleans())
def test_what_is_left_is_valid_in_any_budget(steps: int, size: int, budget: int, cut: bool) -> None:
    items = asked(steps, size=size)[1 if cut else 0 :]
    kept: list[Any] = ContextWindowFilter(bending(budget))._conversations.fit(items)
    assert validate_openai_responses(kept) == []
    assert kept[-1] is items[-1]
    assert kept[0].get("content") in ("Go.", "And now?", PREAMBLE) or (cut and kept[0] is items[0])


def test_items_that_the_provider_keeps_its_books_with_are_never_taken() -> None:
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
    kept = fitted([*books, *asked(20)])
    assert kept[: len(books)] == books or [one for one in kept if one in books] == books


def test_instructions_count_and_what_does_not_fit_is_an_error() -> None:
    assert len(fitted(asked(6), instructions="i" * 2_000)) < len(fitted(asked(6)))
    with pytest.raises(ContextOverflowError):
        fitted(asked(1), instructions="i" * 3_000)


@pytest.mark.parametrize(
    "odd",
    [
        {"role": "user", "content": ""},
        {
            "role": "user",
            "content": [{"type": "input_image", "image_url": "https://example.com/a.png"}, {"type": "input_text", "text": "See"}],
        },
        {"role": "developer", "content": "Be brief."},
        {"type": "message", "role": "nobody", "content": None},
        {"type": "a_kind_of_tomorrow", "value": 1},
        {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "a"}},
        {"type": "function_call", "call_id": "", "name": "", "arguments": "{broken"},
        {"type": "function_call_output", "call_id": "nobody", "output": [{"type": "input_text", "text": "\ud800"}]},
        {},
    ],
)
def test_an_odd_item_comes_back_as_it_is_or_goes(odd: dict[str, Any]) -> None:
    kept = fitted([{"role": "user", "content": "Go."}, odd, {"role": "user", "content": "Well?"}])
    assert [item for item in kept if item is odd] in ([odd], [])
    assert kept[0] == {"role": "user", "content": "Go."}
    assert odd in kept or odd["type"] == "function_call_output", "only an answer that nobody asked for may go"
