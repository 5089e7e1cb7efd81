"""Tools that run at the provider are passed on, never run here, and their results are kept and sent back."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from google.genai.types import GenerateContentResponse

from context_window import GoogleModel, OpenAIModel, run_turn
from session import Message, Session
from session.providers.anthropic import to_anthropic, validate_anthropic
from session.providers.google import to_google, validate_google
from session.providers.openai_chat import to_openai_chat, validate_openai_chat
from session.providers.openai_responses import to_openai_responses, validate_openai_responses
from tests.support.looping import add, manager
from tests.support.stubs import Call, GeminiStub, OpenAIResponsesStub, Raw, Say, in_order
from tests.support.stubs.clients import google_client, openai_client

OWN: list[dict[str, Any]] = [{"google_search": {}}, {"code_execution": {}}, {"url_context": {}}]
CODE = {"executableCode": {"language": "PYTHON", "code": "print(6 * 7)"}}
RESULT = {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "42\n"}}
SEARCHED = {"type": "web_search_call", "status": "completed", "action": {"type": "search", "query": "6 * 7"}}


def check_valid(session: Session) -> None:
    assert validate_anthropic(to_anthropic(session)) == []
    assert validate_google(to_google(session)) == []
    assert validate_openai_chat(to_openai_chat(session)) == []
    assert validate_openai_responses(to_openai_responses(session)) == []


def test_geminis_own_tools_run_at_google() -> None:
    session = Session()
    script = in_order([Call("add", {"a": 1, "b": 2})], [Raw(CODE), Raw(RESULT), Say("It is 42.")], [Say("Yes.")])
    with GeminiStub(script) as stub, google_client(stub) as client:
        model, handler = GoogleModel(client, "gemini-3-pro"), manager()
        result = asyncio.run(run_turn(session, "How much?", model=model, tools=[add, *OWN], manager=handler))
        assert (result.text, result.calls) == ("It is 42.", 1)
        check_valid(session)
        asyncio.run(run_turn(session, "Sure?", model=model, tools=OWN, manager=handler))
    first, *_, last = stub.requests
    assert sorted(name for tool in first["tools"] for name in tool) == [
        "codeExecution",
        "functionDeclarations",
        "googleSearch",
        "urlContext",
    ]
    assert last["tools"] == [{"googleSearch": {}}, {"codeExecution": {}}, {"urlContext": {}}]
    assert last["contents"][-2]["parts"][:2] == [CODE, RESULT]
    check_valid(session)


def test_one_tool_may_declare_functions_and_a_search() -> None:
    session = Session()
    session.add_message("user", "How much?")
    both = {"function_declarations": [{"name": "add"}], "google_search": {}}
    tools = manager().request(session, "google", model="gemini-3-pro", tools=[both])["config"]["tools"]
    assert [[*tool] for tool in tools] == [["function_declarations"], ["google_search"]]
    alone = manager().request(session, "google", model="gemini-3-pro", tools=OWN)["config"]
    assert alone["tools"] == OWN
    assert "automatic_function_calling" not in alone


@pytest.mark.parametrize("chunks", [1, 2])
def test_what_gemini_searched_is_noted_with_the_answer(chunks: int) -> None:
    grounding = {"web_search_queries": ["6 * 7"], "grounding_chunks": [{"web": {"uri": "https://example.org", "title": "e"}}]}
    pages = {"url_metadata": [{"retrieved_url": "https://example.org", "url_retrieval_status": "URL_RETRIEVAL_STATUS_SUCCESS"}]}
    candidate = {"content": {"role": "model", "parts": [{"text": "42"}]}, "finish_reason": "STOP"}
    whole = {"candidates": [{**candidate, "grounding_metadata": grounding, "url_context_metadata": pages}]}
    pieces: list[Any] = [GenerateContentResponse.model_validate(piece) for piece in ({"candidates": [candidate]}, whole)][-chunks:]
    session = Session()
    session.add_message("user", "How much?")
    [item] = session.add_response(pieces if chunks > 1 else pieces[0])
    assert item.extra["google_grounding"] == grounding
    assert item.extra["google_url_context"]["url_metadata"][0]["retrieved_url"] == "https://example.org"
    assert "grounding" not in str(to_google(session))


def test_openais_own_tools_run_there() -> None:
    own: list[dict[str, Any]] = [{"type": "web_search"}, {"type": "file_search", "vector_store_ids": ["vs_1"]}]
    session = Session()
    script = in_order([Raw({"id": "ws_1", **SEARCHED}), Say("It is 42.")], [Say("Yes.")])
    with OpenAIResponsesStub(script) as stub, openai_client(stub) as client:
        model, handler = OpenAIModel(client, "gpt-5.2"), manager()
        for question in ("How much?", "Sure?"):
            result = asyncio.run(run_turn(session, question, model=model, tools=own, manager=handler))
            assert result.calls == 0
    assert stub.requests[0]["tools"] == own
    assert {"id": "ws_1", **SEARCHED} in stub.requests[1]["input"]
    assert [item.text for item in session.items if isinstance(item, Message)] == ["How much?", "It is 42.", "Sure?", "Yes."]
    check_valid(session)
