"""Which format a file has, told by its content; and the calls that read any of them. The list of formats is here.

A format is a module with `NAME`, `claims` and `read`. To add one, write the module and put it in `FORMATS`.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Protocol

from session.errors import TranscriptError
from session.session import Session

from . import claude_code, session_json
from .account import TranscriptAccount
from .reading import read_lines


class Format(Protocol):
    """One kind of file.

    Attributes:
        NAME: As in `session.metadata["source"]["format"]`.
    """

    NAME: str

    def claims(self, value: object) -> bool:
        """Whether this JSON value, found in a file, shows that the file has this format."""

    def read(self, path: Path, *, sidechains: bool) -> TranscriptAccount:
        """The sessions in the file.

        Args:
            path: The file.
            sidechains: False where only the main session is asked for, so that the files of its sub-agents need not be read.

        Raises:
            TranscriptError: There is no session in it.
        """


FORMATS: tuple[Format, ...] = (claude_code, session_json)


def read_transcript(path: str | os.PathLike[str]) -> Session:
    """The main session of a transcript, in whatever format it is.

        session = read_transcript("~/.claude/projects/my-project/0d3c….jsonl")

    A line that cannot be read is left out, and `session.metadata["warnings"]` says so.

    Args:
        path: A session log of Claude Code (JSONL), or a session saved with `to_dict` as JSON. `~` is understood.

    Raises:
        TranscriptError: The file cannot be read, is no transcript, or holds several equal sessions.
    """
    where = _path(path)
    account = _format_of(where).read(where, sidechains=False)
    if account.equals > 1:
        names = ", ".join(session.id for session in account.sessions[: account.equals])
        raise TranscriptError(where, f"holds {account.equals} sessions ({names}); read_transcripts() gives all of them")
    return account.sessions[0]


def read_transcripts(path: str | os.PathLike[str]) -> list[Session]:
    """All sessions of a transcript: the main one first, then those of its sub-agents, in the order in which they began.

    Args:
        path: As for `read_transcript`.

    Raises:
        TranscriptError: The file cannot be read, or is no transcript.
    """
    return list(read_account(path).sessions)


def read_account(path: str | os.PathLike[str]) -> TranscriptAccount:
    """All sessions of a transcript, and what became of each of its lines.

    Args:
        path: As for `read_transcript`.

    Raises:
        TranscriptError: The file cannot be read, or is no transcript.
    """
    where = _path(path)
    return _format_of(where).read(where, sidechains=True)


def _path(path: str | os.PathLike[str]) -> Path:
    try:
        return Path(path).expanduser()
    except RuntimeError:  # a home folder that cannot be told
        return Path(path)


def _format_of(path: Path) -> Format:
    """The format of the file, by the first value in it that one of them knows."""
    lines = 0
    for line in read_lines(path):
        lines = line.number
        for value in line.values:
            for one in FORMATS:
                if one.claims(value):
                    return one
    if session_json.is_document(path):
        return session_json
    if not lines:
        raise TranscriptError(path, "is empty")
    known = ", ".join(one.NAME for one in FORMATS)
    raise TranscriptError(path, f"no line of it belongs to a transcript of a known format ({known})")
