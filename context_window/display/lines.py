"""Lines of styled text that fit a width: measuring, cutting, tables. No rich, no report; every displayed text is made here.

A line is a list of spans, a span a text and the name of its style. Texts are cut with an ellipsis, numbers never.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from .glyphs import Glyphs


class Span(NamedTuple):
    """A piece of a line.

    Attributes:
        text: Printable text.
        style: As rich names styles; empty for none.
    """

    text: str
    style: str = ""


Line: TypeAlias = list[Span]

GAP = 2
"""Columns between the columns of a table."""
_WIDE = frozenset(
    chr(code)
    for first, last in ((0x2630, 0x2637), (0x268A, 0x268F), (0x4DC0, 0x4DFF), (0x1D300, 0x1D356), (0x1D360, 0x1D376), (0x1F1E6, 0x1F1FF))
    for code in range(first, last + 1)
)
"""What terminals draw two columns wide although this Python's tables may say one: what became wide in Unicode 16, and halves of flags."""
LEAST = 14
"""Columns that a text keeps while anything else can still be left out."""


def width_of(text: str) -> int:
    """Columns that the text takes on a screen."""
    if text.isascii():
        return len(text)
    return sum(map(_columns, text))


def _columns(character: str) -> int:
    if unicodedata.category(character) in {"Mn", "Me"}:
        return 0
    return 2 if character in _WIDE or unicodedata.east_asian_width(character) in {"W", "F"} else 1


def line_width(line: Line) -> int:
    """Columns that the line takes."""
    return sum(width_of(span.text) for span in line)


def plain(line: Line) -> str:
    """The line without styles, and without blanks at its end."""
    return "".join(span.text for span in line).rstrip()


def fitted(text: str, width: int, glyphs: Glyphs) -> str:
    """The text, cut to the width with an ellipsis where it is too long."""
    text = glyphs.shown(text)
    if width_of(text) <= width:
        return text
    room = width - len(glyphs.ellipsis)
    kept = ""
    for character in text:
        room -= _columns(character)
        if room < 0:
            break
        kept += character
    return (kept + glyphs.ellipsis)[:width] if width > 0 else ""


def flow(segments: Iterable[Span], width: int, glyphs: Glyphs) -> list[Line]:
    """The segments side by side, a dot between them, broken between segments or, where one is too long, between its words."""
    lines: list[Line] = []
    used = 0
    for segment in segments:
        needed = width_of(segment.text)
        if lines and used + 3 + needed <= width:
            lines[-1] += [Span(f" {glyphs.dot} ", "dim"), segment]
            used += 3 + needed
            continue
        for text in wrapped(segment.text, width, glyphs):
            lines.append([Span(text, segment.style)])
            used = width_of(text)
    return lines


def wrapped(text: str, width: int, glyphs: Glyphs) -> list[str]:
    """The text in lines broken at blanks; a word that is too long is cut (no number is: none has as many digits)."""
    lines: list[str] = []
    for word in glyphs.shown(text).split(" "):
        if lines and width_of(lines[-1]) + 1 + width_of(word) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(fitted(word, width, glyphs))
    return lines


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Attributes:
        head: Its title.
        cells: One a row; a rule across the rows is no cell.
        left: Whether it is aligned to the left, as texts are; numbers are aligned to the right.
        elastic: Whether its texts may be cut. Numbers may not.
        whole: Whether its texts are cut only when no other column is left that could be left out.
        keep: Columns with the smallest are left out first where the table is too wide; 0 for never.
        at_least: Columns to take, so that it is as wide as that of another table.
    """

    head: str
    cells: Sequence[Span]
    left: bool = False
    elastic: bool = False
    whole: bool = False
    keep: int = 0
    at_least: int = 0

    @property
    def width(self) -> int:
        """Columns that it takes uncut."""
        return max(self.at_least, width_of(self.head), *(width_of(cell.text) for cell in self.cells), 0)

    @property
    def least(self) -> int:
        """Columns that it takes while others can be left out."""
        return min(self.width, max(LEAST, width_of(self.head))) if self.elastic and not self.whole else self.width


def table(columns: Sequence[Column], width: int, glyphs: Glyphs, *, heads: bool = True) -> list[Line]:
    """The table's lines. Where it is too wide, columns are left out in their order of `keep`, then texts are cut."""
    columns = list(columns)
    while _sum(column.least for column in columns) > width:
        droppable = [column for column in columns if column.keep]
        if not droppable:
            break
        columns.remove(min(droppable, key=lambda column: column.keep))
    widths = [column.width for column in columns]
    for place in sorted(range(len(columns)), key=lambda place: -columns[place].width):
        if columns[place].elastic:
            excess = _sum(widths) - width
            floor = min(columns[place].least, widths[place]) if _sum(column.least for column in columns) <= width else 1
            widths[place] = max(floor, widths[place] - max(0, excess))
    lines = [_row([Span(column.head, "dim") for column in columns], columns, widths, glyphs)] if heads else []
    count = max((len(column.cells) for column in columns), default=0)
    return lines + [_row([column.cells[place] for column in columns], columns, widths, glyphs) for place in range(count)]


def _sum(widths: Iterable[int]) -> int:
    counted = list(widths)
    return sum(counted) + GAP * (len(counted) - 1)


def _row(cells: Sequence[Span], columns: Sequence[Column], widths: Sequence[int], glyphs: Glyphs) -> Line:
    line: Line = []
    for cell, column, width in zip(cells, columns, widths, strict=True):
        if line:
            line.append(Span(" " * GAP))
        text = fitted(cell.text, width, glyphs) if column.elastic else cell.text
        blank = Span(" " * max(0, width - width_of(text)))
        line += [Span(text, cell.style), blank] if column.left else [blank, Span(text, cell.style)]
    return line


def beside(left: Sequence[Line], right: Sequence[Line], *, gap: int, wide: int) -> list[Line]:
    """Two blocks side by side, the left one `wide` columns wide."""
    lines = []
    for place in range(max(len(left), len(right))):
        first = list(left[place]) if place < len(left) else []
        second = right[place] if place < len(right) else []
        blank = Span(" " * (wide + gap - line_width(first)))
        lines.append([*first, blank, *second] if second else first)
    return lines
