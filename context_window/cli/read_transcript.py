"""Reads a transcript for a command: from a file or standard input, picks one session, prints its warnings."""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..printable import printable
from .newest import log_of_session
from .output import BadInputError, complain
from .progress import progress_bar

if TYPE_CHECKING:
    from session.session import Session
    from session.transcripts.account import TranscriptAccount

STDIN = "-"
SESSION_JSON = "session_json"
"""The format of saved sessions."""

WARNINGS = 5
"""Warnings about a transcript that are printed one by one."""


@dataclass(frozen=True, slots=True)
class Transcript:
    """A transcript that was read, and the session of it to use.

    Attributes:
        name: Name for messages.
        session: The session to use.
        other_sessions: The other sessions of the transcript.
        main_count: Number of sessions that could be the main one. If there are several, `session` is the first of them.
        account: All that was read.
    """

    name: str
    session: Session
    other_sessions: tuple[Session, ...]
    main_count: int
    account: TranscriptAccount

    @property
    def lacks_system_prompt(self) -> bool:
        """True if this is a tool's log without the system prompt. A session built by a program has none only if there was none."""
        from session.items import MessageCategory

        source = self.session.metadata.get("source")
        is_log = isinstance(source, dict) and source.get("format") not in {None, SESSION_JSON}
        return is_log and not any(item.category is MessageCategory.SYSTEM for item in self.session.items)


def read(path: str, session_id: str | None, read_files_below: str | None = None) -> Transcript:
    """Read a transcript and print its warnings.

    Args:
        path: A file, `-` for standard input, or the beginning of a session's id.
        session_id: The id of the session to use, or the beginning of it; None for the main session.
        read_files_below: Folder from which images that the transcript names by path are read; None for no folder.

    Raises:
        TranscriptError: The file cannot be read, or is not a transcript.
        BadInputError: No session has such an id, or several have.
    """
    path = log_of_session(path)
    with standard_input_as_file(path) as file:
        account = _read_file(file, read_files_below)
    sessions, main_count = account.sessions, account.main_count
    name = "standard input" if path == STDIN else Path(path).name
    main = sessions[0]
    _print_warnings(name, main)
    if session_id is not None:
        main = _pick(sessions, session_id, name)
        main_count = 1
    other_sessions = tuple(session for session in sessions if session is not main)
    return Transcript(name, main, other_sessions, main_count, account)


def read_one(path: str, session_id: str | None, read_files_below: str | None = None) -> Transcript:
    """Read a transcript, as `read` does, for a command that needs a single session.

    Raises:
        TranscriptError: The file cannot be read, or is not a transcript.
        BadInputError: It is not clear which session to use.
    """
    transcript = read(path, session_id, read_files_below)
    if transcript.main_count > 1:
        raise BadInputError(
            f"{transcript.name} holds {transcript.main_count} sessions: pick one with --session, e.g. --session {transcript.session.id} "
            f"(`context-window usage` lists them)"
        )
    return transcript


def _read_file(path: str, read_files_below: str | None) -> TranscriptAccount:
    from session.transcripts import read_account

    if not path:
        raise BadInputError(f"the name of a transcript is empty; pass a file, or {STDIN} for standard input")
    if _is_pipe(path):
        raise BadInputError(f"{path} is a pipe, but a transcript is read more than once; pipe it into standard input and pass {STDIN}")
    with progress_bar(f"reading {printable(Path(path).name)}", _size(path)) as advance:
        return read_account(path, on_read=advance, read_files_below=read_files_below)


def _size(path: str) -> int | None:
    """Return the bytes of the file, or None if it cannot be looked at; its reader will then report why."""
    try:
        return Path(path).expanduser().stat().st_size
    except (OSError, RuntimeError, ValueError):
        return None


def _is_pipe(path: str) -> bool:
    """True if the path is a pipe, such as a shell's `<(…)`."""
    try:
        return stat.S_ISFIFO(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False


@contextmanager
def standard_input_as_file(path: str) -> Iterator[str]:
    """Yield the path, or that of a temporary file with standard input if it is `-`: readers need several passes.

    Raises:
        BadInputError: Nothing is piped into standard input.
    """
    from session.errors import TranscriptError

    if path != STDIN:
        yield path
        return
    if sys.stdin is None or sys.stdin.isatty():
        raise BadInputError("'-' means standard input, but nothing is piped into it; pass a file, or pipe one in")
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "stdin")
        with copy.open("wb") as file:
            while block := sys.stdin.buffer.read(1 << 20):
                file.write(block)
        try:
            yield str(copy)
        except TranscriptError as error:
            raise TranscriptError("standard input", error.problem, error.line) from None


def _pick(sessions: tuple[Session, ...], wanted: str, name: str) -> Session:
    """Return the session with this id or agent id, or the one whose id begins with it."""
    matches = [session for session in sessions if wanted in (session.id, session.metadata.get("agent_id"))]
    if not matches:
        matches = [
            session
            for session in sessions
            if session.id.startswith(wanted) or str(session.metadata.get("agent_id") or "").startswith(wanted)
        ]
    if len(matches) == 1:
        return matches[0]
    candidates = matches or sessions
    ids = ", ".join(session.id for session in candidates[:4]) + (", …" if len(candidates) > 4 else "")
    count = f"{len(matches)} sessions" if matches else "no session"
    raise BadInputError(f"{count} in {name} {'have' if matches else 'has'} an id that begins with {wanted!r}; it holds {ids}")


def _print_warnings(name: str, session: Session) -> None:
    warnings = session.metadata.get("warnings")
    if not isinstance(warnings, list):
        return
    for warning in warnings[:WARNINGS]:
        complain(f"{name}: {warning}")
    if len(warnings) > WARNINGS:
        complain(f"{name}: and {len(warnings) - WARNINGS} more warnings of this kind")
