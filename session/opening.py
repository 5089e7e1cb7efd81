"""`open_regular` and `read_regular` open a file for its bytes if it is a regular one, without waiting for another process.
`create_private_folder` makes a folder for its owner alone.

They import next to nothing, and nothing else opens a file whose path is not ours (`tests/project/test_security.py`).
"""

from __future__ import annotations

import errno
import os
import stat
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

PLAIN = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC", "O_BINARY"))
"""Flags with which a file is opened: a pipe or a device in its place is not waited for."""
NO_LINK: int = getattr(os, "O_NOFOLLOW", 0)


def open_regular(path: str | os.PathLike[str], flags: int = PLAIN, folder: int | None = None, *, buffering: int = -1) -> IO[bytes]:
    """Open a regular file for reading. Opening anything else can have side effects, so its type is checked before and after.

    `folder` is the descriptor of the folder that a relative path starts from. Raises OSError if it is not a regular file, or cannot be
    opened; ValueError if the path is malformed.
    """
    _check_regular(os.stat(path, dir_fd=folder, follow_symlinks=not (NO_LINK and flags & NO_LINK)))
    descriptor = os.open(path, flags, dir_fd=folder)
    try:
        _check_regular(os.fstat(descriptor))
        return open(descriptor, "rb", buffering=buffering)
    except BaseException:
        os.close(descriptor)
        raise


def read_regular(path: str | os.PathLike[str]) -> bytes:
    """Return the bytes of a regular file. Nothing else is opened, and errors are those of `open_regular`."""
    with open_regular(path) as file:
        return file.read()


def _check_regular(status: os.stat_result) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, "is a folder")
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "is not a regular file")


def create_private_folder(folder: Path) -> None:
    """Create the folder and its missing parents, accessible by their owner only. Raises OSError if the path cannot be a folder."""
    missing = [parent for parent in folder.parents if not parent.exists()]
    for path in (*reversed(missing), folder):  # `parents=True` would give the parents the permissions of the umask
        path.mkdir(mode=0o700, exist_ok=True)
