"""Where thinking stands in requests to Anthropic (A4), once a view has left out some of the steps of a turn."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any

from session.common_start import common_start
from session.providers.additions import TURN_BREAK

Block = dict[str, Any]

THINKING = ("thinking", "redacted_thinking")
"""Types of thinking blocks."""


class ThinkingPlaces:
    """The places in a list of messages that decide where thinking stands. A list that begins with the same objects is read from there on.

    Attributes:
        late: Messages that hold thinking, but not at the beginning.
        turns: Messages that begin a turn.
        thoughts: Responses that begin with thinking, once it stands in order.
        calls: Responses that call tools.
    """

    def __init__(self) -> None:
        self.late: list[int] = []
        self.turns: list[int] = []
        self.thoughts: list[int] = []
        self.calls: list[int] = []
        self._messages: list[Block] = []  # held so that no other object gets the place of one of them in memory

    def read(self, messages: Sequence[Block]) -> None:
        """Read messages. Those that are the same objects as in the last list must not have changed."""
        same = common_start(self._messages, messages)
        for places in (self.late, self.turns, self.thoughts, self.calls):
            del places[bisect_left(places, same) :]
        for place, message in enumerate(messages[same:], same):
            self._read(place, message)
        self._messages = list(messages)

    def copy(self) -> ThinkingPlaces:
        """Return a copy, which goes on by itself."""
        copy = ThinkingPlaces()
        copy.late, copy.turns, copy.thoughts, copy.calls = list(self.late), list(self.turns), list(self.thoughts), list(self.calls)
        copy._messages = self._messages
        return copy

    def _read(self, place: int, message: Block) -> None:
        content = message.get("content")
        kinds = [block.get("type") for block in content if isinstance(block, dict)] if isinstance(content, list) else []
        is_late = ("thinking" in kinds or "redacted_thinking" in kinds) and kinds[0] not in THINKING
        if is_late:
            self.late.append(place)
        if message.get("role") == "user":
            if isinstance(content, str) or any(kind != "tool_result" for kind in kinds):
                self.turns.append(place)
        elif message.get("role") == "assistant" and kinds:
            if is_late or kinds[0] in THINKING:
                self.thoughts.append(place)
            if "tool_use" in kinds:
                self.calls.append(place)


def with_thinking_in_order(messages: Sequence[Block], thinking: object, places: ThinkingPlaces | None = None) -> list[Block]:
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
        places: The places that were found in the messages of the last request. It is brought up to date.
    """
    result = list(messages)
    if not isinstance(thinking, Mapping) or thinking.get("type") != "enabled":
        return result
    places = ThinkingPlaces() if places is None else places
    places.read(messages)
    for place in places.late:
        result[place] = {**result[place], "content": _thinking_first(_blocks(result[place]))}
    begin = places.turns[-1] + 1 if places.turns else 0
    first = next(
        (place for place in range(begin, len(result)) if result[place].get("role") == "assistant" and _blocks(result[place])), None
    )
    thoughts = places.thoughts[bisect_left(places.thoughts, begin) :]
    if not places.calls or places.calls[-1] < begin or thoughts[:1] == [first]:
        return result
    after = (thoughts[0] if thoughts else len(result)) - 1
    if result[after].get("role") == "user":
        result[after] = {**result[after], "content": [*_blocks(result[after]), {"type": "text", "text": TURN_BREAK}]}
    return result


def _thinking_first(blocks: Sequence[Block]) -> list[Block]:
    begin = next(place for place, block in enumerate(blocks) if _is_thinking(block))
    end = next((place for place in range(begin, len(blocks)) if not _is_thinking(blocks[place])), len(blocks))
    return [*blocks[begin:end], *blocks[:begin], *blocks[end:]]


def _blocks(message: Block) -> list[Block]:
    content = message.get("content")
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def _is_thinking(block: Block) -> bool:
    return block.get("type") in THINKING
