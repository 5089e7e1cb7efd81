"""JSON of others: values whose integers have too many digits for Python, and the texts in a call's arguments, changed in place."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

_LITERAL = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)  # several times as fast as one alternative per character
_AFTER_KEY = re.compile(r"\s*:")


def change_strings(text: str, change: Callable[[str], str], *, longer_than: int = 0) -> str:
    """Return the JSON text with its string values changed, at any depth. Keys are not values.

    A text that is not a JSON object is returned unchanged.

    Args:
        text: The JSON text.
        change: Returns the new value of a string.
        longer_than: Characters of values that stay as they are. Those that are written in no more are not read.
    """
    pieces = []
    end = 0
    for start, literal_end in _string_spans(text):
        if literal_end - start - 2 <= longer_than:
            continue
        literal = text[start:literal_end]
        value = json.loads(literal)
        changed = change(value)
        if changed != value:
            pieces += [text[end:start], json.dumps(changed, ensure_ascii=literal.isascii())]
            end = literal_end
    return "".join([*pieces, text[end:]])


def string_values(text: str) -> list[str]:
    """Return the string values of a JSON object, at any depth, in their order; empty for any other text."""
    return [json.loads(text[start:end]) for start, end in _string_spans(text)]


def longest_string(text: str) -> int:
    """Return the length of the longest string value as it is written; 0 if the text is not a JSON object or has none."""
    return max((end - start for start, end in _string_spans(text)), default=0)


def json_value(text: str | bytes) -> Any:
    """Return the value of a JSON text. An integer of more digits than Python converts is a text.

    Raises:
        ValueError: It is no JSON.
        RecursionError: It is nested too deeply.
    """
    try:
        return json.loads(text)
    except (json.JSONDecodeError, UnicodeDecodeError):
        raise
    except ValueError:
        return json.loads(text, parse_int=int_or_text)


def int_or_text(digits: str) -> int | str:
    """Return the integer, or its digits if they are too many for Python."""
    try:
        return int(digits)
    except ValueError:
        return digits


def object_of(text: str) -> dict[str, Any] | None:
    """Return the values of a JSON object by their keys; None for any other text."""
    try:
        value = json_value(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _string_spans(text: str) -> list[tuple[int, int]]:
    """Return the start and end of each string value of a JSON object, with its quotes; empty for any other text."""
    if object_of(text) is None:
        return []
    return [match.span() for match in _LITERAL.finditer(text) if not _AFTER_KEY.match(text, match.end())]
