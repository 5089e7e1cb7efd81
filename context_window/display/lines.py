"""Lines of styled text that fit a width: measuring, wrapping, truncating, tables. Knows neither rich nor reports.

A line is a list of spans; a span is a text and the name of its style. Texts are truncated with an ellipsis, numbers never.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from .glyphs import QUIET, Glyphs


class Span(NamedTuple):
    """A piece of a line.

    Attributes:
        text: Printable text.
        style: Names of styles (`render.py` has them), as rich has them too; empty for none.
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
"""Characters that terminals draw two columns wide although Python's tables may say one: flag halves, and those that Unicode 16 widened."""
MINIMUM_TEXT = 14
"""Columns that a text keeps as long as other columns of its table can be left out."""


def width_of(text: str) -> int:
    """Return the columns that the text takes on a screen."""
    if text.isascii():
        return len(text)
    return sum(map(_columns, text))


def _columns(character: str) -> int:
    if unicodedata.category(character) in {"Mn", "Me"}:
        return 0
    return 2 if character in _WIDE or unicodedata.east_asian_width(character) in {"W", "F"} else 1


def line_width(line: Line) -> int:
    """Return the columns that the line takes."""
    return sum(width_of(span.text) for span in line)


def plain(line: Line) -> str:
    """Return the line without styles and trailing blanks."""
    return "".join(span.text for span in line).rstrip()


def fit(text: str, width: int, glyphs: Glyphs, *, keeps_end: bool = False) -> str:
    """Return the text, truncated to the width with an ellipsis if it is too long.

    Args:
        text: The text.
        width: Columns.
        glyphs: Characters to draw with.
        keeps_end: True to cut off its beginning, as suits a path.
    """
    text = glyphs.safe(text)
    if width_of(text) <= width:
        return text
    room = width - len(glyphs.ellipsis)
    length = 0
    for character in reversed(text) if keeps_end else text:
        room -= _columns(character)
        if room < 0:
            break
        length += 1
    cut = glyphs.ellipsis + text[len(text) - length :] if keeps_end else text[:length] + glyphs.ellipsis
    return cut[:width] if width > 0 else ""


def fit_ends(text: str, width: int, glyphs: Glyphs) -> str:
    """Return the text, truncated in its middle with an ellipsis if it is too long, as suits a way from a whole to its part."""
    if width_of(glyphs.safe(text)) <= width or width < MINIMUM_TEXT:
        return fit(text, width, glyphs)
    beginning = fit(text, width // 3, glyphs)
    room = width - width_of(beginning) + len(glyphs.ellipsis)
    return beginning + fit(text, room, glyphs, keeps_end=True).removeprefix(glyphs.ellipsis)


def flow(segments: Iterable[Span], width: int, glyphs: Glyphs) -> list[Line]:
    """Return the segments in lines, separated by dots. Lines break between segments, or between the words of a long segment."""
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
    """Return the text in lines broken at blanks. A word longer than a line is truncated; no number has as many digits."""
    lines: list[str] = []
    for word in glyphs.safe(text).split(" "):
        if lines and width_of(lines[-1]) + 1 + width_of(word) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(fit(word, width, glyphs))
    return lines


def paragraphs(texts: Iterable[str], width: int, glyphs: Glyphs) -> list[Line]:
    """Return texts in a quiet style, each broken at blanks into lines."""
    return [[Span(line, QUIET)] for text in texts for line in wrapped(text, width, glyphs)]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Attributes:
        head: Its title.
        cells: One per row.
        is_left: True to align it to the left, as texts are. Numbers are aligned to the right.
        is_elastic: True if its texts may be truncated. Numbers may not.
        keeps_end: True to truncate them at their beginning, as suits paths.
        is_last_resort: True to truncate its texts only after all other columns that can be left out are gone.
        priority: If the table is too wide, columns with the lowest priority are left out first. 0 means never.
        minimum: Minimum width, for alignment with another table.
    """

    head: str
    cells: Sequence[Span]
    is_left: bool = False
    is_elastic: bool = False
    keeps_end: bool = False
    is_last_resort: bool = False
    priority: int = 0
    minimum: int = 0

    @property
    def width(self) -> int:
        """Width without truncation."""
        return max(self.minimum, width_of(self.head), *(width_of(cell.text) for cell in self.cells), 0)

    @property
    def least_width(self) -> int:
        """Width as long as other columns can be left out."""
        return min(self.width, max(MINIMUM_TEXT, width_of(self.head))) if self.is_elastic and not self.is_last_resort else self.width


def table(columns: Sequence[Column], width: int, glyphs: Glyphs) -> list[Line]:
    """Return the lines of a table. If it is too wide, columns are left out by `priority`, then texts are truncated."""
    columns = list(columns)
    while _total_width(column.least_width for column in columns) > width:
        droppable = [column for column in columns if column.priority]
        if not droppable:
            break
        columns.remove(min(droppable, key=lambda column: column.priority))
    widths = [column.width for column in columns]
    for index in sorted(range(len(columns)), key=lambda index: -columns[index].width):
        if columns[index].is_elastic:
            excess = _total_width(widths) - width
            floor = min(columns[index].least_width, widths[index]) if _total_width(column.least_width for column in columns) <= width else 1
            widths[index] = max(floor, widths[index] - max(0, excess))
    count = max((len(column.cells) for column in columns), default=0)
    rows = [[Span(column.head, "dim") for column in columns], *([column.cells[row] for column in columns] for row in range(count))]
    return [_row(row, columns, widths, glyphs) for row in rows]


def _total_width(widths: Iterable[int]) -> int:
    widths = list(widths)
    return sum(widths) + GAP * (len(widths) - 1)


def _row(cells: Sequence[Span], columns: Sequence[Column], widths: Sequence[int], glyphs: Glyphs) -> Line:
    line: Line = []
    for cell, column, width in zip(cells, columns, widths, strict=True):
        if line:
            line.append(Span(" " * GAP))
        text = fit(cell.text, width, glyphs, keeps_end=column.keeps_end) if column.is_elastic else cell.text
        blank = Span(" " * max(0, width - width_of(text)))
        line += [Span(text, cell.style), blank] if column.is_left else [blank, Span(text, cell.style)]
    return line


def side_by_side(first_block: Sequence[Line], second_block: Sequence[Line], *, gap: int, first_width: int) -> list[Line]:
    """Return two blocks side by side."""
    lines = []
    for row in range(max(len(first_block), len(second_block))):
        first = list(first_block[row]) if row < len(first_block) else []
        second = second_block[row] if row < len(second_block) else []
        blank = Span(" " * (first_width + gap - line_width(first)))
        lines.append([*first, blank, *second] if second else first)
    return lines
