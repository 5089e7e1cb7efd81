"""`StoreFile`: one SQLite file, its transactions, and what SQLite says of it in words of ours. What its rows mean lives in `journal.py`.

The file is opened as it is found: nothing is written before it is known to be a store, or empty.
"""

from __future__ import annotations

import os
import sqlite3
import sys
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager

from session.errors import StoreDamagedError, StoreError

from .complaints import is_busy, ours
from .paths import made, plain_path, quoted
from .schema import APPLICATION, PAGE_BYTES, SCHEMA, VERSION, is_schema

PAUSE = 0.02
"""Seconds between two attempts where SQLite does not wait by itself."""

_abandoned: list[sqlite3.Connection] = []
"""Connections of the process that this one was forked from: to close them here would harm that one."""


class StoreFile:
    """A connection to the file, for one thread at a time: the others wait.

    Attributes:
        path: The file.
    """

    def __init__(self, path: str | os.PathLike[str], busy_seconds: float) -> None:
        """
        Args:
            path: The file; made, with its folder, where there is none.
            busy_seconds: How long to wait for another process.

        Raises:
            StoreError: It cannot be opened, or is of a newer release.
            StoreDamagedError: It is damaged, or no store.
            StoreBusyError: Another process kept it too long.
        """
        self.path = plain_path(path, "SessionStore.path")
        self._seconds = busy_seconds
        self._lock = threading.RLock()
        with self._told():
            # Not `Path.resolve`: it follows links, and a link may be put elsewhere while the file is open.
            self.path = os.path.abspath(self.path)  # noqa: PTH100
        self._open()

    def close(self) -> None:
        """Gives the file back. Whatever is asked of it afterwards is a StoreError."""
        with self._lock:
            self._finalizer()

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A connection that sees the file as it is now, whatever others write meanwhile."""
        with self._transaction("BEGIN") as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A connection that alone may write. All that is written is on the disk when this ends well, and none of it otherwise."""
        with self._transaction("BEGIN IMMEDIATE") as connection:
            yield connection

    def forget(self) -> None:
        """Takes what was deleted out of the write-ahead log too, where nobody else reads it just now."""
        self._after_fork()
        with self._lock, self._told():
            self._live().execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    # Inside

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[sqlite3.Connection]:
        self._after_fork()
        with self._lock, self._told():
            connection = self._live()
            connection.execute(begin)
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                self._stuck = not _rolled_back(connection)
                raise

    def _after_fork(self) -> None:
        """Takes a connection of its own in a process that was forked from the one that opened the file."""
        if os.getpid() != self._pid:
            _abandoned.append(self._connection)
            self._lock = threading.RLock()  # whoever held it is not in this process
            if self._finalizer.detach():
                self._open()

    def _live(self) -> sqlite3.Connection:
        if self._stuck:
            self._finalizer()
            self._open()
        if not self._finalizer.alive:
            raise StoreError(self.path, "the store was closed; make a new SessionStore")
        return self._connection

    def _open(self) -> None:
        with self._told():
            made(self.path)
            connection = sqlite3.connect(
                f"file://{quoted(self.path)}?mode=rw",
                uri=True,
                timeout=self._seconds,
                isolation_level=None,  # transactions begin and end where it is written
                check_same_thread=False,  # the lock sees to it
            )
            self._pid = os.getpid()
            self._stuck = False
            self._connection = connection
            self._finalizer = weakref.finalize(self, _close, connection, self._pid)
            try:
                connection.text_factory = bytes  # damaged text is found by us, at its place
                self._set_up(connection)
            except BaseException:
                self._finalizer()
                raise

    def _set_up(self, connection: sqlite3.Connection) -> None:
        for setting in (
            "trusted_schema = OFF",  # a file may come from anywhere
            "cell_size_check = ON",
            "secure_delete = ON",  # what was said is overwritten when it is deleted
            "synchronous = FULL",
            "fullfsync = ON",  # where macOS would only pretend
            "checkpoint_fullfsync = ON",
        ):
            connection.execute(f"PRAGMA {setting}")
        _turn_code_off(connection)
        if self._is_new(connection):
            self._make(connection)
        elif _text(connection, "PRAGMA journal_mode") != "wal":
            self._to_wal(connection)

    def _is_new(self, connection: sqlite3.Connection) -> bool:
        """Whether the file is empty; if not, it is a store.

        Raises:
            StoreError: It is of a newer release.
            StoreDamagedError: It is no store.
        """
        with self._one_state(connection):
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            application = connection.execute("PRAGMA application_id").fetchone()[0]
            rows = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master").fetchall()
        if not rows and not version and not application:
            return True
        if application != APPLICATION:
            raise StoreDamagedError(self.path, "a database, but not one of sessions")
        if version > VERSION:
            raise StoreError(self.path, f"written by a newer release (version {version}; this one reads {VERSION}); update to open it")
        if version != VERSION or not is_schema(rows):
            raise StoreDamagedError(self.path, "its tables are not those of a store")
        return False

    @contextmanager
    def _one_state(self, connection: sqlite3.Connection) -> Iterator[None]:
        """One state of the file for several questions."""
        connection.execute("BEGIN")
        try:
            yield
        finally:
            _rolled_back(connection)

    def _make(self, connection: sqlite3.Connection) -> None:
        connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
        self._to_wal(connection)
        connection.execute("BEGIN IMMEDIATE")
        try:
            if not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:  # nobody was faster
                for statement in SCHEMA.values():
                    connection.execute(statement)
                connection.execute(f"PRAGMA application_id = {APPLICATION}")
                connection.execute(f"PRAGMA user_version = {VERSION}")
            connection.execute("COMMIT")
        except BaseException:
            _rolled_back(connection)
            raise
        self._is_new(connection)

    def _to_wal(self, connection: sqlite3.Connection) -> None:
        """Readers do not wait for writers then. Where the file system cannot, the file stays as safe, and they do wait."""
        until = time.monotonic() + self._seconds
        while True:
            try:
                mode = _text(connection, "PRAGMA journal_mode = WAL")
            except sqlite3.OperationalError as error:
                # For this SQLite does not wait by itself.
                if not is_busy(error) or time.monotonic() >= until:
                    raise
                time.sleep(PAUSE)
            else:
                break
        if mode != "wal":
            connection.execute("PRAGMA synchronous = EXTRA")

    @contextmanager
    def _told(self) -> Iterator[None]:
        """What SQLite and the system raise, as an error of ours."""
        try:
            yield
        except sqlite3.Error as error:
            raise ours(self.path, error, self._seconds) from error
        except UnicodeDecodeError as error:  # SQLite quotes what is damaged, and Python does not get that far
            raise StoreDamagedError(self.path, "not a store, or damaged") from error
        except OSError as error:
            raise StoreError(self.path, f"{error.strerror or error}; check that it is a file, and its permissions") from error


def _text(connection: sqlite3.Connection, question: str) -> str:
    found: bytes = connection.execute(question).fetchone()[0]
    return found.decode()


def _turn_code_off(connection: sqlite3.Connection) -> None:
    """Turn triggers and views off, so that none runs that another process adds while the file is open. Python before 3.12 cannot."""
    if sys.version_info >= (3, 12):
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_ENABLE_TRIGGER, False)
        if hasattr(sqlite3, "SQLITE_DBCONFIG_ENABLE_VIEW"):  # since SQLite 3.30
            connection.setconfig(sqlite3.SQLITE_DBCONFIG_ENABLE_VIEW, False)


def _rolled_back(connection: sqlite3.Connection) -> bool:
    """Whether no transaction is open any more. What made us end it is on its way to the caller, and says more than this could."""
    try:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
    except sqlite3.Error:
        return False
    return True


def _close(connection: sqlite3.Connection, pid: int) -> None:
    if os.getpid() == pid:
        connection.close()
    else:
        _abandoned.append(connection)
