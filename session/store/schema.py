"""The tables of a file, and the values that tell a store from any other SQLite file (theory of operation, 1)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .dialect import SQLITE

APPLICATION = 0x43574D53
"""SQLite's `application_id` of a store, and the number that its locks have in PostgreSQL."""
VERSION = 1
"""Version of the tables in `dialect.py`; SQLite's `user_version`."""
PAGE_BYTES = 4096
"""Bytes of a page. Stated, so that `.recover` guesses it right without the first page."""

SCHEMA = SQLITE.schema()

_OWN_ROWS = {
    ("table", "journal", "journal", SCHEMA["journal"]),
    ("index", "journal_of_session", "journal", SCHEMA["journal_of_session"]),
    ("table", "sessions", "sessions", SCHEMA["sessions"]),
    ("index", "sessions_by_last", "sessions", SCHEMA["sessions_by_last"]),
    # SQLite creates these two for AUTOINCREMENT and UNIQUE.
    ("table", "sqlite_sequence", "sqlite_sequence", "CREATE TABLE sqlite_sequence(name,seq)"),
    ("index", "sqlite_autoindex_sessions_1", "sessions", None),
}
"""Rows of `sqlite_master` that every store has: type, name, table and SQL."""
_STATISTICS_ROWS = {
    ("table", "sqlite_stat1", "sqlite_stat1", "CREATE TABLE sqlite_stat1(tbl,idx,stat)"),
    ("table", "sqlite_stat4", "sqlite_stat4", "CREATE TABLE sqlite_stat4(tbl,idx,neq,nlt,ndlt,sample)"),
}
"""Rows that ANALYZE adds."""

LOST_AND_FOUND = "lost_and_found"
"""The table in which `.recover` puts the rows of pages that it cannot assign to a table (8)."""
_LOST_AND_FOUND_SQL = re.compile(
    r'CREATE TABLE "?lost_and_found"?\s*\(rootpgno INTEGER, pgno INTEGER, nfield INTEGER, id INTEGER(?:, c\d+)*\)'
)


def schema_rows(rows: Sequence[tuple[object, ...]]) -> list[tuple[object, ...]]:
    """Return rows of `sqlite_master` (type, name, table and SQL) with their texts decoded."""
    return [tuple(value.decode(errors="replace") if isinstance(value, bytes) else value for value in row) for row in rows]


def is_schema(rows: Sequence[tuple[object, ...]]) -> bool:
    """True if a file's tables and indexes are exactly those of a store.

    The rows are those of `schema_rows`, without that of `lost_and_found`. A file may come from anywhere, so a trigger, a view or a second
    row of any name is refused, whatever it is called.
    """
    return len(set(rows)) == len(rows) and _OWN_ROWS <= set(rows) <= _OWN_ROWS | _STATISTICS_ROWS


def is_lost_and_found(row: tuple[object, ...]) -> bool:
    """True if a row of `sqlite_master` is the plain table that `.recover` adds."""
    kind, name, table, sql = row
    is_plain = isinstance(sql, str) and _LOST_AND_FOUND_SQL.fullmatch(sql) is not None
    return is_plain and (kind, name, table) == ("table", LOST_AND_FOUND, LOST_AND_FOUND)
