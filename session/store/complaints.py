"""What SQLite complains of, as an error of ours: whose fault it is, and what to do."""

from __future__ import annotations

import sqlite3

from session.errors import StoreBusyError, StoreDamagedError, StoreError

_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_MISMATCH}
"""SQLITE_ERROR among them: our statements are sound, so it is the tables that are not."""
_SHORT_READ = sqlite3.SQLITE_IOERR_SHORT_READ
_SYSTEM = {
    sqlite3.SQLITE_FULL: "the disk is full, and nothing was written; make room and save again",
    sqlite3.SQLITE_READONLY: "the file cannot be written to, and nothing was; check its permissions and those of its folder",
    sqlite3.SQLITE_PERM: "the file may not be opened; check its permissions",
    sqlite3.SQLITE_AUTH: "the file may not be opened; check its permissions",
    sqlite3.SQLITE_CANTOPEN: "the file cannot be opened; check that it is a file, and its permissions and those of its folder",
    sqlite3.SQLITE_TOOBIG: "an item is too large for one row, and nothing was written; keep what is this large in a file of its own",
    sqlite3.SQLITE_NOMEM: "there is not enough memory to read or write it",
}


def is_busy(error: sqlite3.Error) -> bool:
    """Whether another connection has what was asked for."""
    return _code(error) in _BUSY


def ours(path: str, error: sqlite3.Error, seconds: float) -> StoreError:
    """The error of ours.

    Args:
        path: The file.
        error: SQLite's, or that of Python's `sqlite3`.
        seconds: How long was waited for others.
    """
    code = _code(error)
    if code in _BUSY:
        return StoreBusyError(path, seconds)
    if code in _DAMAGED or getattr(error, "sqlite_errorcode", None) == _SHORT_READ:
        return StoreDamagedError(path, f"not a store, or damaged ({error})")
    if code is None:
        return StoreError(path, f"it cannot be used ({error})")
    return StoreError(path, _SYSTEM.get(code, f"the system could not read or write it ({error})"))


def _code(error: sqlite3.Error) -> int | None:
    """SQLite's primary result code, or None where Python raised by itself."""
    code = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF
