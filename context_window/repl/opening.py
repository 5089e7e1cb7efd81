"""Opens a file of a folder without following a link anywhere in its path, so that a check of the path holds for the opened file."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import BinaryIO

HAS_FOLDER_DESCRIPTORS = os.open in os.supports_dir_fd and hasattr(os, "O_NOFOLLOW")
"""True if the system opens a file relative to an open folder. Windows does not."""
_FLAGS = 0
for _name in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY", "O_CLOEXEC"):  # non-blocking: opening a pipe must not wait for its writer
    _FLAGS |= getattr(os, _name, 0)


def open_beneath(root: Path, file: Path) -> BinaryIO:
    """Open a file for reading.

    Args:
        root: The folder, a path without links.
        file: The file, a path without links that begins with `root`.

    Raises:
        OSError: The file cannot be opened, or a link has taken the place of a part of its path below `root`.
    """
    descriptor = _descriptor(root, file) if HAS_FOLDER_DESCRIPTORS else os.open(file, os.O_RDONLY | _FLAGS)
    try:
        stream = os.fdopen(descriptor, "rb")
    except OSError:  # a folder
        os.close(descriptor)
        raise
    if not HAS_FOLDER_DESCRIPTORS and not _is_at(file, descriptor):
        stream.close()
        raise OSError(errno.ELOOP, "its path has changed", str(file))
    return stream


def _descriptor(root: Path, file: Path) -> int:
    """Return a descriptor of the file, opened folder by folder: a link among them fails."""
    parts = str(file)[len(str(root)) :].strip("/").split("/")
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY | _FLAGS)
    for part in parts[:-1]:
        try:
            descriptor = os.open(part, os.O_RDONLY | os.O_DIRECTORY | _FLAGS, dir_fd=folder)
        finally:
            os.close(folder)
        folder = descriptor
    try:
        return os.open(parts[-1] or ".", os.O_RDONLY | _FLAGS, dir_fd=folder)
    finally:
        os.close(folder)


def _is_at(file: Path, descriptor: int) -> bool:
    """True if the opened file still stands at its path, and the path has no links."""
    return os.path.realpath(file) == str(file) and os.path.samestat(os.lstat(file), os.fstat(descriptor))
