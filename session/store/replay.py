"""`Replay`: the session that the rows of a journal tell. What they say: `journal.py`. They are not trusted: files come from anywhere."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from session.errors import FormatError, short
from session.serial import VERSION, session_from_dict
from session.session import Session
from session.stack import with_room

from .journal import ITEM, METADATA, NEW, SEAMS, SESSION, Row


class Replay:
    """A session under reconstruction, fed with its rows in order.

    Attributes:
        items: The items of its log, as JSON values.
        waiting: Those that wait for an edit.
        edits: How many there were.
        rows: How many were taken.
    """

    def __init__(self) -> None:
        self.items: list[Any] = []
        self.waiting: list[Any] = []
        self.edits = 0
        self.rows = 0
        self._id: object = None
        self._metadata: object = {}
        self._seams: dict[str, Any] = {}

    def take(self, number: int, row: Row) -> None:
        """Reads one row.

        Raises:
            FormatError: Its body is not what its kind has.
        """
        self.rows += 1
        value = parsed(row.body)
        if (number == 0) != (row.kind == SESSION):
            raise FormatError("kind", f"{row.kind!r} where row {number} is expected")
        if row.kind == ITEM:
            if self.waiting:
                raise FormatError(row.kind, "where the edit is expected that new items wait for")
            self.items.append(value)
        elif row.kind == NEW:
            self.waiting.append(value)
        elif row.kind == METADATA:
            self._metadata = value
        elif not isinstance(value, dict):
            raise FormatError(row.kind, f"{short(value)} where an object is expected")
        elif row.kind == SESSION:
            self._id, self._metadata = value.get("id"), value.get("metadata")
        elif row.kind == SEAMS:
            self._seams = value
        else:
            self.edit(value)

    def edit(self, value: dict[str, Any]) -> None:
        """Carries out an edit.

        Raises:
            FormatError: It is none, or not of this log.
        """
        runs = edit_of(value, len(self.items), len(self.waiting))
        pool = self.items + self.waiting
        self.items, self.waiting = [], []
        for start, stop in runs:
            self.items += pool[start:stop]
        self.edits += 1

    def session(self) -> Session:
        """The session.

        Raises:
            FormatError: The rows do not make one; `.where` names the place.
        """
        seams = {name: value for name, value in self._seams.items() if name not in {"version", "id", "metadata", "items"}}
        return session_from_dict({**seams, "version": VERSION, "id": self._id, "metadata": self._metadata, "items": self.items})


def edit_of(value: dict[str, Any], items: int, waiting: int) -> list[tuple[int, int]]:
    """The runs of an edit. An item is in one of them at most, so that no edit makes a log larger than what it is made of.

    Args:
        value: The body of its row.
        items: How many the log has.
        waiting: How many wait.

    Raises:
        FormatError: It is no edit, or one of another log.
    """
    if value.get("of") != [items, waiting]:
        raise FormatError("edit.of", f"not of a log of {items} items and {waiting} new ones")
    runs = value.get("runs")
    if not isinstance(runs, list):
        raise FormatError("edit.runs", f"{short(runs)} where a list is expected")
    found = []
    for run in runs:
        if not (isinstance(run, list) and len(run) == 2 and all(type(end) is int for end in run)):
            raise FormatError("edit.runs", f"{short(run)} is no run")
        if not 0 <= run[0] < run[1] <= items + waiting:
            raise FormatError("edit.runs", "a run of items that there are not")
        found.append((run[0], run[1]))
    if sum(stop - start for start, stop in found) > items + waiting:
        raise FormatError("edit.runs", "an item is in two runs")
    return found


def parsed(body: bytes) -> Any:
    """The JSON value that a body is.

    Raises:
        FormatError: It is none.
    """
    try:
        return with_room(lambda: json.loads(body.decode(), parse_constant=_refused))
    except (ValueError, RecursionError) as error:
        raise FormatError("body", f"not JSON ({type(error).__name__})") from None


def _refused(name: str) -> NoReturn:
    raise ValueError(name)
