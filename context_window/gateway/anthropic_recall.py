"""Recalls in Anthropic's Messages API."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from session.providers.anthropic.thinking_order import THINKING
from session.providers.stream_pieces import Pieces
from session.transcripts.values import objects_at, text_at

from ..recall import NAME, Provider
from .events import StreamEvent, event_of
from .joined_answer import NO_TEXT, AnswerCall, JoinedAnswer, Result, total_usage
from .wire_format import Json, objects

_PIECES = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "input", "signature_delta": "signature"}
"""By type of a delta, the field of the block that it continues."""


class AnthropicJoinedAnswer(JoinedAnswer):
    """A message. Thinking after a recall is hidden, too: its signature is bound to an exchange that the client's history will not have."""

    provider: ClassVar[Provider] = "anthropic"

    def __init__(self) -> None:
        super().__init__()
        self._indices: dict[Any, int] = {}  # index for the client, by index in the round
        self._next = 0

    @classmethod
    def with_tool(cls, body: Json, definition: Json) -> Json | None:
        """Return the request with the recall tool after the client's, so that a cache mark on these still holds."""
        tools = objects(body.get("tools")) or []
        can_call = any("input_schema" in tool for tool in tools)
        return {**body, "tools": [*tools, definition]} if can_call and NAME not in [tool.get("name") for tool in tools] else None

    def calls(self, answer: Json) -> list[AnswerCall]:
        """Return the blocks of type `tool_use`."""
        return [AnswerCall(text_at(use, "name"), use.get("input") or {}) for use in _uses(answer)]

    def is_cut_off(self, answer: Json) -> bool:
        """True if the stop reason is not the calls."""
        return answer.get("stop_reason") != "tool_use"

    def follow_up(self, body: Json, answer: Json, results: Sequence[Result]) -> Json:
        """Return the request with the answer and the results."""
        outputs = [
            {"type": "tool_result", "tool_use_id": use.get("id"), "content": text, **({"is_error": True} if is_error else {})}
            for use, (text, is_error) in zip(_uses(answer), results, strict=True)
        ]
        messages = [{"role": "assistant", "content": objects_at(answer, "content")}, {"role": "user", "content": outputs}]
        return {**body, "messages": [*body["messages"], *messages]}

    def joined(self, answers: Sequence[Json]) -> Json:
        """Return one message."""
        content = [
            block for number, answer in enumerate(answers) for block in objects_at(answer, "content") if not _is_hidden(block, number)
        ]
        if not content or content[-1].get("type") in THINKING:  # A4: thinking is never last
            content.append({"type": "text", "text": NO_TEXT})
        stop = answers[-1].get("stop_reason")
        if stop == "tool_use" and not any(block.get("type") == "tool_use" for block in content):
            stop = "end_turn"
        usage = total_usage([answer.get("usage") for answer in answers], ["output_tokens"])
        return {**answers[-1], "id": answers[0].get("id"), "content": content, "stop_reason": stop, "usage": usage}

    def whole(self, events: Sequence[Json]) -> Json | None:
        """Return the message; None without its end."""
        message: Json = {}
        pieces = Pieces()
        blocks: dict[Any, Json] = {}
        for event in events:
            match event:
                case {"type": "message_start", "message": dict(started)}:
                    message = {**started}
                case {"type": "content_block_start", "index": index, "content_block": dict(block)}:
                    blocks[index] = {**block}
                case {"type": "content_block_delta", "index": index, "delta": dict(delta)} if index in blocks:
                    _add(pieces, blocks[index], delta)
                case {"type": "message_delta", "delta": dict(delta)}:
                    message |= delta
                    message["usage"] = {**(message.get("usage") or {}), **_without_nulls(event.get("usage"))}
                case {"type": "message_stop"}:
                    pieces.join()
                    return {**message, "content": [_parsed(blocks[index]) for index in sorted(blocks)]}
        return None

    def visible(self, event: StreamEvent) -> Iterator[StreamEvent]:
        """Yield an event of a visible block with its index in the joined message."""
        data = event.data or {}
        kind, index = data.get("type"), data.get("index")
        if kind in ("message_delta", "message_stop"):
            yield from self._ending(event)
        elif kind == "content_block_start":
            block = data.get("content_block")
            if _is_hidden(block if isinstance(block, dict) else {}, len(self._answers)):
                self._hides = True
            else:
                self._indices[index] = self._next
                self._next += 1
                yield self._placed(event)
        elif kind in ("content_block_delta", "content_block_stop"):
            if index in self._indices:
                yield self._placed(event)
            elif not self._hides:  # a block that never began
                yield event
        elif kind != "message_start" or not self._answers:
            yield event

    def last_events(self, held: Sequence[StreamEvent], answer: Json) -> Iterator[StreamEvent]:
        """Yield a text if nothing else is left, and the end with the joined stop reason and usage."""
        if answer["content"][-1] == {"type": "text", "text": NO_TEXT}:
            index = {"index": self._next}
            yield _event({"type": "content_block_start", **index, "content_block": {"type": "text", "text": ""}})
            yield _event({"type": "content_block_delta", **index, "delta": {"type": "text_delta", "text": NO_TEXT}})
            yield _event({"type": "content_block_stop", **index})
        for event in held:
            data = event.data or {}
            if data.get("type") == "message_delta":
                delta = {**data["delta"], "stop_reason": answer["stop_reason"]}
                yield event.with_data({**data, "delta": delta, "usage": {**(data.get("usage") or {}), **_tokens(answer["usage"])}})
            else:
                yield event

    def begin_round(self) -> None:
        """Forget the indices of the round."""
        self._indices = {}

    def error_event(self, error: Json) -> StreamEvent:
        """Return an event of type `error`."""
        return event_of(error, "error")

    def _placed(self, event: StreamEvent) -> StreamEvent:
        data = event.data or {}
        index = self._indices[data.get("index")]
        return event if data.get("index") == index or not self._hides else event.with_data({**data, "index": index})


def _uses(answer: Json) -> list[Json]:
    return [block for block in objects_at(answer, "content") if block.get("type") == "tool_use"]


def _is_hidden(block: Json, number: int) -> bool:
    """True if the client does not see a block of the round with this number, from 0."""
    return (block.get("type") == "tool_use" and block.get("name") == NAME) or (number > 0 and block.get("type") in THINKING)


def _add(pieces: Pieces, block: Json, delta: Json) -> None:
    kind = delta.get("type")
    if kind == "citations_delta":
        pieces.add(block, "citations", delta.get("citation"))
    elif kind == "input_json_delta":
        pieces.add(block, "input", text_at(delta, "partial_json"))
    elif kind in _PIECES:
        pieces.add(block, _PIECES[kind], text_at(delta, _PIECES[kind]))
    else:
        for name, value in delta.items():
            if name != "type":
                pieces.replace(block, name, value)


def _parsed(block: Json) -> Json:
    """Return a block whose input is an object, as it was streamed in JSON."""
    if not isinstance(block.get("input"), str):
        return block
    try:
        value = json.loads(block["input"] or "{}")
    except (ValueError, RecursionError):
        value = {}
    return {**block, "input": value if isinstance(value, dict) else {}}


def _without_nulls(usage: object) -> Json:
    return {name: value for name, value in usage.items() if value is not None} if isinstance(usage, dict) else {}


def _tokens(usage: Json) -> Json:
    """Return the token counts of a usage: the end of a stream has no other fields."""
    return {name: value for name, value in usage.items() if name.endswith("_tokens") and value is not None}


def _event(data: Json) -> StreamEvent:
    return event_of(data, data["type"])
