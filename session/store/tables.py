"""`Tables`: reads and writes the rows of a store through a connection that is in a transaction. Row bodies: `journal.py`.

Every cursor is closed when its query is done or fails: an open one keeps a lock on the file for as long as anybody holds the error.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from typing import Any
from zlib import crc32

from session.errors import FormatError, StoreDamagedError, UnknownSessionError, short
from session.sanitize import clean
from session.session import Session

from .dialect import Connection, Dialect
from .journal import EDIT, KINDS, Change, Row, SavedState, checksum
from .replay import JournalReplay

SELECT_HEADS = "SELECT key, id, created, updated, title, items, rows, last, crc FROM sessions"
INSERT_ROW = "INSERT INTO journal (session, number, kind, at, crc, body) VALUES (?, ?, ?, ?, ?, ?)"
_KIND_NAMES = {kind.encode(): kind for kind in KINDS}
_HEAD_TYPES = (int, bytes, float, float, bytes, int, int, int, int)


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """One entry of `SessionStore.list`.

    Attributes:
        id: The session's own id.
        title: `metadata["title"]`, or the beginning of the first user message: one line of at most 80 characters, possibly "". It is
            the user's text, so escape it before you print it to a terminal.
        items: Number of items in its log now.
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
    """A row of the table `sessions`: the session's entry in the list, and the number of rows and the last place of its journal."""

    key: int
    info: SessionInfo
    rows: int
    last: int

    def values(self) -> tuple[object, ...]:
        """Return the values of the row, in order. The last one is a checksum over the others."""
        info = self.info
        values = (self.key, info.id, info.created, info.updated, info.title, info.items, self.rows, self.last)
        return (*values, crc32(repr(values).encode()))


