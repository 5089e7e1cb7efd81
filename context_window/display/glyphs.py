"""Characters and colours of the display: Unicode for terminals that can show it, ASCII for others.

`render.py` has the colours.
"""

from __future__ import annotations

from dataclasses import dataclass

from session.items import MessageCategory

from ..printable import printable

OVERHEAD = "overhead"
FREE = "free"

STYLES = {
    MessageCategory.SYSTEM.value: "magenta",
    MessageCategory.CONTEXT.value: "cyan",
    MessageCategory.DIALOG.value: "green",
    MessageCategory.SYSTEM_OUTPUT.value: "yellow",
    OVERHEAD: "blue",
    FREE: "bright_black",
}
"""Colour of each row."""

BAD = "bold red"
STRONG = "bold"
QUIET = "dim"


@dataclass(frozen=True, slots=True)
class Glyphs:
    """A set of characters, each one column wide.

    Attributes:
        cells: Cell of each row in the grid. The cells differ without colours too.
        ellipsis: Marks truncated text.
        dot: Separates the parts of a line.
        arrow: Stands between before and after.
        flag: Marks a category above its share.
        block: Fills a length.
        mark: Marks the end of the budget on a length.
        only_ascii: True if no other characters may be printed at all.
    """

    cells: dict[str, str]
    ellipsis: str
    dot: str
    arrow: str
    flag: str
    block: str
    mark: str
    only_ascii: bool

    def safe(self, text: str) -> str:
        """Return the text without characters that could control the terminal or that it cannot show."""
        text = printable(text)
        return text.encode("ascii", "replace").decode("ascii") if self.only_ascii else text


_NAMES = tuple(STYLES)

UNICODE = Glyphs(dict(zip(_NAMES, "■▣▦▤◆·", strict=True)), "…", "·", "→", "▲", "█", "│", only_ascii=False)
ASCII = Glyphs(dict(zip(_NAMES, "SCDO+.", strict=True)), "..", "|", "->", "^", "#", "|", only_ascii=True)


def glyphs_for(encoding: str | None) -> Glyphs:
    """Return the set that a stream with this encoding can show."""
    return UNICODE if (encoding or "").lower().replace("_", "-") in {"utf-8", "utf8", "utf-8-sig", "utf-16", "cp65001"} else ASCII
