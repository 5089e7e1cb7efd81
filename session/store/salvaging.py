"""`salvage`: what can be read of a damaged store. It reads the bytes of the file and writes nothing.

Each row has a checksum over all that it says, and rows are never changed: so what is found is what was written, wherever it is found.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from session.errors import FormatError, StoreError, short
from session.items import Item
from session.record import reported
from session.serial import item_from_dict
from session.session import Session

from .journal import EDIT, KINDS, NEW, Row
from .pages import Cell, Pages, record
from .paths import plain_path
from .replay import Replay, edit_of, parsed
from .schema import JOURNAL_COLUMNS, SESSIONS_COLUMNS
from .tables import Head, head_of, row_of


@dataclass(frozen=True, slots=True)
class Salvaged:
    """A session of a damaged file, as far as it can be read.

    Attributes:
        session: What there is of it. Where nothing is lost it is what `load` would give.
        lost: How many rows of its journal are missing or damaged, as far as that is known. A row is an item, or an edit.
        problems: What could not be done as it was written, a line each.
    """

    session: Session
    lost: int
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Salvage:
    """What can be read of a damaged file.

    Attributes:
        sessions: The sessions of which there is anything, the last saved first.
        problems: What became of the file as a whole, a line each.
    """

    sessions: tuple[Salvaged, ...]
    problems: tuple[str, ...]


@dataclass(slots=True)
class _Found:
    """What was found of one session."""

    head: Head | None = None
    rows: dict[int, Row] = field(default_factory=dict)
    last: int = 0


def salvage(path: str | os.PathLike[str]) -> Salvage:
    """What can be read of a store, damaged or not. The file, and the `…-wal` beside it, stay as they are.

        for found in salvage("sessions.db").sessions:
            new_store.save(found.session)

    Close the store everywhere first: what is written meanwhile may be missed.

    Args:
        path: The file.

    Raises:
        StoreError: The system cannot read it.
        FormatError: `path` is no path.
    """
    name = plain_path(path, "salvage.path")
    try:
        pages = Pages(Path(name))
        try:
            found, damaged = _found(pages)
        finally:
            pages.close()
    except OSError as error:
        raise StoreError(name, f"the file cannot be read: {error.strerror or error}") from error
    problems = []
    if damaged:
        problems.append(f"{damaged} rows are damaged")
    if not found:
        problems.append("nothing of a store was found in the file")
    newest = sorted(found.items(), key=lambda one: one[1].last, reverse=True)
    return Salvage(tuple(_salvaged(key, one) for key, one in newest), tuple(problems))


def _found(pages: Pages) -> tuple[dict[int, _Found], int]:
    """The sessions by their keys, and how many rows are damaged that were found nowhere whole."""
    found: dict[int, _Found] = {}
    damaged: set[int] = set()
    whole: set[int] = set()
    for cell in pages.cells():
        head = _head(cell)
        if head is not None:
            one = found.setdefault(head.key, _Found())
            if one.head is None or head.rows > one.head.rows:
                one.head, one.last = head, max(one.last, head.last)
        elif _may_be_row(cell) and cell.rowid not in whole:
            read = _row(pages, cell)
            if read is None:
                pages.vain(cell)
                damaged.add(cell.rowid)
            else:
                key, number, row = read
                one = found.setdefault(key, _Found())
                one.rows[number], one.last = row, max(one.last, cell.rowid)
                whole.add(cell.rowid)
    return found, len(damaged - whole)


def _head(cell: Cell) -> Head | None:
    values = None if cell.overflow else record(cell.local, SESSIONS_COLUMNS)
    if values is None:
        return None
    _, name, created, updated, *rest = values
    return head_of((cell.rowid, name, _real(created), _real(updated), *rest))


def _may_be_row(cell: Cell) -> bool:
    """Whether the record can be a journal's: what comes before its body, and is in its own page, says so."""
    values = record(cell.local, JOURNAL_COLUMNS)
    return values is not None and isinstance(values[3], bytes) and values[3].decode("ascii", "replace") in KINDS


def _row(pages: Pages, cell: Cell) -> tuple[int, int, Row] | None:
    for payload in pages.payloads(cell):
        values = record(payload, JOURNAL_COLUMNS)
        if values is not None:
            _, key, number, kind, at, crc, body = values
            row = row_of(key, (number, kind, _real(at), crc, body)) if isinstance(key, int) else None
            if row is not None and isinstance(key, int) and isinstance(number, int):
                return key, number, row
    return None


def _real(value: object) -> object:
    """SQLite keeps a real number without a fraction as an integer."""
    return float(value) if isinstance(value, int) else value


