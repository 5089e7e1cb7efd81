"""Bodies of requests: a conversation that grows, in each wire format."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from benchmarks.sessions import conversation
from session import Session
from session.items import Item
from session.providers.anthropic import to_anthropic
from session.providers.google import to_google
from session.providers.openai_chat import to_openai_chat
from session.providers.openai_responses import to_openai_responses
from session.units import request_points

Json = dict[str, Any]
MARK = {"cache_control": {"type": "ephemeral"}}
SYSTEM = "You help with a project of source code. Read before you write, and say what you have done. " * 40
DESCRIPTION = "Works on the files of the project. Paths are absolute. Results that are too long are cut off. " * 12
SCHEMA = {"type": "object", "properties": {name: {"type": "string"} for name in ("path", "command", "pattern", "content")}}
FUNCTIONS = [{"name": f"tool_{number}", "description": DESCRIPTION, "parameters": SCHEMA} for number in range(15)]
"""Tools that a request defines. Assistants have ten to thirty."""


def anthropic_body(session: Session) -> Json:
    """Return a request as Claude Code sends it: with cache marks on the system prompt and on the last two user messages."""
    messages, system = to_anthropic(session)
    for place in [place for place, message in enumerate(messages) if message["role"] == "user"][-2:]:
        content = messages[place]["content"]
        messages[place] = {**messages[place], "content": [*content[:-1], {**content[-1], **MARK}]}
    text = system if isinstance(system, str) else SYSTEM
    prompt = [{"type": "text", "text": text, **MARK}]
    tools = [{"name": tool["name"], "description": DESCRIPTION, "input_schema": SCHEMA} for tool in FUNCTIONS]
    return {"model": "claude-sonnet-5-5", "max_tokens": 8_000, "messages": messages, "system": prompt, "tools": tools, "stream": False}


def chat_body(session: Session) -> Json:
    """Return a request of Chat Completions."""
    tools = [{"type": "function", "function": function} for function in FUNCTIONS]
    return {"model": "gpt-5", "messages": to_openai_chat(session), "tools": tools}


def responses_body(session: Session) -> Json:
    """Return a request as Codex sends it."""
    tools = [{"type": "function", "strict": False, **function} for function in FUNCTIONS]
    return {"model": "gpt-5", "instructions": SYSTEM, "input": to_openai_responses(session), "tools": tools, "store": False}


def google_body(session: Session) -> Json:
    """Return a request as Gemini CLI sends it."""
    contents, system = to_google(session)
    tools = [{"functionDeclarations": FUNCTIONS}]
    return {"contents": contents, "systemInstruction": system or {"parts": [{"text": SYSTEM}]}, "tools": tools}


@dataclass(frozen=True, slots=True)
class Format:
    """A wire format.

    Attributes:
        path: The address of its requests at a provider.
        prefix: What comes before that at the gateway.
        field: The field of the messages.
        body: Makes a request.
    """

    path: str
    prefix: str
    field: str
    body: Callable[[Session], Json]


FORMATS = {
    "anthropic": Format("/v1/messages", "/anthropic", "messages", anthropic_body),
    "chat": Format("/v1/chat/completions", "/openai", "messages", chat_body),
    "responses": Format("/v1/responses", "/openai", "input", responses_body),
    "google": Format("/v1beta/models/gemini-2.5-pro:generateContent", "/google", "contents", google_body),
}


def bare(message: Json) -> Json:
    """Return a message without cache marks."""
    content = message.get("content")
    if not isinstance(content, list):
        return message
    return {**message, "content": [{name: value for name, value in block.items() if name not in MARK} for block in content]}


def fixed_tokens(wire: Format, body: Json) -> int:
    """Return the tokens of a request without its messages, at four characters each."""
    return len(json.dumps({**body, wire.field: []})) // 4


def growing(wire: Format, messages: int, requests: int, seed: int) -> list[bytes]:
    """Return the bodies of the last requests of a made-up conversation.

    Args:
        wire: The wire format.
        messages: Messages of the last request, about.
        requests: Bodies.
        seed: Chooses the conversation.
    """
    session = Session.from_openai(conversation(messages, seed=seed))
    points = request_points(session)[-requests:]
    return [json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode() for body in bodies(wire, session.items, points)]


def bodies(wire: Format, items: Sequence[Item], points: Sequence[int]) -> Iterator[Json]:
    """Yield the request at each of these positions of a log."""
    log = Session()
    for start, end in pairwise([0, *points]):
        for item in items[start:end]:
            log.append(item)
        yield wire.body(log)
