"""Join the pieces of a streamed response to the response that the provider would have sent without streaming. Nothing here knows items.

- Anthropic: the deltas of each block are added up.
- Chat Completions: the deltas of each chunk are added up.
- Responses: the last event that holds the whole response is used.
- Gemini: the parts of all chunks follow each other. Neighbouring texts are joined, except those with a signature: Google documents that
  such a part must not be merged with another one (ai.google.dev/gemini-api/docs/thought-signatures).
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Awaitable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Any

from session.errors import FormatError, short

from .conversation import arguments_object
from .parsing import expect_object


class Pieces:
    """Texts and lists that come in pieces, by the field that they continue.

    Each is joined once, at the end: one that is copied with each piece takes time with its square.
    """

    def __init__(self) -> None:
        self._found: dict[tuple[int, str], tuple[dict[str, Any], list[Any]]] = {}

    def add(self, fields: dict[str, Any], name: str, piece: object) -> None:
        """Add a piece to what a field holds: a text to a text, anything else to a list. The object must not be copied before `join`."""
        held = self._found.get((id(fields), name))
        if held is None:
            before = fields.get(name)
            begun = [before] if isinstance(before, str) else [] if isinstance(piece, str) else [*(before or ())]
            held = self._found[id(fields), name] = fields, begun
        held[1].append(piece)

    def replace(self, fields: dict[str, Any], name: str, value: object) -> None:
        """Put a value in the place of a field and of its pieces."""
        self._found.pop((id(fields), name), None)
        fields[name] = value

    def join(self) -> None:
        """Write each text and list into its field."""
        for (_, name), (fields, pieces) in self._found.items():
            fields[name] = "".join(pieces) if isinstance(pieces[-1], str) else pieces


FINAL_EVENTS = frozenset({"response.completed", "response.incomplete", "response.failed"})
"""Types of the events that end a response and hold it."""
_TEXT = frozenset({"text", "thought"})


_REMEDIES: tuple[tuple[type[object], str], ...] = (
    (Awaitable, "has not been awaited; pass what `await` returns"),
    (AsyncIterable, "is a stream; read it and pass all chunks: `[chunk async for chunk in stream]`"),
    (Iterable, "is a stream; read it and pass all chunks: `list(stream)`"),
    (AbstractContextManager, "opens a stream; use `with … as stream` and pass `stream.get_final_message()` or the like"),
    (AbstractAsyncContextManager, "opens a stream; use `async with … as stream` and pass `await stream.get_final_message()` or the like"),
)
"""By type, what to pass instead."""


def whole_response(response: object) -> Mapping[str, Any]:
    """Return the fields of a response, which may be given as a list of all chunks or events of its stream.

    Args:
        response: An SDK object or JSON values; or a list of them: events of Anthropic or of Responses, chunks of Chat Completions or of
            Gemini.

    Raises:
        FormatError: It is neither, or the stream ended early. Of a stream that was not read, the error says what to pass.
    """
    if isinstance(response, list | tuple) and response:
        return _joined([expect_object(piece, f"response[{index}]") for index, piece in enumerate(response)])
    if not isinstance(response, Mapping | str | bytes | list | tuple) and not callable(getattr(response, "model_dump", None)):
        for kind, remedy in _REMEDIES:
            if isinstance(response, kind):
                raise FormatError("response", f"{short(response)} {remedy}")
    return expect_object(response, "response")


def _joined(pieces: list[Mapping[str, Any]]) -> Mapping[str, Any]:
    types = [str(piece.get("type")) for piece in pieces]
    if any(piece_type == "message_start" or piece_type.startswith("content_block_") for piece_type in types):
        return joined_message(pieces)
    if any(str(piece.get("object")) == "chat.completion.chunk" or _has_delta(piece) for piece in pieces):
        return joined_completion(pieces)
    if any(piece_type.startswith("response.") for piece_type in types):
        return final_response(pieces)
    if any(piece.keys() & {"candidates", "usage_metadata", "usageMetadata", "prompt_feedback", "promptFeedback"} for piece in pieces):
        return joined_contents(pieces)
    raise FormatError("response", "a list, but no pieces of a stream; pass one response, or all chunks of a stream")


def joined_message(events: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the message that was streamed in these events of Anthropic. Raises FormatError if they are not complete."""
    message: dict[str, Any] = {}
    pieces = Pieces()
    blocks: dict[object, dict[str, Any]] = {}
    seen: set[object] = set()
    for event in events:
        block, piece = blocks.get(event.get("index")), event.get("delta")
        match event.get("type"):
            case "message_start":
                message = {**event.get("message", {})}
            case "content_block_start":
                blocks[event.get("index")] = {**event.get("content_block", {})}
            case "content_block_delta" if block is not None and isinstance(piece, Mapping):
                _add_block_piece(pieces, block, piece)
            case "message_delta" if isinstance(piece, Mapping):
                usage = {**(message.get("usage") or {}), **_without_nulls(event.get("usage") or {})}
                message |= {
                    **_without_nulls(piece),
                    **_without_nulls({"context_management": event.get("context_management")}),
                    "usage": usage,
                }
        seen.add(event.get("type"))
    if not seen >= {"message_start", "message_stop"}:
        raise FormatError("response", "the stream ended before the response was complete")
    pieces.join()
    for block in blocks.values():
        if "partial_json" in block:
            block["input"] = arguments_object(block.pop("partial_json"))
    return {**message, "content": list(blocks.values())}


