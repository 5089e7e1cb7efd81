"""Files written whole or not at all: beside their target first, then put in its place."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

from .output import BadInputError, reader_may_go

STDOUT = "-"
HINT = "pass -o with"
"""How another file is named: the beginning of the advice."""


def check_target(out: str, source: str, *, hint: str = HINT) -> None:
    """Checks, before any work is done, that the file can be written.

    Raises:
        BadInputError: It is the source, a folder, or in no folder that there is.
    """
    if out == STDOUT:
        return
    if not out:
        raise BadInputError(f"no name is given for the file to write; {hint} one")
    target, read_from = Path(out), Path(source).expanduser()  # as the readers do
    try:
        if target.is_dir():
            raise BadInputError(f"{out} is a folder; {hint} a file name in it")
        if not target.parent.is_dir():
            raise BadInputError(f"there is no folder {target.parent}; make it first, or {hint} another name")
        if _are_one(target, read_from):
            raise BadInputError(f"{out} is the transcript itself, which is never overwritten; {hint} another name")
    except OSError as error:  # a folder on the way there that may not be looked into
        raise _unwritable(out, error, hint) from None


def save(content: bytes, out: str, *, hint: str = HINT) -> None:
    """Writes the content: all of it, or nothing that stays.

    A file that is there keeps its permissions and, where it is a link, its place; a device or a pipe is written to.

    Raises:
        BadInputError: It cannot be written.
    """
    if out == STDOUT:
        with reader_may_go():
            sys.stdout.flush()
            sys.stdout.buffer.write(content)
            sys.stdout.buffer.flush()
        return
    try:
        mode = _mode(out)
        if mode is not None and not stat.S_ISREG(mode):
            Path(out).write_bytes(content)
        else:
            _replace(Path(os.path.realpath(out)), content, mode)
    except OSError as error:
        raise _unwritable(out, error, hint) from None


def _are_one(target: Path, source: Path) -> bool:
    try:
        return target.samefile(source)
    except OSError:  # one of them is not there, or may not be looked at: its reader or writer will say so
        return False


def _unwritable(out: str, error: OSError, hint: str) -> BadInputError:
    return BadInputError(f"{out} cannot be written: {error.strerror or error}; {hint} another name")


def _mode(out: str) -> int | None:
    try:
        return os.stat(out).st_mode
    except FileNotFoundError:
        return None


def _replace(target: Path, content: bytes, mode: int | None) -> None:
    if mode is not None and not os.access(target, os.W_OK):  # a new file in its place would get around that
        raise PermissionError(None, "it is read-only")
    beside = target.with_name(f".{target.name[:100]}.{os.getpid()}.tmp")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            beside.chmod(stat.S_IMODE(mode))
        beside.replace(target)
    except BaseException:  # Ctrl-C too must leave nothing behind
        beside.unlink(missing_ok=True)
        raise
