"""The context window that a log of Claude Code reveals. No record states it: the same model can have a short or a long window."""

from __future__ import annotations

from collections.abc import Iterable

from .entry import Entry

SHORT_WINDOW = 200_000
"""Tokens of the window that every model has."""
LONG_WINDOW = 1_000_000
"""Tokens of the window that some models have, or that an account may use."""
EARLIEST_COMPACTION = 140_000
"""Claude Code compacts a session when the window is nearly full: the short one at 155,000 to 190,000 tokens. Below this, a user's setting
did it."""


def revealed_window(entries: Iterable[Entry]) -> dict[str, int | str] | None:
    """Return the window that a conversation's requests and compactions reveal, or None if neither does.

    A prompt above 200,000 tokens needs the long window. A compaction that Claude Code itself began below that shows the short one.

    Args:
        entries: The entries of the conversation.

    Returns:
        `tokens`; `evidence`: "request" or "compaction"; `at`: tokens of that request, or before that compaction.
    """
    largest_prompt = compacted_at = 0
    for entry in entries:
        if entry.usage is not None:
            largest_prompt = max(largest_prompt, entry.usage.total_input)
        if entry.compaction is not None and entry.compaction.get("trigger") == "auto":
            compacted_at = max(compacted_at, int(entry.compaction.get("pre_tokens", 0)))
    if largest_prompt > SHORT_WINDOW:
        return {"tokens": LONG_WINDOW, "evidence": "request", "at": largest_prompt}
    if EARLIEST_COMPACTION <= compacted_at <= SHORT_WINDOW:
        return {"tokens": SHORT_WINDOW, "evidence": "compaction", "at": compacted_at}
    return None
