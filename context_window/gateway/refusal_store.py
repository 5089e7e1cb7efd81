"""`RefusalStore`: one table of refused prompts, in an SQLite file or a PostgreSQL database. It holds digests and numbers, and no text.

A row is written once and never changed. The first refusal of the same messages stays, even if a worker saw another.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Lock
from typing import Any, Protocol

from session.errors import StoreDamagedError, StoreError
from session.store.paths import checked_path, create_if_missing, uri_path
from session.store.postgres_url import is_url, parsed_url
from session.store.sqlite_errors import store_error

from ..integrations.past_refusals import LARGEST_FIGURE, PastRefusal

KEPT_SECONDS = 90 * 24 * 3_600
"""Age at which a refusal is deleted. A conversation that goes on after so long is refused once more."""
MOST = 256
"""Refusals that are read of conversations that begin alike."""
APPLICATION = 0x43574752
"""SQLite's `application_id` of such a file."""
TABLE = "gateway_refusals"
_CREATE = (
    f"CREATE TABLE {TABLE} (start {{blob}} NOT NULL, messages {{integer}} NOT NULL, digest {{blob}} NOT NULL, number {{integer}} NOT NULL, "
    "tokens {integer}, token_limit {integer}, at {integer} NOT NULL, PRIMARY KEY (start, messages, digest, number))"
)
_SELECT = f"SELECT messages, number, digest, tokens, token_limit FROM {TABLE} WHERE start = ? ORDER BY messages, number LIMIT {MOST}"  # noqa: S608
_INSERT = (
    f"INSERT INTO {TABLE} (start, messages, digest, number, tokens, token_limit, at) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"  # noqa: S608
)
_DELETE = f"DELETE FROM {TABLE} WHERE at < ?"  # noqa: S608


class RefusalStore(Protocol):
    """Keeps refused prompts. Thread-safe.

    Its methods raise `StoreError` if the store cannot be used.
    """

    def known(self, start: bytes, /) -> list[PastRefusal]:
        """Return the refusals of conversations that begin like this."""

    def add(self, start: bytes, refusal: PastRefusal, /) -> None:
        """Keep a refusal. It is on the disk when this returns."""

    def close(self) -> None:
        """Close the connections."""


def refusal_store(address: str, busy_seconds: float) -> RefusalStore:
    """Return the store at an address.

    Args:
        address: The path of a file, which is created if it is missing, or the URL of a PostgreSQL server.
        busy_seconds: Seconds to wait for another process.

    Raises:
        StoreError: It cannot be opened.
        FormatError: It is not the URL of a PostgreSQL server.
    """
    return _Server(address, busy_seconds) if is_url(address) else _File(address, busy_seconds)


def check_address(address: str) -> None:
    """Check an address without connecting to a server.

    Raises:
        StoreError: A file cannot be used.
        FormatError: It is not the URL of a PostgreSQL server.
        ModuleNotFoundError: psycopg is not installed.
    """
    if is_url(address):
        parsed_url(address)
    else:
        _File(address, 1.0).close()


class _File:
    """A file of its own. Its folder is created if it is missing; others cannot read either."""

    def __init__(self, path: str, busy_seconds: float) -> None:
        self._path, self._seconds, self._lock = os.path.abspath(checked_path(path)), busy_seconds, Lock()  # noqa: PTH100 - follows no link
        with self._errors():
            create_if_missing(self._path)
            self._connection = sqlite3.connect(
                f"file://{uri_path(self._path)}?mode=rw", uri=True, timeout=busy_seconds, isolation_level=None, check_same_thread=False
            )
            try:
                self._set_up()
            except BaseException:
                self._connection.close()
                raise

    def known(self, start: bytes, /) -> list[PastRefusal]:
        with self._lock, self._errors():
            return _refusals(self._connection.execute(_SELECT, (start,)).fetchall())

    def add(self, start: bytes, refusal: PastRefusal, /) -> None:
        with self._lock, self._errors():
            self._connection.execute(_INSERT, _row(start, refusal))

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    def _set_up(self) -> None:
        execute = self._connection.execute
        execute("PRAGMA trusted_schema = OFF")  # a file may come from anywhere
        execute("PRAGMA synchronous = FULL")
        if not self._is_ours():
            raise StoreDamagedError(self._path, "an SQLite database of something else; pass a file of its own")
        execute("PRAGMA journal_mode = WAL")
        execute("BEGIN IMMEDIATE")
        try:
            if not execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                execute(_CREATE.format(blob="BLOB", integer="INTEGER"))
                execute(f"PRAGMA application_id = {APPLICATION}")
            execute(_DELETE, (int(time.time()) - KEPT_SECONDS,))
            execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                execute("ROLLBACK")
            raise

    def _is_ours(self) -> bool:
        """True if the file is empty, or has our table and nothing else that could run."""
        rows = self._connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
        return not rows or rows == [(_CREATE.format(blob="BLOB", integer="INTEGER"),)]

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise store_error(self._path, error, self._seconds) from error
        except OSError as error:
            raise StoreError(self._path, error.strerror or str(error)) from error


class _Server:
    """A table in the schema of the sessions' store. The connections are that store's, too."""

    def __init__(self, url: str, busy_seconds: float) -> None:
        from session.store.server import StoreServer

        self._server = StoreServer(url, busy_seconds)
        try:
            with self._server.write(TABLE) as connection:
                # Not `IF NOT EXISTS`, which needs the right to create one even where it exists.
                query = f"SELECT 1 FROM pg_catalog.pg_tables WHERE schemaname = 'context_window' AND tablename = '{TABLE}'"  # noqa: S608
                if connection.execute(query).fetchone() is None:
                    connection.execute(_CREATE.format(blob="BYTEA", integer="BIGINT"))
                connection.execute(_DELETE, (int(time.time()) - KEPT_SECONDS,))
        except BaseException:
            self._server.close()
            raise

    def known(self, start: bytes, /) -> list[PastRefusal]:
        with self._server.read() as connection:
            return _refusals(connection.execute(_SELECT, (start,)).fetchall())

    def add(self, start: bytes, refusal: PastRefusal, /) -> None:
        with self._server.write(start.hex()) as connection:
            connection.execute(_INSERT, _row(start, refusal))

    def close(self) -> None:
        self._server.close()


def _row(start: bytes, refusal: PastRefusal) -> tuple[Any, ...]:
    return (start, refusal.messages, refusal.digest, refusal.number, refusal.tokens, refusal.limit, int(time.time()))


def _refusals(rows: list[Any]) -> list[PastRefusal]:
    """Return the rows that make sense. Somebody else may have written the others."""
    return [PastRefusal(*row) for row in rows if _makes_sense(*row)]


def _makes_sense(messages: object, number: object, digest: object, tokens: object, limit: object) -> bool:
    is_place = type(messages) is int and messages > 0 and type(number) is int and number >= 0
    figures = all(figure is None or (type(figure) is int and 0 <= figure < LARGEST_FIGURE) for figure in (tokens, limit))
    return is_place and isinstance(digest, bytes) and figures
