"""`Dialect`: the differences between the SQL of SQLite and of PostgreSQL. The statements that both understand are in `tables.py`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol


class Cursor(Protocol):
    """The rows of a query. Texts in them are UTF-8 bytes: damaged ones are then reported with their row."""

    def fetchone(self) -> Any:
        """Return the next row, or None."""

    def fetchall(self) -> list[Any]:
        """Return the rows that are left."""

    def __iter__(self) -> Iterator[Any]: ...

    def close(self) -> object:
        """Give up the rows that are left."""


class Connection(Protocol):
    """A connection in a transaction. `?` stands for a value in its statements."""

    def execute(self, statement: str, values: Sequence[Any] = ..., /) -> Cursor:
        """Run a statement."""

    def executemany(self, statement: str, rows: Iterable[Sequence[Any]], /) -> object:
        """Run a statement once for each row of values."""


class Database(Protocol):
    """The rows of a store, in a file (`file.py`) or on a server (`server.py`). Errors of either are raised as `StoreError`s.

    Attributes:
        path: The file, or the server's URL without its password.
        dialect: Its SQL.
    """

    path: str
    dialect: Dialect

    def read(self) -> AbstractContextManager[Connection]:
        """Give a connection that sees one state of all rows, whatever others write meanwhile."""

    def write(self, session_id: str, /) -> AbstractContextManager[Connection]:
        """Give a connection that alone may write this session. Its changes are on disk when the block ends, or undone if it raises."""

    def purge(self) -> None:
        """Erase what deleted rows have left behind, as far as the database can."""

    def close(self) -> None:
        """Close all connections. Any use afterwards raises StoreError."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """The words of a database: the names of its types, and the query for the key of the row that the connection inserted last.

    `key` is the type of a column that numbers the rows of a table, never twice the same.
    """

    key: str
    integer: str
    real: str
    text: str
    blob: str
    last_key: str

    def schema(self) -> dict[str, str]:
        """Return the statements that create the tables and indexes of a store, by name."""
        integer, real, text = (f"{kind} NOT NULL" for kind in (self.integer, self.real, self.text))
        return {
            # place: rises over all sessions and is never reused; session: `sessions.key`; number: 0, 1, 2, … within a session;
            # at: Unix seconds; crc: over all other columns but `place`; body: JSON in UTF-8.
            "journal": (
                f"CREATE TABLE journal (place {self.key}, session {integer}, number {integer}, "
                f"kind {text}, at {real}, crc {integer}, body {self.blob} NOT NULL)"
            ),
            # Unique, so that two writers can never both continue from the same row (5).
            "journal_of_session": "CREATE UNIQUE INDEX journal_of_session ON journal (session, number)",
            # rows: number of journal rows; last: place of the last one; items: items in the log now.
            "sessions": (
                f"CREATE TABLE sessions (key {self.key}, id {text} UNIQUE, created {real}, "
                f"updated {real}, title {text}, items {integer}, rows {integer}, last {integer}, "
                f"crc {integer})"
            ),
            "sessions_by_last": "CREATE INDEX sessions_by_last ON sessions (last)",
        }


SQLITE = Dialect("INTEGER PRIMARY KEY AUTOINCREMENT", "INTEGER", "REAL", "TEXT", "BLOB", "SELECT last_insert_rowid()")
POSTGRES = Dialect(
    "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
    "BIGINT",
    "DOUBLE PRECISION",
    "BYTEA",  # PostgreSQL's own text holds no NUL, and not every server's encoding is UTF-8
    "BYTEA",
    "SELECT lastval()",
)
