"""Summaries by the model in use: it is asked where it stands, so that the provider reads the conversation from its cache."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from context_window import AnthropicModel, ContextWindow, ContextWindowManager, Session, Usage, run_turn
from tests.support.compacting import SHORT, compactions
from tests.support.gateways import bare
from tests.support.stubs import AnthropicStub, Call, Say
from tests.support.stubs.clients import anthropic_client

MARK = "Sum up the conversation"
TURNS = 24


def is_request(message: Mapping[str, Any]) -> bool:
    return MARK in str(message)


def talk(summary: Callable[[bool], list[Any]], **window: Any) -> tuple[AnthropicStub, Session, Usage]:
    """A conversation in which one summary is written, and what it cost. The model looks nothing up."""

    def script(request: Mapping[str, Any]) -> list[Any]:
        return summary(len(request["messages"]) == 1) if is_request(request["messages"][-1]) else [Say("It went well, and then " * 60)]

    def look(path: str) -> str:
        """Look at a file."""
        return path

    async def turns() -> Session:
        session = Session()
        session.add_message("system", "You are careful. " * 200)
        for number in range(TURNS):
            await run_turn(session, f"Question {number}", model=model, manager=manager, tools=[look])
        return session

    with AnthropicStub(script) as stub, anthropic_client(stub) as client:
        model = AnthropicModel(client, "claude-opus-5", max_tokens=1_000)
        if window.pop("configured", False):
            window["summary_llm"] = model
        manager = ContextWindowManager("claude-opus-5", context_window=ContextWindow(max_tokens=8_000, **window))
        session = asyncio.run(turns())
    return stub, session, manager.summary_usage(session)


def price(usage: Usage) -> float:
    """Tokens of a prompt in the price of uncached input."""
    return usage.input_tokens + 0.1 * usage.cache_read_tokens + 1.25 * usage.cache_write_tokens


def test_the_request_for_a_summary_extends_the_last_one_and_costs_a_quarter() -> None:
    """the request is the conversation as it was, with the instruction at its end, so that reading it costs a tenth"""
    stub, session, usage = talk(lambda _is_record: [Say(SHORT)])
    number = next(number for number, request in enumerate(stub.requests) if is_request(request["messages"][-1]))
    before, asked, after = stub.requests[number - 1 : number + 2]
    known = [bare(message) for message in before["messages"]]
    assert [bare(message) for message in asked["messages"]][: len(known)] == known
    assert (asked["system"], asked["tools"]) == (before["system"], before["tools"])
    assert "tool_choice" not in asked
    assert SHORT in str(after["messages"])
    assert usage.cache_read_tokens > 4 * (usage.input_tokens + usage.cache_write_tokens)
    assert len(compactions(session)) >= 1
    _, other, recorded = talk(lambda _is_record: [Say(SHORT)], configured=True)
    assert len(compactions(other)) == len(compactions(session))
    assert price(usage) < price(recorded) / 2


@pytest.mark.parametrize("answer", [[Call("look", {"path": "a"})], [Say(" ")]], ids=["a call", "nothing"])
def test_a_model_that_does_not_write_the_summary_is_asked_with_a_record(answer: list[Any]) -> None:
    stub, session, _ = talk(lambda is_record: [Say(SHORT)] if is_record else answer)
    assert len(compactions(session)) >= 1
    records = [request for request in stub.requests if is_request(request["messages"][0])]
    assert records
    assert all(len(request["messages"]) == 1 and "tools" not in request for request in records)
