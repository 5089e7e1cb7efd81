"""Output files, written whole or not at all and readable only by their owner. An existing file is replaced only with `--force`."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import click

from .output import BadInputError, say_content, terminal_safe

STDOUT = "-"
Command = TypeVar("Command", bound=Callable[..., Any])
force_option = click.option("--force", is_flag=True, help="Replace an existing file. The transcript itself is never replaced.")


def output_options(command: Command) -> Command:
    """Add `-o` and `--force` to a command."""
    out = click.option("-o", "--output", "out", required=True, metavar="OUT", help="File to write, or - for standard output.")
    return out(force_option(command))


class Target:
    """A file to write, or standard output, whose name is `-`. It is checked before any work is done."""

    def __init__(self, name: str, sources: Iterable[str] = (), *, force: bool = False) -> None:
        """
        Args:
            name: The path as the user gave it, or `-`.
            sources: Paths of the transcripts, which are never overwritten.
            force: True to replace an existing file.

        Raises:
            BadInputError: The file exists, is one of the sources or a folder, or its folder does not exist.
        """
        self.name = STDOUT if name in {"/dev/stdout", "/dev/fd/1"} else name
        self.label = "standard output" if self.name == STDOUT else name
        self._path = Path(os.path.realpath(name))
        self._force = force
        if self.name != STDOUT:
            with explained_errors(self.name):
                self._check(sources)

    def write(self, content: bytes) -> None:
        """Write the content. A file that is replaced keeps its permissions and, if a link leads to it, the link.

        Raises:
            BadInputError: The file cannot be written, or was created by another program in the meantime.
        """
        if self.name == STDOUT:
            say_content(content)
            return
        with explained_errors(self.name):
            self._check(())
            if self._path.exists() and not self._path.is_file():  # a device or a pipe
                with self._path.open("wb") as device:
                    device.write(terminal_safe(content) if device.isatty() else content)
            else:
                replace_file(self._path, content)

    def _check(self, sources: Iterable[str]) -> None:
        if self._path.is_dir() or not self._path.parent.is_dir():
            problem = "is a folder" if self._path.is_dir() else "is in no folder"
            raise BadInputError(f"{self._path} {problem}; pass a file name in a folder that exists")
        for source in sources:
            with suppress(OSError, RuntimeError):  # it is not there, or there is no such user's folder: its reader says so
                if self._path.samefile(Path(source).expanduser()):
                    raise BadInputError(f"{self.name} is the transcript itself, which is never overwritten; choose another name")
        if self._path.is_file() and not self._force:
            raise BadInputError(f"{self.name} already exists; --force replaces it")


@contextmanager
def explained_errors(name: str) -> Iterator[None]:
    """Let a fault of the system while an output of this name is written be the user's to mend.

    Raises:
        BadInputError: The block has raised an OSError.
    """
    try:
        yield
    except OSError as error:
        raise BadInputError(f"{name} cannot be written: {error.strerror or error}") from None


def replace_file(path: Path, content: bytes) -> None:
    """Write a file next to the old one, then rename it."""
    descriptor, name = tempfile.mkstemp(".tmp", ".context-window-", path.parent)  # readable only by the owner
    temporary = Path(name)
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            shutil.copymode(path, temporary)
        temporary.replace(path)
    except BaseException:  # Ctrl-C too must leave nothing behind
        temporary.unlink()
        raise
