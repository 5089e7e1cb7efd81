"""The texts that converters add to make a conversation that a provider accepts. They are constant: prompts stay stable, and their tokens
can be counted in advance.

This module imports no wire format, because counters and planners use it too. `conversation.py` decides what a request begins with, and
`session/units.py` (rule 8) where a closing line is. The line about removed items is in `session/removed.py`: it is the only addition that
is not the same in every request.

A user, a tool or a model may say one of these texts too. Reading tells the two apart as follows:

1. An addition is sent exactly as it is written here.
2. A text of the log that equals an addition, or equals it up to trailing spaces, is sent with one more space (`escaped`) wherever that
   addition is possible.
3. When a payload is read, the exact text in that place is the addition. A longer one loses one space (`unescaped`).

So no text of a log is mistaken for an addition, and every text is read back unchanged. All other texts are sent unchanged.
"""

from __future__ import annotations

from session.removed import Removed

PREAMBLE = "[Earlier messages were removed to fit the context window.]"
"""The first text of the user, if the log or the view does not begin with a user message, and no line about removed items does."""

CLOSING = "[Please continue.]"
"""A user message of its own. It is sent where the model was called although the request would have ended in its own turn: after a late
output, for example. Anthropic and Google refuse such a request (A1, G3), and other models may have nothing to say. Later requests repeat
it in the same place."""

USAGE_NOTE = "[The context window is filling up. When it is full, older items will be removed.]"
"""A user message of its own, or the last text of one. It ends the request that has first used the part of the budget after which the model
is told (`ContextWindow(note_usage_at=…)`). Later requests repeat it in the same place, until a trim makes room."""

INTERRUPTED = "[The call was interrupted: it has no output.]"
"""The error output of a call without an output."""

ELSEWHERE = "[shown below]"
"""Replaces an image or a file in a Chat Completions tool message, which may hold only text."""

ATTACHED = "[Shown above as a tool's output:]"
"""The first text of the user message that holds these images and files."""

TURN_BREAK = "[Earlier steps of this turn were removed to fit the context window.]"
"""A text of the user after a tool's results, by which a new turn begins (`anthropic/thinking_order.py`). It is added to requests only, and
not removed when a payload is read: the text then is the user's."""

ADDED = (PREAMBLE, CLOSING, USAGE_NOTE, INTERRUPTED, ELSEWHERE, ATTACHED)
"""The additions that are removed when a payload is read. Like the line about removed items, each begins with a bracket."""

SUMMARY_HEADER = "[Conversation Summary]\n"
"""The line before the text of a `Compaction`."""

SUMMARY_END = "[End of Summary]"
"""The line after the text of a `Compaction`: the user's own words may follow it in the same message."""

FAILED = "error"
"""The output of a tool that failed without a text: an error may not be empty. It is one token, outside every budget, and is not removed
when a payload is read."""


def summary_text(summary: str) -> str:
    """Return the user's text for a `Compaction`: the summary between two lines that mark it as ours.

    The summary may quote files and tools, so the line that ends it is changed where it occurs inside. The lines are not removed when a
    payload is read: the text then is the user's.
    """
    return f"{SUMMARY_HEADER}{summary.replace(SUMMARY_END, '[End of Summary ]')}\n{SUMMARY_END}"


def handoff_note(to_agent: str, from_agent: str | None, reason: str | None) -> str:
    """Return the user's text for an `AgentHandoff`, for example `"[Handoff from sales to billing: wants a refund]"`.

    It is not removed when a payload is read: the text then is the user's.
    """
    names = [" ".join(name.split()) for name in (from_agent or "", to_agent)]
    origin = f" from {names[0]}" if names[0] else ""
    return f"[Handoff{origin} to {names[1]}{f': {reason}' if reason and reason.strip() else ''}]"


def escaped(text: str, *additions: str, at_opening: bool = False) -> str:
    """Return the text to send where one of these additions is possible: `"[shown below] "` for `"[shown below]"`.

    Args:
        text: A text of the log.
        additions: The additions that are possible in its place.
        at_opening: True if the line about removed items is possible there, too.
    """
    return f"{text} " if text.startswith("[") and _is_addition(text.rstrip(" "), additions, at_opening=at_opening) else text


def unescaped(text: str, *additions: str, at_opening: bool = False) -> str:
    """Return the text whose `escaped` form this is."""
    return text[:-1] if text.endswith(" ") and _is_addition(text.rstrip(" "), additions, at_opening=at_opening) else text


def _is_addition(text: str, additions: tuple[str, ...], *, at_opening: bool) -> bool:
    return text in additions or (at_opening and Removed.from_line(text) is not None)
