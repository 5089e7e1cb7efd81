"""Reads Codex's session logs ("rollouts"): JSONL, one `{timestamp, type, payload}` per line.

`line_reader.py` reads the lines, `content.py` the contents of messages and outputs, `compaction.py` compactions.

- `response_item` lines: messages, reasoning, calls and outputs, as they were sent. Everything from the model up to the next
  usage report, tool output or message to it is one response. What Codex wrote in the user's role (AGENTS.md, the environment,
  skills) is CONTEXT; `extra["source"]` names it. The provider's own searches and images are a call with its output.
- `session_meta` lines: the base instructions are a system message at the start. The rest is metadata, as are `turn_context` lines.
- `event_msg` lines repeat response items for the screen. `token_count` is the usage of the previous response, with the window.
  `thread_rolled_back` removes the last turns.
- `compacted` lines: a `Compaction`. Items that its replacement history repeats stay. It replaces all others except system messages.
"""

from __future__ import annotations

from session.transcripts.account import TranscriptAccount
from session.transcripts.draft import Draft, finish
from session.transcripts.record_feed import feed_lines
from session.transcripts.source import Source

from .line_reader import CodexLineReader

NAME = "codex"

TYPES = frozenset({"session_meta", "turn_context", "response_item", "event_msg", "compacted"})


def claims(value: object) -> bool:
    """Return True if the value is a line of Codex."""
    if not isinstance(value, dict) or not isinstance(value.get("payload"), dict) or "timestamp" not in value:
        return False
    kind = value.get("type")
    return isinstance(kind, str) and kind in TYPES


def read(source: Source, *, with_sidechains: bool) -> TranscriptAccount:  # noqa: ARG001 - sub-agents have files of their own
    """Return the session in the file.

    Raises:
        TranscriptError: The file contains no messages.
    """
    draft = Draft(NAME, source, source.path.stem)
    feed_lines(source.lines(), draft, CodexLineReader().read_line)
    return finish(NAME, source, [draft], main_count=1)
