"""The tools with which a model looks at a directory: read a file, list a folder, search. They change nothing and leave it nowhere.

What bounds them stands at the top. How matches are found is in `searching.py`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from session.errors import FormatError, short
from session.files import Folder

from ..errors import ContextWindowError
from .searching import Search

MAX_FILE = 4 * 1024 * 1024
"""Bytes of a file that are looked at."""
MAX_LINES = 400
"""Lines that one call gives."""
MAX_TEXT = 40_000
"""Characters that one call gives."""
MAX_LINE = 2_000
"""Characters of a line; longer ones are cut, as in minified files."""
MAX_ENTRIES = 500
"""Files that a listing names."""
MAX_FOLDER = 50_000
"""Entries of a folder that are looked at."""
SECONDS = 5.0
"""How long one call may take."""
SNIFFED = 8_192
"""Bytes at a file's beginning that tell whether it is text."""

SKIPPED = frozenset({"node_modules", "__pycache__", "venv", "dist", "build", "target"})
"""Folders that listings and searches pass over, as they do those whose name begins with a dot."""


class WorkspaceError(ContextWindowError):
    """A tool was asked for what it does not give; the message tells the model what to do instead."""


class Workspace:
    """A directory as a model may see it.

        workspace = Workspace(Path.cwd())
        await run_turn(session, "What is here?", model=model, tools=workspace.tools, manager=manager)

    Attributes:
        root: The directory, without links in its path.
    """

    def __init__(self, root: str | os.PathLike[str], *, seconds: float = SECONDS, clock: Callable[[], float] = time.monotonic) -> None:
        """
        Args:
            root: The directory.
            seconds: How long one call may take.
            clock: What tells the seconds.
        """
        self.root = Path(os.path.realpath(root))
        self._seconds = seconds
        self._clock = clock

    @property
    def tools(self) -> list[Callable[..., str]]:
        """The tools, as functions with hints."""
        return [self.read_file, self.list_files, self.search]

    def read_file(self, path: str, first_line: int = 1, lines: int = MAX_LINES) -> str:
        """Give lines of a text file in the working directory.

        Args:
            path: The file, as a path from the working directory.
            first_line: The first line to give, counted from 1.
            lines: How many lines to give, at most 400.
        """
        found = self._inside(path)
        with self._opened() as folder:
            data, size = self._bytes_of(found, folder)
        if size and not data:
            return f"{path}: {size:,} bytes, and none of them could be read"
        kind = binary_kind(data)
        if kind is not None:
            return f"{path} is a binary file ({kind}, {size:,} bytes): its content is not shown"
        all_lines = data.decode("utf-8", "replace").splitlines()
        first = max(1, first_line)
        if all_lines and first > len(all_lines):
            raise WorkspaceError(f"{path} has {len(all_lines):,} lines; first_line={first_line:,} is beyond its end")
        told = list(_within(all_lines[first - 1 : first - 1 + max(1, min(lines, MAX_LINES))]))
        last = first - 1 + len(told)
        text = "\n".join(told)
        if not all_lines:
            return f"[{path} is empty]"
        if size > len(data) and last == len(all_lines):
            return f"{text}\n[{path}: {size:,} bytes, of which only the first {len(data):,} can be read]"
        if last < len(all_lines):
            return f"{text}\n[{path}: lines {first:,} to {last:,} of {len(all_lines):,}; go on with first_line={last + 1}]"
        return text

    def list_files(self, path: str = ".", recursive: bool = False) -> str:
        """List a folder in the working directory: folders end in a slash, files have their size in bytes.

        Args:
            path: The folder, as a path from the working directory.
            recursive: Whether to list what is in its folders too. Hidden folders and those of dependencies are left out then.
        """
        folder = self._inside(path)
        if not folder.is_dir():
            raise WorkspaceError(f"{path} is no folder" if folder.exists() else f"there is no folder {path}")
        late = self._deadline()
        entries = self._walk(folder, late) if recursive else iter(_entries(folder))
        told = [self._entry(entry, folder) for entry in islice(entries, MAX_ENTRIES)]
        if late() or next(entries, None) is not None:
            told.append(f"[more than these {len(told):,}; list a folder of it]")
        return "\n".join(told) or f"[{path} is empty]"

    def search(self, pattern: str, path: str = ".") -> str:
        """Find lines by a regular expression in the text files of the working directory.

        Args:
            pattern: The regular expression, in Python's syntax. (?i) at its beginning ignores case.
            path: The folder or file to search, as a path from the working directory.
        """
        start = self._inside(path)
        if not start.exists():
            raise WorkspaceError(f"there is no file or folder {path}")
        search = Search(pattern, seconds=self._seconds, clock=self._clock)
        walked = (Path(entry.path) for entry in self._walk(start, search.is_late) if _is_file(entry))
        with self._opened() as folder:
            for file in [start] if start.is_file() else walked:
                if search.is_late() or search.over:
                    break
                self._search(search, file, folder)
        search.is_late()
        return search.told()

    def _search(self, search: Search, file: Path, folder: Folder) -> None:
        try:
            data, size = self._bytes_of(file, folder)
        except WorkspaceError:
            search.unread += 1
            return
        if size > len(data):
            search.cut += 1
        if binary_kind(data) is None:
            name = file.relative_to(self.root).as_posix()
            search.look(name, data.decode("utf-8", "replace"))

    def _inside(self, path: str) -> Path:
        """The file that is meant, without links in its path.

        Raises:
            WorkspaceError: It is not in the directory.
        """
        try:
            found = Path(os.path.realpath(self.root / path))
        except (OSError, ValueError) as error:  # ValueError: a NUL
            raise WorkspaceError(f"{short(path)} is no path: {error}") from None
        if not found.is_relative_to(self.root):
            raise WorkspaceError(f"{short(path)} is outside the working directory, and only what is in it can be read")
        return found

    def _opened(self) -> Folder:
        """The directory, opened: whatever its folders become meanwhile, no file outside of it can be opened from there.

        Raises:
            WorkspaceError: It is gone.
        """
        try:
            return Folder(self.root, "the working directory")
        except FormatError as error:
            raise WorkspaceError(str(error)) from None

    def _bytes_of(self, file: Path, folder: Folder) -> tuple[bytes, int]:
        """The beginning of a regular file, and its size in bytes. `file` is without links, and one that took its place is not followed."""
        try:
            if file.is_dir():
                raise WorkspaceError(f"{self._name(file)} is a folder; list_files shows what is in it")
            with folder.open(file) as opened:
                return opened.read(MAX_FILE) or b"", os.fstat(opened.fileno()).st_size
        except FileNotFoundError:
            raise WorkspaceError(f"there is no file {self._name(file)}; list_files shows those there are") from None
        except OSError as error:
            raise WorkspaceError(f"{self._name(file)} cannot be read: {error.strerror or 'an error of the disk'}") from None

    def _name(self, file: Path) -> str:
        return file.relative_to(self.root).as_posix()

    def _deadline(self) -> Callable[[], bool]:
        """Tells whether the time of a call that begins now is over."""
        end = self._clock() + self._seconds
        return lambda: self._clock() > end

    def _walk(self, folder: Path, late: Callable[[], bool]) -> Iterator[os.DirEntry[str]]:
        """Files and links below a folder, by name, as long as there is time; no link is followed."""
        waiting = _entries(folder)[::-1]
        while waiting and not late():
            entry = waiting.pop()
            if not entry.is_dir(follow_symlinks=False):
                yield entry
            elif entry.name not in SKIPPED and not entry.name.startswith("."):
                waiting += _entries(Path(entry.path))[::-1]

    def _entry(self, entry: os.DirEntry[str], folder: Path) -> str:
        name = Path(entry.path).relative_to(folder).as_posix()
        if entry.is_symlink():
            outside = not Path(os.path.realpath(entry.path)).is_relative_to(self.root)
            return f"{name} (a link{', which leads out of the working directory' if outside else ''})"
        if entry.is_dir(follow_symlinks=False):
            return f"{name}/"
        try:
            return f"{name} ({entry.stat(follow_symlinks=False).st_size:,})"
        except OSError:  # gone meanwhile
            return name