class Tables:
    """The two tables of a store. Its methods take a connection that is in a transaction."""

    def __init__(self, path: str, dialect: Dialect) -> None:
        """Take the store's path for error messages."""
        self.path = path
        self._dialect = dialect

    def heads(self, connection: Connection, *, only_latest: bool = False) -> Generator[Head, None, None]:
        """Yield the row of each session, the most recently saved first; or of that one only. Raises StoreDamagedError if one is damaged."""
        with closing(connection.execute(f"{SELECT_HEADS} ORDER BY last DESC{' LIMIT 1' * only_latest}")) as records:
            for values in records:
                yield self._checked_head(values)

    def find_head(self, connection: Connection, session_id: str) -> Head | None:
        """Return the row of the session with this id, or None. Raises StoreDamagedError if it is damaged."""
        values = connection.execute(f"{SELECT_HEADS} WHERE id = ?", (session_id,)).fetchone()
        return None if values is None else self._checked_head(values)

    def head(self, connection: Connection, session_id: str) -> Head:
        """Return the row of the session with this id.

        Raises UnknownSessionError if there is none, FormatError if the id is not a str, StoreDamagedError if the row is damaged.
        """
        head = self.find_head(connection, checked_id(session_id))
        if head is None:
            raise UnknownSessionError(self.path, session_id)
        return head

    def rows(self, connection: Connection, head: Head) -> Generator[tuple[int, Row, float], None, None]:
        """Yield number, row and time of all rows of a session, in order. Raises StoreDamagedError if one is damaged or missing."""
        query = "SELECT number, kind, at, crc, body FROM journal WHERE session = ? ORDER BY number"
        expected = 0
        with closing(connection.execute(query, (head.key,))) as records:
            for values in records:
                row = row_of(head.key, values)
                if row is None or values[0] != expected or expected >= head.rows:
                    raise StoreDamagedError(self.path, f"row {expected} of {head.rows} is damaged or missing", head.info.id)
                yield expected, row, values[2]
                expected += 1
        if expected != head.rows:
            raise StoreDamagedError(self.path, f"{head.rows - expected} of its {head.rows} rows are missing", head.info.id)

    def replay(self, connection: Connection, head: Head, revision: int | None = None) -> JournalReplay:
        """Return a replay of the session up to the end, or up to the edit that ended a revision (theory of operation, 3).

        Raises StoreDamagedError if a row is damaged or missing, FormatError if there is no such revision.
        """
        replay = JournalReplay()
        with closing(self.rows(connection, head)) as rows:
            for number, row, _ in rows:
                if row.kind == EDIT and replay.edit_count == revision:
                    return replay
                try:
                    replay.add(number, row)
                except FormatError as error:
                    raise self._damaged(head, number, error) from error
        if revision is not None and (type(revision) is not int or revision != replay.edit_count):
            raise FormatError("revision", f"{short(revision)} does not exist; `revisions()` lists 0 to {replay.edit_count}")
        return replay

    def session(self, replay: JournalReplay, head: Head) -> Session:
        """Return the session of a replay. Raises StoreDamagedError if the rows do not describe a session, or describe another one."""
        with self.damage(head, None):
            session = replay.session()
        if session.id != head.info.id:
            raise StoreDamagedError(self.path, "its journal is that of another session", head.info.id)
        return session

    @contextmanager
    def damage(self, head: Head, number: int | None) -> Iterator[None]:
        """Raise a FormatError of the block as StoreDamagedError of this session and row."""
        try:
            yield
        except FormatError as error:
            raise self._damaged(head, number, error) from error

    def _damaged(self, head: Head, number: int | None, error: FormatError) -> StoreDamagedError:
        row = "" if number is None else f"row {number}: "
        return StoreDamagedError(self.path, f"{row}{error}", head.info.id)

    def add(self, connection: Connection, change: Change, head: Head | None, at: float) -> SavedState:
        """Add the rows of a change and return the stored state of the session after it.

        The connection is in a write transaction; `head` is None for a new session, `at` in Unix seconds.
        """
        state = change.state
        if head is None:  # inserted first, because the checksums of the rows need the key
            statement = "INSERT INTO sessions (id, created, updated, title, items, rows, last, crc) VALUES (?, ?, ?, '', 0, 0, 0, 0)"
            connection.execute(statement, (state.session_id, at, at))
            state = replace(state, key=self._last_key(connection))
        rows = enumerate(change.rows, state.rows - len(change.rows))
        connection.executemany(
            INSERT_ROW, [(state.key, number, row.kind, at, checksum(state.key, number, row, at), row.body) for number, row in rows]
        )
        last = self._last_key(connection)
        created = at if head is None else head.info.created
        after = Head(state.key, SessionInfo(state.session_id, state.title, len(state.items), created, at), state.rows, last)
        key, _, _, *values = after.values()
        connection.execute(
            "UPDATE sessions SET updated = ?, title = ?, items = ?, rows = ?, last = ?, crc = ? WHERE key = ?", (*values, key)
        )
        return state

    def _last_key(self, connection: Connection) -> int:
        key: int = connection.execute(self._dialect.last_key).fetchone()[0]
        return key

    def _checked_head(self, values: tuple[Any, ...]) -> Head:
        head = head_of(values)
        if head is None:
            raise StoreDamagedError(self.path, f"row {values[0]} in the list of sessions is damaged")
        return head


def checked_id(session_id: object) -> str:
    """Return the id of a session as the store has it. Raises FormatError if it is not a str."""
    if not isinstance(session_id, str):
        raise FormatError("session_id", f"{short(session_id)} is not a session's id")
    return clean(session_id)


def head_of(values: tuple[Any, ...]) -> Head | None:
    """Return a row of `sessions`, or None if it is damaged."""
    if tuple(map(type, values)) != _HEAD_TYPES:
        return None
    key, session_id, created, updated, title, items, rows, last, crc = values
    try:
        head = Head(key, SessionInfo(session_id.decode(), title.decode(), items, created, updated), rows, last)
    except UnicodeDecodeError:
        return None
    return head if head.values()[-1] == crc else None


def row_of(key: int, values: tuple[Any, ...]) -> Row | None:
    """Return a row of `journal` with this number, kind, time, checksum and body, or None if it is damaged."""
    number, kind, at, crc, body = values
    if not (type(number) is type(crc) is int and type(kind) is type(body) is bytes and type(at) is float):
        return None
    name = _KIND_NAMES.get(kind)
    if name is None:
        return None
    row = Row(name, body)
    return row if checksum(key, number, row, at) == crc else None
