"""Where the prompt cache is to keep what was sent: at most four marks (A7)."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from session.items import Message
from session.providers.steps import Response, Step

from .blocks import Block


class Marks:
    """The places that are worth a mark, found while the messages grow.

    1. The end of the system prompt, which is the same in every request.
    2. The last stable item. Of a view that was gone on with as a log: the end of what that view held, which no later trim moves
       until it trims. Else where the turn began, the end of the last user message before the model answered: the provisional
       decisions of a view end there, and so does what a retry of the turn shares with it. Both stay where they are however many
       steps follow, while 3 and 4 move on with each.
    3. The end of the previous request, from which this one reads.
    4. The end of this one, from which the next one will read.
    """

    def __init__(self, settled: Collection[str]) -> None:
        """
        Args:
            settled: Ids of the leading items that were decided on before.
        """
        self._settled = settled
        self._leading = bool(settled)
        self._stable: Block | None = None
        self._turn: Block | None = None
        self._previous: Block | None = None
        self._spoke = False

    def before(self, step: Step, messages: list[dict[str, Any]]) -> None:
        """Called when all before this step is in the messages."""
        if isinstance(step, Response):
            self._previous = _end(messages)
            if self._spoke:
                self._turn = self._previous
            self._spoke = False

    def after(self, step: Step, messages: list[dict[str, Any]]) -> None:
        """Called when this step is in the messages too."""
        self._spoke = self._spoke or (isinstance(step, Message) and step.role == "user")
        items = [*step.items, *step.outputs.values()] if isinstance(step, Response) else [step]
        self._leading = self._leading and all(item.id in self._settled for item in items)
        if self._leading:
            self._stable = _end(messages)

    def set(self, messages: list[dict[str, Any]], system: list[Block]) -> None:
        """Sets the marks."""
        ends = [system[-1] if system else None, self._stable or self._turn, self._previous, _end(messages)]
        for block in ends:
            if block is not None:  # none of them is thinking, which could carry no mark: no message ends in it (A4)
                block["cache_control"] = {"type": "ephemeral"}


def _end(messages: list[dict[str, Any]]) -> Block | None:
    if not messages:
        return None
    last: Block = messages[-1]["content"][-1]
    return last
