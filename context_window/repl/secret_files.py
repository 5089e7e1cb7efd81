"""Tells which files of a working directory may hold secrets, by all of their names."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

from session.printable import printable

from .secret_names import is_secret
from .tree import entries_of

DEPENDENCIES = frozenset({"node_modules", "site-packages"})
"""Folders that package managers fill with hard links into a store elsewhere."""


class SecretFiles:
    """The files of a working directory that may hold secrets, for the time of one call.

    A file with hard links is judged by all its names. Where some are out of sight, it counts as secret, unless it is a dependency.
    """

    def __init__(self, root: Path, is_late: Callable[[], bool]) -> None:
        """
        Args:
            root: The working directory, a path without links.
            is_late: True once no more time may be spent on looking for other names.
        """
        self._root = root
        self._is_late = is_late
        self._names: dict[tuple[int, int], list[Path]] | None = None

    def description(self, file: Path, status: os.stat_result) -> str | None:
        """Return the file's name, with the reason if the name does not tell it, on one line; None if the file is harmless.

        Args:
            file: Its path, without links.
            status: The status of the opened file.
        """
        if not is_secret(file) and status.st_nlink < 2:
            return None
        name = printable(file.relative_to(self._root).as_posix())
        if is_secret(file):
            return name
        if self._names is None:
            self._names = _linked_names(self._root, self._is_late)
        names = self._names.get((status.st_dev, status.st_ino), [])
        other = next((path for path in names if is_secret(path)), None)
        if other is not None:
            return f"{name}, the same file as {printable(other.relative_to(self._root).as_posix())}"
        if len(names) >= status.st_nlink or (not self._is_late() and not DEPENDENCIES.isdisjoint(file.relative_to(self._root).parts)):
            return None
        return f"{name}, a hard link to a file elsewhere"


def _linked_names(root: Path, is_late: Callable[[], bool]) -> dict[tuple[int, int], list[Path]]:
    """Return the paths below a folder of each file that has hard links, by device and inode. Incomplete once `is_late`."""
    names: dict[tuple[int, int], list[Path]] = defaultdict(list)
    pending = [root]
    while pending and not is_late():
        for entry in entries_of(pending.pop()):
            if entry.is_dir(follow_symlinks=False):
                pending.append(Path(entry.path))
            elif entry.is_file(follow_symlinks=False):
                try:
                    status = os.stat(entry.path, follow_symlinks=False)  # on Windows the entry's own has no inode
                except OSError:  # gone meanwhile
                    continue
                if status.st_nlink > 1:
                    names[status.st_dev, status.st_ino].append(Path(entry.path))
    return names
