"""The real clients of the providers talk through the gateway to strict stubs, with a window that must be trimmed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import anthropic
import openai
import pytest
from google import genai

from context_window.gateway.ledger import GatewayLedger
from tests.support.gateways import bare, breaks, gateway
from tests.support.stubs.answers import Call, Say, Think
from tests.support.stubs.anthropic import AnthropicStub
from tests.support.stubs.gemini import GeminiStub
from tests.support.stubs.openai_chat import OpenAIChatStub
from tests.support.stubs.openai_responses import OpenAIResponsesStub

WINDOW = 3_000
TURNS = 20
TEXT = "".join(f"{number}: a line of the file that was read\n" for number in range(40))
READ = {"name": "read", "description": "Reads a file.", "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}}}
FUNCTION = {"name": "read", "description": "Reads a file.", "parameters": READ["input_schema"]}


def script(_: Mapping[str, Any]) -> list[Any]:
    """A model that thinks, speaks and reads a file, at every request."""
    script_calls.append(1)
    path = f"file{len(script_calls)}.py"
    return [Think(f"I want {path}."), Say(f"Reading {path}."), Call("read", {"path": path})]


script_calls: list[int] = []


def claude(address: str) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=f"{address}/anthropic", api_key="k", max_retries=0)


def gpt(address: str) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{address}/openai/v1", api_key="k", max_retries=0)


def marked(messages: list[Any]) -> list[Any]:
    """Return the messages with a cache mark on the last one, as Claude Code sends them."""
    *earlier, last = messages
    content = last["content"] if isinstance(last["content"], list) else [{"type": "text", "text": last["content"]}]
    return [*earlier, {**last, "content": [*content[:-1], {**content[-1], "cache_control": {"type": "ephemeral"}}]}]


@pytest.mark.parametrize("streamed", [False, True])
def test_claude_s_client_calls_tools_for_twenty_turns(streamed: bool) -> None:
    """No request is refused, no pair is broken, and the prefix changes only when a trim needs it."""
    ledger = GatewayLedger()
    with AnthropicStub(script) as stub, gateway(stub.url, WINDOW, ledger=ledger) as address, claude(address) as client:
        messages: list[Any] = [{"role": "user", "content": "Read all files."}]
        for _ in range(TURNS):
            fields: Any = {"model": "claude-sonnet-5-5", "max_tokens": 2_000, "messages": marked(messages), "tools": [READ]}
            fields["thinking"] = {"type": "enabled", "budget_tokens": 1_024}
            if streamed:
                with client.messages.stream(**fields) as stream:
                    answer = stream.get_final_message()
            else:
                answer = client.messages.create(**fields)
            messages.append({"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in answer.content]})
            (call,) = (block for block in answer.content if block.type == "tool_use")
            messages.append({"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": TEXT}]})
        sent = [[bare(message) for message in request["messages"]] for request in stub.requests]
    assert len(sent) == TURNS
    assert ledger.requests == TURNS
    assert not ledger.unmanaged
    assert ledger.shortened > TURNS / 2
    assert len(sent[-1]) < len(messages) - 1 or len(json.dumps(sent[-1])) < len(json.dumps(messages)) / 2
    assert sent[-1][0]["content"][-1] == bare(messages[0])["content"][-1]
    assert breaks(sent) <= TURNS / 2
    assert all(sum("cache_control" in json.dumps(message) for message in request["messages"]) == 1 for request in stub.requests)


def test_openai_s_client_calls_tools_for_twenty_turns_in_chat_completions() -> None:
    """No request is refused, no pair is broken, and the prefix changes only when a trim needs it."""
    ledger = GatewayLedger()
    with OpenAIChatStub(script) as stub, gateway(stub.url, WINDOW, ledger=ledger) as address, gpt(address) as client:
        messages: list[Any] = [{"role": "developer", "content": "You read files."}, {"role": "user", "content": "Read all files."}]
        for _ in range(TURNS):
            tools: Any = [{"type": "function", "function": FUNCTION}]
            answer = client.chat.completions.create(model="gpt-5", messages=messages, tools=tools)
            message = answer.choices[0].message
            assert message.tool_calls
            messages.append(message.model_dump(exclude_none=True))
            messages.append({"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": TEXT})
        sent = [request["messages"] for request in stub.requests]
    assert len(sent) == TURNS
    assert not ledger.unmanaged
    assert ledger.shortened > TURNS / 2
    assert sent[-1][:2] == messages[:2]
    assert breaks(sent) <= TURNS / 2


def test_openai_s_client_calls_tools_for_twenty_turns_in_responses() -> None:
    """No request is refused, no pair is broken, and the prefix changes only when a trim needs it."""
    ledger = GatewayLedger()
    with OpenAIResponsesStub(script) as stub, gateway(stub.url, WINDOW, ledger=ledger) as address, gpt(address) as client:
        items: list[Any] = [{"role": "user", "content": "Read all files."}]
        for _ in range(TURNS):
            tools: Any = [{"type": "function", "strict": False, **FUNCTION}]
            include: Any = ["reasoning.encrypted_content"]
            answer = client.responses.create(
                model="gpt-5", input=items, tools=tools, instructions="You read files.", store=False, include=include
            )
            items += [item.model_dump(exclude_none=True) for item in answer.output]
            (call,) = (item for item in answer.output if item.type == "function_call")
            items.append({"type": "function_call_output", "call_id": call.call_id, "output": TEXT})
        sent = [request["input"] for request in stub.requests]
    assert len(sent) == TURNS
    assert not ledger.unmanaged
    assert ledger.shortened > TURNS / 2
    assert sent[-1][0] == items[0]
    assert breaks(sent) <= TURNS / 2


@pytest.mark.parametrize("streamed", [False, True])
def test_google_s_client_calls_tools_for_twenty_turns(streamed: bool) -> None:
    """No request is refused, no pair is broken, no signature is wrong, and the prefix changes only when a trim needs it."""
    ledger = GatewayLedger()
    with GeminiStub(script) as stub, gateway(stub.url, WINDOW, ledger=ledger) as address:
        client = genai.Client(api_key="k", http_options={"base_url": f"{address}/google"})
        contents: list[Any] = [{"role": "user", "parts": [{"text": "Read all files."}]}]
        tool: Any = {"name": "read", "description": "Reads a file.", "parameters_json_schema": READ["input_schema"]}
        config: Any = {"system_instruction": "You read files.", "tools": [{"function_declarations": [tool]}]}
        config["automatic_function_calling"] = {"disable": True}
        for _ in range(TURNS):
            if streamed:
                chunks = list(client.models.generate_content_stream(model="gemini-3-pro", contents=contents, config=config))
                parts = [part for chunk in chunks for part in chunk.parts or [] if part.model_dump(exclude_none=True) != {"text": ""}]
            else:
                answer = client.models.generate_content(model="gemini-3-pro", contents=contents, config=config)
                parts = answer.parts or []
            contents.append({"role": "model", "parts": [part.model_dump(exclude_none=True) for part in parts]})
            calls = [part.function_call for part in parts if part.function_call]
            contents.append(
                {"role": "user", "parts": [{"function_response": {"name": call.name, "response": {"output": TEXT}}} for call in calls]}
            )
        client.close()
        sent = [request["contents"] for request in stub.requests]
    assert len(sent) == TURNS
    assert not ledger.unmanaged
    assert ledger.shortened > TURNS / 2
    assert sent[-1][0]["parts"][-1] == {"text": "Read all files."}
    assert breaks(sent) <= TURNS / 2
