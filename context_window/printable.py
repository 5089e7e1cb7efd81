"""Text made safe for a terminal, which would execute control characters. The width of text on a screen is in `display/lines.py`."""

from __future__ import annotations

import json
import unicodedata

from session.printable import printable

__all__ = ["escaped", "printable", "printable_lines"]


def printable_lines(text: str) -> str:
    """Return the text with each of its lines made printable."""
    return "\n".join(map(printable, text.split("\n")))


def escaped(text: str, *, only_ascii: bool = False) -> str:
    r"""Return JSON text with the same value, but without characters that affect a terminal.

    Characters that control a terminal, are invisible, reorder the text around them or have no defined appearance become `\uXXXX`. Line
    feeds stay: in JSON they can only stand between values.

    Args:
        text: JSON whose only control characters between values are line feeds.
        only_ascii: True to escape all non-ASCII characters as well, for a terminal that may not decode UTF-8.
    """
    unsafe = (char for char in set(text) if char != "\n" and (_affects_terminal(char) or (only_ascii and not char.isascii())))
    return text.translate({ord(char): json.dumps(char)[1:-1] for char in unsafe})


def _affects_terminal(character: str) -> bool:
    kind = unicodedata.category(character)
    return kind[0] == "C" or kind in {"Zl", "Zp"}
