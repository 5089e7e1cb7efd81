"""`Tables`: the rows of a store, read and written through a connection that is in a transaction. What their bodies say: `journal.py`.

Every question is closed when it is answered, and when it fails: an open one keeps a lock on the file for as long as anybody holds the
error.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from typing import Any
from zlib import crc32

from session.door import clean
from session.errors import FormatError, StoreDamagedError, UnknownSessionError, short
from session.session import Session

from .journal import EDIT, KINDS, Change, Known, Row, checksum
from .replay import Replay

_SELECT = "SELECT key, id, created, updated, title, items, rows, last, crc FROM sessions"
_TYPES = (int, bytes, float, float, bytes, int, int, int, int)


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """What a list of sessions says of one.

    Attributes:
        id: The session's own id.
        title: `metadata["title"]`, or how the first user message begins, in one line of at most 80 characters; may be "". It is as
            somebody wrote it: make it safe before a terminal sees it.
        items: How many its log has now.
        created: Unix seconds of its first save.
        updated: Unix seconds of its last save.
    """

    id: str
    title: str
    items: int
    created: float
    updated: float


@dataclass(frozen=True, slots=True)
class Head:
    """A session's row in `sessions`.

    Attributes:
        key: Its key in the file.
        info: What a list says of it.
        rows: How many its journal has.
        last: The place of the last one.
    """

    key: int
    info: SessionInfo
    rows: int
    last: int

    def values(self) -> tuple[object, ...]:
        """The values of the row, in order; the last is the checksum over the others."""
        info = self.info
        values = (self.key, info.id, info.created, info.updated, info.title, info.items, self.rows, self.last)
        return (*values, crc32(repr(values).encode()))


class Tables:
    """The two tables of a file."""

    def __init__(self, path: str) -> None:
        """
        Args:
            path: The file, for errors.
        """
        self.path = path

    def heads(self, connection: sqlite3.Connection) -> Generator[Head, None, None]:
        """The sessions, the last saved first.

        Raises:
            StoreDamagedError: One is damaged.
        """
        with closing(connection.execute(f"{_SELECT} ORDER BY last DESC")) as found:
            for row in found:
                yield self._as_head(row)

    def head(self, connection: sqlite3.Connection, session_id: str) -> Head | None:
        """The session of this id, or None.

        Raises:
            StoreDamagedError: It is damaged.
        """
        row = connection.execute(f"{_SELECT} WHERE id = ?", (session_id,)).fetchone()
        return None if row is None else self._as_head(row)

    def found(self, connection: sqlite3.Connection, session_id: str) -> Head:
        """The session of this id.

        Raises:
            UnknownSessionError: There is none.
            FormatError: This is no id.
            StoreDamagedError: It is damaged.
        """
        if not isinstance(session_id, str):
            raise FormatError("session_id", f"{short(session_id)} is not a session's id")
        head = self.head(connection, clean(session_id))
        if head is None:
            raise UnknownSessionError(self.path, session_id)
        return head

    def rows(self, connection: sqlite3.Connection, head: Head) -> Generator[tuple[int, Row, float], None, None]:
        """The session's rows in order, each with its number and its time: all of them, or an error.

        Raises:
            StoreDamagedError: One is damaged, or missing.
        """
        question = "SELECT number, kind, at, crc, body FROM journal WHERE session = ? ORDER BY number"
        expected = 0
        with closing(connection.execute(question, (head.key,))) as found:
            for values in found:
                row = row_of(head.key, values)
                if row is None or values[0] != expected or expected >= head.rows:
                    raise StoreDamagedError(self.path, f"row {expected} of {head.rows} is not as it was written", head.info.id)
                yield expected, row, values[2]
                expected += 1
        if expected != head.rows:
            raise StoreDamagedError(self.path, f"{head.rows - expected} of its {head.rows} rows are missing", head.info.id)

    def replay(self, connection: sqlite3.Connection, head: Head, revision: int | None = None) -> Replay:
        """The session, taken up to the edit that ended a revision, or to the end.

        Raises:
            StoreDamagedError: A row is damaged, or missing.
            FormatError: There is no such revision.
        """
        replay = Replay()
        with closing(self.rows(connection, head)) as rows:
            for number, row, _ in rows:
                if row.kind == EDIT and replay.edits == revision:
                    return replay
                with self.damage(head, number):
                    replay.take(number, row)
        if revision is not None and (type(revision) is not int or revision != replay.edits):
            raise FormatError("revision", f"{short(revision)} is none; `revisions()` lists those from 0 to {replay.edits}")
        return replay

    def session(self, replay: Replay, head: Head) -> Session:
        """The session that was taken up.

        Raises:
            StoreDamagedError: Its rows do not make one.
        """
        with self.damage(head, None):
            session = replay.session()
        if session.id != head.info.id:
            raise StoreDamagedError(self.path, "its journal is of another session", head.info.id)
        return session

    @contextmanager
    def damage(self, head: Head, number: int | None) -> Iterator[None]:
        """What is wrong with a row, told as damage of the session."""
        try:
            yield
        except FormatError as error:
            place = "" if number is None else f"row {number}: "
            raise StoreDamagedError(self.path, f"{place}{error}", head.info.id) from error

    def add(self, connection: sqlite3.Connection, new: Change, head: Head | None, at: float) -> Known:
        """What the file holds of a session once these rows are in it, too.

        Args:
            connection: One that may write.
            new: The rows.
            head: The session in the file; None where it is new.
            at: Unix seconds.
        """
        now = new.now
        if head is None:  # the key is needed for the checksums of the rows
            statement = "INSERT INTO sessions (id, created, updated, title, items, rows, last, crc) VALUES (?, ?, ?, '', 0, 0, 0, 0)"
            connection.execute(statement, (now.session_id, at, at))
            now = replace(now, key=_last_place(connection))
        first = now.rows - len(new.rows)
        for number, row in enumerate(new.rows, first):
            connection.execute(
                "INSERT INTO journal (session, number, kind, at, crc, body) VALUES (?, ?, ?, ?, ?, ?)",
                (now.key, number, row.kind, at, checksum(now.key, number, row, at), row.body),
            )
        last = _last_place(connection)
        created = at if head is None else head.info.created
        after = Head(now.key, SessionInfo(now.session_id, now.title, len(now.items), created, at), now.rows, last)
        key, _, _, *values = after.values()
        connection.execute(
            "UPDATE sessions SET updated = ?, title = ?, items = ?, rows = ?, last = ?, crc = ? WHERE key = ?", (*values, key)
        )
        return now

    def _as_head(self, row: tuple[Any, ...]) -> Head:
        head = head_of(row)
        if head is None:
            raise StoreDamagedError(self.path, "a session in the list of them is damaged")
        return head


def head_of(values: tuple[Any, ...]) -> Head | None:
    """A row of `sessions`; None where it is damaged."""
    if tuple(map(type, values)) != _TYPES:
        return None
    key, name, created, updated, title, items, rows, last, crc = values
    try:
        head = Head(key, SessionInfo(name.decode(), title.decode(), items, created, updated), rows, last)
    except UnicodeDecodeError:
        return None
    return head if head.values()[-1] == crc else None


def row_of(key: int, values: tuple[Any, ...]) -> Row | None:
    """A row of `journal`, given as number, kind, time, checksum and body; None where it is damaged."""
    if tuple(map(type, values)) != (int, bytes, float, int, bytes):
        return None
    number, kind, at, crc, body = values
    try:
        row = Row(kind.decode(), body)
    except UnicodeDecodeError:
        return None
    return row if row.kind in KINDS and checksum(key, number, row, at) == crc else None


def _last_place(connection: sqlite3.Connection) -> int:
    place: int = connection.execute("SELECT last_insert_rowid()").fetchone()[0]
    return place
