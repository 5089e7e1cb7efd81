"""`JournalReplay`: rebuilds a session from the rows of its journal. What the rows mean is in `journal.py`.

Rows are not trusted: the file may come from anywhere.
"""

from __future__ import annotations

import json
from typing import Any, NoReturn

from session.errors import FormatError, short
from session.serial import VERSION, session_from_values
from session.session import Session
from session.stack import with_room

from .journal import ITEM, METADATA, NEW, SEAMS, SESSION, Row


class JournalReplay:
    """A session under reconstruction: its id in the first row, which is not checked before `session`, and the items of the log so far.

    `pending` are new items that wait for their edit row. Items are JSON values.
    """

    def __init__(self) -> None:
        self.session_id: object = None
        self.items: list[Any] = []
        self.pending: list[Any] = []
        self.edit_count = 0
        self.row_count = 0
        self._metadata: object = {}
        self._seams: dict[str, Any] = {}

    def add(self, number: int, row: Row) -> None:
        """Apply the next row. Raises FormatError if its body does not fit its kind, or the kind does not fit here."""
        kind, body = row
        self.row_count += 1
        value = parse_body(body)
        if (number == 0) != (kind == SESSION):
            raise FormatError("kind", f"{kind!r} is not expected in row {number}")
        if kind == ITEM:
            if self.pending:
                raise FormatError(kind, "expected the edit that the new items before it wait for")
            self.items.append(value)
        elif kind == NEW:
            self.pending.append(value)
        elif kind == METADATA:
            self._metadata = value
        elif not isinstance(value, dict):
            raise FormatError(kind, f"expected an object, got {short(value)}")
        elif kind == SESSION:
            self.session_id, self._metadata = value.get("id"), value.get("metadata")
        elif kind == SEAMS:
            self._seams = value
        else:
            self._edit(value)

    def session(self) -> Session:
        """Return the session that the rows describe. Raises FormatError if they do not describe one; `.where` names the place."""
        seams = {name: value for name, value in self._seams.items() if name not in {"version", "id", "metadata", "items"}}
        top = {**seams, "version": VERSION, "id": self.session_id, "metadata": self._metadata, "items": self.items}
        return session_from_values(Session, top, None)

    def _edit(self, value: dict[str, Any]) -> None:
        runs = edit_runs(value, len(self.items), len(self.pending))
        pool = self.items + self.pending
        self.items, self.pending = [], []
        for start, stop in runs:
            self.items += pool[start:stop]
        self.edit_count += 1


def edit_runs(value: dict[str, Any], items: int, pending: int) -> list[tuple[int, int]]:
    """Return the runs of an edit row. No item is in two runs, so an edit cannot make a log larger than its parts.

    Raises FormatError if it is not an edit of a log of so many items, with so many new ones that wait for it.
    """
    if value.get("of") != [items, pending]:
        raise FormatError("edit.of", f"not an edit of {items} items and {pending} new ones")
    runs = value.get("runs")
    if not isinstance(runs, list):
        raise FormatError("edit.runs", f"expected a list, got {short(runs)}")
    checked = []
    for run in runs:
        if not (isinstance(run, list) and len(run) == 2 and all(type(end) is int for end in run)):
            raise FormatError("edit.runs", f"{short(run)} is not a run")
        if not 0 <= run[0] < run[1] <= items + pending:
            raise FormatError("edit.runs", "a run goes beyond the items")
        checked.append((run[0], run[1]))
    if sum(stop - start for start, stop in checked) > items + pending:
        raise FormatError("edit.runs", "an item is in two runs")
    return checked


def parse_body(body: bytes) -> Any:
    """Return the JSON value in a row's body. Raises FormatError if it is not JSON."""
    try:
        text = body.decode()
        try:
            if text[:1] == "{":  # as the store writes them; `decode` looks for space at both ends
                value, end = _DECODER.raw_decode(text)
                if end == len(text):
                    return value
            return _DECODER.decode(text)
        except RecursionError:  # the caller may have used most of the stack
            return with_room(lambda: _DECODER.decode(text))
    except (ValueError, RecursionError) as error:
        raise FormatError("body", f"not JSON ({type(error).__name__})") from None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)  # NaN and Infinity are not JSON


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)
