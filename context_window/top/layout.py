"""Lines of a page for any width: the table, and the window of a row. Pure. Every text passes `Glyphs.safe`."""

from __future__ import annotations

from collections.abc import Sequence

from ..display.charts import bar, length
from ..display.glyphs import FREE, OVERHEAD, STRONG, STYLES, Glyphs
from ..display.lines import GAP, Column, Line, Span, fit, flow, table
from .pages import Gauge, Page, Row

GAUGE_LINES = 4
"""Lines of a window: words, the bar, two of the legend."""
LEAST = 12
"""Columns below which there is no bar."""


def page_lines(page: Page, rows: Sequence[Row], width: int, glyphs: Glyphs) -> list[Line]:
    """Return the head and the rows as lines. The columns are as wide as those of the whole page.

    Args:
        page: The page.
        rows: Those of its rows that are in view.
        width: Columns of the screen.
        glyphs: Characters to draw with.
    """
    indices = _kept(page, width)
    columns = [
        Column(
            page.heads[index].name,
            [Span(_cut(row.cells[index].text, page.heads[index].most, glyphs), row.cells[index].style) for row in rows],
            is_left=page.heads[index].is_left,
            is_elastic=page.heads[index].least > 0,
            keeps_end=page.heads[index].keeps_end,
            minimum=page.widths[index],
        )
        for index in indices
    ]
    return table(columns, width, glyphs)


def _cut(text: str, most: int, glyphs: Glyphs) -> str:
    return fit(text, most, glyphs) if most else glyphs.safe(text)


def _kept(page: Page, width: int) -> list[int]:
    """Return the numbers of the columns for which there is room, if the main one is no wider than it must be."""
    least = [min(taken, head.least or taken) for head, taken in zip(page.heads, page.widths, strict=True)]
    kept = list(range(len(least)))
    while sum(least[index] for index in kept) + GAP * (len(kept) - 1) > width:
        droppable = [index for index in kept if page.heads[index].priority]
        if not droppable:
            break
        kept.remove(min(droppable, key=lambda index: page.heads[index].priority))
    return kept


def gauge_lines(gauge: Gauge | None, width: int, glyphs: Glyphs) -> list[Line]:
    """Return a window as lines: words, a bar, a legend. Always as many, so that the screen stays where it is.

    Args:
        gauge: The window; None for empty lines.
        width: Columns of the screen.
        glyphs: Characters to draw with.
    """
    if gauge is None or width < LEAST:
        return [[]] * GAUGE_LINES
    window = gauge.window if gauge.window and gauge.window >= gauge.used else None
    free = 0 if window is None else window - gauge.used
    size = f"{gauge.used:,} tokens" if window is None else f"{gauge.used:,} of {window:,} tokens, {100 * gauge.used / window:.0f}%"
    words: Line = [Span(fit(f"{gauge.words}: {size}", width, glyphs), STRONG)]
    if not gauge.parts:
        filled = length(gauge.used, window, width, glyphs) if window else ""
        drawn = [Span(filled, STYLES[OVERHEAD]), Span(glyphs.cells[FREE] * (width - len(filled)) if window else "", STYLES[FREE])]
        return [words, drawn, [], []]
    amounts = {**gauge.parts, FREE: free}
    legend = flow(_legend(amounts, glyphs), width, glyphs)
    return [words, bar(amounts, width, glyphs), *[*legend, [], []][: GAUGE_LINES - 2]]


def _legend(amounts: dict[str, int], glyphs: Glyphs) -> list[Span]:
    names = {name: name.lower().replace("_", " ") for name in amounts} | {OVERHEAD: OVERHEAD}
    parts = sorted(((tokens, name) for name, tokens in amounts.items() if tokens and name != FREE), reverse=True)
    return [Span(f"{glyphs.cells[name]} {names[name]} {_short(tokens)}", STYLES[name]) for tokens, name in parts]


def _short(tokens: int) -> str:
    return f"{tokens:,}" if tokens < 1_000 else f"{tokens / 1_000:,.1f}k" if tokens < 100_000 else f"{tokens // 1_000:,}k"
