"""`StoreServer`: a schema of a PostgreSQL database, a pool of connections and its transactions.

The rows are read and written in `tables.py`. Each transaction states everything that it relies on when it begins. So neither the
settings of the server, the user and the database nor a pooler between us and the server can change its meaning.
"""

from __future__ import annotations

import math
import os
import time
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from zlib import crc32

import psycopg
from psycopg.rows import TupleRow
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from session.errors import StoreBusyError, StoreDamagedError, StoreError

from .dialect import POSTGRES, Connection, Cursor
from .postgres_errors import store_error, unreachable_error
from .postgres_url import parsed_url, shown_url
from .schema import APPLICATION, VERSION

CONNECTIONS = 8
"""Connections that the threads of one store use at most."""
SHORTEST_WAIT = 2.0
"""Seconds to wait for a connection at least, however short the wait for a lock is."""
_DEFAULTS = {"application_name": "context-window", "keepalives_idle": 10, "tcp_user_timeout": 30_000}
"""Connection parameters that the URL can replace. The last two notice within a minute that the server's machine is gone."""

# With this search path no table or function of another schema can stand in for ours.
_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL search_path = context_window; SET LOCAL lock_timeout = {wait}"
# The lock is on the session (5): writers of other sessions do not wait. A commit that is not flushed would not be a promise (6).
_WRITE = (
    "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SET LOCAL search_path = context_window; SET LOCAL lock_timeout = {wait}; "
    "SELECT CASE current_setting('synchronous_commit') WHEN 'off' THEN set_config('synchronous_commit', 'on', true) END; "
    "SELECT pg_advisory_xact_lock({lock})"
)

_abandoned: list[ConnectionPool[psycopg.Connection[TupleRow]]] = []
"""Pools inherited from a parent process. They are kept, because closing them here would end the parent's connections."""


