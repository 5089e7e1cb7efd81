"""`compaction="provider"`: the provider compacts the conversation where its model can, and we do otherwise."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from context_window import (
    AnthropicModel,
    BudgetError,
    Compaction,
    ContextWindow,
    ContextWindowManager,
    Message,
    OpenAIModel,
    Session,
    run_turn,
)
from session.providers.native_compaction import is_native
from tests.support.compacting import SHORT
from tests.support.stubs import AnthropicStub, OpenAIResponsesStub, Raw, Say
from tests.support.stubs.clients import anthropic_client, openai_client

BLOCK = {"type": "compaction", "content": "They counted.", "encrypted_content": "opaque", "signature": "signed", "tool_changes": []}
SEALED = {"type": "compaction", "encrypted_content": "c2VhbGVk" * 20}
TURNS = 8
LONG = "It is a long story, and it goes on. " * 1_400


def script(block: dict[str, Any]) -> Any:
    """A model that tells a long story. Its provider compacts at the third request."""

    def answer(request: Mapping[str, Any]) -> list[Any]:
        if "Sum up the conversation" in str(request.get("messages", request.get("input"))[-1]):
            return [Say(SHORT)]
        count = str(request.get("messages", request.get("input"))).count("Question")
        return [Raw(block), Say(LONG)] if "context_management" in request and count == 6 else [Say(LONG)]

    return answer


def talk(model: Any, name: str, budget: int) -> Session:
    manager = ContextWindowManager(name, context_window=ContextWindow(max_tokens=budget, compaction="provider", keep_recent_turns=1))

    async def turns() -> Session:
        session = Session()
        for number in range(TURNS):
            await run_turn(session, f"Question {number}", model=model, manager=manager)
        return session

    return asyncio.run(turns())


def test_anthropic_compacts_where_its_model_can() -> None:
    with AnthropicStub(script(BLOCK)) as stub, anthropic_client(stub) as client:
        session = talk(AnthropicModel(client, "claude-opus-5", max_tokens=100), "claude-opus-5", 80_000)
    edits = [request["context_management"]["edits"] for request in stub.requests]
    assert edits == [[{"type": "compact_20260112", "trigger": {"type": "input_tokens", "value": 70_000}}]] * TURNS
    compactions = [item for item in session.items if isinstance(item, Compaction)]
    assert [is_native(item) for item in compactions] == [True]
    assert "Sum up" not in str(stub.requests)
    assert "Question 0" not in str(stub.requests[-1]["messages"])


@pytest.mark.parametrize(("name", "budget"), [("claude-opus-5", 40_000), ("claude-haiku-4-5", 80_000)])
def test_ours_is_the_fallback(name: str, budget: int) -> None:
    with AnthropicStub(script(BLOCK)) as stub, anthropic_client(stub) as client:
        session = talk(AnthropicModel(client, name, max_tokens=100), name, budget)
    assert not any("context_management" in request for request in stub.requests)
    assert [is_native(item) for item in session.items if isinstance(item, Compaction)][:1] == [False]


def test_openai_compacts_in_the_responses_api() -> None:
    with OpenAIResponsesStub(script(SEALED)) as stub, openai_client(stub) as client:
        session = talk(OpenAIModel(client, "gpt-5.2"), "gpt-5.2", 80_000)
        assert OpenAIModel(client, "gpt-5.2", api="chat").compacting(70_000) is None
    assert [request["context_management"][0]["compact_threshold"] for request in stub.requests] == [70_000] * TURNS
    assert [is_native(item) for item in session.items if isinstance(item, Compaction)] == [True]
    assert isinstance(session.items[-1], Message)


def test_another_word_is_an_error() -> None:
    wrong: Any = "server"
    with pytest.raises(BudgetError, match="compaction"):
        ContextWindow(compaction=wrong)
