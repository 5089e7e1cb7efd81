"""Makes names safe to print. Tool names, ids, titles and paths come from outside, and a terminal executes the escape codes in them.

Names also appear in placeholders and notes that a model reads. There, too, a name is one short line.
"""

from __future__ import annotations

import unicodedata

_SPACES = frozenset("\t\n\v\f\r\x1c\x1d\x1e\x1f\x85\u2028\u2029")
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def printable(text: str) -> str:
    """Return the text on one line, without anything that a terminal would execute.

    Line breaks and tabs become spaces. Control characters (ESC and the like), invisible format characters (which can reverse the text
    around them) and variation selectors are removed. Characters without an agreed appearance become U+FFFD.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(_printable_character, text))


def short_name(text: str, most: int) -> str:
    """Return the first `most` characters of the text as `printable` shows them."""
    return printable(text[:most])


def _printable_character(character: str) -> str:
    if character in _SPACES:
        return " "
    kind = unicodedata.category(character)
    if kind in {"Cc", "Cf"} or "\ufe00" <= character <= "\ufe0f":
        return ""
    if kind in {"Cn", "Co", "Cs"}:  # not in this Python's tables, private, or half a character: of unknown width
        return _REPLACEMENT
    return " " if kind == "Zs" else character
