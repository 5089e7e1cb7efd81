"""Tools that let a model look at a directory: read a file, list a folder, search. They change nothing and never leave the directory.

1. A path is resolved first, then opened without following links (`session.files.Folder`), so the file that was checked is the one read.
2. A file that may hold secrets (`secret_names.py`) is read only if the user agrees; searches and recursive listings leave it out.
   This holds for every name of the file: links are resolved, and a file with hard links is judged by all its names.
3. Searches and recursive listings leave out ignored files (`gitignore.py`) and folders of dependencies (`folder_walk.py`).

The limits are the constants below. `search.py` does the searching. The model sees the docstrings, results and errors of the tools.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import IO

from session.errors import FormatError, short
from session.files import Folder
from session.printable import printable

from ..errors import ContextWindowError
from .file_kinds import binary_kind
from .folder_walk import Walk, entries_of
from .search import Search
from .secret_files import SecretFiles
from .secret_names import is_secret

MAX_FILE = 4 * 1024 * 1024
"""Bytes of a file that are read, at most."""
MAX_LINES = 400
"""Lines in the result of one call, at most."""
MAX_TEXT = 40_000
"""Characters in the result of one call, at most."""
MAX_LINE = 2_000
"""Characters of a line. Longer lines, as in minified files, are cut."""
MAX_ENTRIES = 500
"""Entries in a listing, at most."""
SECONDS = 5.0
"""Seconds that one call may take, not counting the user's time to answer a question."""


class WorkspaceError(ContextWindowError):
    """A tool cannot do what the model asked. The message tells the model what to do instead."""


