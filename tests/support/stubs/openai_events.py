"""Answers of OpenAI's APIs as streams: chunks of Chat Completions, events of Responses."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from .server import Body

PIECE = 40
"""Characters of a text, or of a call's arguments, that one piece of a stream brings."""


def completion_events(answer: Body, *, has_usage: bool) -> bytes:
    """The bytes of a completion's stream. Usage comes last, and only if the request asks for it."""
    return b"".join(f"data: {json.dumps(chunk)}\n\n".encode() for chunk in _chunks(answer, has_usage=has_usage)) + b"data: [DONE]\n\n"


def _chunks(answer: Body, *, has_usage: bool) -> Iterator[Body]:
    head = {"id": answer["id"], "object": "chat.completion.chunk", "created": answer["created"], "model": answer["model"]}
    [choice] = answer["choices"]

    def chunk(delta: Body, finish_reason: str | None = None) -> Body:
        return {**head, "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}], "usage": None}

    message = choice["message"]
    yield chunk({"role": "assistant", "content": "" if message["content"] else None, "refusal": None})
    for piece in _cut(message["content"] or ""):
        yield chunk({"content": piece})
    for index, call in enumerate(message.get("tool_calls") or []):
        yield chunk({"tool_calls": [{"index": index, **call, "function": {"name": call["function"]["name"], "arguments": ""}}]})
        for piece in _cut(call["function"]["arguments"]):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield chunk({}, choice["finish_reason"])
    if has_usage:
        yield {**head, "choices": [], "usage": answer["usage"]}


def response_events(answer: Body) -> bytes:
    """The bytes of a response's stream."""
    numbered = ({**event, "sequence_number": number} for number, event in enumerate(_events(answer)))
    return b"".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in numbered)


def _events(answer: Body) -> Iterator[dict[str, Any]]:
    begun = {**answer, "status": "in_progress", "output": [], "usage": None, "incomplete_details": None}
    yield {"type": "response.created", "response": begun}
    for index, item in enumerate(answer["output"]):
        empty: dict[str, Any] = {name: value for name, value in (("content", []), ("arguments", "")) if name in item}
        yield {"type": "response.output_item.added", "output_index": index, "item": {**item, **empty}}
        position = {"item_id": item["id"], "output_index": index}
        for number, part in enumerate(item.get("content") or []):
            where = {**position, "content_index": number}
            yield {"type": "response.content_part.added", **where, "part": {**part, "text": ""}}
            for piece in _cut(part["text"]):
                yield {"type": "response.output_text.delta", **where, "delta": piece, "logprobs": []}
            yield {"type": "response.output_text.done", **where, "text": part["text"], "logprobs": []}
            yield {"type": "response.content_part.done", **where, "part": part}
        for piece in _cut(item.get("arguments") or ""):
            yield {"type": "response.function_call_arguments.delta", **position, "delta": piece}
        if "arguments" in item:
            yield {"type": "response.function_call_arguments.done", **position, "arguments": item["arguments"], "name": item["name"]}
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    yield {"type": f"response.{answer['status']}", "response": answer}


def _cut(text: str) -> list[str]:
    return [text[at : at + PIECE] for at in range(0, len(text), PIECE)]
