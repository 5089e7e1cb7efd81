"""`SessionStore`: sessions in one file. What a row means lives in `journal.py`, how the file is kept in `file.py`."""

from __future__ import annotations

import math
import os
import sqlite3
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self
from weakref import WeakKeyDictionary

from session.door import clean
from session.errors import FormatError, StoreConflictError, short
from session.session import Session

from .file import StoreFile
from .journal import EDIT, Change, Known, change, goes_on_from, known_of
from .replay import Replay
from .tables import Head, SessionInfo, Tables

if TYPE_CHECKING:
    from .stored import StoredSession

LONGEST_WAIT = 3_600.0
"""Seconds."""


@dataclass(frozen=True, slots=True)
class Revision:
    """The log of a session as it was when an edit replaced it, or as it is now.

    Attributes:
        number: For `load(id, revision=number)`. The first is 0, the last is the log now.
        items: How many it has.
        updated: Unix seconds of the last save that it has seen.
    """

    number: int
    items: int
    updated: float


class SessionStore:
    """Sessions in one file: what is saved stays, also what later edits replaced.

        with SessionStore("sessions.db") as store:
            session = store.create()
            session.add_message("user", "What is in main.py?")  # on the disk when this returns

    A session from `create` or `open` is written as it grows and changes; any other is written by `save`. Both write what is new, and
    nothing of what is there is written over: an edit (a pin, an insertion, a truncation, a summary) begins a new revision.

    Several processes may use one file. Who saves a session that another process has gone on with gets a StoreConflictError, and
    nothing is lost: the session in memory is as it was. Two ways on:

        fresh = store.open(session.id)
        await fresh.merge(session)      # both, by time
        store.save(session.fork())      # or: each goes its own way

    A store may be used from any thread, one at a time; each call waits for the disk, some milliseconds.

    Attributes:
        path: The file. SQLite keeps two more beside it while it is open, `…-wal` and `…-shm`: to copy a store that is open, copy
            them too.
    """

    def __init__(self, path: str | os.PathLike[str], *, busy_seconds: float = 5.0, clock: Callable[[], float] = time.time) -> None:
        """
        Args:
            path: The file. It is made where there is none, for its owner alone, and so is its folder.
            busy_seconds: How long a call waits for another process, at most an hour.
            clock: Gives the Unix seconds that saves are stamped with. Nothing is decided by them.

        Raises:
            StoreError: The file cannot be opened, or is of a newer release.
            StoreDamagedError: It is damaged, or no store.
            StoreBusyError: Another process kept it too long.
            FormatError: `busy_seconds` is no such number.
        """
        if isinstance(busy_seconds, bool) or not isinstance(busy_seconds, int | float) or not 0 <= busy_seconds <= LONGEST_WAIT:
            raise FormatError("SessionStore.busy_seconds", f"{short(busy_seconds)}; pass a number of seconds from 0 to {LONGEST_WAIT:g}")
        self._clock = clock
        self._known: WeakKeyDictionary[Session, Known] = WeakKeyDictionary()
        self._file = StoreFile(path, float(busy_seconds))
        self._tables = Tables(self._file.path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<SessionStore {self.path}>"

    @property
    def path(self) -> str:
        """The file, as an absolute path."""
        return self._file.path

    def close(self) -> None:
        """Gives the file back. A change of a session that it wrote is a StoreError from then on."""
        self._file.close()

    # Sessions that are written as they change

    def create(self, session_id: str | None = None, *, metadata: Mapping[str, Any] | None = None) -> StoredSession:
        """A new session without items, in the file from now on.

        Args:
            session_id: Its id; made where not given.
            metadata: JSON values to carry along.

        Raises:
            StoreConflictError: The file holds a session of this id.
            StoreError: The file cannot be written.
            FormatError: An argument has the wrong type.
        """
        from .stored import StoredSession

        made = StoredSession(self, Session(id=session_id, metadata=metadata))
        new = change(made, None)
        with self._file.writing() as connection:
            if self._tables.head(connection, made.id) is not None:
                raise StoreConflictError(self.path, made.id, "is in the file already; open() it, or leave the id out to have one made")
            known = self._tables.add(connection, new, None, self._now())
        self._known[made] = known
        return made

    def open(self, session_id: str) -> StoredSession:
        """The session, written from now on as it grows and changes.

        Raises:
            UnknownSessionError: The file holds none of this id.
            StoreDamagedError: It cannot be read.
            StoreError: The file cannot be used.
        """
        from .stored import StoredSession

        loaded = self.load(session_id)
        opened = StoredSession(self, loaded)
        known = self._known[loaded]
        self._known[opened] = replace(known, items=opened.items, lineage=opened.lineage, breaks=None)
        return opened

    # Sessions that are written when told

    def save(self, session: Session) -> int:
        """How many items were written: those that are new since the session was saved or loaded, or have taken another's place.

        A session that this store has not met, under an id that the file holds, is saved if it goes on from what is there.

        Args:
            session: A session. A view is one of its log's id: save the log.

        Raises:
            StoreConflictError: The file holds another log under its id: another process went on with it, or deleted it, or this is a
                view or an edited copy.
            StoreBusyError: Another process kept the file too long.
            StoreError: The file cannot be written.
            FormatError: It is no session, or holds what JSON cannot.
        """
        if not isinstance(session, Session):
            raise FormatError("save.session", f"{short(session)} is no session")
        if not isinstance(session.id, str) or not session.id or clean(session.id) != session.id:
            raise FormatError("Session.id", f"{short(session.id)} is not a session's id; pass a text that is not empty")
        known = self._known.get(session)
        if known is not None and known.session_id != session.id:
            known = None
        new = change(session, known)
        if not new.rows:
            return 0
        with self._file.writing() as connection:
            head = self._tables.head(connection, session.id)
            if head is None:
                if known is not None:
                    raise StoreConflictError(
                        self.path, session.id, "was deleted from the file; save its fork() to keep it as a new session"
                    )
            elif known is None or (head.key, head.rows) != (known.key, known.rows):
                new = self._going_on(connection, head, session)
            now = self._tables.add(connection, new, head, self._now()) if new.rows else new.now
        self._known[session] = now
        return new.added

    def load(self, session_id: str, *, revision: int | None = None) -> Session:
        """The session, as the file has it. `save` writes what is new in it.

        Args:
            session_id: Its id.
            revision: One of `revisions`, for its log as it was then; such a session has the same id, and cannot be saved where the log
                has been edited since: save its fork().

        Raises:
            UnknownSessionError: The file holds none of this id.
            StoreDamagedError: It cannot be read.
            StoreError: The file cannot be used.
            FormatError: There is no such revision.
        """
        with self._file.reading() as connection:
            head = self._tables.found(connection, session_id)
            replay = self._tables.replay(connection, head, revision)
        session = self._tables.session(replay, head)
        if replay.rows == head.rows:  # an old revision is not what saves go on from
            self._known[session] = known_of(session, session, key=head.key, rows=head.rows, title=head.info.title)
        return session

    def let_go(self, session: Session) -> None:
        """Forgets what it knows of a session in memory, and its items with it. The file keeps what it has."""
        self._known.pop(session, None)

    # What there is

    def list(self) -> tuple[SessionInfo, ...]:
        """The sessions, the last saved first.

        Raises:
            StoreDamagedError: They cannot be listed.
            StoreError: The file cannot be used.
        """
        with self._file.reading() as connection, closing(self._tables.heads(connection)) as heads:
            return tuple(head.info for head in heads)

    def latest(self) -> SessionInfo | None:
        """The session that was saved last, or None where there is none.

        Raises:
            StoreDamagedError: It cannot be told.
            StoreError: The file cannot be used.
        """
        with self._file.reading() as connection, closing(self._tables.heads(connection)) as heads:
            return next((head.info for head in heads), None)

    def revisions(self, session_id: str) -> tuple[Revision, ...]:
        """The states of the session's log that edits replaced, in order, and the log now.

        Raises:
            UnknownSessionError: The file holds no session of this id.
            StoreDamagedError: It cannot be read.
            StoreError: The file cannot be used.
        """
        found: list[Revision] = []
        replay = Replay()
        updated = 0.0
        with self._file.reading() as connection:
            head = self._tables.found(connection, session_id)
            with closing(self._tables.rows(connection, head)) as rows:
                for number, row, at in rows:
                    if row.kind == EDIT:
                        found.append(Revision(replay.edits, len(replay.items), updated))
                    with self._tables.damage(head, number):
                        replay.take(number, row)
                    if not replay.waiting:  # what waits is of the next revision
                        updated = at
        return (*found, Revision(replay.edits, len(replay.items), updated))

    def delete(self, session_id: str) -> None:
        """Takes the session and all its revisions out of the file, for good. What it said is overwritten there.

        Raises:
            UnknownSessionError: The file holds none of this id.
            StoreError: The file cannot be written.
        """
        with self._file.writing() as connection:
            head = self._tables.found(connection, session_id)
            connection.execute("DELETE FROM journal WHERE session = ?", (head.key,))
            connection.execute("DELETE FROM sessions WHERE key = ?", (head.key,))
        self._file.forget()

    # What all of them need

    def _going_on(self, connection: sqlite3.Connection, head: Head, session: Session) -> Change:
        """What is new in a session that is in the file, of which this store knows nothing, or no longer the truth.

        Raises:
            StoreConflictError: It does not go on from what is there.
        """
        stored = self._tables.session(self._tables.replay(connection, head), head)
        if not goes_on_from(session, stored):
            what = (
                "this is a view of it: save the log itself, or a copy()"
                if session.origin is not None
                else ("nothing was written: open() it and merge() this one into it, or save this one's fork()")
            )
            raise StoreConflictError(self.path, session.id, f"is in the file with other items than this one goes on from; {what}")
        return change(session, known_of(session, stored, key=head.key, rows=head.rows, title=head.info.title))

    def _now(self) -> float:
        at = self._clock()
        if isinstance(at, bool) or not isinstance(at, int | float) or not math.isfinite(at):
            raise FormatError("SessionStore.clock", f"{short(at)} is not a number of seconds")
        return float(at)
