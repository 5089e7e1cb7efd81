"""Choose the places of the prompt cache marks: at most four (A7)."""

from __future__ import annotations

from bisect import bisect_left
from typing import Any, TypeAlias

from session.items import Message
from session.providers.conversation import Response, Step

from .blocks import Block

Place: TypeAlias = tuple[int, int]
"""The place of a block: its message, and its place in that message."""


class Marks:
    """Collects the places to mark while the messages grow.

    1. The end of the system prompt, which is the same in every request.
    2. The last stable item. If a view was continued as a log, this is the end of that view: it stays until the next trim. Otherwise it is
       the beginning of the turn, the end of the last user message before the model answered: provisional decisions of a view end there,
       and a retry of the turn shares everything up to it. Both stay in place as the turn goes on, while 3 and 4 move with each step.
    3. The end of the previous request: this request reads the cache up to there.
    4. The end of this request: the next one will read the cache up to there.
    """

    def __init__(self) -> None:
        self._ends: list[Place | None] = []  # the end of the messages after each step
        self._lengths: list[int] = []  # number of items that a log must have to hold these steps
        self._turn: Place | None = None
        self._previous: Place | None = None
        self._has_user_message = False

    def branch(self) -> Marks:
        """Return marks that go on from here. These do not change with them."""
        branch = Marks()
        branch._ends, branch._lengths = self._ends.copy(), self._lengths.copy()
        branch._turn, branch._previous, branch._has_user_message = self._turn, self._previous, self._has_user_message
        return branch

    def before(self, step: Step, end: Place | None) -> None:
        """Note the end of the messages before a step is written."""
        if isinstance(step, Response):
            self._previous = end
            if self._has_user_message:
                self._turn = end
            self._has_user_message = False

    def after(self, step: Step, end: Place | None, last_place: int) -> None:
        """Note the end of the messages after a step is written, whose last item has this position in the log."""
        self._has_user_message = self._has_user_message or (isinstance(step, Message) and step.role == "user")
        self._ends.append(end)
        self._lengths.append(max(last_place + 1, self._lengths[-1] if self._lengths else 0))

    def move(self, start: Place, to: Place) -> None:
        """Note that the blocks from one place to the end of the messages are now at another place."""
        number = len(self._ends) - 1
        while number >= 0 and (end := self._ends[number]) is not None and end >= start:
            self._ends[number] = (to[0], to[1] + end[1] - start[1])
            number -= 1

    def insert_message(self) -> None:
        """Note that a message was inserted before all others."""
        self._ends = [end and (end[0] + 1, end[1]) for end in self._ends]
        self._turn = self._turn and (self._turn[0] + 1, self._turn[1])
        self._previous = self._previous and (self._previous[0] + 1, self._previous[1])

    def places(self, settled: int, end: Place | None) -> set[Place]:
        """Return the places to mark in the messages: never thinking, which cannot carry a mark, because no message ends in it (A4).

        Args:
            settled: Number of leading items whose trimming is final.
            end: The end of the messages.
        """
        steps = bisect_left(self._lengths, settled + 1) if settled else 0
        stable = self._ends[steps - 1] if steps else None
        return {place for place in (stable or self._turn, self._previous, end) if place is not None}


def end_of(messages: list[dict[str, Any]]) -> Place | None:
    """Return the place of the last block; None if there is none."""
    return (len(messages) - 1, len(messages[-1]["content"]) - 1) if messages else None


def set_mark(block: Block) -> None:
    """Mark a block."""
    block["cache_control"] = {"type": "ephemeral"}