# One session


def _salvaged(key: int, found: _Found) -> Salvaged:
    total = max([number + 1 for number in found.rows] + ([found.head.rows] if found.head else []))
    lost = total - len(found.rows)
    name = found.head.info.id if found.head else f"salvaged-{key}"
    if not lost:
        try:
            session = _whole(found.rows)
        except FormatError as error:
            return _Mending(name).mended(found.rows, 0, [f"not as it was written: {error}"])
        told = () if found.head is None or session.id == name else (f"the list of sessions calls it {short(name)}",)
        return Salvaged(session, 0, told)
    return _Mending(name).mended(found.rows, lost, [f"{lost} of its {total} rows are lost"])


def _whole(rows: dict[int, Row]) -> Session:
    replay = Replay()
    for number in range(len(rows)):
        replay.take(number, rows[number])
    return replay.session()


class _Mending:
    """A session put together from what is left of its rows.

    A lost row is taken for an item, as most are. Where an edit shows that it was none, or is itself not to be carried out, edits are
    no longer gone by: then nothing is taken out of the log, and what an edit put there takes the place of the item of its id.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._metadata: Any = {}
        self._seams: dict[str, Any] = {}
        self._log: list[Any] = []
        self._waiting: list[Any] = []
        self._sure = True
        self._problems: list[str] = []

    def mended(self, rows: dict[int, Row], lost: int, problems: list[str]) -> Salvaged:
        """The session.

        Args:
            rows: By number, those that are left.
            lost: How many are not.
            problems: What is known to be wrong already.
        """
        self._problems = problems
        before = -1
        for number in sorted(rows):
            gap = number - before - 1
            if gap > len(rows) + 1_000_000:  # no file has so many; a list of them would fill the memory
                self._sure = False
            else:
                self._log += [None] * gap
            before = number
            try:
                self._take(rows[number], parsed(rows[number].body))
            except FormatError as error:
                self._problems.append(f"row {number}: {error}")
        self._settle()
        return Salvaged(self._session(), lost, tuple(self._problems))

    def _take(self, row: Row, value: Any) -> None:
        if row.kind == NEW:
            self._waiting.append(value)
        elif row.kind == EDIT and isinstance(value, dict):
            self._edit(value)
        elif row.kind == "item":
            if self._waiting:  # the edit that they waited for is lost
                self._settle()
            self._log.append(value)
        elif row.kind == "metadata":
            self._metadata = value
        elif row.kind == "seams" and isinstance(value, dict):
            self._seams = value
        elif row.kind == "session" and isinstance(value, dict):
            self._metadata = value.get("metadata")
            if isinstance(value.get("id"), str) and value["id"]:
                self._name = value["id"]
        else:
            raise FormatError(row.kind, "not what a row of this kind says")

    def _edit(self, value: dict[str, Any]) -> None:
        try:
            runs = edit_of(value, len(self._log), len(self._waiting)) if self._sure else None
        except FormatError:
            runs = None
        if runs is None:
            self._problems.append("an edit was not carried out: what it takes out is still there")
            self._settle(always=True)
            return
        pool = self._log + self._waiting
        self._log, self._waiting = [one for start, stop in runs for one in pool[start:stop]], []

    def _settle(self, *, always: bool = False) -> None:
        """Puts what waits into the log, by the ids."""
        if not (self._waiting or always):
            return
        self._sure = False
        places = {_id_of(value): place for place, value in enumerate(self._log) if value is not None}
        for value in self._waiting:
            place = places.get(_id_of(value))
            if place is None:
                self._log.append(value)
            else:
                self._log[place] = value
        self._waiting = []

    def _session(self) -> Session:
        try:
            session = Session(id=self._name, metadata=self._metadata)
        except FormatError as error:
            self._problems.append(f"its metadata is lost: {error}")
            session = Session(id=self._name)
        for item in self._items():
            if session.position(item.id) is None:
                session.append(item)
            else:
                self._problems.append(f"a second item of the id {item.id!r} was left out")
        told = self._seams.get("breaks")
        breaks = (one for one in told if isinstance(one, str) and session.position(one) is not None) if isinstance(told, list) else ()
        session.restore_seams(frozenset(breaks), reported(session.items))
        return session

    def _items(self) -> Iterator[Item]:
        for place, value in enumerate(self._log):
            if value is not None:
                try:
                    yield item_from_dict(value, f"items[{place}]")
                except FormatError as error:
                    self._problems.append(f"an item was left out: {error}")


def _id_of(value: Any) -> object:
    found = value.get("id") if isinstance(value, dict) else None
    return found if isinstance(found, str) else None
