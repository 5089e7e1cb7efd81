"""Amounts drawn as charts of cells: a grid, a bar, a length. Layout only: the amounts come from a report or plan."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from .glyphs import FREE, STRONG, STYLES, Glyphs
from .lines import Line, Span

SIDE = 10
"""Cells per side of the grid: each cell is one percent."""


def apportion(amounts: Sequence[int], cells: int) -> list[int]:
    """Return the cells of each amount, in proportion. They sum to `cells`, and an amount above 0 has at least one.

    The largest remainders get the cells that rounding down leaves over (Hamilton's method).
    """
    total = sum(amounts)
    if not total:
        return [0] * len(amounts)
    shares = [max(1, amount * cells // total) if amount else 0 for amount in amounts]
    by_remainder = sorted(range(len(amounts)), key=lambda index: -(amounts[index] * cells % total))
    for index in by_remainder:
        if sum(shares) < cells and amounts[index] * cells >= total:  # not for amounts that were rounded up to 1
            shares[index] += 1
    while sum(shares) != cells:
        largest = max(range(len(shares)), key=shares.__getitem__)
        shares[largest] += 1 if sum(shares) < cells else -1
    return shares


def grid(amounts: dict[str, int], glyphs: Glyphs) -> list[Line]:
    """Return ten rows of ten cells, separated by blanks."""
    names = _cell_names(amounts, SIDE * SIDE)
    rows = [_row(names[row * SIDE : (row + 1) * SIDE], glyphs, " ") for row in range(SIDE)]
    return [[*row[:-1], Span(row[-1].text.rstrip(), row[-1].style)] for row in rows]


def bar(amounts: dict[str, int], width: int, glyphs: Glyphs) -> Line:
    """Return one row of cells."""
    return _row(_cell_names(amounts, width), glyphs, "")


def _cell_names(amounts: dict[str, int], cells: int) -> list[str]:
    shares = apportion(list(amounts.values()), cells)
    return [name for name, count in zip(amounts, shares, strict=True) for _ in range(count)]


def _row(names: Sequence[str], glyphs: Glyphs, separator: str) -> Line:
    return [Span(separator.join([glyphs.cells[name]] * len(list(run))) + separator, STYLES[name]) for name, run in groupby(names)]


def length(amount: int, maximum: int, width: int, glyphs: Glyphs) -> str:
    """Return an amount as a length on a scale where `maximum` fills the width. An amount above 0 has at least one column."""
    columns = min(width, max(1, amount * width // maximum)) if amount > 0 and maximum > 0 else 0
    return glyphs.block * columns


def length_bar(amount: int, maximum: int, budget: int, width: int, glyphs: Glyphs) -> Line:
    """Return an amount as a length on a scale where `maximum` fills the width.

    A mark shows where the budget ends. The part beyond it is red.
    """
    filled = length(amount, maximum, width, glyphs)
    mark = min(width - 1, budget * width // maximum)
    cells = filled + glyphs.cells[FREE] * (width - len(filled))
    within, beyond = min(mark, len(filled)), max(mark + 1, len(filled))
    return [
        Span(cells[:within], "green"),
        Span(cells[within:mark], STYLES[FREE]),
        Span(glyphs.mark, STRONG),
        Span(cells[mark + 1 : beyond], "red"),
        Span(cells[beyond:], STYLES[FREE]),
    ]
