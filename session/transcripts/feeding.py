"""What readers of logs without trees share: records handed to them one by one, and call ids that are unique in a session.

What a record means is each format's own business.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import TypeAlias

from session.door import clean

from .draft import Draft, Record
from .reading import Line
from .values import REDACTED, JsonObject

Take: TypeAlias = Callable[[Draft, Record, JsonObject], None]
"""Reads a value into the draft, and says in the record what became of it."""

UNKNOWN_TOOL = "unknown"
"""The name of an output whose call is not in the file."""
EMPTY = "there is nothing in it"
"""Why a record without any content is not context."""


def feed_lines(lines: Iterable[Line], draft: Draft, take: Take, *, route: Callable[[JsonObject], Draft] | None = None) -> None:
    """Hands on each JSON object of a file of lines. Damage costs its line only.

    Args:
        lines: The file's.
        draft: Of the session.
        take: The reader.
        route: Tells the draft that an object belongs to, where a file holds several sessions.
    """
    for line in lines:
        records: dict[int, Record] = {}
        for value in line.values:
            home = route(value) if route is not None and isinstance(value, dict) else draft
            record = records[id(home)] if id(home) in records else records.setdefault(id(home), home.record(line.number))
            feed(home, record, value, take)
        if line.problem or not line.values:
            record = records[id(draft)] if id(draft) in records else draft.record(line.number)
            if line.problem:
                draft.damage(record, line.problem)
            else:
                record.skip("a blank line")


def feed_entries(entries: Iterable[object], draft: Draft, take: Take) -> None:
    """Hands on each entry of a list in a document. Damage costs its entry only.

    Args:
        entries: The list.
        draft: Of the session.
        take: The reader.
    """
    for place, value in enumerate(entries, 1):
        feed(draft, draft.record(place), value, take)


def feed(draft: Draft, record: Record, value: object, take: Take) -> None:
    """Hands on one value, if it is an object."""
    if not isinstance(value, dict):
        draft.damage(record, "not a JSON object")
        return
    with draft.guard(record):
        take(draft, record, value)
    if not record.items and not record.reasons:
        record.skip(EMPTY)


class Calls:
    """The call ids of a session: the file's own where they are unique, others where they repeat or are missing or blacked out.

    A call and its output say the same id in the file; of several that do, the oldest one without an answer is meant.
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._waiting: dict[str, deque[tuple[str, str]]] = {}  # by the file's id: ours, and the tool
        self._taken: set[str] = set()
        self._answered: dict[str, int] = {}

    def made(self, given: str, tool: str, item_id: str) -> str:
        """The id for a call.

        Args:
            given: The file's id for it; may be empty.
            tool: Its name.
            item_id: Of the call: what its call id is made of, where it needs one.
        """
        base = found = f"call-{item_id}" if not given or REDACTED in given else clean(given)
        number = self._numbers.get(base, 1)  # the last one in use: a file may have one id for all its calls
        while found in self._taken:
            number += 1
            found = f"{base}.{number}"
        self._numbers[base] = number
        self._taken.add(found)
        self._waiting.setdefault(given, deque()).append((found, tool))
        return found

    def answered(self, given: str, record: Record, tool: str = "") -> tuple[str, str] | None:
        """The id for an output, and its tool's name; None for a second answer to a call, which the record then says.

        Args:
            given: The file's id for the call; may be empty.
            record: The output's.
            tool: Its name as the output has it; may be empty.
        """
        if waiting := self._waiting.get(given):
            self._answered[given] = record.place
            call_id, called = waiting.popleft()
            return call_id, called
        if given in self._answered:
            record.merge(f"the call {given} was answered on line {self._answered[given]}")
            return None
        self._answered[given] = record.place
        return clean(given) or f"call-L{record.place}", tool or UNKNOWN_TOOL
