"""The tables of a store, and the values that tell one from any other SQLite file.

`journal` is what was said: rows are added, never changed, and taken out only with their whole session. `sessions` is made from it, so
that a list of sessions need not read them.
"""

from __future__ import annotations

from collections.abc import Sequence

APPLICATION = 0x43574D53
"""SQLite's `application_id` of a store."""
VERSION = 1
"""Of the tables below; SQLite's `user_version`."""
PAGE_BYTES = 4096
"""Bytes of a page: stated, so that a file without its first page can still be taken apart."""

JOURNAL_COLUMNS = 7
SESSIONS_COLUMNS = 9

SCHEMA = {
    # place: rises over all sessions and is never used again; session: its key; number: rises by one in a session, from 0;
    # at: Unix seconds; crc: of all else; body: JSON, UTF-8.
    "journal": (
        "CREATE TABLE journal (place INTEGER PRIMARY KEY AUTOINCREMENT, session INTEGER NOT NULL, number INTEGER NOT NULL, "
        "kind TEXT NOT NULL, at REAL NOT NULL, crc INTEGER NOT NULL, body BLOB NOT NULL)"
    ),
    # Two writers can never both be the one that goes on from a row, whatever else goes wrong.
    "journal_of_session": "CREATE UNIQUE INDEX journal_of_session ON journal (session, number)",
    # rows: of its journal; last: place of the last one; items: in the log now.
    "sessions": (
        "CREATE TABLE sessions (key INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, created REAL NOT NULL, "
        "updated REAL NOT NULL, title TEXT NOT NULL, items INTEGER NOT NULL, rows INTEGER NOT NULL, last INTEGER NOT NULL, "
        "crc INTEGER NOT NULL)"
    ),
    "sessions_by_last": "CREATE INDEX sessions_by_last ON sessions (last)",
}

_ROWS = {
    ("table", "journal", "journal", SCHEMA["journal"]),
    ("index", "journal_of_session", "journal", SCHEMA["journal_of_session"]),
    ("table", "sessions", "sessions", SCHEMA["sessions"]),
    ("index", "sessions_by_last", "sessions", SCHEMA["sessions_by_last"]),
    # SQLite makes these two for AUTOINCREMENT and UNIQUE.
    ("table", "sqlite_sequence", "sqlite_sequence", "CREATE TABLE sqlite_sequence(name,seq)"),
    ("index", "sqlite_autoindex_sessions_1", "sessions", None),
}
"""Type, name, table and SQL of all that a store holds, as in SQLite's `sqlite_master`."""
_STATISTICS = {
    ("table", "sqlite_stat1", "sqlite_stat1", "CREATE TABLE sqlite_stat1(tbl,idx,stat)"),
    ("table", "sqlite_stat4", "sqlite_stat4", "CREATE TABLE sqlite_stat4(tbl,idx,neq,nlt,ndlt,sample)"),
}
"""The same of the tables that ANALYZE adds."""


def is_schema(rows: Sequence[tuple[object, ...]]) -> bool:
    """True if the rows of a file's `sqlite_master` are exactly those of a store.

    A file may come from anywhere, so a trigger, a view or a second row of any name is refused, whatever it is called.

    Args:
        rows: Type, name, table and SQL of each, texts as bytes.
    """
    texts = [tuple(value.decode(errors="replace") if isinstance(value, bytes) else value for value in row) for row in rows]
    return len(set(texts)) == len(texts) and _ROWS <= set(texts) <= _ROWS | _STATISTICS
