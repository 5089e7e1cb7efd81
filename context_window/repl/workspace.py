"""The tools with which a model looks at a directory: read a file, list a folder, search. They change nothing and leave it nowhere.

1. Paths are resolved first, then opened without following a link (`session.files.Folder`), so what passes the check is what is read.
2. A file that may hold secrets (`secret_names.py`) is read only if the user agrees; searches and recursive listings leave it out.
   That holds under every name of the file: links are resolved, and a file with hard links is judged by all its names.
3. Searches and recursive listings leave out what `.gitignore` files name (`gitignore.py`) and folders of dependencies (`tree.py`).

The bounds stand at the top. How matches are found is in `searching.py`.
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
from .searching import Search
from .secret_files import SecretFiles
from .secret_names import is_secret
from .tree import Walk, entries_of

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
SECONDS = 5.0
"""Seconds that one call may take, without the time that the user takes to answer."""


class WorkspaceError(ContextWindowError):
    """A tool was asked for what it does not give; the message tells the model what to do instead."""


class Workspace:
    """A directory as a model may see it.

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
            allow_secret: Asks the user whether the model may read a file that may hold secrets, and returns the answer. It takes the
                file's description and is called in the tool's thread, once per file. None: nobody can be asked, so no such file is read.
            seconds: Seconds that one call may take.
            clock: Returns the time in seconds.
        """
        self.root = Path(os.path.realpath(root))
        self._allow_secret = allow_secret
        self._answers: dict[Path, bool] = {}
        self._asking = threading.Lock()
        self._seconds = seconds
        self._clock = clock

    @property
    def tools(self) -> list[Callable[..., str]]:
        """The tools, as functions with hints."""
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
        file, path_shown = self._inside(path), printable(path)
        with self._folder() as folder, self._opened(file, folder) as (stream, status):
            description = SecretFiles(self.root, self._deadline()).description(file, status)
            if description is not None or self._is_secret_path(path):
                self._ask(file, description or path_shown)
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
        page = list(_within(all_lines[first - 1 : first - 1 + max(1, min(lines, MAX_LINES))]))
        last = first - 1 + len(page)
        text = "\n".join(page)
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
        folder = self._inside(path)
        if not folder.is_dir():
            raise WorkspaceError(f"{printable(path)} is no folder" if folder.exists() else f"there is no folder {printable(path)}")
        is_late = self._deadline()
        walk = Walk(folder, self.root, is_late)
        entries = iter(walk) if recursive else iter(entries_of(folder))
        names = [self._entry(entry, folder) for entry in islice(entries, MAX_ENTRIES)]
        is_cut = is_late() or next(entries, None) is not None
        notes = [f"[more than these {len(names):,}; list a folder of it]"] if is_cut else []
        return "\n".join([*names, *notes, *_left_out(walk)]) or f"[{printable(path)} is empty]"

    def search(self, pattern: str, path: str = ".") -> str:
        r"""Find lines by a regular expression in the text files of the working directory.

        Left out unless `path` names them: hidden folders, those of dependencies, files that .gitignore names. Files that may hold
        secrets, such as .env or private keys, are always left out; read_file reads one if the user agrees.

        Args:
            pattern: The regular expression, in the syntax of RE2: no look-around, no back-references. (?i) at its beginning ignores case.
                A match lies within one line. In \w, \d and \b only ASCII counts; \pL is any letter.
            path: The folder or file to search, as a path from the working directory.
        """
        start = self._inside(path)
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
        with self._folder() as folder:
            for file in files:
                if search.is_late() or search.is_over:
                    break
                if not self._look(search, file, folder, secrets):
                    if file == start:
                        raise _not_searched(path)
                    walk.secrets += 1
        search.is_late()
        return "\n".join([search.report(), *_left_out(walk)])

    def _look(self, search: Search, file: Path, folder: Folder, secrets: SecretFiles) -> bool:
        """Search a file. False if it may hold secrets, so that it was not searched."""
        try:
            with self._opened(file, folder) as (stream, status):
                if secrets.description(file, status) is not None:
                    return False
                data = stream.read(MAX_FILE) or b""
        except WorkspaceError:
            search.unread += 1
            return True
        if status.st_size > len(data):
            search.cut += 1
        if binary_kind(data) is None:
            search.look(self._name(file), data)
        return True

    def _is_secret_path(self, path: str) -> bool:
        """True if the path, as it is written, names a file that may hold secrets; it may be a link to one of another name."""
        return is_secret(Path(os.path.normpath(self.root / path)))

    def _ask(self, file: Path, description: str) -> None:
        """Ask the user whether the model may read a file, unless there is an answer already.

        Raises:
            WorkspaceError: It may not.
        """
        with self._asking:  # calls of one answer run together; a user answers one question at a time
            if self._allow_secret is None:
                raise WorkspaceError(
                    f"{description} may hold secrets, and nobody can be asked whether you may read it; go on without it, "
                    "or say which of its lines the user should give you"
                )
            if file not in self._answers:
                self._answers[file] = self._allow_secret(description)
            if not self._answers[file]:
                raise WorkspaceError(f"the user does not let you read {description}, which may hold secrets; go on without it")

    def _inside(self, path: str) -> Path:
        """Return the path without links.

        Raises:
            WorkspaceError: It is not in the directory.
        """
        try:
            resolved = Path(os.path.realpath(self.root / path))
        except (OSError, ValueError) as error:  # ValueError: a NUL
            raise WorkspaceError(f"{printable(short(path))} is no path: {error}") from None
        if not resolved.is_relative_to(self.root):
            raise WorkspaceError(f"{printable(short(path))} is outside the working directory, and only what is in it can be read")
        return resolved

    def _folder(self) -> Folder:
        """Open the directory: whatever its folders become meanwhile, no file outside of it can be opened from there.

        Raises:
            WorkspaceError: It is gone.
        """
        try:
            return Folder(self.root, "the working directory")
        except FormatError as error:
            raise WorkspaceError(str(error)) from None

    @contextmanager
    def _opened(self, file: Path, folder: Folder) -> Iterator[tuple[IO[bytes], os.stat_result]]:
        """Open a regular file, a path without links; what follows is about the opened file, whatever takes its place."""
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
        """Return a function that is true once the time of a call that begins now is over."""
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
        except OSError:  # gone meanwhile
            return name


def _not_searched(path: str) -> WorkspaceError:
    return WorkspaceError(f"{printable(path)} may hold secrets, and is not searched; read_file asks the user whether you may read it")


def _left_out(walk: Walk) -> list[str]:
    """Return notes on what a walk could not give."""
    notes = [f"[{problem}]" for problem in walk.problems]
    if walk.secrets:
        files = "1 file that may hold secrets is" if walk.secrets == 1 else f"{walk.secrets:,} files that may hold secrets are"
        notes.append(f"[{files} left out; read_file asks the user whether you may read one]")
    return notes


def _within(lines: list[str]) -> Iterator[str]:
    """The lines, cut, as far as one answer may go; one at least."""
    room = MAX_TEXT
    for place, line in enumerate(lines):
        cut = line if len(line) <= MAX_LINE else f"{line[:MAX_LINE]} [{len(line) - MAX_LINE:,} more characters in this line]"
        room -= len(cut) + 1
        if place and room < 0:
            return
        yield cut
