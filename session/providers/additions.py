"""What converters add to a conversation to make it one that a provider takes. Constant texts, so that prompts stay stable,
whoever counts tokens can count them beforehand, and a way back can tell them by text and place.

Imports nothing: counters and planners read it too. When a preamble is due is said in `steps.py`.
"""

from __future__ import annotations

PREAMBLE = "[Earlier messages were removed to fit the context window.]"
"""The user's first text where the log, or what is left of it, begins with something else than a user message."""

INTERRUPTED = "[The call was interrupted: it has no output.]"
"""The error output of a call that was never answered."""

SUMMARY_HEADER = "[Conversation Summary]\n"
"""Before the text of a `Compaction`."""

FAILED = "error"
"""The output of a tool that failed without a word: an error may not be empty. One token, in no budget."""
