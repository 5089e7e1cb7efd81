"""Cases about requests of clients and frameworks: what goes to the provider, and what the client gets."""

from __future__ import annotations

import asyncio
import base64
import json
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

from context_window.gateway.clients import started
from session import Session
from session.providers import validate_anthropic, validate_google, validate_openai_chat, validate_openai_responses
from tests.support.agents import manager
from tests.support.gateways import breaks, gateway
from tests.support.pictures import png
from tests.support.stubs.anthropic import AnthropicStub
from tests.support.stubs.server import Body, Refusal

from .case import Case

Json = dict[str, Any]
WORDS = "The quick brown fox jumps over the lazy dog. "
PATHS = {
    "anthropic": "/anthropic/v1/messages",
    "openai": "/openai/v1/chat/completions",
    "responses": "/openai/v1/responses",
    "google": "/google/v1beta/models/gemini-3.5-flash:generateContent",
}
FIELDS = {"anthropic": "messages", "openai": "messages", "responses": "input", "google": "contents"}
ANSWER = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [{"type": "text", "text": "Fine."}], "usage": {}}


class Taking(AnthropicStub):
    """Takes any request, or refuses what `refuses` has words for: what goes up is looked at afterwards."""

    def __init__(self, refuses: Callable[[Body], str] | None = None) -> None:
        super().__init__()
        self.refuses = refuses

    def serve(self, path: str, headers: Mapping[str, str], body: Body) -> Body:  # noqa: ARG002 - as the base has it
        if self.refuses is not None and (words := self.refuses(body)):
            raise Refusal(words)
        return ANSWER


def posted(address: str, path: str, body: Json) -> tuple[int, Json]:
    """Send a body; return the status and the answer."""
    headers = {"content-type": "application/json", "x-api-key": "made up"}
    request = urllib.request.Request(address + path, json.dumps(body).encode(), headers)
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=30) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read() or b"{}")


# Pieces of a conversation, in each API


def said(api: str, role: str, words: str) -> Json:
    if api == "google":
        return {"role": "model" if role == "assistant" else role, "parts": [{"text": words}]}
    return {"role": role, "content": [{"type": "text", "text": words}] if api == "anthropic" else words}


