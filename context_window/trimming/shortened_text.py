"""Shortens the texts of a user's message and the string values of a call's arguments, each in its middle.

Every text longer than a limit keeps its beginning and its end. The marker between them is the same for all limits, so that a shortened
text that is shortened further is the same as the original shortened at once.
"""

from __future__ import annotations

from session.json_strings import change_strings

from .plan import Cut

LONG_VALUE = 200
"""Characters of a string value that stays in the arguments of a cleared call. Paths and short commands are not longer."""


def middle_cut(length: int, tokens: int = 0) -> Cut:
    """Return the cut that keeps `length` characters of each longer text, half of them at either end."""
    return Cut(length - length // 2, length // 2, tokens)


def shortened(text: str, cut: Cut, marker: str) -> str:
    """Return the text without its middle; the text itself if it would not become shorter."""
    if len(text) <= cut.head + cut.tail + len(marker):
        return text
    return text[: cut.head] + marker + text[len(text) - cut.tail :]


def cleared_arguments(arguments: str, marker: str) -> str:
    """Return the JSON text of an object with a marker in place of each long string value; any other text unchanged."""
    return change_strings(arguments, lambda value: marker if len(value) > LONG_VALUE else value, longer_than=LONG_VALUE)


def shortened_arguments(arguments: str, cut: Cut, marker: str) -> str:
    """Return the JSON text of an object with its long string values shortened; any other text unchanged."""
    return change_strings(arguments, lambda value: shortened(value, cut, marker), longer_than=cut.head + cut.tail)