class Workspace:
    """A directory that a model may read, through three tools.

        workspace = Workspace(Path.cwd())
        await run_turn(session, "What is here?", model=model, tools=workspace.tools, manager=manager)

    Attributes:
        root: The directory, without links in its path.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        allow_secret: Callable[[str], bool] | None = None,
        seconds: float = SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """
        Args:
            root: The directory.
            allow_secret: Asks the user whether the model may read a file that may hold secrets; takes its description, returns the answer.
                Called in the tool's thread, once per file. With None nobody can be asked, so no such file is read.
            seconds: Seconds that one call may take.
            clock: Returns the time in seconds.
        """
        self.root = Path(os.path.realpath(root))
        self._allow_secret = allow_secret
        self._answers: dict[Path, bool] = {}
        self._question_lock = threading.Lock()
        self._seconds = seconds
        self._clock = clock

    @property
    def tools(self) -> list[Callable[..., str]]:
        """The tools, as functions with type hints."""
        return [self.read_file, self.list_files, self.search]

    def read_file(self, path: str, first_line: int = 1, lines: int = MAX_LINES) -> str:
        """Give lines of a text file in the working directory.

        Files that .gitignore names can be read. A file that may hold secrets, such as .env or a private key, is read only if the user
        agrees: the user is asked, once for each file.

        Args:
            path: The file, as a path from the working directory.
            first_line: The first line to give, counted from 1.
            lines: How many lines to give, at most 400.
        """
        file, path_shown = self._resolve(path), printable(path)
        with self._open_root() as folder, self._open_file(file, folder) as (stream, status):
            description = SecretFiles(self.root, self._deadline()).description(file, status)
            if description is not None or self._is_secret_path(path):
                self._require_permission(file, description or path_shown)
            data, size = stream.read(MAX_FILE) or b"", status.st_size
        if size and not data:
            return f"{path_shown}: {size:,} bytes, and none of them could be read"
        kind = binary_kind(data)
        if kind is not None:
            return f"{path_shown} is a binary file ({kind}, {size:,} bytes): its content is not shown"
        all_lines = data.decode("utf-8", "replace").splitlines()
        first = max(1, first_line)
        if all_lines and first > len(all_lines):
            raise WorkspaceError(f"{path_shown} has {len(all_lines):,} lines; first_line={first_line:,} is beyond its end")
        page_lines = list(_page(all_lines[first - 1 : first - 1 + max(1, min(lines, MAX_LINES))]))
        last = first - 1 + len(page_lines)
        text = "\n".join(page_lines)
        if not all_lines:
            return f"[{path_shown} is empty]"
        if size > len(data) and last == len(all_lines):
            return f"{text}\n[{path_shown}: {size:,} bytes, of which only the first {len(data):,} can be read]"
        if last < len(all_lines):
            return f"{text}\n[{path_shown}: lines {first:,} to {last:,} of {len(all_lines):,}; go on with first_line={last + 1}]"
        return text

    def list_files(self, path: str = ".", recursive: bool = False) -> str:
        """List a folder in the working directory: folders end in a slash, files have their size in bytes.

        Args:
            path: The folder, as a path from the working directory.
            recursive: Whether to list what is in its folders too. Hidden folders, those of dependencies, files that .gitignore names and
                files that may hold secrets are left out then.
        """
        folder = self._resolve(path)
        if not folder.is_dir():
            raise WorkspaceError(f"{printable(path)} is no folder" if folder.exists() else f"there is no folder {printable(path)}")
        is_late = self._deadline()
        walk = Walk(folder, self.root, is_late)
        entries = iter(walk) if recursive else iter(entries_of(folder))
        names = [self._entry(entry, folder) for entry in islice(entries, MAX_ENTRIES)]
        is_cut = is_late() or next(entries, None) is not None
        notes = [f"[more than these {len(names):,}; list a folder of it]"] if is_cut else []
        return "\n".join([*names, *notes, *_walk_notes(walk)]) or f"[{printable(path)} is empty]"

    def search(self, pattern: str, path: str = ".") -> str:
        r"""Find lines by a regular expression in the text files of the working directory.

        Left out unless `path` names them: hidden folders, those of dependencies, files that .gitignore names. Files that may hold
        secrets, such as .env or private keys, are always left out; read_file reads one if the user agrees.

        Args:
            pattern: The regular expression, in the syntax of RE2: no look-around, no back-references. (?i) at its beginning ignores case.
                A match lies within one line. In \w, \d and \b only ASCII counts; \pL is any letter.
            path: The folder or file to search, as a path from the working directory.
        """
        start = self._resolve(path)
        if not start.exists():
            raise WorkspaceError(f"there is no file or folder {printable(path)}")
        search = Search(pattern, seconds=self._seconds, clock=self._clock)
        walk = Walk(start, self.root, search.is_late)
        secrets = SecretFiles(self.root, search.is_late)
        files: Iterator[Path]
        if not start.is_file():
            files = (Path(entry.path) for entry in walk if entry.is_file(follow_symlinks=False))
        elif self._is_secret_path(path):
            raise _not_searched(path)
        else:
            files = iter([start])
        with self._open_root() as folder:
            for file in files:
                if search.is_late() or search.is_over:
                    break
                if not self._search_file(search, file, folder, secrets):
                    if file == start:
                        raise _not_searched(path)
                    walk.secrets += 1
        search.is_late()
        return "\n".join([search.report(), *_walk_notes(walk)])

    def _search_file(self, search: Search, file: Path, folder: Folder, secrets: SecretFiles) -> bool:
        """Search a file. Return False, without searching it, if it may hold secrets."""
        try:
            with self._open_file(file, folder) as (stream, status):
                if secrets.description(file, status) is not None:
                    return False
                data = stream.read(MAX_FILE) or b""
        except WorkspaceError:
            search.unreadable_files += 1
            return True
        if status.st_size > len(data):
            search.partial_files += 1
        if binary_kind(data) is None:
            search.add_text(self._name(file), data)
        return True

    def _is_secret_path(self, path: str) -> bool:
        """True if the path as written looks like a file with secrets. It may be a link to a file with a harmless name."""
        return is_secret(Path(os.path.normpath(self.root / path)))

    def _require_permission(self, file: Path, description: str) -> None:
        """Ask the user whether the model may read a file, unless the user has answered already.

        Raises:
            WorkspaceError: The user said no, or nobody can be asked.
        """
        with self._question_lock:  # parallel calls of one response: the user answers one question at a time
            if self._allow_secret is None:
                raise WorkspaceError(
                    f"{description} may hold secrets, and nobody can be asked whether you may read it; go on without it, "
                    "or say which of its lines the user should give you"
                )
            if file not in self._answers:
                self._answers[file] = self._allow_secret(description)
            if not self._answers[file]:
                raise WorkspaceError(f"the user does not let you read {description}, which may hold secrets; go on without it")

    def _resolve(self, path: str) -> Path:
        """Return the path with its links resolved.

        Raises:
            WorkspaceError: The path leads out of the directory, or is invalid.
        """
        try:
            resolved = Path(os.path.realpath(self.root / path))
        except (OSError, ValueError) as error:  # ValueError: a NUL
            raise WorkspaceError(f"{printable(short(path))} is no path: {error}") from None
        if not resolved.is_relative_to(self.root):
            raise WorkspaceError(f"{printable(short(path))} is outside the working directory, and only what is in it can be read")
        return resolved

    def _open_root(self) -> Folder:
        """Open the directory. No file outside of it can be opened from the result, even if folders are swapped for links meanwhile.

        Raises:
            WorkspaceError: The directory no longer exists.
        """
        try:
            return Folder(self.root, "the working directory")
        except FormatError as error:
            raise WorkspaceError(str(error)) from None

    @contextmanager
    def _open_file(self, file: Path, folder: Folder) -> Iterator[tuple[IO[bytes], os.stat_result]]:
        """Open a regular file, given by a path without links. The content and the status are those of the same opened file."""
        try:
            with folder.open(file) as stream:
                yield stream, os.fstat(stream.fileno())
        except FileNotFoundError:
            raise WorkspaceError(f"there is no file {self._name(file)}; list_files shows those there are") from None
        except OSError as error:
            if file.is_dir():
                raise WorkspaceError(f"{self._name(file)} is a folder; list_files shows what is in it") from None
            raise WorkspaceError(f"{self._name(file)} cannot be read: {error.strerror or 'an error of the disk'}") from None

    def _name(self, file: Path) -> str:
        return printable(str(file)[len(str(self.root)) :].lstrip(os.sep).replace(os.sep, "/"))

    def _deadline(self) -> Callable[[], bool]:
        """Return a function that returns True once the time of a call that starts now is over."""
        end = self._clock() + self._seconds
        return lambda: self._clock() > end

    def _entry(self, entry: os.DirEntry[str], folder: Path) -> str:
        name = printable(Path(entry.path).relative_to(folder).as_posix())
        if entry.is_symlink():
            target = Path(os.path.realpath(entry.path))
            outside = not target.is_relative_to(self.root)
            secret = ", may hold secrets" if is_secret(Path(entry.path)) or is_secret(target) else ""
            return f"{name} (a link{', which leads out of the working directory' if outside else secret})"
        if entry.is_dir(follow_symlinks=False):
            return f"{name}/"
        secret = ", may hold secrets" if is_secret(Path(entry.path)) else ""
        try:
            return f"{name} ({entry.stat(follow_symlinks=False).st_size:,}{secret})"
        except OSError:  # deleted meanwhile
            return name


def _not_searched(path: str) -> WorkspaceError:
    return WorkspaceError(f"{printable(path)} may hold secrets, and is not searched; read_file asks the user whether you may read it")


def _walk_notes(walk: Walk) -> list[str]:
    """Return notes on the files that a walk left out."""
    notes = [f"[{problem}]" for problem in walk.problems]
    if walk.secrets:
        files = "1 file that may hold secrets is" if walk.secrets == 1 else f"{walk.secrets:,} files that may hold secrets are"
        notes.append(f"[{files} left out; read_file asks the user whether you may read one]")
    return notes


def _page(lines: list[str]) -> Iterator[str]:
    """Yield the lines, each cut to `MAX_LINE`, up to `MAX_TEXT` characters together, but at least one line."""
    room = MAX_TEXT
    for index, line in enumerate(lines):
        cut = line if len(line) <= MAX_LINE else f"{line[:MAX_LINE]} [{len(line) - MAX_LINE:,} more characters in this line]"
        room -= len(cut) + 1
        if index and room < 0:
            return
        yield cut