def called(api: str, *ids: str) -> list[Json]:
    match api:
        case "anthropic":
            return [{"role": "assistant", "content": [{"type": "tool_use", "id": id_, "name": "f", "input": {}} for id_ in ids]}]
        case "openai":
            calls = [{"id": id_, "type": "function", "function": {"name": "f", "arguments": "{}"}} for id_ in ids]
            return [{"role": "assistant", "content": None, "tool_calls": calls}]
        case "responses":
            return [{"type": "function_call", "call_id": id_, "name": "f", "arguments": "{}"} for id_ in ids]
        case _:
            return [{"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}} for _ in ids]}]


def found(api: str, *ids: str) -> list[Json]:
    words = WORDS * 6
    match api:
        case "anthropic":
            return [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": id_, "content": words} for id_ in ids]}]
        case "openai":
            return [{"role": "tool", "tool_call_id": id_, "content": words} for id_ in ids]
        case "responses":
            return [{"type": "function_call_output", "call_id": id_, "output": words} for id_ in ids]
        case _:
            return [{"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"output": words}}} for _ in ids]}]


def talk(api: str, turns: int = 20, *between: Json) -> Json:
    """Return a request of some turns with a call each, and with further messages before the last."""
    messages: list[Json] = []
    for n in range(turns):
        messages += [
            said(api, "user", f"Question {n}? {WORDS}"),
            *called(api, f"c{n}"),
            *found(api, f"c{n}"),
            said(api, "assistant", "Done."),
        ]
    body: Json = {
        "model": "claude-sonnet-5-5" if api == "anthropic" else "gpt-4.1",
        FIELDS[api]: [*messages, *between, said(api, "user", "Now?")],
    }
    if api == "anthropic":
        body |= {"max_tokens": 10, "tools": [{"name": "f", "input_schema": {"type": "object"}}]}
    return body


def broken(api: str, kind: str) -> Json:
    match kind:
        case "call":
            return talk(api, 20, said(api, "user", "Look."), *called(api, "dead"))
        case "calls":
            return talk(api, 20, said(api, "user", "Look."), *called(api, "live", "dead"), *found(api, "live"))
        case "result":
            return talk(api, 20, *found(api, "dead"), said(api, "assistant", "Done."))
        case "blank":
            call = called(api, "x")
            call[0]["content"] = [{"type": "text", "text": ""}, *call[0]["content"]]
            return talk(api, 20, said(api, "user", "Look."), *call, *found(api, "x"), said(api, "assistant", "Done."))
        case "twice":
            return talk(api, 20, said(api, "user", "Look."), *called(api, "c3"), *found(api, "c3"), said(api, "assistant", "Done."))
        case "first":
            body = talk(api)
            return body | {FIELDS[api]: body[FIELDS[api]][1:]}
        case _:
            return talk(api)


CHECKS: dict[str, Callable[[Any], Sequence[object]]] = {
    "anthropic": validate_anthropic,
    "openai": validate_openai_chat,
    "responses": validate_openai_responses,
    "google": validate_google,
}


def goes_up(api: str, kind: str, budget: int, _: Path) -> tuple[int, list[str], bool]:
    """Return the status, what a provider would refuse of what goes up, and whether it is much shorter than what the client sent."""
    body = broken(api, kind)
    with Taking() as stub, gateway(stub.url, budget) as address:
        status, _answer = posted(address, PATHS[api], body)
    sent = stub.requests[-1]
    return status, [str(problem) for problem in CHECKS[api](sent)], len(json.dumps(sent)) < len(json.dumps(body)) - 1_000


def answered(refuses: Callable[[Body], str], *bodies: Json) -> tuple[list[int], int]:
    """Return the statuses that a client gets, and how many requests the provider has refused."""
    with Taking(refuses) as stub, gateway(stub.url, 100_000) as address:
        statuses = [posted(address, PATHS["anthropic"], body)[0] for body in bodies]
    return statuses, len(stub.requests) - len(stub.answers)


def going_on(body: Json, turns: int) -> list[Json]:
    """Return the request and those of further turns of the same conversation."""
    more = [said("anthropic", "assistant", "Fine."), said("anthropic", "user", "And now?")]
    return [body | {"messages": body["messages"] + more * turn} for turn in range(turns + 1)]


# Anthropic's own


def server_tools() -> Json:
    page = {"type": "web_search_result", "url": "https://e.example", "title": "T", "encrypted_content": "sealed", "page_age": None}
    blocks = [
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}},
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [page]},
        {"type": "text", "text": "Found."},
    ]
    return {"role": "assistant", "content": blocks}


def server_tools_back(_: Path) -> bool:
    """True if the blocks of a tool that ran at the provider come back as they went in."""
    messages = [said("anthropic", "user", "Search."), server_tools(), said("anthropic", "user", "And?")]
    return bool(server_tools() == Session.from_anthropic(messages).to_anthropic_messages()[0][1])


def server_tools_up(budget: int, _: Path) -> tuple[list[str], bool]:
    """Return what is refused of a trimmed request with such blocks, and whether a pair is whole or gone."""
    body = talk("anthropic", 20, said("anthropic", "user", "Search."), server_tools())
    with Taking() as stub, gateway(stub.url, budget) as address:
        posted(address, PATHS["anthropic"], body)
    sent = json.dumps(stub.requests[-1])
    return [str(problem) for problem in validate_anthropic(stub.requests[-1])], sent.count("server_tool_use") == sent.count(
        "web_search_tool_result"
    )


def marks_up(_: Path) -> tuple[str, bool]:
    """Return the lifetime of the system prompt's mark in a trimmed request, and whether there are at most four marks."""
    hour, short = {"type": "ephemeral", "ttl": "1h"}, {"type": "ephemeral"}
    body = talk("anthropic", 20)
    body["system"] = [{"type": "text", "text": "Be brief.", "cache_control": hour}]
    for message in body["messages"][-4::3]:
        message["content"][-1]["cache_control"] = short
    with Taking() as stub, gateway(stub.url, 1_500) as address:
        posted(address, PATHS["anthropic"], body)
    sent = stub.requests[-1]
    return sent["system"][0]["cache_control"].get("ttl", ""), json.dumps(sent).count("cache_control") <= 4


def prefix_breaks(_: Path) -> bool:
    """True if at most every fifth request of a growing conversation does not begin with the one before."""
    with Taking() as stub, gateway(stub.url, 6_000) as address:
        for turns in range(1, 60):
            posted(address, PATHS["anthropic"], talk("anthropic", turns))
    return breaks([request["messages"][:-1] for request in stub.requests]) <= 12


def image(number: int) -> Json:
    data = base64.b64encode(png(3, 3 + number)).decode()
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}


def with_images(count: int, budget: int) -> Json:
    shots = [{"role": "user", "content": [{"type": "text", "text": f"Shot {n}."}, image(n)]} for n in range(count)]
    return talk("anthropic", budget, *(message for shot in shots for message in (shot, said("anthropic", "assistant", "Seen."))))


def refuses_image(body: Body) -> str:
    bad = image(0)["source"]["data"]
    return "messages.80.content.1.image.source.base64.data: Could not process image" if bad in json.dumps(body) else ""


def refuses_thinking(body: Body) -> str:
    thought = '"thinking"' in json.dumps(body["messages"])
    return "messages.1.content.0: Invalid `signature` in `thinking` block" if thought else ""


def refuses_long(body: Body) -> str:
    size = len(json.dumps(body))
    return f"prompt is too long: {size // 3} tokens > 5000 maximum" if size > 15_000 else ""


def thinking() -> Json:
    blocks = [{"type": "thinking", "thinking": "Hm.", "signature": "bWFkZSB1cA=="}, {"type": "text", "text": "Yes."}]
    return talk("anthropic", 5, said("anthropic", "user", "Think."), {"role": "assistant", "content": blocks})


def stops_at_a_price(_: Path) -> list[int]:
    """Return the statuses of the first and the last of five requests with a limit of one dollar, each of which costs more.

    What an answer has cost is worked out after it was passed on, so a second request may still pass.
    """
    usage = {"input_tokens": 1_000_000, "output_tokens": 100}

    class Dear(Taking):
        def serve(self, path: str, headers: Mapping[str, str], body: Body) -> Body:
            return super().serve(path, headers, body) | {"model": "claude-sonnet-5-5", "usage": usage}

    with Dear() as stub, gateway(stub.url, 100_000, max_cost=Decimal(1)) as address:
        statuses = [posted(address, PATHS["anthropic"], talk("anthropic", 2))[0] for _number in range(5)]
    return [statuses[0], statuses[-1]]


def tool_search(folder: Path) -> str:
    """Return what a client that the gateway starts is told of tool search."""
    return started(["claude"], "http://127.0.0.1:1", {"HOME": str(folder)}, folder).variables["ENABLE_TOOL_SEARCH"]


# Frameworks


def langchain(budget: int, _: Path) -> list[str]:
    """Return what LangChain's messages lack after a call whose result never came."""
    from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

    from context_window.integrations.langchain import pre_model_hook

    calls = [{"name": "f", "args": {}, "id": id_} for id_ in ("live", "dead")]
    messages = [
        HumanMessage("Go."),
        AIMessage("", tool_calls=calls),
        ToolMessage("found " + WORDS * 5, tool_call_id="live"),
        HumanMessage("Now?"),
    ]
    fitted = pre_model_hook(manager(budget)).invoke({"messages": messages})["llm_input_messages"]
    asked = {call["id"] for message in fitted if isinstance(message, AIMessage) for call in message.tool_calls}
    return sorted(str(id_) for id_ in asked ^ {message.tool_call_id for message in fitted if isinstance(message, ToolMessage)})


def pydantic_ai(turns: int, _: Path) -> list[str]:
    """Return the ids of Pydantic AI's calls and returns that have no partner."""
    from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, ToolCallPart, ToolReturnPart, UserPromptPart

    from context_window.integrations.pydantic_ai import ContextWindowCapability

    history: list[ModelMessage] = []
    for n in range(turns):
        history += [ModelRequest([UserPromptPart(f"Question {n}?")]), ModelResponse([ToolCallPart("f", {"q": "a"}, f"c{n}")])]
        history += [ModelRequest([ToolReturnPart("f", WORDS * 5, f"c{n}")]), ModelResponse([TextPart("Done.")])]
    dead = ModelResponse([ToolCallPart("f", {"q": "a"}, "live"), ToolCallPart("f", {"q": "b"}, "dead")])
    history += [ModelRequest([UserPromptPart("Go.")]), dead, ModelRequest([ToolReturnPart("f", "found", "live"), UserPromptPart("Now?")])]
    parts = [part for message in asyncio.run(ContextWindowCapability(manager(4_000)).fit(history)) for part in message.parts]
    calls = {part.tool_call_id for part in parts if isinstance(part, ToolCallPart)}
    return sorted(calls ^ {part.tool_call_id for part in parts if isinstance(part, ToolReturnPart)})


def openai_agents(turns: int, _: Path) -> list[str]:
    """Return what the Responses API would refuse of the items of an interrupted run."""
    from agents import Agent
    from agents.run_config import CallModelData, ModelInputData

    from context_window.integrations.openai_agents import ContextWindowFilter

    items: list[Any] = talk("responses", turns)["input"][:-1]
    thought = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "sealed"}
    items += [said("responses", "user", "Go."), thought, *called("responses", "dead"), said("responses", "user", "Now?")]
    data: Any = CallModelData(ModelInputData(items, None), Agent(name="a"), None)
    return [str(problem) for problem in validate_openai_responses(asyncio.run(ContextWindowFilter(manager(4_000))(data)).input)]


