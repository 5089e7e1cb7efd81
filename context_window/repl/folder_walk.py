"""Walks through the files below a folder, without those that a listing or a search leaves out."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from .gitignore import IgnoreRules
from .secret_names import is_secret

MAX_FOLDER = 50_000
"""Entries of one folder that are read, at most."""
SKIPPED_FOLDERS = frozenset({"node_modules", "__pycache__", "venv", "dist", "build", "target"})
"""Folders that a walk does not enter unless it starts there. The same holds for hidden folders."""


class Walk:
    """One walk through the files below a folder.

    Attributes:
        secrets: Number of files left out so far because of names that suggest secrets.
        problems: Sentences on rules of `.gitignore` files that could not be applied.
    """

    def __init__(self, folder: Path, root: Path, is_late: Callable[[], bool]) -> None:
        """
        Args:
            folder: The folder where the walk starts, a path without links.
            root: The working directory, which contains `folder`.
            is_late: Returns True once the walk must end.
        """
        self.secrets = 0
        self._folder = folder
        self._is_late = is_late
        self.problems: list[str] = []
        self._root = root

    def __iter__(self) -> Iterator[os.DirEntry[str]]:
        """Yield files and links, sorted by name within their folder. No link is followed."""
        rules = IgnoreRules.above(self._folder, self._root, self._is_late).within(self._folder)
        self.problems = rules.problems
        pending = [(entry, rules) for entry in entries_of(self._folder)[::-1]]
        while pending and not self._is_late():
            entry, rules = pending.pop()
            is_folder = entry.is_dir(follow_symlinks=False)
            if is_folder and (entry.name in SKIPPED_FOLDERS or entry.name.startswith(".")):
                continue
            if rules.ignores(entry.path, is_folder=is_folder):
                continue
            if is_folder:
                inner = rules.within(Path(entry.path))
                pending += [(child, inner) for child in entries_of(Path(entry.path))[::-1]]
            elif is_secret(entry.path):
                self.secrets += 1
            else:
                yield entry


def entries_of(folder: Path) -> list[os.DirEntry[str]]:
    """Return a folder's entries, sorted by name; an empty list if it cannot be read."""
    try:
        with os.scandir(folder) as entries:
            return sorted(islice(entries, MAX_FOLDER), key=lambda entry: entry.name)
    except OSError:
        return []
