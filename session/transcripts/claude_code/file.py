"""One file of Claude Code, as sessions with their metadata, and what became of its lines. Other files are none of its business."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from session.errors import TranscriptError
from session.session import Session
from session.transcripts.account import DAMAGED, ITEM, MERGED, NOT_CONTEXT, Fate, LineRecord, shortened
from session.transcripts.reading import Line

from .arrange import fill
from .entry import Entry
from .lines import Lines
from .threads import Conversation, conversations, equals

NAME = "claude_code"

TELLING: tuple[Fate, ...] = (ITEM, MERGED, DAMAGED, NOT_CONTEXT)
"""Where a line has several fates, the first of these is the line's."""


@dataclass(frozen=True, slots=True)
class File:
    """What is in one file.

    Attributes:
        sessions: Main ones first, then sidechains.
        equals: How many at the head of them have the same right to be the main one.
        lines: What became of each line; empty where that was not asked for.
        session_ids: The ids that its records name.
        agents: The sidechains in it.
    """

    sessions: list[Session]
    equals: int
    lines: list[LineRecord]
    session_ids: frozenset[str]
    agents: frozenset[str]


def read_file(path: Path, told: Iterable[Line], *, elsewhere: frozenset[str] = frozenset(), account: bool = True) -> File:
    """The sessions in one file.

    Args:
        path: The file.
        told: Its lines.
        elsewhere: Sidechains to leave out, since they are whole in files of their own.
        account: False where nobody will ask what became of the lines.

    Raises:
        TranscriptError: The file cannot be read, or nobody says anything in it.
    """
    entries, problems, warnings, count = _entries(told)
    for entry in entries:
        if entry.thread in elsewhere and entry.items:
            entry.items, entry.fate, entry.reason = (), NOT_CONTEXT, "the sub-agent's own file has it"
    found = conversations(entries)
    if not found:
        raise TranscriptError(path, f"none of its {count} lines is a message: {_first_reason(entries, problems)}")
    sessions = [_session(one, path) for one in found]
    lines = []
    counts: dict[str, dict[str, int]] = {session.id: {} for session in sessions}
    for record in _records(path.name, entries, problems, count, sessions[0].id):
        own = counts[record.session]
        own[record.fate] = own.get(record.fate, 0) + 1
        if account:
            lines.append(record)
    for session in sessions:
        session.metadata["lines"] = counts[session.id]
        session.metadata["warnings"] = shortened(warnings) if session is sessions[0] else []
    session_ids = frozenset(entry.session for entry in entries if entry.session)
    return File(sessions, equals(found), lines, session_ids, frozenset(one.thread for one in found if one.thread))


def _entries(told: Iterable[Line]) -> tuple[list[Entry], dict[int, str], list[str], int]:
    """The file's entries, what is wrong with which line, the warnings, and how many lines there are."""
    lines = Lines()
    problems: dict[int, str] = {}
    count = 0
    for line in told:
        count = line.number
        for value in line.values:
            lines.feed(count, value)
        if line.problem:
            problems[count] = line.problem
            lines.warnings.append(f"line {count}: {line.problem}")
    return lines.entries, problems, lines.warnings, count


def _session(conversation: Conversation, path: Path) -> Session:
    own_id = conversation.session or path.stem
    model = next((entry.model for entry in reversed(conversation.entries) if entry.model), "")
    metadata: dict[str, object] = {"source": {"format": NAME, "path": path.name}, "session_id": own_id}
    if model:
        metadata["model"] = model
    if conversation.thread:
        metadata |= {"agent_id": conversation.thread, "sidechain": True}
        own_id = f"{own_id}/{conversation.thread}"
    session = Session(id=own_id, metadata=metadata)
    fill(session, conversation.entries)
    for entry in conversation.entries:
        entry.home = session.id
    return session


def _records(file: str, entries: list[Entry], problems: dict[int, str], count: int, main: str) -> Iterator[LineRecord]:
    """One record a line, in order. Lines that belong to no session are the main one's."""
    by_line = groupby(entries, key=lambda entry: entry.line)
    next_line, next_entries = 0, iter(())  # type: tuple[int, Iterator[Entry]]
    for line in range(1, count + 1):
        if next_line < line:
            next_line, next_entries = next(by_line, (count + 1, iter(())))
        here = sorted(next_entries, key=lambda entry: TELLING.index(entry.fate)) if next_line == line else []
        problem = problems.get(line)
        fate = here[0].fate if here else DAMAGED if problem else NOT_CONTEXT
        reasons = list(dict.fromkeys(entry.reason for entry in here if entry.reason and entry.fate == fate))
        if problem:
            reasons.append(problem)
        items = tuple(item.id for entry in here for item in entry.items)
        home = (here[0].home if here else "") or main
        yield LineRecord(file, line, fate, "; ".join(reasons) or ("" if items else "a blank line"), home, items)


def _first_reason(entries: list[Entry], problems: dict[int, str]) -> str:
    entry = next((entry for entry in entries if entry.reason), None)
    return f"line {entry.line} is {entry.reason}" if entry is not None else next(iter(problems.values()), "they are blank")
