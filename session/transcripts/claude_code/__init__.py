"""Reads Claude Code's session logs: JSONL, one record per line.

1. This file finds the files of a session and its sub-agents, reads each, and says what became of its lines.
2. `line_reader.py` turns lines into entries (`entry.py`), with the help of `message_reader.py`.
3. `conversations.py` sorts the entries into conversations (main ones, sidechains, and branches that the user left) and turns each into
   a session.

Which record becomes what:

- `assistant` lines: texts, thinking and calls. A response is put together from its lines; its usage is that of its last line.
  Lines that report an API error to the user are not context. Other lines of the model `<synthetic>` are.
- `user` lines: tool results, then everything else in them. What a user typed is DIALOG, including slash commands and their
  expansions. What the tool wrote in the user's role is CONTEXT: notes, reminders, skills that the model called, commands that
  the tool ran itself, and their output. `extra["source"]` names it.
  Thinking stays in the prompts of later turns (`keeps_thinking` in the metadata): Claude Code asks for that, whatever the model does by
  itself. In recorded logs of Sonnet 4.5 and Haiku 4.5, none of six turns began with a request that lacked it.
  The output of `/context` is the tool's account of its window: `extra["context_usage"]`, and `fixed_tokens` in the metadata, which are
  those besides messages.
- `attachment` lines: CONTEXT if the model sees them; `extra["path"]` for memory and other files.
- `system` lines: the system prompt, in logs that have one. A compaction boundary is merged into the summary that follows it,
  which becomes a `Compaction`. All others are for the user.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from session.errors import TranscriptError
from session.session import Session
from session.transcripts.account import DAMAGED, ITEM, MERGED, NOT_CONTEXT, Fate, LineRecord, TranscriptAccount
from session.transcripts.draft import limit_warnings
from session.transcripts.source import Line, Source, read_lines
from session.transcripts.values import text_at

from .conversations import Conversation, assemble_session, count_main, sort_conversations
from .entry import LINE_TYPES, Entry
from .line_reader import ClaudeCodeLineReader


def claims(value: object) -> bool:
    """Return True if the value is a record of Claude Code."""
    if not isinstance(value, dict):
        return False
    kind = text_at(value, "type")
    if kind in ("user", "assistant"):
        return isinstance(value.get("message"), dict)
    id_names = ("sessionId", "uuid", "leafUuid", "messageId")
    return (kind in LINE_TYPES or kind in ("system", "attachment")) and any(text_at(value, name) for name in id_names)


def read(source: Source, *, with_sidechains: bool) -> TranscriptAccount:
    """Return the sessions in the file and, if wanted, those of its sub-agents in files of their own.

    Args:
        source: The file.
        with_sidechains: True to read the files of sub-agents: `agent-*.jsonl` in `<session>/subagents/`, or in the folder of the
            file if they name its session.

    Raises:
        TranscriptError: The file contains no messages.
    """
    path = source.path
    main = read_file(path, source.lines(), with_account=with_sidechains)
    agent_files: list[FileContents] = []
    failures: list[str] = []
    if with_sidechains and not main.sessions[0].metadata.get("sidechain"):
        for file in _agent_paths(path, main.session_ids):
            try:
                agent_files.append(read_file(file, read_lines(file, within=path.parent)))
            except TranscriptError as error:
                failures.append(f"{file.name}: {error.problem}")
        agent_files.sort(key=lambda agent_file: agent_file.sessions[0].items[0].created_at)
        agents = frozenset(agent for agent_file in agent_files for agent in agent_file.agents)
        if agents & main.agents:  # their records are in the main file too; the agents' own files are complete
            main = read_file(path, read_lines(path), skipped_agents=agents)
    main.sessions[0].metadata["warnings"] += failures
    sessions, lines = list(main.sessions), list(main.lines)
    for agent_file in agent_files:
        sessions += agent_file.sessions
        lines += agent_file.lines
    return TranscriptAccount(NAME, tuple(sessions), main.main_count, tuple(lines))


def _agent_paths(path: Path, session_ids: frozenset[str]) -> list[Path]:
    """Return the files of the sub-agents of a session."""
    subfolder = sorted((path.with_suffix("") / "subagents").glob("agent-*.jsonl"))
    siblings = [file for file in sorted(path.parent.glob("agent-*.jsonl")) if file.name != path.name and _is_of_session(file, session_ids)]
    return [*subfolder, *siblings]


def _is_of_session(file: Path, session_ids: frozenset[str]) -> bool:
    """Return True if the file's first record is in a sidechain of one of these sessions."""
    try:
        for line in read_lines(file, within=file.parent):
            for value in line.values:
                if isinstance(value, dict):
                    return value.get("isSidechain") is True and text_at(value, "sessionId") in session_ids
    except TranscriptError:
        pass
    return False


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
    sessions = [_session(conversation, path, reader) for conversation in conversations]
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


