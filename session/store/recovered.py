"""Completes a file that `sqlite3 FILE .recover | sqlite3 NEW` wrote (theory of operation, 8). Reading undamaged files: `tables.py`."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator, Iterator
from contextlib import closing
from typing import Any

from session.errors import FormatError
from session.sanitize import MAX_COUNT, clean

from .journal import Row, changes_since
from .replay import JournalReplay
from .schema import LOST_AND_FOUND
from .tables import SELECT_HEADS, Head, SessionInfo, head_of, row_of

INSERT_HEAD = "INSERT INTO sessions (key, id, created, updated, title, items, rows, last, crc) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
INSERT_ROW = "INSERT INTO journal (place, session, number, kind, at, crc, body) VALUES (?, ?, ?, ?, ?, ?, ?)"
_HAS_TABLE = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = ?"
_SELECT_LOST = "SELECT * FROM lost_and_found WHERE nfield = ?"
_MISSING: tuple[Any, ...] = (None,) * 13
"""Values for columns that a forged `lost_and_found` does not have."""
_SELECT_KEYS = "SELECT DISTINCT session FROM journal WHERE typeof(session) = 'integer'"
_SELECT_ROWS = "SELECT number, kind, at, crc, body, place FROM journal WHERE session = ? ORDER BY number"


def complete(connection: sqlite3.Connection) -> None:
    """Move recovered rows into their tables and rebuild missing or damaged rows of `sessions`. Does nothing in an undamaged store."""
    if connection.execute(_HAS_TABLE, (LOST_AND_FOUND,)).fetchone()[0]:
        for place, key, number, at, crc, row in _lost_rows(connection):
            connection.execute(f"{INSERT_ROW} ON CONFLICT DO NOTHING", (place, key, number, row.kind, at, crc, row.body))
        for head in _lost_heads(connection):
            connection.execute(f"{INSERT_HEAD} ON CONFLICT DO NOTHING", head.values())
        connection.execute(f"DROP TABLE {LOST_AND_FOUND}")
    heads = connection.execute(SELECT_HEADS).fetchall()
    intact = {head.key for head in map(head_of, heads) if head is not None}
    for (key,) in connection.execute(_SELECT_KEYS).fetchall():
        rebuilt = None if key in intact else _rebuilt_head(connection, key)
        if rebuilt is not None:
            connection.execute("DELETE FROM sessions WHERE key = ?", (key,))
            connection.execute(f"{INSERT_HEAD} ON CONFLICT DO NOTHING", rebuilt.values())


def holds_store(connection: sqlite3.Connection) -> bool:
    """True if `lost_and_found` has an undamaged row of a journal. Without its first page a file has no other sign of being a store."""
    with closing(_lost_rows(connection)) as rows:
        return next(rows, None) is not None


def _lost_rows(connection: sqlite3.Connection) -> Generator[tuple[int, int, int, float, int, Row], None, None]:
    """Yield place, key, number, time, checksum and row of each undamaged journal row in `lost_and_found`."""
    with closing(connection.execute(_SELECT_LOST, (7,))) as records:
        for record in records:
            _, _, _, place, _, key, number, kind, at, crc, body, *_ = record + _MISSING
            if type(place) is int and type(key) is int:
                row = row_of(key, (number, kind, _real(at), crc, body))
                if row is not None:
                    yield place, key, number, _real(at), crc, row


def _lost_heads(connection: sqlite3.Connection) -> Iterator[Head]:
    with closing(connection.execute(_SELECT_LOST, (9,))) as records:
        for record in records:
            _, _, _, key, _, session_id, created, updated, title, items, rows, last, crc, *_ = record + _MISSING
            head = head_of((key, session_id, _real(created), _real(updated), title, items, rows, last, crc))
            if head is not None:
                yield head


def _real(value: Any) -> Any:
    """Return a REAL column's value as a float: on its pages SQLite stores 1.0 as the integer 1."""
    return float(value) if isinstance(value, int) else value


def _rebuilt_head(connection: sqlite3.Connection, key: int) -> Head | None:
    """Return the row of `sessions` that a session's journal implies, or None if no row of the journal is undamaged.

    If rows are missing in the middle, it counts them too, so that loading the session reports the damage.
    """
    replay = JournalReplay()
    is_valid = True
    count = last = 0
    times: list[float] = []
    with closing(connection.execute(_SELECT_ROWS, (key,))) as records:
        for *values, place in records:
            row = row_of(key, tuple(values))
            if row is None:
                continue
            number = values[0]
            times.append(values[2])
            count, last = number + 1, max(last, place)
            is_valid &= number == replay.row_count
            try:
                if is_valid:
                    replay.add(number, row)
            except FormatError:  # loading the session will report this row
                is_valid = False
    if not times:
        return None
    title = ""
    session_id = replay.session_id
    if not (isinstance(session_id, str) and session_id and clean(session_id) == session_id):
        session_id = f"recovered-{key}"
    elif is_valid:
        try:
            title = changes_since(replay.session(), None).state.title
        except FormatError:
            title = ""
    info = SessionInfo(session_id, title, len(replay.items), times[0], times[-1])
    return Head(key, info, min(count, MAX_COUNT), last)
