"""Output folders, written whole or not at all and readable only by their owner. One that another program has filled is never replaced."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from .output import BadInputError
from .safe_write import explained_errors

INDEX, PAGES = "index.html", "sessions"
"""All that a folder of ours has: a page, and a folder of pages."""
SUFFIX = ".html"


def is_folder(name: str) -> bool:
    """True if an output's name is that of a folder: it ends with a slash, or is one."""
    return name.endswith(("/", os.sep)) or (bool(name) and Path(name).is_dir())


class FolderTarget:
    """A folder of pages to write. It is checked before any work is done."""

    def __init__(self, name: str, *, force: bool = False) -> None:
        """
        Args:
            name: The path as the user gave it.
            force: True to replace an earlier folder of pages.

        Raises:
            BadInputError: There is a file or another folder in its place, or the folder around it does not exist.
        """
        self.label = name
        self._path = Path(os.path.realpath(name))
        self._force = force
        with explained_errors(self.label):
            self._check()

    @contextmanager
    def filled(self) -> Iterator[Path]:
        """Yield an empty folder beside the place. When the block ends, it takes the place; if it fails, nothing is left of it.

        Raises:
            BadInputError: The folder cannot be written, or was filled by another program in the meantime.
        """
        with explained_errors(self.label):
            temporary = Path(tempfile.mkdtemp(".tmp", ".context-window-", self._path.parent))  # for its owner alone
        old = temporary / "old"
        try:
            with explained_errors(self.label):
                folder = temporary / "new"
                folder.mkdir(mode=0o700)
                yield folder
                self._check()
                if self._path.exists():
                    self._path.replace(old)
                try:
                    folder.replace(self._path)
                except BaseException:
                    if old.exists():
                        old.replace(self._path)
                    raise
        finally:  # also after Ctrl-C
            if not old.exists() or self._path.exists():  # else it is all that is left of the earlier report
                shutil.rmtree(temporary, ignore_errors=True)

    def _check(self) -> None:
        if not self._path.parent.is_dir():
            raise BadInputError(f"{self._path} is in no folder; pass a name in a folder that exists")
        if self._path.exists() and not self._path.is_dir():
            raise BadInputError(f"{self.label} is no folder; choose another name")
        foreign = self._foreign() if self._path.exists() else None
        if foreign is not None:
            raise BadInputError(f"{self.label} has files that are no report's, such as {foreign}; choose another name")
        if not self._force and self._path.exists() and any(self._path.iterdir()):
            raise BadInputError(f"{self.label} already exists; --force replaces it")

    def _foreign(self) -> str | None:
        """Return the name of a file that no report has; None if there is none."""
        pages = self._path / PAGES
        is_ours = pages.is_dir() and not pages.is_symlink()
        names: Iterable[Path] = [*self._path.iterdir(), *(pages.iterdir() if is_ours else ())]
        ours = {self._path / INDEX, *((pages,) if is_ours else ())}
        return next((path.name for path in names if path not in ours and not (path.parent == pages and path.suffix == SUFFIX)), None)


def write_page(path: Path, content: bytes) -> None:
    """Write a file that does not exist yet, readable only by its owner."""
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)
