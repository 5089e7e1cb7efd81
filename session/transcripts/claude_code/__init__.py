"""Claude Code's session logs: JSONL, one record a line. This file finds the files of a session and makes the sessions.

`lines.py` turns records into entries, `threads.py` sorts those into conversations, `arrange.py` turns these into sessions.

What becomes what:

- `assistant` lines: texts, thoughts and calls, one response put together from its lines. Usage, once a response, is that of
  its last line. Lines that report an API error to the user are not context; other lines of the model `<synthetic>` are.
- `user` lines: results of calls, then what stands beside them. What a user typed is DIALOG, slash commands and what they
  stand for included. What the tool wrote in the user's role is CONTEXT: notes, reminders, skills that the model called for,
  commands the tool carried out itself, their output. `extra["source"]` says which.
- `attachment` lines: CONTEXT where the model is shown them; `extra["path"]` for memory and other files.
- `system` lines: the system prompt, in logs that have one. A compaction's boundary goes into the summary after it, which
  becomes a `Compaction`. All else is for the user.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from session.errors import TranscriptError
from session.session import Session
from session.transcripts.account import DAMAGED, ITEM, NOT_CONTEXT, Fate, LineRecord, TranscriptAccount, shortened
from session.transcripts.reading import CUT_OFF, read_lines

from .arrange import fill
from .entry import Entry
from .lines import Lines
from .notices import LINES
from .threads import Conversation, conversations, equals
from .values import text_at

NAME = "claude_code"


def claims(value: object) -> bool:
    """Whether the value is a record of Claude Code."""
    if not isinstance(value, dict):
        return False
    kind = text_at(value, "type")
    if kind in ("user", "assistant"):
        return isinstance(value.get("message"), dict)
    marks = ("sessionId", "uuid", "leafUuid", "messageId")
    return (kind in LINES or kind in ("system", "attachment")) and any(text_at(value, mark) for mark in marks)


def read(path: Path, *, sidechains: bool) -> TranscriptAccount:
    """The sessions in the file and, where they are asked for, those of its sub-agents in files of their own.

    Args:
        path: The file.
        sidechains: Whether to read sub-agents' files: `agent-*.jsonl` in `<session>/subagents/`, or beside the file where
            they name its session.

    Raises:
        TranscriptError: Nobody says anything in the file.
    """
    main = _read_file(path, frozenset())
    if not sidechains or main.sessions[0].metadata.get("sidechain"):
        return main.account()
    others = [found for file in _agent_files(path, main.session_ids) if (found := _read_agent(file, main)) is not None]
    others.sort(key=lambda one: one.sessions[0].items[0].created_at)
    agents = frozenset(str(one.sessions[0].metadata["agent_id"]) for one in others)
    if agents & main.agents:  # told twice: here in progress lines, and whole in its own file
        main = _read_file(path, agents)
    return main.account(others)


@dataclass(frozen=True, slots=True)
class _File:
    sessions: list[Session]
    equals: int
    lines: list[LineRecord]
    session_ids: frozenset[str]
    agents: frozenset[str]
    warnings: list[str]

    def account(self, others: Iterable[_File] = ()) -> TranscriptAccount:
        sessions, lines = list(self.sessions), list(self.lines)
        for other in others:
            sessions += other.sessions
            lines += other.lines
        return TranscriptAccount(NAME, tuple(sessions), self.equals, tuple(lines))


def _read_file(path: Path, elsewhere: frozenset[str]) -> _File:
    """The sessions in one file.

    Args:
        path: The file.
        elsewhere: Sub-agents whose sessions are in files of their own.
    """
    lines = Lines()
    problems: dict[int, str] = {}
    number = 0
    for line in read_lines(path):
        number = line.number
        for value in line.values:
            lines.feed(number, value)
        if line.problem:
            problems[number] = line.problem
            lines.warnings.append(f"line {number}: {line.problem}")
    for entry in lines.entries:
        if entry.thread in elsewhere and entry.items:
            entry.items, entry.fate, entry.reason = [], NOT_CONTEXT, "the sub-agent's own file has it"
    found = conversations(lines.entries)
    if not found:
        raise TranscriptError(path, f"none of its {number} lines is a message: {_first_reason(lines.entries, problems)}")
    entries, lines.entries = lines.entries, []
    sessions = [_session(one, path) for one in found]
    records = _records(path, number, entries, problems, _homes(found, sessions))
    _describe(sessions, records, lines.warnings)
    session_ids = frozenset(entry.session for entry in entries if entry.session)
    return _File(sessions, equals(found), records, session_ids, frozenset(one.thread for one in found), lines.warnings)


def _session(conversation: Conversation, path: Path) -> Session:
    """The session that a conversation is."""
    own_id = conversation.session or path.stem
    model = next((entry.model for entry in reversed(conversation.entries) if entry.model), "")
    metadata: dict[str, object] = {"source": {"format": NAME, "path": path.name}, "session_id": conversation.session}
    if model:
        metadata["model"] = model
    if conversation.thread:
        metadata |= {"agent_id": conversation.thread, "sidechain": True}
        own_id = f"{own_id}/{conversation.thread}"
    session = Session(id=own_id, metadata=metadata)
    fill(session, conversation.entries)
    return session


def _homes(found: list[Conversation], sessions: list[Session]) -> dict[int, str]:
    return {id(entry): session.id for one, session in zip(found, sessions, strict=True) for entry in one.entries}


def _records(path: Path, count: int, entries: list[Entry], problems: dict[int, str], homes: dict[int, str]) -> list[LineRecord]:
    """One record a line, in order. Where a line has several entries, the most telling fate is the line's."""
    main = next(iter(homes.values()))
    by_line: dict[int, list[Entry]] = {}
    for entry in entries:
        by_line.setdefault(entry.line, []).append(entry)
    records = []
    ranks: dict[Fate, int] = {ITEM: 0, "merged": 1, DAMAGED: 2, NOT_CONTEXT: 3}
    for line in range(1, count + 1):
        here = sorted(by_line.get(line, ()), key=lambda entry: ranks[entry.fate])
        reasons = list(dict.fromkeys(entry.reason for entry in here if entry.reason and (entry.fate == here[0].fate)))
        if problem := problems.get(line):
            reasons.append(f"the rest of the line: {problem}" if here else problem)
        fate = here[0].fate if here else DAMAGED if problem else NOT_CONTEXT
        home = homes.get(id(here[0]), main) if here else main
        items = tuple(item.id for entry in here for item in entry.items)
        records.append(LineRecord(path.name, line, fate, "; ".join(reasons) or ("" if items else "a blank line"), home, items))
    return records


