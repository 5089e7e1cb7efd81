"""Names made safe to print: tool names, ids, titles and paths come from outside, and a terminal obeys what it is sent.

They also stand in placeholders and notes, where a model reads them: there a name is one short line too.
"""

from __future__ import annotations

import unicodedata

_SPACES = frozenset("\t\n\v\f\r\x1c\x1d\x1e\x1f\x85\u2028\u2029")
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def printable(text: str) -> str:
    """The text on one line, without anything that a terminal would act on.

    Line breaks and tabs become spaces. Control characters (ESC and the like), invisible format characters (which can
    reverse the text around them) and variation selectors go; what has no agreed look becomes U+FFFD.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(_shown, text))


def short_name(text: str, most: int) -> str:
    """Return the first `most` characters of the text as `printable` shows them."""
    return printable(text[:most])


def _shown(character: str) -> str:
    if character in _SPACES:
        return " "
    kind = unicodedata.category(character)
    if kind in {"Cc", "Cf"} or "\ufe00" <= character <= "\ufe0f":
        return ""
    if kind in {"Cn", "Co", "Cs"}:  # not in this Python's tables, private, half a character: nobody knows how wide they are
        return _REPLACEMENT
    return " " if kind == "Zs" else character
