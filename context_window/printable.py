"""Text made safe to print: tool names, ids, titles and paths come from outside, and a terminal obeys what it is sent.

How wide a text is on a screen is in `display/lines.py`.
"""

from __future__ import annotations

import json
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


def printable_lines(text: str) -> str:
    """Return the text with each of its lines made printable."""
    return "\n".join(map(printable, text.split("\n")))


def _shown(character: str) -> str:
    if character in _SPACES:
        return " "
    kind = unicodedata.category(character)
    if kind in {"Cc", "Cf"} or "\ufe00" <= character <= "\ufe0f":
        return ""
    if kind in {"Cn", "Co", "Cs"}:  # not in this Python's tables, private, half a character: nobody knows how wide they are
        return _REPLACEMENT
    return " " if kind == "Zs" else character


def escaped(text: str, *, only_ascii: bool = False) -> str:
    r"""Return JSON text with the same value, without anything that a terminal would act on.

    Characters that control a terminal, are invisible, reorder the text around them or have no agreed look become `\uXXXX`. A line feed
    stays: in JSON it can only stand between values.

    Args:
        text: JSON, without control characters between its values but line feeds.
        only_ascii: True to escape all but ASCII too, for a terminal that is not known to read UTF-8.
    """
    acting = (one for one in set(text) if one != "\n" and (_acts(one) or (only_ascii and not one.isascii())))
    return text.translate({ord(one): json.dumps(one)[1:-1] for one in acting})


def _acts(character: str) -> bool:
    kind = unicodedata.category(character)
    return kind[0] == "C" or kind in {"Zl", "Zp"}
