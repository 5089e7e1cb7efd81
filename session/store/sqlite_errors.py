"""Translates SQLite's errors into `StoreError`s that say what to do."""

from __future__ import annotations

import sqlite3

from session.errors import StoreBusyError, StoreDamagedError, StoreError

_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_MISMATCH}
"""SQLITE_ERROR is a wrong SQL statement. Ours are right, so it means that the file's tables are wrong."""
_SHORT_READ = sqlite3.SQLITE_IOERR_SHORT_READ
_SYSTEM = {
    sqlite3.SQLITE_FULL: "the disk is full and nothing was written; free some space and save again",
    sqlite3.SQLITE_READONLY: "the file is read-only and nothing was written; check the permissions of the file and its folder",
    sqlite3.SQLITE_PERM: "permission denied; check the permissions of the file",
    sqlite3.SQLITE_AUTH: "permission denied; check the permissions of the file",
    sqlite3.SQLITE_CANTOPEN: "the file cannot be opened; check that it is a file, and the permissions of the file and its folder",
    sqlite3.SQLITE_TOOBIG: "an item is too large for one row and nothing was written; keep data of this size in a file of its own",
    sqlite3.SQLITE_NOMEM: "out of memory while reading or writing",
}


def is_busy(error: sqlite3.Error) -> bool:
    """True if another connection holds the lock."""
    return _code(error) in _BUSY


def store_error(path: str, error: sqlite3.Error, seconds: float) -> StoreError:
    """Return the StoreError for an error of SQLite or Python's `sqlite3` module. SQLite waits `seconds` for a lock."""
    code = _code(error)
    if code in _BUSY:
        return StoreBusyError(path, seconds)
    if code in _DAMAGED or getattr(error, "sqlite_errorcode", None) == _SHORT_READ:
        return StoreDamagedError(path, f"not a store, or damaged ({error})")
    if code is None:
        return StoreError(path, f"the file cannot be used ({error})")
    return StoreError(path, _SYSTEM.get(code, f"the system could not read or write the file ({error})"))


def _code(error: sqlite3.Error) -> int | None:
    """Return SQLite's primary result code, or None for an error of Python's `sqlite3` module."""
    code = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF
