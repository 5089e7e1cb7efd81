"""Copilot CLI's session logs: JSONL, one event `{type, data, id, parentId, timestamp}` a line.

`log.py` reads them, `event.py` those that the model was shown or that came from it.

What becomes what:

- `system.message`, `user.message`, `assistant.message`, `tool.execution_complete`: items. What the tool put around the user's
  own words, and its notifications, are CONTEXT. One API call's text, thought and requests are one response.
- Tokens: an answer's own count of output is its usage; `assistant.usage` events, where they are logged, say the whole. The
  sums in `session.shutdown` are metadata, as `reported_usage` by model.
- `session.compaction_complete`: a `Compaction` of all before it but system messages. `session.snapshot_rewind` takes out the
  event it names and all after it. All else is for the screen.
- Events of a sub-agent name the call that started it: they are a session of their own.
"""

from __future__ import annotations

from session.transcripts.account import TranscriptAccount
from session.transcripts.draft import finish
from session.transcripts.feeding import feed_lines
from session.transcripts.source import Source
from session.transcripts.values import text_at

from .log import NAME, Log

__all__ = ["NAME", "claims", "read"]

FAMILIES = ("session", "system", "user", "assistant", "tool", "hook", "permission", "subagent", "skill", "abort")
"""What the names of its events begin with."""


def claims(value: object) -> bool:
    """Whether the value is an event of Copilot CLI."""
    if not isinstance(value, dict) or not isinstance(value.get("data"), dict) or "parentId" not in value:
        return False
    kind, _, rest = text_at(value, "type").partition(".")
    return kind in FAMILIES and bool(rest or kind == "abort") and bool(text_at(value, "id"))


def read(source: Source, *, sidechains: bool) -> TranscriptAccount:  # noqa: ARG001 - they are in the same file
    """The sessions in the file: the main one, then those of its sub-agents.

    Raises:
        TranscriptError: Nobody says anything in it.
    """
    log = Log(source)
    feed_lines(source.lines(), log.main.draft, log.take, route=log.home)
    return finish(NAME, source, [thread.draft for thread in log.threads.values()], equals=1)
