"""Transcripts for the commands: a file or standard input, one session of it picked, warnings told."""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..printable import printable
from .output import BadInputError, complain
from .progress import working

if TYPE_CHECKING:
    from session.session import Session
    from session.transcripts.account import TranscriptAccount

STDIN = "-"
SESSION_JSON = "session_json"
"""The format of saved sessions."""

WARNINGS = 5
"""Lines of a transcript that are complained about one by one."""


@dataclass(frozen=True, slots=True)
class Transcript:
    """What was read.

    Attributes:
        name: What to call it.
        session: The session that is meant.
        others: The other sessions in it.
        equals: How many sessions could have been meant as well as the first.
        is_saved_session: True if the file is a session that was saved, False if it is a log that some tool wrote.
    """

    name: str
    session: Session
    others: tuple[Session, ...]
    equals: int
    is_saved_session: bool = False

    @property
    def without_system(self) -> bool:
        """Whether this is a tool's log that leaves the system prompt out; a session that was built has none if it has none."""
        from session.items import MessageCategory

        source = self.session.metadata.get("source")
        recorded = isinstance(source, dict) and source.get("format") not in {None, "session_json"}
        return recorded and not any(item.category is MessageCategory.SYSTEM for item in self.session.items)


def read(path: str, session_id: str | None, read_files_below: str | None = None) -> Transcript:
    """The transcript, its warnings told.

    Args:
        path: A file, or `-` for standard input.
        session_id: The beginning of the id of the session that is meant; None for the main one.
        read_files_below: A folder whose images are read where the transcript only names them; None for no folder.

    Raises:
        TranscriptError: It cannot be read, or is no transcript.
        BadInputError: No session, or more than one, has such an id.
    """
    account = _read_stdin(read_files_below) if path == STDIN else _read(path, read_files_below)
    sessions, equals = account.sessions, account.equals
    name = "standard input" if path == STDIN else Path(path).name
    main = sessions[0]
    _warn(name, main)
    if session_id is not None:
        main = _picked(sessions, session_id, name)
        equals = 1
    others = tuple(one for one in sessions if one is not main)
    return Transcript(name, main, others, equals, is_saved_session=account.format == SESSION_JSON)


def read_one(path: str, session_id: str | None, read_files_below: str | None = None) -> Transcript:
    """The same for commands that need to know which session is meant.

    Raises:
        TranscriptError: It cannot be read, or is no transcript.
        BadInputError: It is not clear which session is meant.
    """
    transcript = read(path, session_id, read_files_below)
    if transcript.equals > 1:
        raise BadInputError(
            f"{transcript.name} holds {transcript.equals} sessions: pick one with --session, e.g. --session {transcript.session.id} "
            f"(`context-window usage` lists them)"
        )
    return transcript


def _read(path: str, read_files_below: str | None) -> TranscriptAccount:
    from session.transcripts import read_account

    if not path:
        raise BadInputError(f"the name of a transcript is empty; pass a file, or {STDIN} for standard input")
    if _is_pipe(path):
        raise BadInputError(f"{path} is a pipe, and a transcript is read more than once; pipe it into standard input and pass {STDIN}")
    with working(f"reading {printable(Path(path).name)}", _size(path)) as done:
        return read_account(path, on_read=done, read_files_below=read_files_below)


def _size(path: str) -> int | None:
    """Bytes of the file; None where that cannot be told, which its reader will explain."""
    try:
        return Path(path).expanduser().stat().st_size
    except (OSError, RuntimeError, ValueError):
        return None


def _is_pipe(path: str) -> bool:
    """Whether it is one, as a shell makes with `<(…)`."""
    try:
        return stat.S_ISFIFO(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False


def _read_stdin(read_files_below: str | None) -> TranscriptAccount:
    """What standard input holds: put into a file first, for readers go through it more than once."""
    from session.errors import TranscriptError

    if sys.stdin is None or sys.stdin.isatty():
        raise BadInputError("'-' means standard input, and nothing is piped into it; pass a file, or pipe one in")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "stdin")
        with file.open("wb") as into:
            while block := sys.stdin.buffer.read(1 << 20):
                into.write(block)
        try:
            return _read(str(file), read_files_below)
        except TranscriptError as error:
            raise TranscriptError("standard input", error.problem, error.line) from None


def _picked(sessions: tuple[Session, ...], wanted: str, name: str) -> Session:
    """The session whose id, or whose agent's id, begins so."""
    found = [one for one in sessions if wanted in (one.id, one.metadata.get("agent_id"))]
    if not found:
        found = [one for one in sessions if one.id.startswith(wanted) or str(one.metadata.get("agent_id") or "").startswith(wanted)]
    if len(found) == 1:
        return found[0]
    ids = ", ".join(one.id for one in (found or sessions)[:4]) + (", …" if len(found or sessions) > 4 else "")
    raise BadInputError(f"{len(found) or 'no'} sessions in {name} have an id that begins with {wanted!r}; it holds {ids}")


def _warn(name: str, session: Session) -> None:
    warnings = session.metadata.get("warnings")
    if not isinstance(warnings, list):
        return
    for warning in warnings[:WARNINGS]:
        complain(f"{name}: {warning}")
    if len(warnings) > WARNINGS:
        complain(f"{name}: and {len(warnings) - WARNINGS} more such lines were left out")