def up(api: str, kind: str, budget: int) -> Case:
    return Case(partial(goes_up, api, kind, budget), (200, [], budget < 10_000))


SOUND = said("anthropic", "user", "And then?")
CASES: dict[str, Case] = {
    "B054": Case(server_tools_back, True),
    "B060": Case(partial(server_tools_up, 1_500), ([], True)),
    "B064": Case(marks_up, ("1h", True)),
    "B065": Case(prefix_breaks, True),
    "B066": up("anthropic", "result", 100_000),
    "B067": up("anthropic", "call", 100_000),
    "B069": up("anthropic", "blank", 100_000),
    "B070": up("anthropic", "twice", 100_000),
    "B070+": up("responses", "twice", 100_000),
    "B072": Case(lambda _: answered(refuses_image, with_images(22, 1)), ([200], 1)),
    "B073": Case(lambda _: answered(refuses_image, with_images(2, 20)), ([200], 1)),
    "B075": Case(lambda _: answered(refuses_thinking, thinking(), thinking()), ([200, 200], 1)),
    "B076": Case(lambda _: answered(refuses_long, talk("anthropic", 40)), ([200], 1)),
    "B078": Case(lambda _: answered(refuses_long, *going_on(talk("anthropic", 40), 3)), ([200] * 4, 1)),
    "B079a": up("anthropic", "call", 1_500),
    "B130": Case(partial(langchain, 100_000), []),
    "B131": Case(partial(langchain, 300), []),
    "B132b": Case(partial(pydantic_ai, 8), []),
    "B136": Case(partial(pydantic_ai, 0), []),
    "B140": Case(partial(openai_agents, 0), []),
    "B140+": Case(partial(openai_agents, 12), []),
    "B141": Case(tool_search, "true"),
    "B150": up("responses", "sound", 1_500),
    "B152": up("responses", "result", 100_000),
    "B153": up("responses", "result", 1_500),
    "B155": up("responses", "call", 1_500),
    "B155+": up("responses", "calls", 100_000),
    "B156": up("openai", "sound", 1_500),
    "B157": up("openai", "calls", 100_000),
    "B157+": up("openai", "calls", 1_500),
    "B159": up("google", "first", 1_500),
    "B160": up("google", "call", 100_000),
    "B160+": up("google", "calls", 100_000),
    "B173": Case(stops_at_a_price, [200, 402]),
}
