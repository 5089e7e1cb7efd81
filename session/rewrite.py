"""Builds a new log from parts of an old one without joining responses that were separate. The parts are chosen elsewhere.

Every edit that drops items, or inserts others between them, goes through `assemble`. Otherwise two responses of one agent would become
one when the items between them are gone.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from .errors import FormatError, short
from .items import FunctionCall, Item, Message, MessageCategory
from .units import KIND_OUTPUT, NONE, Grouping, ReadableLog


class Excerpt(NamedTuple):
    """The items of a new log, and the ids at which a response begins that would otherwise join the one before it."""

    items: list[Item]
    breaks: frozenset[str]


Piece: TypeAlias = tuple[Item, Hashable]
"""An item and the name of its response; None if it is not in a response."""


@dataclass(frozen=True, slots=True)
class IndexedLog:
    """A log with the units and responses of its items. `calls` has the position of the call that an output answers, by the output's.

    `breaks` is `Session.response_breaks`.
    """

    items: Sequence[Item]
    groups: Grouping
    calls: dict[int, int]
    breaks: frozenset[str]

    def response(self, index: int) -> Hashable:
        """Return the name of the response that the item is in, or None."""
        start = self.groups.response[index]
        return None if start == NONE else start

    def piece(self, index: int) -> Piece:
        """Return the item for `assemble`."""
        return self.items[index], self.response(index)

    def excerpt(self, positions: Iterable[int]) -> Excerpt:
        """Return a log of the items at these positions, which must rise."""
        return assemble(map(self.piece, positions), self.breaks)

    def in_flight(self) -> list[int]:
        """Return the positions of calls that wait for their outputs: the unanswered calls of the last response."""
        groups = self.groups
        first = groups.response_starts[-1] if groups.response_starts else len(groups)
        return [index for index in range(first, len(groups)) if isinstance(self.items[index], FunctionCall) and not groups.answered[index]]


def index_log(session: ReadableLog) -> IndexedLog:
    """Read the log from its start. O(n)."""
    groups, calls = Grouping(), {}
    items, breaks, ends = session.items, session.response_breaks, session.request_ends
    for index, item in enumerate(items):
        groups.feed(item, item.id in breaks, ends=item.id in ends)
        if groups.kind[index] == KIND_OUTPUT:
            calls[index] = groups.last_answered
    return IndexedLog(items, groups, calls, breaks)


def assemble(pieces: Iterable[Piece], marks: frozenset[str]) -> Excerpt:
    """Return a log of the pieces. If two responses now touch that would become one, the second is marked.

    `marks` are ids marked in the old log; those of dropped items are ignored.
    """
    items: list[Item] = []
    breaks = set()
    last: Piece | None = None
    for item, response in pieces:
        items.append(item)
        if item.id in marks or (
            last is not None and None not in (response, last[1]) and response != last[1] and item.agent_id == last[0].agent_id
        ):
            breaks.add(item.id)
        last = item, response
    return Excerpt(items, frozenset(breaks))


def last_turns_start(items: Sequence[Item], turns: int) -> int:
    """Return the position where the last turns begin: 0 if there are no more turns than that, the end for 0 turns.

    A turn is a user message and everything up to the next one. User messages of category CONTEXT do not begin a turn.
    """
    if not turns:
        return len(items)
    users = (index for index, item in enumerate(items) if isinstance(item, Message) and item.role == "user")
    starts = [index for index in users if items[index].category is not MessageCategory.CONTEXT]
    return starts[-turns] if len(starts) > turns else 0


def checked_count(value: object, where: str, least: int) -> int:
    """Return the value if it is an int of at least `least`. Raises FormatError if it is not."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= least:
        return value
    raise FormatError(where, f"{short(value)}; pass a whole number of {least} or more")
