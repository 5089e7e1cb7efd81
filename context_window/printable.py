"""Text made safe to print on a terminal, which obeys what it is sent. `printable` itself is in `session.printable`: prompts need it too.

How wide a text is on a screen is in `display/lines.py`.
"""

from __future__ import annotations

import json
import unicodedata

from session.printable import printable

__all__ = ["escaped", "printable", "printable_lines"]


def printable_lines(text: str) -> str:
    """Return the text with each of its lines made printable."""
    return "\n".join(map(printable, text.split("\n")))


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
