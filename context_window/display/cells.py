"""Amounts drawn as cells: a grid, a bar. Layout only: what the amounts are, the report says."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from .glyphs import FREE, STRONG, STYLES, Glyphs
from .lines import Line, Span

SIDE = 10
"""Cells along a side of the grid: each of them is one percent."""


def apportion(amounts: Sequence[int], cells: int) -> list[int]:
    """Cells for each amount, in proportion: they sum to `cells`, and what is not nothing has at least one.

    The largest remainders get the cells that rounding down leaves over (Hamilton's method).
    """
    total = sum(amounts)
    if not total:
        return [0] * len(amounts)
    given = [max(1, amount * cells // total) if amount else 0 for amount in amounts]
    by_remainder = sorted(range(len(amounts)), key=lambda place: -(amounts[place] * cells % total))
    for place in by_remainder:
        if sum(given) < cells and amounts[place] * cells >= total:  # one that was raised to 1 has had its due
            given[place] += 1
    while sum(given) != cells:
        largest = max(range(len(given)), key=given.__getitem__)
        given[largest] += 1 if sum(given) < cells else -1
    return given


def grid(amounts: dict[str, int], glyphs: Glyphs) -> list[Line]:
    """Ten rows of ten cells, a blank between two."""
    names = _names(amounts, SIDE * SIDE)
    rows = [_line(names[row * SIDE : (row + 1) * SIDE], glyphs, " ") for row in range(SIDE)]
    return [[*row[:-1], Span(row[-1].text.rstrip(), row[-1].style)] for row in rows]


def bar(amounts: dict[str, int], width: int, glyphs: Glyphs) -> Line:
    """One row of cells."""
    return _line(_names(amounts, width), glyphs, "")


def _names(amounts: dict[str, int], cells: int) -> list[str]:
    given = apportion(list(amounts.values()), cells)
    return [name for name, count in zip(amounts, given, strict=True) for _ in range(count)]


def _line(names: Sequence[str], glyphs: Glyphs, between: str) -> Line:
    return [Span(between.join([glyphs.cells[name]] * len(list(run))) + between, STYLES[name]) for name, run in groupby(names)]


def length(amount: int, most: int, width: int, glyphs: Glyphs) -> str:
    """An amount as a length, where `most` is the whole width; at least one column for what is not nothing."""
    columns = min(width, max(1, amount * width // most)) if amount > 0 and most > 0 else 0
    return glyphs.block * columns


def length_bar(amount: int, most: int, budget: int, width: int, glyphs: Glyphs) -> Line:
    """An amount as a length, where `most` is the whole width, with a mark where the budget ends; what is beyond it is red."""
    full = length(amount, most, width, glyphs)
    at = min(width - 1, budget * width // most)
    drawn = full + glyphs.cells[FREE] * (width - len(full))
    within, beyond = min(at, len(full)), max(at + 1, len(full))
    return [
        Span(drawn[:within], "green"),
        Span(drawn[within:at], STYLES[FREE]),
        Span(glyphs.mark, STRONG),
        Span(drawn[at + 1 : beyond], "red"),
        Span(drawn[beyond:], STYLES[FREE]),
    ]
