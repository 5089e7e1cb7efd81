"""What the display draws with: characters for terminals that can show them, ASCII for others, and the colours.

The sixteen colours that every terminal has: how they look is the user's own choice, and fits light and dark backgrounds.
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
"""The colour of each row."""

BAD = "bold red"
STRONG = "bold"
QUIET = "dim"


@dataclass(frozen=True, slots=True)
class Glyphs:
    """One set of characters, each a column wide.

    Attributes:
        cells: For each row: its cell in the grid, which tells it apart without colours too.
        ellipsis: Where a text was cut.
        dot: Between the parts of a line.
        arrow: From before to after.
        flag: Beside a category above its share.
        block: What lengths are made of.
        mark: Where the budget ends, on a length.
        only_ascii: Whether other characters must not be shown at all.
    """

    cells: dict[str, str]
    ellipsis: str
    dot: str
    arrow: str
    flag: str
    block: str
    mark: str
    only_ascii: bool

    def shown(self, text: str) -> str:
        """The text as it may be printed with this set."""
        text = printable(text)
        return text.encode("ascii", "replace").decode("ascii") if self.only_ascii else text


_NAMES = tuple(STYLES)

UNICODE = Glyphs(dict(zip(_NAMES, "■▣▦▤◆·", strict=True)), "…", "·", "→", "▲", "█", "│", only_ascii=False)
ASCII = Glyphs(dict(zip(_NAMES, "SCDO+.", strict=True)), "..", "|", "->", "^", "#", "|", only_ascii=True)


def glyphs_for(encoding: str | None) -> Glyphs:
    """The set that a stream with this encoding can show."""
    return UNICODE if (encoding or "").lower().replace("_", "-") in {"utf-8", "utf8", "utf-8-sig", "utf-16", "cp65001"} else ASCII
