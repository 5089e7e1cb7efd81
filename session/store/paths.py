"""A store's path, and the empty file there: made for its owner alone, and nothing else taken for one."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote

from session.errors import FormatError, StoreDamagedError, StoreError, short

SHORTEST = 512
"""Bytes of the smallest database."""


def plain_path(path: str | os.PathLike[str], where: str) -> str:
    """The path as a text that the system takes.

    Raises:
        FormatError: It is no path.
        StoreError: It has a NUL in it.
    """
    given = os.fspath(path) if isinstance(path, str | os.PathLike) else path
    if not isinstance(given, str):
        raise FormatError(where, f"{short(given)} is not a path; pass a text or a Path")
    if "\0" in given:
        raise StoreError(given.replace("\0", "\\0"), "a file's name has no NUL in it")
    return given


def quoted(path: str) -> str:
    """The path in a URI: `/home/x`, `/C:/x` or `//server/x`."""
    plain = Path(path).as_posix()
    return quote(os.fsencode(plain if plain.startswith("/") else f"/{plain}"))


def made(path: str) -> None:
    """Makes the file, for its owner alone, where there is none.

    Raises:
        StoreDamagedError: It is gone or empty, and what was last written to it is not: SQLite would throw that away. Or it is a short
            file of something else, which SQLite would write over.
    """
    # In this order: whoever makes a store writes its first page before there is a log beside it.
    logged = _size(f"{path}-wal")
    size = _size(path)
    if 0 < size < SHORTEST and Path(path).is_file():
        raise StoreDamagedError(path, "not a store, or cut off")
    if logged and not size:
        raise StoreDamagedError(path, f"the file is missing or empty, but {path}-wal beside it is not; put the two together again")
    folder = Path(path).parent
    private_folder(folder)
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        return
    if os.name == "posix":
        listing = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(listing)  # so that the file's name survives too
        finally:
            os.close(listing)


def private_folder(folder: Path) -> None:
    """Make the folder, and those above it that do not exist, for their owner alone.

    Raises:
        OSError: It cannot be made, or is something else.
    """
    missing = [one for one in folder.parents if not one.exists()]
    for one in (*reversed(missing), folder):  # `parents=True` would make those above as wide as the umask allows
        one.mkdir(mode=0o700, exist_ok=True)


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0