class StoreServer:
    """The tables of a store in a PostgreSQL database. Each thread has a connection of its own while it reads or writes.

    `path` is the server's URL without its password.
    """

    def __init__(self, url: str, busy_seconds: float) -> None:
        """Take the server's URL; the schema `context_window` is created in its database if missing.

        `busy_seconds` is the wait for another writer of the same session, and for a connection. Raises StoreError if the server cannot be
        reached, refuses the user, or has tables of a newer release; StoreDamagedError if they are not those of a store; StoreBusyError if
        another process locked them for longer; FormatError if it is not the URL of a PostgreSQL server.
        """
        parameters = parsed_url(url)
        self.path = shown_url(parameters)
        self.dialect = POSTGRES
        self._password = str(parameters.get("password", ""))
        self._seconds = busy_seconds
        self._patience = max(busy_seconds, SHORTEST_WAIT)
        self._arguments: dict[str, Any] = {
            "connect_timeout": math.ceil(self._patience),
            **_DEFAULTS,
            **parameters,
            "autocommit": True,  # no implicit transactions
            "prepare_threshold": None,  # poolers may give each transaction another connection
        }
        connection = self._connect()  # not by the pool, which would not say why it cannot
        try:
            with self._store_errors(connection):
                self._set_up(connection)
        finally:
            connection.close()
        self._open()

    def close(self) -> None:
        """Close all connections. Any use afterwards raises StoreError."""
        self._finalizer()

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Give a connection that sees one state of all rows, whatever others write meanwhile."""
        with self._transaction(_READ.format(wait=self._lock_timeout)) as connection:
            yield connection

    @contextmanager
    def write(self, session_id: str, /) -> Iterator[Connection]:
        """Give a connection that alone may write this session. Its changes are on disk when the block ends, or undone if it raises."""
        lock = f"{APPLICATION}, {crc32(session_id.encode()) - 2**31}"  # two sessions of one checksum wait for each other, which is harmless
        with self._transaction(_WRITE.format(wait=self._lock_timeout, lock=lock)) as connection:
            yield connection

    def purge(self) -> None:
        """Do nothing: the server removes deleted rows when it vacuums the table, and from its own log later."""

    # Inside

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[Connection]:
        self._reopen_after_fork()
        pool, connection = self._begun(begin)
        try:
            with self._store_errors(connection):
                try:
                    yield _Statements(connection)
                    connection.commit()
                except BaseException:
                    _roll_back(connection)
                    raise
        finally:
            pool.putconn(connection)

    def _begun(self, begin: str) -> tuple[ConnectionPool[psycopg.Connection[TupleRow]], psycopg.Connection[TupleRow]]:
        """Return the pool and one of its connections, in a transaction. Those that broke while they lay in the pool are replaced."""
        until = time.monotonic() + self._patience
        while True:
            pool = self._pool
            try:
                if not self._finalizer.alive:
                    raise PoolClosed  # noqa: TRY301 - in a forked process the pool does not know
                connection = pool.getconn(timeout=until - time.monotonic())
            except PoolClosed:
                raise StoreError(self.path, "the store was closed; make a new SessionStore") from None
            except PoolTimeout:
                connection = None
            if connection is None:
                self._connect().close()  # raises the reason, if it is the server
                raise StoreBusyError(self.path, self._patience)
            try:
                with self._store_errors(connection):
                    connection.execute(begin.encode())
            except BaseException as error:
                is_lost = connection.closed
                _roll_back(connection)
                pool.putconn(connection)
                if not (is_lost and isinstance(error, StoreError)):
                    raise
            else:
                return pool, connection

    def _reopen_after_fork(self) -> None:
        """Open another pool if this process was forked from the one that opened the store."""
        if os.getpid() != self._pid:
            _abandoned.append(self._pool)
            if self._finalizer.detach():
                self._open()

    def _open(self) -> None:
        self._pid = os.getpid()
        self._pool: ConnectionPool[psycopg.Connection[TupleRow]] = ConnectionPool(
            kwargs=self._arguments, min_size=0, max_size=CONNECTIONS, num_workers=1, reconnect_timeout=self._patience, open=True
        )
        self._finalizer = weakref.finalize(self, _close, self._pool, self._pid)

    def _connect(self) -> psycopg.Connection[TupleRow]:
        try:
            return psycopg.connect(**self._arguments)
        except psycopg.Error as error:
            refusal = unreachable_error(self.path, error, self._password)
        raise refusal  # not above, where psycopg's error would stay attached to it: that one holds the password

    @property
    def _lock_timeout(self) -> int:
        """Milliseconds; 0 would mean for ever."""
        return max(1, round(1_000 * self._seconds))

    def _set_up(self, connection: psycopg.Connection[TupleRow]) -> None:
        if not self._has_version(connection):
            self._create(connection)
        row = connection.execute("SELECT max(version) FROM context_window.store").fetchone()
        version = None if row is None else row[0]
        if version is None or version < VERSION:
            raise StoreDamagedError(self.path, "its tables are not those of a store")
        if version > VERSION:
            raise StoreError(self.path, f"written by a newer release (version {version}; this one reads {VERSION}); update to open it")

    def _create(self, connection: psycopg.Connection[TupleRow]) -> None:
        """Create the tables, unless another process does so first."""
        with connection.transaction():
            connection.execute(f"SET LOCAL lock_timeout = {self._lock_timeout}".encode())
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (APPLICATION,))
            if self._has_version(connection):
                return
            # Not `IF NOT EXISTS`, which needs the right to create one even where it exists.
            if not _any_row(connection, "SELECT 1 FROM pg_namespace WHERE nspname = 'context_window'"):
                connection.execute("CREATE SCHEMA context_window")
            connection.execute("SET LOCAL search_path = context_window")
            for statement in POSTGRES.schema().values():
                connection.execute(statement.encode())
            connection.execute("CREATE TABLE store (version BIGINT NOT NULL)")
            connection.execute("INSERT INTO store VALUES (%s)", (VERSION,))

    def _has_version(self, connection: psycopg.Connection[TupleRow]) -> bool:
        return _any_row(connection, "SELECT 1 FROM pg_tables WHERE schemaname = 'context_window' AND tablename = 'store'")

    @contextmanager
    def _store_errors(self, connection: psycopg.Connection[TupleRow]) -> Iterator[None]:
        """Raise psycopg's errors as StoreErrors."""
        try:
            yield
        except psycopg.Error as error:
            raise store_error(self.path, error, self._seconds, is_lost=connection.closed) from error


class _Statements:
    """Runs statements as `tables.py` writes them: `?` marks a value, and texts are bytes on both ways."""

    def __init__(self, connection: psycopg.Connection[TupleRow]) -> None:
        self._connection = connection

    def execute(self, statement: str, values: Sequence[Any] = (), /) -> Cursor:
        return self._connection.execute(_marked(statement), _encoded(values), binary=True)

    def executemany(self, statement: str, rows: Iterable[Sequence[Any]], /) -> None:
        with self._connection.cursor() as cursor:
            cursor.executemany(_marked(statement), map(_encoded, rows))


def _marked(statement: str) -> bytes:
    return statement.replace("?", "%s").encode()


def _encoded(values: Sequence[Any]) -> list[Any]:
    return [value.encode() if isinstance(value, str) else value for value in values]


def _any_row(connection: psycopg.Connection[TupleRow], query: str) -> bool:
    """True if the catalog has such rows now. `to_regclass` would answer as before the transaction waited for its lock."""
    return connection.execute(query.encode()).fetchone() is not None


def _roll_back(connection: psycopg.Connection[TupleRow]) -> None:
    """Roll back. An error is not raised: it would hide the one that led here, and the pool discards the connection."""
    try:
        connection.rollback()
    except psycopg.Error:
        connection.close()


def _close(pool: ConnectionPool[psycopg.Connection[TupleRow]], pid: int) -> None:
    if os.getpid() == pid:
        pool.close()
    else:
        _abandoned.append(pool)