def joined_completion(chunks: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the completion that was streamed in these chunks of Chat Completions. Only the first choice is read."""
    message: dict[str, Any] = {"role": "assistant", "content": None}
    pieces = Pieces()
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
                pieces.add(message, name, delta[name])
        for number, call in enumerate(delta.get("tool_calls") or ()):
            _add_call_piece(pieces, calls.setdefault(call.get("index", number), {"type": "function"}), call)
    pieces.join()
    if calls:
        message["tool_calls"] = [calls[index] for index in sorted(calls)]
    return {**completion, "choices": [{"index": 0, "message": message, "finish_reason": finish_reason}]}


def final_response(events: Iterable[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the whole response that the last event of a Responses stream holds. Raises FormatError if the stream ended early."""
    for event in reversed(list(events)):
        if event.get("type") in FINAL_EVENTS and isinstance(event.get("response"), Mapping):
            response: Mapping[str, Any] = event["response"]
            return response
    raise FormatError("response", "the stream ended before the response was complete")


def joined_contents(chunks: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the response that was streamed in these chunks of Gemini. Only the first candidate is read."""
    parts: list[Any] = []
    pieces, own = Pieces(), None  # the last part, once it is a copy that may grow
    response: dict[str, Any] = {}
    candidate: dict[str, Any] = {}
    for chunk in chunks:
        response.update({name: value for name, value in chunk.items() if name != "candidates" and value is not None})
        for piece in (chunk.get("candidates") or ())[:1]:
            candidate.update({name: value for name, value in piece.items() if name != "content" and value is not None})
            for part in (piece.get("content") or {}).get("parts") or ():
                if parts and _is_unsigned_text(parts[-1]) and _is_unsigned_text(part) and parts[-1].get("thought") == part.get("thought"):
                    if parts[-1] is not own:
                        parts[-1] = own = {**parts[-1]}
                    pieces.add(own, "text", part["text"])
                else:
                    parts.append(part)
    pieces.join()
    if parts:
        candidate["content"] = {"role": "model", "parts": [part for part in parts if part != {"text": ""}]}
    return {**response, "candidates": [candidate] if candidate else []}


def _has_delta(payload: Mapping[str, Any]) -> bool:
    choices = payload.get("choices")
    return isinstance(choices, list) and any(isinstance(choice, Mapping) and "delta" in choice for choice in choices)


def _add_call_piece(pieces: Pieces, call: dict[str, Any], piece: Mapping[str, Any]) -> None:
    """Add the next piece of a call: its id and name come once, its arguments in pieces."""
    for name in ("id", "type"):
        if piece.get(name):
            call[name] = piece[name]
    for kind in ("function", "custom"):
        if not isinstance(piece.get(kind), Mapping):
            continue
        fields = call.setdefault(kind, {})
        for name, text in piece[kind].items():
            if isinstance(text, str) and name in ("arguments", "input"):
                pieces.add(fields, name, text)
            elif isinstance(text, str):
                fields[name] = text or fields.get(name, "")


def _add_block_piece(pieces: Pieces, block: dict[str, Any], piece: Mapping[str, Any]) -> None:
    """Add the next piece of a block: of its text, its thinking, its signature, its arguments or its citations."""
    for name, value in piece.items():
        if name == "citation":
            pieces.add(block, "citations", value)
        elif name != "type" and isinstance(value, str):
            pieces.add(block, name, value)


def _without_nulls(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _is_unsigned_text(part: object) -> bool:
    return isinstance(part, Mapping) and "text" in part and part.keys() <= _TEXT
