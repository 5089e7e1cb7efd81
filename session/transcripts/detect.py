"""Which format a file has, told by its content; and the calls that read any of them. The lists of formats are here.

A format is a module with `NAME`, `claims` and `read`. To add one, write the module and put it in `FORMATS`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from session.errors import TranscriptError
from session.files import opened_folder
from session.session import Session
from session.stack import with_room

from . import (
    aider,
    claude_code,
    cline,
    codex,
    copilot_cli,
    gemini_cli,
    message_lists,
    mini_swe_agent,
    opencode,
    openhands,
    pi,
    session_json,
    swe_agent,
)
from .account import TranscriptAccount
from .reading import COMPLETE, read_lines
from .source import Source


class Format(Protocol):
    """One kind of file.

    Attributes:
        NAME: As in `session.metadata["source"]["format"]`.
    """

    NAME: str

    def claims(self, value: object) -> bool:
        """Whether this shows that the file has this format: a JSON value on a line of it, or the document that it is; for
        those of `TEXTS` its first characters."""

    def read(self, source: Source, *, sidechains: bool) -> TranscriptAccount:
        """The sessions in the file.

        Args:
            source: The file.
            sidechains: False where only the main session is asked for, so that the files of its sub-agents need not be read.

        Raises:
            TranscriptError: There is no session in it.
        """


FORMATS: tuple[Format, ...] = (
    claude_code,
    codex,
    copilot_cli,
    gemini_cli,
    opencode,
    pi,
    cline,
    mini_swe_agent,
    swe_agent,
    openhands,
    session_json,
)
"""Those that are known by marks of their own."""
LIKELY: tuple[Format, ...] = (message_lists,)
"""Those that take what others may have too: asked where none of `FORMATS` claims anything in the file."""
TEXTS: tuple[Format, ...] = (aider,)
"""Those that are no JSON."""

HEAD = 4096
"""Bytes of a file that tell whether it is one of `TEXTS`, and whether it can be a document."""
LOOKED_AT = 100_000
"""Values and lines that are looked at: a file of which none is known by then is no transcript, however long it is."""
NAMED = 4
"""Sessions that an error names."""


def read_transcript(path: str | os.PathLike[str], *, read_files_below: str | os.PathLike[str] | None = None) -> Session:
    """The main session of a transcript, in whatever format it is.

        session = read_transcript("~/.claude/projects/my-project/0d3c….jsonl")

    A line that cannot be read is left out, and `session.metadata["warnings"]` says so.

    Args:
        path: A session log of a tool, or a session saved with `to_dict` as JSON. `~` is understood.
        read_files_below: A folder whose image files may be read where the transcript holds only their paths, as for
            `Session.from_dict`. Without it, no file that a transcript names is opened, but for tools' own logs beside it.

    Raises:
        TranscriptError: The file cannot be read, is no transcript, or holds several equal sessions.
        FormatError: There is no folder `read_files_below`.
    """
    with opened_folder(read_files_below) as folder:
        source = Source(_path(path), None, folder)
        account = with_room(lambda: _format_of(source).read(source, sidechains=False))
    if account.equals > 1:
        names = ", ".join(session.id for session in account.sessions[: account.equals][:NAMED])
        names += ", …" if account.equals > NAMED else ""
        raise TranscriptError(source.path, f"holds {account.equals} sessions ({names}); read_transcripts() gives all of them")
    return account.sessions[0]


def read_transcripts(path: str | os.PathLike[str], *, read_files_below: str | os.PathLike[str] | None = None) -> list[Session]:
    """All sessions of a transcript: the main one first, then those of its sub-agents, in the order in which they began.

    Args:
        path: As for `read_transcript`.
        read_files_below: As for `read_transcript`.

    Raises:
        TranscriptError: The file cannot be read, or is no transcript.
        FormatError: There is no folder `read_files_below`.
    """
    return list(read_account(path, read_files_below=read_files_below).sessions)


def read_account(
    path: str | os.PathLike[str],
    *,
    on_read: Callable[[int], object] | None = None,
    read_files_below: str | os.PathLike[str] | None = None,
) -> TranscriptAccount:
    """All sessions of a transcript, and what became of each of its lines.

    Args:
        path: As for `read_transcript`.
        on_read: Is told, as the file is read, how many more of its bytes are behind us: for a progress bar.
        read_files_below: As for `read_transcript`.

    Raises:
        TranscriptError: The file cannot be read, or is no transcript.
        FormatError: There is no folder `read_files_below`.
    """
    with opened_folder(read_files_below) as folder:
        source = Source(_path(path), on_read, folder)
        return with_room(lambda: _format_of(source).read(source, sidechains=True))


def _path(path: str | os.PathLike[str]) -> Path:
    try:
        return Path(path).expanduser()
    except RuntimeError:  # a home folder that cannot be told
        return Path(path)


def _format_of(source: Source) -> Format:
    """The format of the file, by the first value in it that one of them knows."""
    likely: Format | None = None
    line, looked = None, 0
    for line in read_lines(source.path):
        values = line.values
        if line.number == 1 and (line.problem not in COMPLETE or not values) and _begins_document(source) and source.document is not None:
            values = (source.document,)  # it begins on the first line and does not end there
        for value in values:
            if not isinstance(value, dict | list):
                continue
            if (found := _claiming(FORMATS, value)) is not None:
                return found
            likely = likely or _claiming(LIKELY, value)
        looked += 1 + len(values)
        if values is not line.values or looked > LOOKED_AT:
            break
    if line is None:
        raise TranscriptError(source.path, "is empty")
    found = likely or _claiming(TEXTS, source.bytes(HEAD).decode("utf-8", "replace"))
    if found is not None:
        return found
    none = "no line of it" if looked <= LOOKED_AT or line.number == 1 else f"none of its first {line.number:,} lines"
    known = ", ".join(one.NAME for one in (*FORMATS, *LIKELY, *TEXTS))
    raise TranscriptError(source.path, f"{none} belongs to a transcript of a known format ({known})")


def _begins_document(source: Source) -> bool:
    """Whether the file can be a document, by its first character: a long one that cannot must not be read as a whole."""
    return source.bytes(HEAD).removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"{", b"[")


def _claiming(formats: tuple[Format, ...], value: object) -> Format | None:
    return next((one for one in formats if one.claims(value)), None)
