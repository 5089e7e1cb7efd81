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

from pathlib import Path

from session.errors import TranscriptError
from session.transcripts.account import TranscriptAccount
from session.transcripts.reading import read_lines
from session.transcripts.source import Source
from session.transcripts.values import text_at

from .file import NAME, File, read_file
from .notices import LINES

__all__ = ["NAME", "claims", "read"]


def claims(value: object) -> bool:
    """Whether the value is a record of Claude Code."""
    if not isinstance(value, dict):
        return False
    kind = text_at(value, "type")
    if kind in ("user", "assistant"):
        return isinstance(value.get("message"), dict)
    marks = ("sessionId", "uuid", "leafUuid", "messageId")
    return (kind in LINES or kind in ("system", "attachment")) and any(text_at(value, mark) for mark in marks)


def read(source: Source, *, sidechains: bool) -> TranscriptAccount:
    """The sessions in the file and, where they are asked for, those of its sub-agents in files of their own.

    Args:
        source: The file.
        sidechains: Whether to read sub-agents' files: `agent-*.jsonl` in `<session>/subagents/`, or beside the file where
            they name its session.

    Raises:
        TranscriptError: Nobody says anything in the file.
    """
    path = source.path
    main = read_file(path, source.lines(), account=sidechains)
    others: list[File] = []
    failures: list[str] = []
    if sidechains and not main.sessions[0].metadata.get("sidechain"):
        for file in _agent_files(path, main.session_ids):
            try:
                others.append(read_file(file, read_lines(file, within=path.parent)))
            except TranscriptError as error:
                failures.append(f"{file.name}: {error.problem}")
        others.sort(key=lambda one: one.sessions[0].items[0].created_at)
        agents = frozenset(agent for one in others for agent in one.agents)
        if agents & main.agents:  # told twice: in lines of the main file, and whole in their own
            main = read_file(path, read_lines(path), elsewhere=agents)
    main.sessions[0].metadata["warnings"] += failures
    sessions, lines = list(main.sessions), list(main.lines)
    for other in others:
        sessions += other.sessions
        lines += other.lines
    return TranscriptAccount(NAME, tuple(sessions), main.equals, tuple(lines))


def _agent_files(path: Path, session_ids: frozenset[str]) -> list[Path]:
    """The files of the sub-agents of a session."""
    below = sorted((path.with_suffix("") / "subagents").glob("agent-*.jsonl"))
    beside = [file for file in sorted(path.parent.glob("agent-*.jsonl")) if file.name != path.name and _names(file, session_ids)]
    return [*below, *beside]


def _names(file: Path, session_ids: frozenset[str]) -> bool:
    """Whether the file's first record is of a sidechain of one of these sessions."""
    try:
        for line in read_lines(file, within=file.parent):
            for value in line.values:
                if isinstance(value, dict):
                    return value.get("isSidechain") is True and text_at(value, "sessionId") in session_ids
    except TranscriptError:
        pass
    return False
