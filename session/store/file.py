"""`StoreFile`: one SQLite file, its connection and its transactions. Errors of SQLite are raised as `StoreError`s.

The rows are read and written in `tables.py`.

Nothing is written to an existing file before it is known to be a store.
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

from .dialect import SQLITE, Connection
from .paths import checked_path, create_if_missing, uri_path
from .recovered import complete, holds_store
from .schema import APPLICATION, LOST_AND_FOUND, PAGE_BYTES, SCHEMA, VERSION, is_lost_and_found, is_schema, schema_rows
from .sqlite_errors import is_busy, store_error

PAUSE = 0.02
"""Seconds between two attempts at a lock for which SQLite does not wait by itself."""

_abandoned: list[sqlite3.Connection] = []
"""Connections inherited from a parent process. They are kept, because closing them here would release the parent's locks."""


class StoreFile:
    """A connection to the file. Threads use it one at a time. `path` is absolute."""

    def __init__(self, path: str | os.PathLike[str], busy_seconds: float) -> None:
        """Take the file; it and its folder are created if missing. `busy_seconds` is the wait for another process.

        Raises StoreError if it cannot be opened, or was written by a newer release; StoreDamagedError if it is damaged, or not a store;
        StoreBusyError if another process locked it for longer.
        """
        self.path = checked_path(path)
        self.dialect = SQLITE
        self._seconds = busy_seconds
        self._lock = threading.RLock()
        with self._store_errors():
            # Not `Path.resolve`: it follows links, and a link may be changed while the file is open.
            self.path = os.path.abspath(self.path)  # noqa: PTH100
        self._open()

    def close(self) -> None:
        """Close the file. Any use afterwards raises StoreError."""
        with self._lock:
            self._finalizer()

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Give a connection that sees one state of the file, whatever other processes write meanwhile."""
        with self._transaction("BEGIN") as connection:
            yield connection

    @contextmanager
    def write(self, _session_id: str, /) -> Iterator[Connection]:
        """Give a connection that alone may write. The block's changes are on disk when it ends, or undone if it raises."""
        with self._transaction("BEGIN IMMEDIATE") as connection:
            yield connection

    def purge(self) -> None:
        """Empty the write-ahead log, so that deleted data is gone from it too. Does nothing while another process reads."""
        self._reconnect_after_fork()
        with self._lock, self._store_errors():
            self._live_connection().execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    # Inside

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[sqlite3.Connection]:
        self._reconnect_after_fork()
        with self._lock, self._store_errors():
            connection = self._live_connection()
            connection.execute(begin)
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                self._is_stuck = not _roll_back(connection)
                raise

    def _reconnect_after_fork(self) -> None:
        """Open another connection if this process was forked from the one that opened the file."""
        if os.getpid() != self._pid:
            _abandoned.append(self._connection)
            self._lock = threading.RLock()  # the thread that held the old one is not in this process
            if self._finalizer.detach():
                self._open()

    def _live_connection(self) -> sqlite3.Connection:
        if self._is_stuck:
            self._finalizer()
            self._open()
        if not self._finalizer.alive:
            raise StoreError(self.path, "the store was closed; make a new SessionStore")
        return self._connection

    def _open(self) -> None:
        with self._store_errors():
            create_if_missing(self.path)
            connection = sqlite3.connect(
                f"file://{uri_path(self.path)}?mode=rw",
                uri=True,
                timeout=self._seconds,
                isolation_level=None,  # no implicit transactions
                check_same_thread=False,  # `_lock` serializes the threads
            )
            self._pid = os.getpid()
            self._is_stuck = False
            self._connection = connection
            self._finalizer = weakref.finalize(self, _close, connection, self._pid)
            try:
                connection.text_factory = bytes  # decoded by us, so that damaged text is reported with its row
                self._set_up(connection)
            except BaseException:
                self._finalizer()
                raise

    def _set_up(self, connection: sqlite3.Connection) -> None:
        for setting in (
            "trusted_schema = OFF",  # a file may come from anywhere
            "cell_size_check = ON",
            "secure_delete = ON",  # deleted data is overwritten
            "synchronous = FULL",
            "fullfsync = ON",  # on macOS, fsync alone does not reach the disk
            "checkpoint_fullfsync = ON",
        ):
            connection.execute(f"PRAGMA {setting}")
        _turn_code_off(connection)
        if self._is_new(connection):
            self._create(connection)
        if _text(connection, "PRAGMA journal_mode") != "wal":
            # We put files into WAL mode if the file system supports it. So another program wrote this one, perhaps `sqlite3` (8).
            with self._immediate(connection):
                complete(connection)
            self._use_wal(connection)

    def _is_new(self, connection: sqlite3.Connection) -> bool:
        """True if the file has no tables of a store yet, and may get them; False if it is a store.

        Raises StoreError if a newer release wrote it, StoreDamagedError if it is not a store.
        """
        with self._one_state(connection):
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            application = connection.execute("PRAGMA application_id").fetchone()[0]
            rows = schema_rows(connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master").fetchall())
            own_rows = [row for row in rows if not is_lost_and_found(row)]
            if not own_rows and not version and not application and (not rows or holds_store(connection)):
                return True
        if application != APPLICATION:
            raise StoreDamagedError(self.path, "an SQLite database of something else")
        if version > VERSION:
            raise StoreError(self.path, f"written by a newer release (version {version}; this one reads {VERSION}); update to open it")
        if version != VERSION or not is_schema(own_rows):
            raise StoreDamagedError(self.path, "its tables are not those of a store")
        return False

    def _create(self, connection: sqlite3.Connection) -> None:
        """Create the tables, unless another process does so first."""
        connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
        if not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:  # not for a recovered file: see `_set_up`
            self._use_wal(connection)
        with self._immediate(connection):
            tables = connection.execute("SELECT count(*) FROM sqlite_master WHERE name <> ?", (LOST_AND_FOUND,))
            if not tables.fetchone()[0]:
                for statement in SCHEMA.values():
                    connection.execute(statement)
                connection.execute(f"PRAGMA application_id = {APPLICATION}")
                connection.execute(f"PRAGMA user_version = {VERSION}")
        self._is_new(connection)

    @contextmanager
    def _one_state(self, connection: sqlite3.Connection) -> Iterator[None]:
        """Give several queries the same state of the file."""
        connection.execute("BEGIN")
        try:
            yield
        finally:
            _roll_back(connection)

    @contextmanager
    def _immediate(self, connection: sqlite3.Connection) -> Iterator[None]:
        """Run the block in a write transaction."""
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            connection.execute("COMMIT")
        except BaseException:
            _roll_back(connection)
            raise

    def _use_wal(self, connection: sqlite3.Connection) -> None:
        """Switch to WAL mode (5). If the file system cannot do it, flush more often to keep the file as safe (6)."""
        until = time.monotonic() + self._seconds
        while True:
            try:
                mode = _text(connection, "PRAGMA journal_mode = WAL")
            except sqlite3.OperationalError as error:
                # SQLite does not wait for this lock by itself.
                if not is_busy(error) or time.monotonic() >= until:
                    raise
                time.sleep(PAUSE)
            else:
                break
        if mode != "wal":
            connection.execute("PRAGMA synchronous = EXTRA")

    @contextmanager
    def _store_errors(self) -> Iterator[None]:
        """Raise errors of SQLite and of the system as StoreErrors."""
        try:
            yield
        except sqlite3.Error as error:
            raise store_error(self.path, error, self._seconds) from error
        except UnicodeDecodeError as error:  # SQLite's message quotes damaged text, which Python cannot decode
            raise StoreDamagedError(self.path, "not a store, or damaged") from error
        except OSError as error:
            raise StoreError(self.path, f"{error.strerror or error}; check that it is a file, and its permissions") from error


def _text(connection: sqlite3.Connection, query: str) -> str:
    value: bytes = connection.execute(query).fetchone()[0]
    return value.decode()


def _turn_code_off(connection: sqlite3.Connection) -> None:
    """Turn off triggers and views, in case another process adds one while the file is open. Python before 3.12 cannot."""
    if sys.version_info >= (3, 12):
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_ENABLE_TRIGGER, False)
        if hasattr(sqlite3, "SQLITE_DBCONFIG_ENABLE_VIEW"):  # since SQLite 3.30
            connection.setconfig(sqlite3.SQLITE_DBCONFIG_ENABLE_VIEW, False)


def _roll_back(connection: sqlite3.Connection) -> bool:
    """Roll back; return True if no transaction is open afterwards. An error is not raised: it would hide the one that led here."""
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
