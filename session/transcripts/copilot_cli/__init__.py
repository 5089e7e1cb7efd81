"""Reads Copilot CLI's session logs: JSONL, one event `{type, data, id, parentId, timestamp}` per line.

`line_reader.py` reads the lines; `event.py` those events that the model saw or that came from it.

- `system.message`, `user.message`, `assistant.message`, `tool.execution_complete`: items. Notifications and the text that the
  tool adds around the user's are CONTEXT. The text, reasoning and tool requests of one API call are one response.
- Usage: a response has its own count of output tokens. `assistant.usage` events, if logged, have all counts. The totals in
  `session.shutdown` are metadata: `reported_usage`, by model, and `tool_tokens`, those of the tools' definitions.
- `session.compaction_complete`: a `Compaction` of everything before it except system messages. `session.snapshot_rewind`
  removes the event that it names and all later ones. All other events are for the screen.
- Events of a sub-agent name the call that started it. They are a session of their own.
"""

from __future__ import annotations

from session.transcripts.account import TranscriptAccount
from session.transcripts.draft import finish
from session.transcripts.record_feed import feed_lines
from session.transcripts.source import Source
from session.transcripts.values import text_at

from .line_reader import NAME, CopilotLineReader

__all__ = ["NAME", "claims", "read"]

FAMILIES = ("session", "system", "user", "assistant", "tool", "hook", "permission", "subagent", "skill", "abort")
"""First words of the event types."""


def claims(value: object) -> bool:
    """Return True if the value is an event of Copilot CLI."""
    if not isinstance(value, dict) or not isinstance(value.get("data"), dict) or "parentId" not in value:
        return False
    family, _, name = text_at(value, "type").partition(".")
    return family in FAMILIES and bool(name or family == "abort") and bool(text_at(value, "id"))


def read(source: Source, *, with_sidechains: bool) -> TranscriptAccount:  # noqa: ARG001 - sub-agents are in the same file
    """Return the sessions in the file: the main one, then those of its sub-agents.

    Raises:
        TranscriptError: The file contains no messages.
    """
    reader = CopilotLineReader(source)
    feed_lines(source.lines(), reader.main.draft, reader.read_event, draft_for=reader.draft_for)
    return finish(NAME, source, [thread.draft for thread in reader.threads.values()], main_count=1)
