"""Parts of a log as a list of its own, in which what stood apart still does. Which parts is decided elsewhere.

Whatever takes items out, or puts other ones between them, goes through `joined`: two answers of one agent that stood apart
must not become one response because what stood between them is gone.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from .errors import FormatError, short
from .items import FunctionCall, Item, Message, MessageCategory
from .session import Session
from .units import KIND_OUTPUT, NONE, Grouping


class Excerpt(NamedTuple):
    """Items for a log, and where responses begin in it that would otherwise be one with what is before them."""

    items: list[Item]
    breaks: frozenset[str]


Piece: TypeAlias = tuple[Item, Hashable]
"""An item, and whatever names the response that it is part of; None where it is part of none."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A log as it was read once, from its start.

    Attributes:
        items: Its items.
        groups: Their units.
        calls: By position of an output, that of the call it answers.
        breaks: As `Session.response_breaks`.
    """

    items: Sequence[Item]
    groups: Grouping
    calls: dict[int, int]
    breaks: frozenset[str]

    def response(self, place: int) -> Hashable:
        """What names the response that the item is part of, or None."""
        found = self.groups.response[place]
        return None if found == NONE else found

    def piece(self, place: int) -> Piece:
        """The item, for `joined`."""
        return self.items[place], self.response(place)

    def excerpt(self, places: Iterable[int]) -> Excerpt:
        """The items at these positions, which rise."""
        return joined(map(self.piece, places), self.breaks)

    def in_flight(self) -> list[int]:
        """The calls that wait for their outputs: unanswered ones of the last response."""
        groups = self.groups
        first = groups.starts[-1] if groups.starts else len(groups)
        return [place for place in range(first, len(groups)) if isinstance(self.items[place], FunctionCall) and not groups.answered[place]]


def read(session: Session) -> Reading:
    """The log, read from its start: O(n)."""
    groups, calls = Grouping(), {}
    items, breaks = session.items, session.response_breaks
    for place, item in enumerate(items):
        groups.feed(item, item.id in breaks)
        if groups.kind[place] == KIND_OUTPUT:
            calls[place] = groups.last_answered
    return Reading(items, groups, calls, breaks)


def joined(pieces: Iterable[Piece], marks: frozenset[str]) -> Excerpt:
    """The items in a row. Where two responses now touch that would become one, the second is marked.

    Args:
        pieces: The items, each with what names its response.
        marks: Ids that were marked before; those of other items are passed over.
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


def turns_from(items: Sequence[Item], turns: int) -> int:
    """Where the last so many turns begin; 0 where there are no more than that, and the end for no turns.

    A turn is a user message and all up to the next one, those of category CONTEXT not counted.
    """
    if not turns:
        return len(items)
    users = (place for place, item in enumerate(items) if isinstance(item, Message) and item.role == "user")
    opening = [place for place in users if items[place].category is not MessageCategory.CONTEXT]
    return opening[-turns] if len(opening) > turns else 0


def whole_number(value: object, where: str, least: int) -> int:
    """The value, where it is an int of `least` or more.

    Raises:
        FormatError: It is not.
    """
    if isinstance(value, int) and not isinstance(value, bool) and value >= least:
        return value
    raise FormatError(where, f"{short(value)}; pass a whole number of {least} or more")
