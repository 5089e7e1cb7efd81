"""What converters add to a conversation to make it one that a provider takes. Constant texts, so that prompts stay stable and
whoever counts tokens can count them beforehand.

Imports nothing: counters and planners read it too. When a preamble is due is said in `steps.py`.

A user, a tool or a model may say one of these texts too. How the two are told apart:

1. An addition goes on the wire exactly as it stands here.
2. A text of the log that is an addition's text with any number of spaces after it, where that addition could stand, goes on the
   wire with one space more (`escaped`).
3. A way back takes the exact text in that place for the addition, and takes one space off a longer one (`unescaped`).

So no text of a log reads as an addition, and every text comes back as it was. All other texts are sent as they are.
"""

from __future__ import annotations

PREAMBLE = "[Earlier messages were removed to fit the context window.]"
"""The user's first text where the log, or what is left of it, begins with something else than a user message."""

INTERRUPTED = "[The call was interrupted: it has no output.]"
"""The error output of a call that was never answered."""

ELSEWHERE = "[shown below]"
"""In a Chat Completions tool message, in place of an image or a file: there it may hold texts only."""

ATTACHED = "[Shown above as a tool's output:]"
"""The first text of the user message that holds them."""

ADDED = (PREAMBLE, INTERRUPTED, ELSEWHERE, ATTACHED)
"""The additions that ways back take out again."""

SUMMARY_HEADER = "[Conversation Summary]\n"
"""Before the text of a `Compaction`. A way back leaves it there: the text is the user's."""

FAILED = "error"
"""The output of a tool that failed without a word: an error may not be empty. One token, in no budget. A way back leaves it there."""


def escaped(text: str, *additions: str) -> str:
    """Return the text as it goes where one of these additions could stand: `"[shown below]"` as `"[shown below] "`."""
    return f"{text} " if text.rstrip(" ") in additions else text


def unescaped(text: str, *additions: str) -> str:
    """Return the text that `escaped` was given."""
    return text[:-1] if text.endswith(" ") and text.rstrip(" ") in additions else text
