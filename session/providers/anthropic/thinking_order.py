"""Where thinking stands in requests to Anthropic (A4), once a view has left out some of the steps of a turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from session.providers.additions import TURN_BREAK

Block = dict[str, Any]

THINKING = ("thinking", "redacted_thinking")
"""Types of thinking blocks."""


def with_thinking_in_order(messages: Sequence[Block], thinking: object) -> list[Block]:
    """Return the messages of a request in a form that its thinking setting allows.

    With thinking enabled by budget (A4):

    1. An assistant message that holds thinking begins with it. Where a view has dropped what stood between two responses, they are one
       message, and the text of the earlier one moves behind the first thinking of the later one.
    2. An unfinished turn that calls tools begins with thinking. Models that think only at the beginning of a turn lose that when a view
       drops its first steps. A text of the user begins a new turn: it is added to the results before the first response that thinks or, if
       none does, to the last results, so that the next response may think. It stays there in later requests for as long as what follows.

    Other settings have no such rules, and models that bind their thinking to its place take no others.
    """
    result = list(messages)
    if not isinstance(thinking, Mapping) or thinking.get("type") != "enabled":
        return result
    for index, message in enumerate(messages):
        if any(map(_is_thinking, blocks := _blocks(message))) and not _is_thinking(blocks[0]):
            result[index] = {**message, "content": _thinking_first(blocks)}
    begin = 1 + max((index for index, message in enumerate(messages) if _begins_turn(message)), default=-1)
    responses = [index for index in range(begin, len(result)) if result[index].get("role") == "assistant" and _blocks(result[index])]
    thoughts = [index for index in responses if _is_thinking(_blocks(result[index])[0])]
    has_calls = any(block.get("type") == "tool_use" for index in responses for block in _blocks(result[index]))
    after = (thoughts[0] if thoughts else len(result)) - 1
    if has_calls and thoughts[:1] != responses[:1] and result[after].get("role") == "user":
        result[after] = {**result[after], "content": [*_blocks(result[after]), {"type": "text", "text": TURN_BREAK}]}
    return result


def _begins_turn(message: Block) -> bool:
    is_text = isinstance(message.get("content"), str)
    return message.get("role") == "user" and (is_text or any(block.get("type") != "tool_result" for block in _blocks(message)))


def _thinking_first(blocks: Sequence[Block]) -> list[Block]:
    """Return the blocks with their first thinking at the beginning."""
    begin = next(index for index, block in enumerate(blocks) if _is_thinking(block))
    end = next((index for index in range(begin, len(blocks)) if not _is_thinking(blocks[index])), len(blocks))
    return [*blocks[begin:end], *blocks[:begin], *blocks[end:]]


def _blocks(message: Block) -> list[Block]:
    content = message.get("content")
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def _is_thinking(block: Block) -> bool:
    return block.get("type") in THINKING
