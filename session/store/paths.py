"""Checks a store's path and creates an empty file there, private to its owner. A foreign file is never taken for an empty store."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote

from session.errors import FormatError, StoreDamagedError, StoreError, short
from session.opening import create_private_folder

SHORTEST = 512
"""Bytes of the smallest SQLite database."""


def checked_path(path: str | os.PathLike[str]) -> str:
    """Return the path as a str that the system accepts. Raises FormatError if it is not a path, StoreError if it contains a NUL."""
    name = os.fspath(path) if isinstance(path, str | os.PathLike) else path
    if not isinstance(name, str):
        raise FormatError("SessionStore.path", f"{short(name)} is not a path; pass a str or a Path")
    if "\0" in name:
        raise StoreError(name.replace("\0", "\\0"), "a file name cannot contain a NUL")
    return name


def uri_path(path: str) -> str:
    """Return the path as a URI has it: `/home/x`, `/C:/x` or `//server/x`."""
    posix = Path(path).as_posix()
    return quote(os.fsencode(posix if posix.startswith("/") else f"/{posix}"))


def create_if_missing(path: str) -> None:
    """Create an empty file, readable and writable by its owner only, unless the file exists.

    Raises:
        StoreDamagedError: The file is missing or empty but its write-ahead log is not: SQLite would discard the log. Or it is a short
            file of another kind, which SQLite would overwrite.
    """
    # The log is looked at first: another process that creates the store writes the first page before it creates the log.
    log_bytes = _size(f"{path}-wal")
    file_bytes = _size(path)
    if 0 < file_bytes < SHORTEST and Path(path).is_file():
        raise StoreDamagedError(path, "not a store, or cut off")
    if log_bytes and not file_bytes:
        raise StoreDamagedError(path, f"the file is missing or empty, but its log {path}-wal is not; put the two together again")
    folder = Path(path).parent
    create_private_folder(folder)
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        return
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)  # makes the file's name durable
        finally:
            os.close(descriptor)


def _size(path: str) -> int:
    """Return the size in bytes, 0 for a missing file."""
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0
