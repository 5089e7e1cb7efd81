"""Sees at a glance what every provider refuses: calls without a result, and messages that are broken otherwise.

A call that a crash or an abort has left without a result gets one. Nothing else changes, so the provider's cache still knows what comes
before. What a glance does not show is mended once it was refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Any

from session.providers.additions import INTERRUPTED
from session.transcripts.values import object_at, objects_at, text_at

from ..recall import Provider

Json = dict[str, Any]
CALLS = {"function_call": "function_call_output", "custom_tool_call": "custom_tool_call_output"}
"""Types of calls in OpenAI's Responses API that the client answers, and those of their outputs."""
FUNCTIONS, RESPONSES = ("functionCall", "function_call"), ("functionResponse", "function_response")
"""Names of Google's calls and of their responses."""


def answered(provider: Provider, messages: Sequence[Json]) -> list[Json]:
    """Return the messages with a result for each call that has none and is not at the end.

    Args:
        provider: The provider.
        messages: The messages of a request, of any shape.
    """
    if not all(isinstance(message, dict) for message in messages):
        return list(messages)
    match provider:
        case "openai":
            return _in_chat(messages)
        case "openai-responses":
            return _in_responses(messages)
        case _:
            return _in_blocks(messages, "parts" if provider == "google" else "content")


def is_broken(provider: Provider, messages: Sequence[Json]) -> bool:
    """True if the provider refuses the messages for blank texts, an id given twice, a result out of place, or whose the first one is.

    Args:
        provider: The provider.
        messages: The messages of a request, of any shape.
    """
    if not messages or not all(isinstance(message, dict) for message in messages):
        return False
    match provider:
        case "openai":
            return _is_broken_chat(messages)
        case "openai-responses":
            ids = [text_at(item, "call_id") for item in messages if text_at(item, "type") in CALLS]
            return len(set(ids)) < len(ids)
        case "google":
            is_empty = any(message.get("parts") == [] or {"text": ""} in objects_at(message, "parts") for message in messages)
            return is_empty or messages[0].get("role") == "model"
        case _:
            return _is_broken_anthropic(messages)


def _is_broken_chat(messages: Sequence[Json]) -> bool:
    waiting: list[str] = []
    for message in messages:
        if message.get("role") != "tool":
            waiting = [text_at(call, "id") for call in objects_at(message, "tool_calls")]
            if len(set(waiting)) < len(waiting):
                return True
        elif text_at(message, "tool_call_id") not in waiting:
            return True
    return False


def _is_broken_anthropic(messages: Sequence[Json]) -> bool:
    known: set[str] = set()
    waiting: set[str] = set()
    for message in messages:
        content = message.get("content")
        blocks: list[Json] = [{"type": "text", "text": content}] if isinstance(content, str) else objects_at(message, "content")
        if (message is not messages[-1] and not blocks) or any(block.get("type") == "text" and _is_blank(block) for block in blocks):
            return True
        if any(block.get("type") == "tool_result" and text_at(block, "tool_use_id") not in waiting for block in blocks):
            return True
        ids = [text_at(block, "id") for block in blocks if block.get("type") == "tool_use"]
        waiting = set(ids)
        if len(waiting) < len(ids) or waiting & known:
            return True
        known |= waiting
    return messages[0].get("role") == "assistant"


def _is_blank(block: Json) -> bool:
    text = block.get("text")
    return isinstance(text, str) and not text.strip()


def _in_chat(messages: Sequence[Json]) -> list[Json]:
    known = {text_at(message, "tool_call_id") for message in messages}
    result: list[Json] = []
    dead: list[Json] = []
    for message in messages:
        is_result = message.get("role") == "tool"
        if not is_result:
            result += dead
            ids = [text_at(call, "id") for call in objects_at(message, "tool_calls")]
            dead = [{"role": "tool", "tool_call_id": id_, "content": INTERRUPTED} for id_ in ids if id_ not in known]
        result.append(message)
    return [*result, *dead] if messages and messages[-1].get("role") == "tool" else result


def _in_responses(items: Sequence[Json]) -> list[Json]:
    known = {text_at(item, "call_id") for item in items if text_at(item, "type") in CALLS.values()}
    result: list[Json] = []
    dead: list[Json] = []
    for item in items:
        kind, id_ = text_at(item, "type"), text_at(item, "call_id")
        if kind not in CALLS:
            result += dead
            dead = []
        elif id_ not in known:
            dead.append({"type": CALLS[kind], "call_id": id_, "output": INTERRUPTED})
        result.append(item)
    return result


def _in_blocks(messages: Sequence[Json], field: str) -> list[Json]:
    blocks = [objects_at(message, field) for message in messages]
    known = {text_at(block, "tool_use_id") for own in blocks for block in own}
    result: list[Json] = []
    dead: list[Json] = []
    for message, own, following in zip(messages, blocks, [*blocks[1:], []], strict=False):
        content = message.get(field)
        if dead and message.get("role") == "user":
            result.append({**message, field: [*dead, *(content if isinstance(content, list) else [{"type": "text", "text": content}])]})
        else:
            result += [{"role": "user", field: dead}, message] if dead else [message]
        is_models = message.get("role") in ("assistant", "model")
        dead = list(_of_tools(own, known) if field == "content" else _of_functions(own, following)) if is_models else []
    return result


def _of_tools(blocks: Iterable[Json], known: Container[str]) -> Iterator[Json]:
    """Yield results for Anthropic's calls that have none."""
    for block in blocks:
        if block.get("type") == "tool_use" and (id_ := text_at(block, "id")) not in known:
            yield {"type": "tool_result", "tool_use_id": id_, "content": INTERRUPTED, "is_error": True}


def _of_functions(parts: Iterable[Json], following: Iterable[Json]) -> Iterator[Json]:
    """Yield responses for Google's calls that have none in the next content. There, calls are told apart by their names."""
    left = Counter(text_at(response, "name") for part in following for name in RESPONSES if (response := object_at(part, name)))
    for part in parts:
        for call in filter(None, (object_at(part, name) for name in FUNCTIONS)):
            name = text_at(call, "name")
            left[name] -= 1
            if left[name] < 0:
                id_ = {"id": call["id"]} if "id" in call else {}
                yield {"functionResponse": {**id_, "name": name, "response": {"error": INTERRUPTED}}}
