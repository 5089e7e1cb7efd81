"""Codex's session logs ("rollouts"): JSONL, one `{timestamp, type, payload}` a line. `log.py` reads them, `content.py` the contents.

What becomes what:

- `response_item` lines: messages, reasoning, calls and outputs, as they were sent. What the model said up to the next usage
  report, output or message to it is one response. What Codex wrote in the user's role (AGENTS.md, the environment, skills)
  is CONTEXT; `extra["source"]` says which. Searches and pictures that the provider made itself are a call and its output.
- `session_meta`: the base instructions are a system message at the head; the rest is metadata, as are `turn_context` lines.
- `event_msg` lines repeat response items for the screen. `token_count` is the usage of the response before it.
  `thread_rolled_back` takes the last turns out again.
- `compacted` lines: a `Compaction`. What the replacement history still has stays; it replaces all else but system messages.
"""

from __future__ import annotations

from session.transcripts.account import TranscriptAccount
from session.transcripts.draft import Draft, finish
from session.transcripts.feeding import feed_lines
from session.transcripts.source import Source

from .log import Log

NAME = "codex"

KINDS = frozenset({"session_meta", "turn_context", "response_item", "event_msg", "compacted"})


def claims(value: object) -> bool:
    """Whether the value is a line of Codex."""
    if not isinstance(value, dict) or not isinstance(value.get("payload"), dict) or "timestamp" not in value:
        return False
    kind = value.get("type")
    return isinstance(kind, str) and kind in KINDS


def read(source: Source, *, sidechains: bool) -> TranscriptAccount:  # noqa: ARG001 - sub-agents have files of their own
    """The one session in the file.

    Raises:
        TranscriptError: Nobody says anything in it.
    """
    draft = Draft(NAME, source, source.path.stem)
    feed_lines(source.lines(), draft, Log().take)
    return finish(NAME, source, [draft], equals=1)
