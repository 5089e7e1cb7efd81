"""Anthropic's cache marks. Clients move them with every request: they are taken off before messages are compared, and put back after."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .wire_format import Json

MARK = "cache_control"


def without_marks(messages: Sequence[Json]) -> list[Json]:
    """Return the messages without cache marks. A message that has none is the same object."""
    return [{**message, "content": _unmarked(message["content"])} if _is_marked(message) else message for message in messages]


def marked_again(messages: Sequence[Json], bare: Sequence[Json], chosen: Sequence[Json]) -> list[Json]:
    """Return the messages to send with the client's marks on the blocks that are still there.

    A mark at the conversation's end stays at its end, whatever the last block is there in the view: otherwise nothing new would be cached.

    Args:
        messages: The client's messages.
        bare: The same without marks.
        chosen: Messages of `bare`, or shortened copies of them.
    """
    result = list(chosen)
    last = _last_block(messages)
    mark = last.get(MARK) if isinstance(last, dict) else None
    if mark is not None and isinstance(block := _last_block(result), dict):
        result[-1] = {**result[-1], "content": [*_blocks_of(result[-1])[:-1], {**block, MARK: mark}]}
    end = len(result)  # marks are at the end, so of equal messages the last one has it
    for message, bare_message in reversed([pair for pair in zip(messages, bare, strict=True) if pair[0] is not pair[1]]):
        for block, bare_block in zip(reversed(message["content"]), reversed(bare_message["content"]), strict=True):
            if block is bare_block or block is last:
                continue
            index = _last_with(result[:end], message.get("role"), bare_block)
            if index is None:
                continue
            end = index + 1
            result[index] = {**result[index], "content": _with_mark(result[index]["content"], bare_block, block)}
    return result


def cache_seconds(messages: Sequence[Json]) -> float:
    """Return the seconds that the provider's cache remembers a request: an hour if its last mark says so, otherwise five minutes."""
    marks = (
        block[MARK]
        for message in reversed(messages)
        for block in reversed(_blocks_of(message))
        if isinstance(block, dict) and MARK in block
    )
    mark = next(marks, None)
    return 3_600.0 if isinstance(mark, dict) and mark.get("ttl") == "1h" else 300.0


def _last_block(messages: Sequence[Json]) -> Any:
    """Return the last block of a conversation; None without one."""
    blocks = _blocks_of(messages[-1]) if messages else []
    return blocks[-1] if blocks else None


def _blocks_of(message: Json) -> list[Any]:
    content = message.get("content")
    return [{"type": "text", "text": content}] if isinstance(content, str) else content if isinstance(content, list) else []


def _is_marked(message: Json) -> bool:
    content = message.get("content")
    if isinstance(content, list):
        for block in content:  # a loop, since every message of every request comes here
            if isinstance(block, dict) and MARK in block:
                return True
    return False


def without_mark(block: Any) -> Any:
    """Return the block without a cache mark. One that has none is the same object."""
    return {name: value for name, value in block.items() if name != MARK} if isinstance(block, dict) and MARK in block else block


def _unmarked(content: list[Any]) -> list[Any]:
    return [without_mark(block) for block in content]


def _last_with(messages: Sequence[Json], role: object, block: object) -> int | None:
    """Return the position of the last message of this role that has the block."""
    indices = range(len(messages) - 1, -1, -1)
    return next((index for index in indices if messages[index].get("role") == role and _has(messages[index].get("content"), block)), None)


def _has(content: object, block: object) -> bool:
    return isinstance(content, list) and block in content


def _with_mark(content: list[Any], bare_block: Any, block: Any) -> list[Any]:
    last = max(index for index, member in enumerate(content) if member == bare_block)
    return [*content[:last], block, *content[last + 1 :]]
