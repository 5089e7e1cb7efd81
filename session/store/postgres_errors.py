"""Translates psycopg's errors into `StoreError`s that say what to do, and that show no password and no content."""

from __future__ import annotations

import psycopg
from psycopg import errors

from session.errors import StoreBusyError, StoreDamagedError, StoreError
from session.printable import printable

_DAMAGED = (
    errors.DataCorrupted,
    errors.IndexCorrupted,
    psycopg.ProgrammingError,  # a wrong statement; ours are right, so the tables are wrong
    errors.NotNullViolation,
    errors.UniqueViolation,
)
_PROBLEMS: tuple[tuple[type[psycopg.Error], str], ...] = (
    (errors.InsufficientPrivilege, "the user may not create, read or write the schema `context_window`; grant it those rights"),
    (errors.ReadOnlySqlTransaction, "the server only reads, perhaps as a replica, and nothing was written; use the address of the primary"),
    (errors.DiskFull, "the disk of the server is full and nothing was written; free some space and save again"),
    (errors.ProgramLimitExceeded, "an item or an id is too large and nothing was written; keep data of this size in a file of its own"),
    (errors.OutOfMemory, "the server is out of memory and nothing was written; an item may be too large for it"),
    (errors.QueryCanceled, "the server stopped a statement that took too long and nothing was written; save again"),
)


def unreachable_error(path: str, error: psycopg.Error, password: str) -> StoreError:
    """Return the StoreError for a server that cannot be reached or refuses the user. The server might repeat the password."""
    reason = " ".join(str(error).split())
    if password:
        reason = reason.replace(password, "…")
    return StoreError(path, f"the server cannot be used ({printable(reason)}); check that it runs, and the URL")


def store_error(path: str, error: psycopg.Error, seconds: float, *, is_lost: bool) -> StoreError:
    """Return the StoreError for an error in a transaction. The server waits `seconds` for a lock."""
    if isinstance(error, errors.LockNotAvailable | errors.DeadlockDetected):
        return StoreBusyError(path, seconds)
    if is_lost:
        return StoreError(path, "the connection to the server was lost; a change may or may not be stored: save again")
    for kind, problem in _PROBLEMS:
        if isinstance(error, kind):
            return StoreError(path, problem)
    reason = printable(error.diag.message_primary or type(error).__name__)  # the other fields may quote contents
    if isinstance(error, _DAMAGED):
        return StoreDamagedError(path, f"its tables are damaged, or not those of a store ({reason})")
    return StoreError(path, f"the server could not read or write ({reason})")
