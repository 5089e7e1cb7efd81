"""Reads one file of Claude Code: its sessions with their metadata, and the fate of its lines. Other files are not read here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from session.errors import TranscriptError
from session.session import Session
from session.transcripts.account import DAMAGED, ITEM, MERGED, NOT_CONTEXT, Fate, LineRecord, limit_warnings
from session.transcripts.json_lines import Line

from .assemble import assemble_session
from .conversations import Conversation, count_main, sort_conversations
from .entry import Entry
from .line_reader import LineReader
from .window import revealed_window

NAME = "claude_code"

FATE_ORDER: tuple[Fate, ...] = (ITEM, MERGED, DAMAGED, NOT_CONTEXT)
"""If the records of a line have several fates, the line has the first of these."""


@dataclass(frozen=True, slots=True)
class FileContents:
    """The contents of one file.

    Attributes:
        sessions: The sessions in the file: main ones first, then sidechains.
        main_count: Number of main sessions at the head of `sessions`.
        lines: The fate of each line; empty if not asked for.
        session_ids: The session ids that its records name.
        agents: The sidechains in it.
    """

    sessions: list[Session]
    main_count: int
    lines: list[LineRecord]
    session_ids: frozenset[str]
    agents: frozenset[str]


def read_file(
    path: Path, lines: Iterable[Line], *, skipped_agents: frozenset[str] = frozenset(), with_account: bool = True
) -> FileContents:
    """Return the sessions in one file.

    Args:
        path: Path of the file.
        lines: Its lines.
        skipped_agents: Sidechains to leave out because they have complete files of their own.
        with_account: False if the fate of the lines is not needed.

    Raises:
        TranscriptError: The file cannot be read, or contains no messages.
    """
    reader, problems, line_count = _read_entries(lines)
    entries, warnings = reader.entries, reader.warnings
    for entry in entries:
        if entry.thread in skipped_agents and entry.items:
            entry.items, entry.fate, entry.reason = (), NOT_CONTEXT, "in the sub-agent's own file"
    conversations = sort_conversations(entries)
    if not conversations:
        raise TranscriptError(path, f"none of its {line_count} lines is a message ({_first_reason(entries, problems)})")
    sessions = [_session(conversation, path, reader.version) for conversation in conversations]
    records = []
    counts: dict[str, dict[str, int]] = {session.id: {} for session in sessions}
    for record in _line_records(path.name, entries, problems, line_count, sessions[0].id):
        session_counts = counts[record.session]
        session_counts[record.fate] = session_counts.get(record.fate, 0) + 1
        if with_account:
            records.append(record)
    for session, conversation in zip(sessions, conversations, strict=True):
        session.metadata["lines"] = counts[session.id]
        session.metadata["warnings"] = limit_warnings([*(warnings if session is sessions[0] else []), *conversation.warnings])
    session_ids = frozenset(entry.session for entry in entries if entry.session)
    agents = frozenset(conversation.thread for conversation in conversations if conversation.thread)
    return FileContents(sessions, count_main(conversations), records, session_ids, agents)


def _read_entries(lines: Iterable[Line]) -> tuple[LineReader, dict[int, str], int]:
    """Return the reader that has read all lines, the problem of each damaged line, and the number of lines."""
    reader = LineReader()
    problems: dict[int, str] = {}
    line_count = 0
    for line in lines:
        line_count = line.number
        for value in line.values:
            reader.read_record(line.number, value)
        if line.problem:
            problems[line.number] = line.problem
            reader.warnings.append(f"line {line.number}: {line.problem}")
    return reader, problems, line_count


def _session(conversation: Conversation, path: Path, version: str) -> Session:
    session_id = conversation.session or path.stem
    model = next((entry.model for entry in reversed(conversation.entries) if entry.model), "")
    metadata: dict[str, object] = {"source": {"format": NAME, "path": path.name}, "session_id": session_id, "keeps_thinking": True}
    metadata |= {name: value for name, value in (("model", model), ("version", version)) if value}
    if (window := revealed_window(conversation.entries)) is not None:
        metadata["context_window"] = window
    if conversation.thread:
        metadata |= {"agent_id": conversation.thread, "sidechain": True}
        session_id = f"{session_id}/{conversation.thread}"
    session = Session(id=session_id, metadata=metadata)
    assemble_session(session, conversation.entries)
    for entry in conversation.entries:
        entry.owner = session.id
    return session


def _line_records(file: str, entries: list[Entry], problems: dict[int, str], line_count: int, main_id: str) -> Iterator[LineRecord]:
    """Yield a record for each line, in order. Lines that belong to no session count as the main one's."""
    by_line = groupby(entries, key=lambda entry: entry.line)
    next_line, next_entries = 0, iter(())  # type: tuple[int, Iterator[Entry]]
    for line in range(1, line_count + 1):
        if next_line < line:
            next_line, next_entries = next(by_line, (line_count + 1, iter(())))
        line_entries = sorted(next_entries, key=lambda entry: FATE_ORDER.index(entry.fate)) if next_line == line else []
        problem = problems.get(line)
        fate = line_entries[0].fate if line_entries else DAMAGED if problem else NOT_CONTEXT
        reasons = list(dict.fromkeys(entry.reason for entry in line_entries if entry.reason and entry.fate == fate))
        if problem:
            reasons.append(problem)
        items = tuple(item.id for entry in line_entries for item in entry.items)
        owner = (line_entries[0].owner if line_entries else "") or main_id
        yield LineRecord(file, line, fate, "; ".join(reasons) or ("" if items else "blank line"), owner, items)


def _first_reason(entries: list[Entry], problems: dict[int, str]) -> str:
    entry = next((entry for entry in entries if entry.reason), None)
    return f"line {entry.line}: {entry.reason}" if entry is not None else next(iter(problems.values()), "all are blank")
