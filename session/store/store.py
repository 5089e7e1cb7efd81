"""`SessionStore`: the public class. The meaning of rows is in `journal.py`, the connection in `file.py` and `server.py`."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self
from weakref import WeakKeyDictionary

from session.errors import FormatError, StoreConflictError, StoreError, short
from session.sanitize import clean
from session.session import Session

from ..extras import install_line
from .dialect import Connection, Database
from .file import StoreFile
from .journal import EDIT, Change, SavedState, changes_since, extends, saved_state
from .postgres_url import is_url
from .replay import JournalReplay
from .tables import Head, SessionInfo, Tables, checked_id

if TYPE_CHECKING:
    from .stored_session import StoredSession

LONGEST_WAIT = 3_600.0
"""Seconds that a call may wait for another process."""


@dataclass(frozen=True, slots=True)
class Revision:
    """One state of a session's log: as it was before an edit, or as it is now (theory of operation, 3).

    Attributes:
        number: Pass it as `load(id, revision=number)`. The first is 0; the last one is the log now.
        items: Number of items in it.
        updated: Unix seconds of the last save that belongs to it.
    """

    number: int
    items: int
    updated: float


class SessionStore:
    """Sessions in one SQLite file or one PostgreSQL database. Saved data is never overwritten: the log before each edit stays readable.

        with SessionStore("sessions.db") as store:
            session = store.create()
            session.add_message("user", "What is in main.py?")  # on disk when this returns

    `SessionStore("postgresql://user@host/database")` is a store for many machines.

    A session from `create` or `open` saves itself when it grows or changes; any other session is saved by `save`. A save writes only
    what is new. An edit (a pin, an insertion, a truncation, a summary) begins a new revision.

    Several processes may use one store. If another process has added to a session since you loaded it, your save raises
    StoreConflictError. Nothing is lost: the store and your session are as they were. Two ways to continue:

        fresh = store.open(session.id)
        await fresh.merge(session)      # both, ordered by time
        store.save(session.fork())      # or: keep yours as a session of its own

    A store may be used from any thread. Each call waits for the disk, some milliseconds. On a file, calls take turns; on a server, only
    those that write one session.

    Attributes:
        path: The file, or the server's URL without its password. While a file is open, SQLite keeps `…-wal` and `…-shm` next to it: to
            copy an open store, copy these too.
    """

    def __init__(self, path: str | os.PathLike[str], *, busy_seconds: float = 5.0, clock: Callable[[], float] = time.time) -> None:
        """
        Args:
            path: The file; it and its folder are created if missing, private to their owner. Or the URL of a PostgreSQL server, as
                libpq has it; its schema `context_window` is created if missing.
            busy_seconds: Seconds to wait for another process, at most 3,600. For a connection to a server the wait is 2 at least.
            clock: Returns the Unix seconds that saves are stamped with. They are for display only.

        Raises:
            StoreError: The file cannot be opened, the server cannot be reached or refuses the user, or a newer release wrote to it.
            StoreDamagedError: It is damaged, or not a store.
            StoreBusyError: Another process locked it for longer than `busy_seconds`.
            FormatError: An argument has the wrong type or is out of range, or a URL is not one of a PostgreSQL server.
        """
        if isinstance(busy_seconds, bool) or not isinstance(busy_seconds, int | float) or not 0 <= busy_seconds <= LONGEST_WAIT:
            raise FormatError("SessionStore.busy_seconds", f"{short(busy_seconds)}; pass a number of seconds from 0 to {LONGEST_WAIT:g}")
        self._clock = clock
        self._saved: WeakKeyDictionary[Session, SavedState] = WeakKeyDictionary()
        self._database = _opened(path, float(busy_seconds))
        self._tables = Tables(self._database.path, self._database.dialect)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<SessionStore {self.path}>"

    @property
    def path(self) -> str:
        """The file, as an absolute path; or the server's URL without its password."""
        return self._database.path

    def close(self) -> None:
        """Close the file, or the connections to the server. Changing one of its stored sessions afterwards raises StoreError."""
        self._database.close()

    # Sessions that save themselves

    def create(self, session_id: str | None = None, *, metadata: Mapping[str, Any] | None = None) -> StoredSession:
        """Return a new, empty session that saves itself. It is in the store when this returns.

        Args:
            session_id: Its id; a new one by default.
            metadata: JSON values to store with it.

        Raises:
            StoreConflictError: The store has a session with this id.
            StoreError: The store cannot be written.
            FormatError: An argument has the wrong type.
        """
        from .stored_session import StoredSession

        session = StoredSession(self, Session(id=session_id, metadata=metadata))
        change = changes_since(session, None)
        with self._database.write(change.state.session_id) as connection:
            if self._tables.find_head(connection, session.id) is not None:
                raise StoreConflictError(self.path, session.id, "already exists; open() it, or leave out the id to get a new one")
            saved = self._tables.add(connection, change, None, self._now())
        self._saved[session] = saved
        return session

    def open(self, session_id: str) -> StoredSession:
        """Load a session that saves itself from now on.

        Raises:
            UnknownSessionError: The store has no session with this id.
            StoreDamagedError: The session cannot be read.
            StoreError: The store cannot be used.
        """
        from .stored_session import StoredSession

        loaded = self.load(session_id)
        session = StoredSession(self, loaded)
        saved = self._saved[loaded]
        self._saved[session] = replace(saved, items=session.items, lineage=session.lineage, breaks=None)
        return session

    # Sessions that are saved on request

    def save(self, session: Session) -> int:
        """Write everything that has changed since the session was saved or loaded, and return the number of items that are new or replaced.

        A session that this store has never seen is saved under an existing id only if it begins with all the items stored there.

        Args:
            session: A session. Save the log, not a view: a view has the id of its log but other items.

        Raises:
            StoreConflictError: The store has another log under this id: another process added to it or deleted it, or this is a view or
                an edited copy.
            StoreBusyError: Another process locked the store for longer than `busy_seconds`.
            StoreError: The store cannot be written.
            FormatError: It is not a session, or holds a value that JSON cannot.
        """
        if not isinstance(session, Session):
            raise FormatError("save.session", f"{short(session)} is not a session")
        if not isinstance(session.id, str) or not session.id or clean(session.id) != session.id:
            raise FormatError("Session.id", f"{short(session.id)} is not a session's id; use a str that is not empty")
        saved = self._saved.get(session)
        if saved is not None and saved.session_id != session.id:
            saved = None
        change = changes_since(session, saved)
        if not change.rows:
            return 0
        with self._database.write(change.state.session_id) as connection:
            head = self._tables.find_head(connection, session.id)
            if head is None:
                if saved is not None:
                    raise StoreConflictError(self.path, session.id, "was deleted from the store; save its fork() to keep it under a new id")
            elif saved is None or (head.key, head.rows) != (saved.key, saved.rows):
                change = self._changes_since_stored(connection, head, session)
            state = self._tables.add(connection, change, head, self._now()) if change.rows else change.state
        self._saved[session] = state
        return change.item_count

    def load(self, session_id: str, *, revision: int | None = None) -> Session:
        """Load a session. `save` then writes what you add to it.

        Args:
            session_id: Its id.
            revision: A number from `revisions`, to get the log as it was then. That session has the same id and can be saved only if
                no edit came after it: otherwise save its fork().

        Raises:
            UnknownSessionError: The store has no session with this id.
            StoreDamagedError: The session cannot be read.
            StoreError: The store cannot be used.
            FormatError: There is no such revision.
        """
        with self._database.read() as connection:
            head = self._tables.head(connection, session_id)
            replay = self._tables.replay(connection, head, revision)
        session = self._tables.session(replay, head)
        if replay.row_count == head.rows:  # saves cannot continue from an old revision
            self._saved[session] = saved_state(session, session, key=head.key, rows=head.rows, title=head.info.title)
        return session

    def let_go(self, session: Session) -> None:
        """Forget the saved state of a session in memory, and release its items. The store keeps the session."""
        self._saved.pop(session, None)

    # Contents

    def list(self) -> tuple[SessionInfo, ...]:
        """Return all sessions, the most recently saved first.

        Raises:
            StoreDamagedError: The list is damaged.
            StoreError: The store cannot be used.
        """
        with self._database.read() as connection, closing(self._tables.heads(connection)) as heads:
            return tuple(head.info for head in heads)

    def latest(self) -> SessionInfo | None:
        """Return the session that was saved last, or None if the store is empty.

        Raises:
            StoreDamagedError: The list is damaged.
            StoreError: The store cannot be used.
        """
        with self._database.read() as connection, closing(self._tables.heads(connection, only_latest=True)) as heads:
            return next((head.info for head in heads), None)

    def revisions(self, session_id: str) -> tuple[Revision, ...]:
        """Return the states of a session's log before each edit, in order, and its state now.

        Raises:
            UnknownSessionError: The store has no session with this id.
            StoreDamagedError: The session cannot be read.
            StoreError: The store cannot be used.
        """
        revisions: list[Revision] = []
        replay = JournalReplay()
        updated = 0.0
        with self._database.read() as connection:
            head = self._tables.head(connection, session_id)
            with closing(self._tables.rows(connection, head)) as rows:
                for number, row, at in rows:
                    if row.kind == EDIT:
                        revisions.append(Revision(replay.edit_count, len(replay.items), updated))
                    with self._tables.damage(head, number):
                        replay.add(number, row)
                    if not replay.pending:  # pending items belong to the next revision
                        updated = at
        return (*revisions, Revision(replay.edit_count, len(replay.items), updated))

    def delete(self, session_id: str) -> None:
        """Remove a session and all its revisions for good. Their bytes in a file are overwritten; a server frees them when it next vacuums.

        Raises:
            UnknownSessionError: The store has no session with this id.
            StoreError: The store cannot be written.
        """
        with self._database.write(checked_id(session_id)) as connection:
            head = self._tables.head(connection, session_id)
            connection.execute("DELETE FROM journal WHERE session = ?", (head.key,))
            connection.execute("DELETE FROM sessions WHERE key = ?", (head.key,))
        self._database.purge()

    # Inside

    def _changes_since_stored(self, connection: Connection, head: Head, session: Session) -> Change:
        """Return the rows to add to a stored session whose state this store does not know, or knows no longer.

        Raises StoreConflictError if the session does not begin with all the stored items.
        """
        stored = self._tables.session(self._tables.replay(connection, head), head)
        if not extends(session, stored):
            advice = (
                "this is a view of it: save the log itself, or a copy()"
                if session.origin is not None
                else "nothing was written: open() it and merge() this one into it, or save this one's fork()"
            )
            raise StoreConflictError(self.path, session.id, f"has items in the store that this session does not begin with; {advice}")
        return changes_since(session, saved_state(session, stored, key=head.key, rows=head.rows, title=head.info.title))

    def _now(self) -> float:
        at = self._clock()
        if isinstance(at, bool) or not isinstance(at, int | float) or not math.isfinite(at):
            raise FormatError("SessionStore.clock", f"{short(at)} is not a number of seconds")
        return float(at)


def _opened(address: str | os.PathLike[str], busy_seconds: float) -> Database:
    if not is_url(address):
        return StoreFile(address, busy_seconds)
    try:
        from .server import StoreServer
    except ImportError as error:
        raise StoreError("PostgreSQL", f"a store there needs more packages: {install_line('postgres')}") from error
    return StoreServer(os.fspath(address), busy_seconds)
