"""Anthropic's cache marks. Clients move them with every request: they are taken off before messages are compared, and put back after."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]

MARK = "cache_control"


@dataclass(frozen=True, slots=True)
class Unmarked:
    """Messages without cache marks.

    Attributes:
        messages: The client's messages.
        bare: The same without marks. A message that has none is the same object.
        marked: The places of those that have one, in order.
    """

    messages: Sequence[Json]
    bare: list[Json]
    marked: list[int]

    def marked_again(self, chosen: Sequence[Json]) -> list[Json]:
        """Return the messages to send with the client's marks on the blocks that are still there.

        Args:
            chosen: Messages of `bare`, or shortened copies of them.
        """
        result = list(chosen)
        place = len(result)  # marks are at the end, so of equal messages the last one has it
        for message in (self.messages[number] for number in reversed(self.marked)):
            bare, role = _unmarked(message["content"]), message.get("role")
            for block, bare_block in zip(reversed(message["content"]), reversed(bare), strict=True):
                if not (isinstance(block, dict) and MARK in block):
                    continue
                match = _last_with(result[:place], role, bare_block)
                if match is None:
                    continue
                place = match + 1
                content = result[match]["content"]
                result[match] = {**result[match], "content": _with_mark(content, bare_block, block)}
        return result


def without_marks(messages: Sequence[Json], common: int = 0, earlier: Unmarked | None = None) -> Unmarked:
    """Return the messages without cache marks.

    Args:
        messages: The messages.
        common: Number of leading messages that are the same objects as earlier ones, which have not changed: they are not looked at.
        earlier: The result for those.
    """
    bare, marked = ([], []) if earlier is None else (earlier.bare[:common], [place for place in earlier.marked if place < common])
    for place, message in enumerate(messages[len(bare) :], len(bare)):
        is_marked = _is_marked(message)
        bare.append({**message, "content": _unmarked(message["content"])} if is_marked else message)
        if is_marked:
            marked.append(place)
    return Unmarked(messages, bare, marked)


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
    places = range(len(messages) - 1, -1, -1)
    return next((place for place in places if messages[place].get("role") == role and _has(messages[place].get("content"), block)), None)


def _has(content: object, block: object) -> bool:
    return isinstance(content, list) and block in content


def _with_mark(content: list[Any], bare_block: Any, block: Any) -> list[Any]:
    last = max(place for place, member in enumerate(content) if member == bare_block)
    return [*content[:last], block, *content[last + 1 :]]
