"""Reads Claude Code's session logs: JSONL, one record per line.

1. `file_reader.py` reads one file. `line_reader.py` turns its lines into entries (`entry.py`), with the help of
   `message_reader.py`, `attachments.py`, `injected_text.py`, `prompt_queue.py` and `skip_reasons.py`.
2. `conversations.py` sorts the entries into conversations: main ones, sidechains, and branches that the user left.
3. `assemble.py` turns each conversation into a session. `uncompacted.py` works out what each compaction replaces,
   `window.py` the context window that the session had.
4. This file finds the files of a session and its sub-agents.

Which record becomes what:

- `assistant` lines: texts, thinking and calls. A response is put together from its lines; its usage is that of its last line.
  Lines that report an API error to the user are not context. Other lines of the model `<synthetic>` are.
- `user` lines: tool results, then everything else in them. What a user typed is DIALOG, including slash commands and their
  expansions. What the tool wrote in the user's role is CONTEXT: notes, reminders, skills that the model called, commands that
  the tool ran itself, and their output. `extra["source"]` names it.
  Thinking stays in the prompts of later turns (`keeps_thinking` in the metadata): Claude Code asks for that, whatever the model does by
  itself. In recorded logs of Sonnet 4.5 and Haiku 4.5, none of six turns began with a request that lacked it.
- `attachment` lines: CONTEXT if the model sees them; `extra["path"]` for memory and other files.
- `system` lines: the system prompt, in logs that have one. A compaction boundary is merged into the summary that follows it,
  which becomes a `Compaction`. All others are for the user.
"""

from __future__ import annotations

from pathlib import Path

from session.errors import TranscriptError
from session.transcripts.account import TranscriptAccount
from session.transcripts.json_lines import read_lines
from session.transcripts.source import Source
from session.transcripts.values import text_at

from .file_reader import NAME, FileContents, read_file
from .skip_reasons import LINE_TYPES

__all__ = ["NAME", "claims", "read"]


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
