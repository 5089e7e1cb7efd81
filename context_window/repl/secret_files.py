"""Decides which files of a working directory may hold secrets, from all names of each file."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

from session.printable import printable

from .folder_walk import entries_of
from .secret_names import is_secret

DEPENDENCIES = frozenset({"node_modules", "site-packages"})
"""Folders that package managers fill with hard links to files outside of the project."""


class SecretFiles:
    """Recognizes files that may hold secrets, during one tool call.

    A file with hard links is judged by all its names. If some names are outside of the working directory, it counts as secret unless
    it is in a folder of dependencies.
    """

    def __init__(self, root: Path, is_late: Callable[[], bool]) -> None:
        """
        Args:
            root: The working directory, a path without links.
            is_late: Returns True once the search for other names must end.
        """
        self._root = root
        self._is_late = is_late
        self._names: dict[tuple[int, int], list[Path]] | None = None

    def description(self, file: Path, status: os.stat_result) -> str | None:
        """Return a description of a file that may hold secrets, on one line; None if the file is harmless.

        The description is the file's name, with the reason if the name itself does not show it.

        Args:
            file: The file's path, without links.
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
        secret_name = next((path for path in names if is_secret(path)), None)
        if secret_name is not None:
            return f"{name}, the same file as {printable(secret_name.relative_to(self._root).as_posix())}"
        if len(names) >= status.st_nlink or (not self._is_late() and not DEPENDENCIES.isdisjoint(file.relative_to(self._root).parts)):
            return None
        return f"{name}, a hard link to a file elsewhere"


def _linked_names(root: Path, is_late: Callable[[], bool]) -> dict[tuple[int, int], list[Path]]:
    """Return the paths of each file with hard links below a folder, by device and inode. Incomplete once `is_late`."""
    names: dict[tuple[int, int], list[Path]] = defaultdict(list)
    pending = [root]
    while pending and not is_late():
        for entry in entries_of(pending.pop()):
            if entry.is_dir(follow_symlinks=False):
                pending.append(Path(entry.path))
            elif entry.is_file(follow_symlinks=False):
                try:
                    status = os.stat(entry.path, follow_symlinks=False)  # on Windows, `entry.stat()` has no inode
                except OSError:  # deleted meanwhile
                    continue
                if status.st_nlink > 1:
                    names[status.st_dev, status.st_ino].append(Path(entry.path))
    return names