def _describe(sessions: list[Session], records: list[LineRecord], warnings: list[str]) -> None:
    """Writes into each session's metadata how many of its lines had which fate; warnings into the main one's."""
    counts: dict[str, dict[str, int]] = {}
    for record in records:
        own = counts.setdefault(record.session, {})
        own[record.fate] = own.get(record.fate, 0) + 1
    for session in sessions:
        session.metadata["lines"] = counts.get(session.id, {})
        session.metadata["warnings"] = shortened(warnings) if session is sessions[0] else []


def _first_reason(entries: list[Entry], problems: dict[int, str]) -> str:
    entry = next((entry for entry in entries if entry.reason), None)
    if entry is not None:
        return f"line {entry.line} is {entry.reason}"
    return next((CUT_OFF if problem == CUT_OFF else problem for problem in problems.values()), "they are blank")


def _agent_files(path: Path, session_ids: frozenset[str]) -> list[Path]:
    """The files of the sub-agents of a session."""
    below = sorted((path.with_suffix("") / "subagents").glob("agent-*.jsonl"))
    beside = [file for file in sorted(path.parent.glob("agent-*.jsonl")) if file.name != path.name and _names(file, session_ids)]
    return [*below, *beside]


def _names(file: Path, session_ids: frozenset[str]) -> bool:
    """Whether the file's first record is of a sidechain of one of these sessions."""
    try:
        for line in read_lines(file):
            for value in line.values:
                if isinstance(value, dict):
                    return value.get("isSidechain") is True and text_at(value, "sessionId") in session_ids
    except TranscriptError:
        pass
    return False


def _read_agent(file: Path, main: _File) -> _File | None:
    try:
        return _read_file(file, frozenset())
    except TranscriptError as error:
        warnings: list[str] = main.sessions[0].metadata["warnings"]
        warnings.append(f"{file.name}: {error.problem}")
        return None
