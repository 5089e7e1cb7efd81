"""`manage` for the messages of the frameworks that have middleware: both read them with the same adapter, and show the same."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import import_module
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_window import ContextOverflowError, ContextWindow, ContextWindowManager, Extract, manage
from context_window.integrations.conversation_tracker import ConversationTracker
from context_window.recall import recall_tool
from session.errors import FormatError
from tests.integrations.test_managed_messages import OUTPUT, responses_turn
from tests.support.lazy import LazyModule

if TYPE_CHECKING:
    import langchain_core.messages as langchain
    from pydantic_ai import messages as pydantic_ai
else:
    langchain, pydantic_ai = map(LazyModule, ("langchain_core.messages", "pydantic_ai.messages"))

TASK = "List them all, one by one."


def of_langchain(turns: int) -> list[Any]:
    messages: list[Any] = [langchain.SystemMessage("Be brief."), langchain.HumanMessage(TASK)]
    for number in range(turns):
        call = {"name": "Bash", "args": {"command": f"ls {number}"}, "id": f"t{number}"}
        messages += [langchain.AIMessage("", tool_calls=[call]), langchain.ToolMessage(OUTPUT, tool_call_id=f"t{number}")]
    return messages


def of_pydantic_ai(turns: int) -> list[Any]:
    messages: list[Any] = [pydantic_ai.ModelRequest([pydantic_ai.UserPromptPart(TASK)])]
    for number in range(turns):
        call = pydantic_ai.ToolCallPart("Bash", {"command": f"ls {number}"}, f"t{number}")
        result = pydantic_ai.ToolReturnPart("Bash", OUTPUT, f"t{number}")
        messages += [pydantic_ai.ModelResponse([call]), pydantic_ai.ModelRequest([result])]
    return messages


def of_openai_agents(turns: int) -> list[Any]:
    question = {"role": "user", "content": TASK, "type": "message"}
    return [question, *(item for number in range(turns) for item in responses_turn(number))]


FRAMEWORKS: dict[str, tuple[Callable[[int], list[Any]], str, str]] = {
    "langchain": (of_langchain, "langchain_messages", "LangChainAdapter"),
    "pydantic_ai": (of_pydantic_ai, "pydantic_ai_messages", "PydanticAdapter"),
    "openai_agents": (of_openai_agents, "responses_adapter", "ResponsesAdapter"),
}


@given(st.sampled_from(sorted(FRAMEWORKS)), st.integers(1, 25), st.sampled_from((2_500, 5_000, 50_000)))
def test_manage_shows_what_the_middleware_shows(name: str, turns: int, budget: int) -> None:
    """if it has the same settings"""
    make, module, kind = FRAMEWORKS[name]
    adapter = getattr(import_module(f"context_window.integrations.{module}"), kind)()
    messages, tool = make(turns), recall_tool("openai")
    window = ContextWindow(
        max_tokens=budget,
        strategy=Extract(),
        largest_output=1,
        keep_first_message=True,
        clamp_messages=False,
        strict=True,
        compaction=False,
    )
    conversations = ConversationTracker(ContextWindowManager("gpt-4.1", context_window=window), adapter)
    try:
        expected = conversations.fit(messages, tools=[tool])
    except ContextOverflowError:
        with pytest.raises(ContextOverflowError):
            manage(messages, model="gpt-4.1", max_tokens=budget, tools=[tool])
        return
    view = manage(messages, model="gpt-4.1", max_tokens=budget, tools=[tool])
    assert list(map(adapter.digest, view)) == list(map(adapter.digest, expected))  # without the times of new messages
    assert (view == messages) == (not view.changes)
    for decisions in view.changes.values():
        assert view.recall(decisions[0].item_id) == conversations.recall(decisions[0].item_id)


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_views_extend_those_before_them_and_keep_the_ends(name: str) -> None:
    make = FRAMEWORKS[name][0]
    views = [manage(make(turns), model="gpt-4.1", max_tokens=6_000) for turns in range(1, 31)]
    assert all(TASK in str(view[:2]) and "line 39" in str(view[-2:]) for view in views)
    assert max(map(len, views)) < len(make(30)) * 2 / 3
    texts = [[str(getattr(message, "content", None) or getattr(message, "parts", message))[:60] for message in view] for view in views]
    assert sum(later[: len(before)] == before for before, later in pairwise(texts)) >= 20


def test_a_result_that_names_no_call_is_refused() -> None:
    with pytest.raises(FormatError, match=r"messages\[1\]: a result names the call 'x', but the calls that wait for one here are none"):
        manage([langchain.HumanMessage("Go."), langchain.ToolMessage("a", tool_call_id="x")], model="gpt-5")


def test_dumps_of_langchains_messages_are_refused_by_name() -> None:
    dumps = [json.loads(langchain.HumanMessage("hi").model_dump_json())]
    with pytest.raises(ValueError, match="pass the messages themselves"):
        manage(dumps, model="gpt-5")