def _is_file(entry: os.DirEntry[str]) -> bool:
    return entry.is_file(follow_symlinks=False)


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    """What is in a folder, by name; nothing where it cannot be read."""
    try:
        with os.scandir(folder) as entries:
            return sorted(islice(entries, MAX_FOLDER), key=lambda entry: entry.name)
    except OSError:
        return []


def _within(lines: list[str]) -> Iterator[str]:
    """The lines, cut, as far as one answer may go; one at least."""
    room = MAX_TEXT
    for place, line in enumerate(lines):
        cut = line if len(line) <= MAX_LINE else f"{line[:MAX_LINE]} [{len(line) - MAX_LINE:,} more characters in this line]"
        room -= len(cut) + 1
        if place and room < 0:
            return
        yield cut


_MAGIC = {b"\x89PNG": "PNG image", b"\xff\xd8\xff": "JPEG image", b"GIF8": "GIF image", b"%PDF": "PDF", b"PK\x03\x04": "ZIP archive"}


def binary_kind(data: bytes) -> str | None:
    """What a file is that is no text, in words; None for a text."""
    for magic, kind in _MAGIC.items():
        if data.startswith(magic):
            return kind
    if b"\0" in data[:SNIFFED]:
        return "no text in UTF-8"
    try:
        data[:SNIFFED].decode("utf-8")
    except UnicodeDecodeError as error:
        if error.start < min(len(data), SNIFFED) - 3:  # else it is the last character that was cut
            return "no text in UTF-8"
    return None