def _read_entries(lines: Iterable[Line]) -> tuple[ClaudeCodeLineReader, dict[int, str], int]:
    """Return the reader that has read all lines, the problem of each damaged line, and the number of lines."""
    reader = ClaudeCodeLineReader()
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


def _session(conversation: Conversation, path: Path, reader: ClaudeCodeLineReader) -> Session:
    session_id = conversation.session or path.stem
    model = next((entry.model for entry in reversed(conversation.entries) if entry.model), "")
    metadata: dict[str, object] = {"source": {"format": NAME, "path": path.name}, "session_id": session_id, "keeps_thinking": True}
    metadata |= {name: value for name, value in (("model", model), ("version", reader.version)) if value}
    if pulls := {link: time for (owner, link), time in reader.pulls.items() if owner == conversation.session}:
        metadata["pull_requests"] = pulls
    stated = stated_usage(conversation.entries)
    if (window := revealed_window(conversation.entries, stated.get("window", 0))) is not None:
        metadata["context_window"] = window
    if fixed := stated.get("tokens", 0) - stated.get("messages", 0):
        metadata["fixed_tokens"] = fixed
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


SHORT_WINDOW = 200_000
"""Tokens of the window that every model has."""
LONG_WINDOW = 1_000_000
"""Tokens of the window that some models have, or that an account may use."""
EARLIEST_COMPACTION = 140_000
"""Claude Code compacts a session when the window is nearly full: the short one at 155,000 to 190,000 tokens. Below this, a user's setting
did it."""


def stated_usage(entries: Iterable[Entry]) -> Mapping[str, int]:
    """Return the figures of the last output of `/context` in a conversation, in tokens; nothing if there is none."""
    found: Mapping[str, int] = {}
    for entry in entries:
        for item in entry.items:
            found = item.extra.get("context_usage", found)
    return found


def revealed_window(entries: Iterable[Entry], stated: int = 0) -> dict[str, int | str] | None:
    """Return the window that `/context` states, or that a conversation's requests and compactions reveal; None if nothing does.

    A prompt above 200,000 tokens needs the long window. A compaction that Claude Code itself began below that shows the short one.

    Args:
        entries: The entries of the conversation.
        stated: Tokens of the window that `/context` states; 0 if it does not.

    Returns:
        `tokens`; `evidence`: "command", "request" or "compaction"; `at`: tokens of that request, or before that compaction.
    """
    largest_prompt = compacted_at = 0
    for entry in entries:
        if entry.usage is not None:
            largest_prompt = max(largest_prompt, entry.usage.prompt)
        if entry.compaction is not None and entry.compaction.get("trigger") == "auto":
            compacted_at = max(compacted_at, int(entry.compaction.get("pre_tokens", 0)))
    if stated and largest_prompt <= stated:
        return {"tokens": stated, "evidence": "command"}
    if largest_prompt > SHORT_WINDOW:
        return {"tokens": LONG_WINDOW, "evidence": "request", "at": largest_prompt}
    if EARLIEST_COMPACTION <= compacted_at <= SHORT_WINDOW:
        return {"tokens": SHORT_WINDOW, "evidence": "compaction", "at": compacted_at}
    return None
