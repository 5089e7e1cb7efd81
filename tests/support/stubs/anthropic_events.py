"""An answer of Anthropic's API as the events of a stream: what the client puts together again is the answer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from .server import Body


def events_of(answer: Body, piece: int) -> bytes:
    """The stream's bytes.

    Args:
        answer: The whole message.
        piece: Characters of a text, a thought or a call's arguments that one event brings.
    """
    return b"".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in _events(answer, piece))


def _events(answer: Body, piece: int) -> Iterator[dict[str, Any]]:
    usage = answer["usage"]
    start = {**answer, "content": [], "stop_reason": None, "stop_sequence": None, "usage": {**usage, "output_tokens": 1}}
    yield {"type": "message_start", "message": start}
    for index, block in enumerate(answer["content"]):
        begun, deltas = _pieces(block, piece)
        yield {"type": "content_block_start", "index": index, "content_block": begun}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    stop = {"stop_reason": answer["stop_reason"], "stop_sequence": answer["stop_sequence"]}
    yield {"type": "message_delta", "delta": stop, "usage": {"output_tokens": usage["output_tokens"]}}
    yield {"type": "message_stop"}


def _pieces(block: Body, piece: int) -> tuple[Body, list[Body]]:
    """A block as it begins, and what comes of it afterwards."""
    kind = block["type"]
    if kind == "text":
        return {**block, "text": ""}, [{"type": "text_delta", "text": part} for part in _cut(block["text"], piece)]
    if kind == "tool_use":
        arguments = json.dumps(block["input"])
        return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": part} for part in _cut(arguments, piece)]
    if kind == "thinking":
        thought = [{"type": "thinking_delta", "thinking": part} for part in _cut(block["thinking"], piece)]
        return {**block, "thinking": "", "signature": ""}, [*thought, {"type": "signature_delta", "signature": block["signature"]}]
    if kind == "compaction":
        return {**block, "content": None}, [
            {"type": "compaction_delta", **{name: block.get(name) for name in ("content", "encrypted_content")}}
        ]
    return block, []


def _cut(text: str, piece: int) -> list[str]:
    return [text[at : at + piece] for at in range(0, len(text), piece)]
