"""Join the pieces of a streamed response to the response that the provider would have sent without streaming. Nothing here knows items.

- Chat Completions: the deltas of each chunk are added up.
- Responses: the last event that holds the whole response is used.
- Gemini: the parts of all chunks follow each other. Neighbouring texts are joined, except those with a signature: Google documents that
  such a part must not be merged with another one (ai.google.dev/gemini-api/docs/thought-signatures).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from session.errors import FormatError, short

FINAL_EVENTS = frozenset({"response.completed", "response.incomplete", "response.failed"})
"""Types of the events that end a response and hold it."""
_TEXT = frozenset({"text", "thought"})


def is_stream(response: object) -> bool:
    """True if a response is given as several pieces."""
    return isinstance(response, list | tuple) and bool(response)


def joined_stream(pieces: object) -> Mapping[str, Any]:
    """Return the response that was streamed in these pieces.

    Args:
        pieces: Chunks of Chat Completions or of Gemini, or events of Responses, as SDK objects or JSON values.

    Raises:
        FormatError: They are no pieces of a stream, or the stream ended early.
    """
    if not isinstance(pieces, Sequence):
        raise FormatError("response", f"{short(pieces)} where a list of pieces is expected")
    payloads = [plain_object(piece, f"response[{index}]") for index, piece in enumerate(pieces)]
    if any(str(payload.get("object")) == "chat.completion.chunk" or _has_delta(payload) for payload in payloads):
        return joined_completion(payloads)
    if any(str(payload.get("type")).startswith("response.") for payload in payloads):
        return final_response(payloads)
    if any(payload.keys() & {"candidates", "usage_metadata", "usageMetadata", "prompt_feedback", "promptFeedback"} for payload in payloads):
        return joined_contents(payloads)
    raise FormatError("response", "a list, but no pieces of a stream; pass one response, or all chunks of a stream")


def joined_completion(chunks: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the completion that was streamed in these chunks of Chat Completions. Only the first choice is read."""
    message: dict[str, Any] = {"role": "assistant", "content": None}
    calls: dict[int, dict[str, Any]] = {}
    completion: dict[str, Any] = {"object": "chat.completion"}
    finish_reason = None
    for chunk in chunks:
        for name in ("id", "model", "usage"):
            if chunk.get(name):
                completion[name] = chunk[name]
        choice: Mapping[str, Any] = next((choice for choice in chunk.get("choices") or () if choice.get("index", 0) == 0), {})
        finish_reason = choice.get("finish_reason") or finish_reason
        delta = choice.get("delta") or {}
        for name in ("content", "refusal", "reasoning_content", "reasoning"):
            if isinstance(delta.get(name), str):
                message[name] = (message.get(name) or "") + delta[name]
        for place, call in enumerate(delta.get("tool_calls") or ()):
            _add_call_piece(calls.setdefault(call.get("index", place), {"type": "function"}), call)
    if calls:
        message["tool_calls"] = [calls[index] for index in sorted(calls)]
    return {**completion, "choices": [{"index": 0, "message": message, "finish_reason": finish_reason}]}


def final_response(events: Iterable[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the whole response that the last event of a stream of the Responses API holds.

    Raises:
        FormatError: No event holds it: the stream ended early.
    """
    for event in reversed(list(events)):
        if event.get("type") in FINAL_EVENTS and isinstance(event.get("response"), Mapping):
            response: Mapping[str, Any] = event["response"]
            return response
    raise FormatError("response", "the stream ended before the response was complete")


def joined_contents(chunks: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the response that was streamed in these chunks of Gemini. Only the first candidate is read."""
    parts: list[Any] = []
    response: dict[str, Any] = {}
    candidate: dict[str, Any] = {}
    for chunk in chunks:
        response.update({name: value for name, value in chunk.items() if name != "candidates" and value is not None})
        for piece in (chunk.get("candidates") or ())[:1]:
            candidate.update({name: value for name, value in piece.items() if name != "content" and value is not None})
            for part in (piece.get("content") or {}).get("parts") or ():
                if parts and _is_unsigned_text(parts[-1]) and _is_unsigned_text(part) and parts[-1].get("thought") == part.get("thought"):
                    parts[-1] = {**parts[-1], "text": parts[-1]["text"] + part["text"]}
                else:
                    parts.append(part)
    if parts:
        candidate["content"] = {"role": "model", "parts": [part for part in parts if part != {"text": ""}]}
    return {**response, "candidates": [candidate] if candidate else []}


def plain_object(value: object, where: str) -> Mapping[str, Any]:
    """Return a mapping, or the fields of an SDK object without nulls.

    Raises:
        FormatError: It is neither.
    """
    if isinstance(value, Mapping):
        return value
    dump = getattr(value, "model_dump", None)
    if callable(dump) and not isinstance(value, type):
        try:
            fields = dump(mode="json", exclude_none=True, warnings=False)  # SDK types are looser than the values that servers send
        except TypeError:  # an object of its own with a `model_dump`
            fields = dump()
        if isinstance(fields, Mapping):
            return fields
    raise FormatError(where, f"{short(value)} where an object is expected")


def _has_delta(payload: Mapping[str, Any]) -> bool:
    choices = payload.get("choices")
    return isinstance(choices, list) and any(isinstance(choice, Mapping) and "delta" in choice for choice in choices)


def _add_call_piece(call: dict[str, Any], piece: Mapping[str, Any]) -> None:
    """Add the next piece of a call: its id and name come once, its arguments in pieces."""
    for name in ("id", "type"):
        if piece.get(name):
            call[name] = piece[name]
    for kind in ("function", "custom"):
        if not isinstance(piece.get(kind), Mapping):
            continue
        fields = call.setdefault(kind, {})
        for name, text in piece[kind].items():
            if isinstance(text, str):
                fields[name] = fields.get(name, "") + text if name in ("arguments", "input") else text or fields.get(name, "")


def _is_unsigned_text(part: object) -> bool:
    return isinstance(part, Mapping) and "text" in part and part.keys() <= _TEXT
