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

    Args:
        messages: The messages. They are not changed.
        thinking: The request's thinking setting.
    """
    if not isinstance(thinking, Mapping) or thinking.get("type") != "enabled":
        return list(messages)
    result = [{**message, "content": _thinking_first(_blocks(message))} if _is_late(message) else message for message in messages]
    begin = next((place for place in range(len(result), 0, -1) if _begins_turn(result[place - 1])), 0)
    responses = [place for place in range(begin, len(result)) if result[place].get("role") == "assistant" and _blocks(result[place])]
    calls = any(block.get("type") == "tool_use" for place in responses for block in _blocks(result[place]))
    if not calls or _is_thinking(_blocks(result[responses[0]])[0]):
        return result
    after = next((place for place in responses if _is_thinking(_blocks(result[place])[0])), len(result)) - 1
    if result[after].get("role") == "user":
        result[after] = {**result[after], "content": [*_blocks(result[after]), {"type": "text", "text": TURN_BREAK}]}
    return result


def _is_late(message: Block) -> bool:
    """True if there is thinking, but not at the beginning. Asked of all messages at every request, so the usual ones are quick."""
    content = message.get("content")
    if not isinstance(content, list) or len(content) < 2:
        return False
    kinds = [block.get("type") for block in content if isinstance(block, dict)]
    return ("thinking" in kinds or "redacted_thinking" in kinds) and kinds[0] not in THINKING


def _thinking_first(blocks: Sequence[Block]) -> list[Block]:
    begin = next(place for place, block in enumerate(blocks) if _is_thinking(block))
    end = next((place for place in range(begin, len(blocks)) if not _is_thinking(blocks[place])), len(blocks))
    return [*blocks[begin:end], *blocks[:begin], *blocks[end:]]


def _begins_turn(message: Block) -> bool:
    content = message.get("content")
    is_text = isinstance(content, str) or any(block.get("type") != "tool_result" for block in _blocks(message))
    return message.get("role") == "user" and is_text


def _blocks(message: Block) -> list[Block]:
    content = message.get("content")
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def _is_thinking(block: Block) -> bool:
    return block.get("type") in THINKING
