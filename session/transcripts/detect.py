"""Detects the format of a transcript from its content and reads it. All formats are registered here.

A format is a module with `NAME`, `claims` and `read`, as described by `Format`. It may have two more: `PLACES`, where the tool writes
its logs, and a class `Requests`, a `RequestReader` that gets the file's path. To add one, write the module and add it to the list for
its kind: `FORMATS`, `GENERIC_FORMATS`, `TEXT_FORMATS` or `DATABASES`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Protocol

from session.errors import TranscriptError
from session.files import Folder
from session.session import Session
from session.stack import with_room

from . import (
    aider,
    amp,
    atif,
    claude_code,
    cline,
    codex,
    copilot_cli,
    crush,
    cursor,
    droid,
    gemini_cli,
    goose,
    grok,
    hermes,
    kimi,
    langfuse,
    message_lists,
    mini_swe_agent,
    opencode,
    openhands,
    otel,
    pi,
    qwen,
    session_json,
    swe_agent,
)
from .account import TranscriptAccount
from .chat_databases import ChatDatabase, columns_of
from .opencode_storage import is_storage_file, is_stored
from .source import COMPLETE, Source, read_lines


class Format(Protocol):
    """A transcript format.

    Attributes:
        NAME: The format's name in `session.metadata["source"]["format"]`.
    """

    NAME: str

    def claims(self, value: object) -> bool:
        """Return True if the value shows that the file has this format.

        Args:
            value: A JSON value from a line of the file, or the document that the file is. For `TEXT_FORMATS`, the first
                characters of the file.
        """

    def read(self, source: Source, *, with_sidechains: bool) -> TranscriptAccount:
        """Return the sessions in the file.

        Args:
            source: The file.
            with_sidechains: False if only the main session is wanted, so that the files of its sub-agents need not be read.

        Raises:
            TranscriptError: The file contains no session.
        """


FORMATS: tuple[Format, ...] = (
    qwen,
    claude_code,
    codex,
    copilot_cli,
    droid,
    grok,
    kimi,
    amp,
    goose,
    hermes,
    atif,
    otel,
    langfuse,
    gemini_cli,
    opencode,
    pi,
    cursor,
    cline,
    mini_swe_agent,
    swe_agent,
    openhands,
    session_json,
)
"""Formats with unmistakable marks. The first that claims a value of the file wins."""
GENERIC_FORMATS: tuple[Format, ...] = (message_lists,)
"""Formats that also claim values of other formats. Used only if none of `FORMATS` claims anything in the file."""
TEXT_FORMATS: tuple[Format, ...] = (aider,)
"""Formats that are not JSON."""
DATABASES: dict[str, tuple[Format, ChatDatabase]] = {form.DATABASE.file: (form, form.DATABASE) for form in (goose, crush, hermes)}
"""Formats that have databases, by the usual name of one. Of `crush`, there is nothing else."""
ALL_FORMATS: tuple[Format, ...] = tuple(
    dict.fromkeys((*FORMATS, *(form for form, _ in DATABASES.values()), *GENERIC_FORMATS, *TEXT_FORMATS))
)

HEAD_BYTES = 4096
"""Bytes at the start of a file that show whether it has one of `TEXT_FORMATS`, and whether it can be a JSON document."""
EXAMINED_MAX = 100_000
"""Lines and values to examine before giving up on a file, however long it is."""
NAMED_SESSIONS_MAX = 4
"""Sessions to name in an error message."""


def read_transcript(path: str | os.PathLike[str], *, read_files_below: str | os.PathLike[str] | None = None) -> Session:
    """Return the main session of a transcript in any known format.

        session = read_transcript("~/.claude/projects/my-project/0d3c….jsonl")

    A line that cannot be read is left out and mentioned in `session.metadata["warnings"]`.

    Args:
        path: A tool's session log, or a session saved with `to_dict` as JSON. `~` is expanded.
        read_files_below: A folder from which image files may be read if the transcript holds only their paths, as for
            `Session.from_dict`. Without it, no file named by a transcript is opened, except the tool's own logs next to it.

    Raises:
        TranscriptError: The file cannot be read, is not a transcript, or holds several main sessions.
        FormatError: The folder `read_files_below` does not exist.
    """
    with nullcontext() if read_files_below is None else Folder(read_files_below) as folder:
        source = Source(_expand(path), None, folder)
        account = with_room(lambda: _detect(source).read(source, with_sidechains=False))
    if account.main_count > 1:
        names = ", ".join(session.id for session in account.sessions[: account.main_count][:NAMED_SESSIONS_MAX])
        names += ", …" if account.main_count > NAMED_SESSIONS_MAX else ""
        raise TranscriptError(source.path, f"holds {account.main_count} sessions ({names}); use read_transcripts() to read them all")
    return account.sessions[0]


def read_transcripts(path: str | os.PathLike[str], *, read_files_below: str | os.PathLike[str] | None = None) -> list[Session]:
    """Return all sessions of a transcript: the main one first, then those of its sub-agents in the order in which they began.

    Args:
        path: As for `read_transcript`.
        read_files_below: As for `read_transcript`.

    Raises:
        TranscriptError: The file cannot be read, or is not a transcript.
        FormatError: The folder `read_files_below` does not exist.
    """
    return list(read_account(path, read_files_below=read_files_below).sessions)


def read_account(
    path: str | os.PathLike[str],
    *,
    on_read: Callable[[int], object] | None = None,
    read_files_below: str | os.PathLike[str] | None = None,
) -> TranscriptAccount:
    """Return all sessions of a transcript, and what became of each of its lines.

    Args:
        path: As for `read_transcript`.
        on_read: Called as the file is read, with the number of bytes read since the last call. Meant for a progress bar.
        read_files_below: As for `read_transcript`.

    Raises:
        TranscriptError: The file cannot be read, or is not a transcript.
        FormatError: The folder `read_files_below` does not exist.
    """
    with nullcontext() if read_files_below is None else Folder(read_files_below) as folder:
        source = Source(_expand(path), on_read, folder)
        return with_room(lambda: _detect(source).read(source, with_sidechains=True))


def _expand(path: str | os.PathLike[str]) -> Path:
    try:
        return Path(path).expanduser()
    except RuntimeError:  # the home folder is unknown
        return Path(path)


def _detect(source: Source) -> Format:
    """Return the format of the file, from the first value that one of the formats claims.

    Raises:
        TranscriptError: The file cannot be read, is empty, or has no known format.
    """
    if (stored := stored_format(source)) is not None:
        return stored
    generic: Format | None = None
    line, examined = None, 0
    for line in read_lines(source.path):
        values = line.values
        if line.number == 1 and (line.problem not in COMPLETE or not values) and _may_be_document(source) and source.document is not None:
            values = (source.document,)  # the document begins on the first line and continues on the next ones
        for value in values:
            if not isinstance(value, dict | list):
                continue
            if (match := _first_claiming(FORMATS, value)) is not None:
                return match
            generic = generic or _first_claiming(GENERIC_FORMATS, value)
        examined += 1 + len(values)
        if values is not line.values or examined > EXAMINED_MAX:
            break
    if line is None:
        raise TranscriptError(source.path, "is empty")
    match = generic or _first_claiming(TEXT_FORMATS, source.bytes(HEAD_BYTES).decode("utf-8", "replace"))
    if match is not None:
        return match
    where = "" if examined <= EXAMINED_MAX or line.number == 1 else f" in its first {line.number:,} lines"
    names = ", ".join(format_.NAME for format_ in ALL_FORMATS)
    raise TranscriptError(source.path, f"no transcript of a known format found{where} (known: {names})")


def stored_format(source: Source) -> Format | None:
    """Return the format of a database or of a file of a storage, by its name or its first bytes; None for any other file.

    Raises:
        TranscriptError: The file cannot be read.
    """
    is_json = source.path.suffix in (".json", ".jsonl")
    if not is_json and not is_stored(source.path) and (columns := columns_of(source.path)):
        for form, database in DATABASES.values():
            if database.column in columns:
                return form
    return opencode if is_storage_file(source) else None


def _may_be_document(source: Source) -> bool:
    """Return True if the file's first character can begin a JSON document. A long file that fails this is never read as a whole."""
    return source.bytes(HEAD_BYTES).removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"{", b"[")


def _first_claiming(formats: tuple[Format, ...], value: object) -> Format | None:
    return next((format_ for format_ in formats if format_.claims(value)), None)
