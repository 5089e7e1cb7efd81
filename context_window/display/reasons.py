"""The money of sessions by what it paid for, as a table for any width. Layout only."""

from __future__ import annotations

from collections.abc import Sequence

from ..spend.reasons import REST, ReasonRow, advice_of
from ..spend.tables import SpendRow, marks
from .glyphs import QUIET, STRONG, Glyphs
from .lines import Column, Line, Span, paragraphs, table
from .spend import CENT, WIDEST, money

HEADS = {"cause": "what it paid for", "call": "tool called", "server": "MCP server", "command": "command", "skill": "skill"}
ADVISED = 3
"""Causes with a sentence on what saves them."""
DIVIDED = "One request pays for several rows; its money is divided among them."


def reason_lines(
    grouping: str, rows: Sequence[ReasonRow], total: SpendRow, footnotes: Sequence[str], width: int, glyphs: Glyphs
) -> list[Line]:
    """Return the lines of the table, none wider than `width` columns.

    Args:
        grouping: What a row sums up.
        rows: The rows.
        total: The sums of all requests, the last row.
        footnotes: Sentences below the table.
        width: Columns.
        glyphs: Characters to draw with.
    """
    width = min(width, WIDEST)
    rest = REST.get(grouping)
    rows = sorted(rows, key=lambda row: row.name == rest)
    names = [*(row.name for row in rows), total.name]
    styles = [*("" for _ in rows), STRONG]
    columns = [
        Column(
            HEADS[grouping],
            [Span(glyphs.safe(name), style) for name, style in zip(names, styles, strict=True)],
            is_left=True,
            is_elastic=True,
            is_last_resort=True,
        ),
        Column("requests", [*(Span(f"{row.requests:,}") for row in rows), Span(f"{total.requests:,}", STRONG)], priority=3),
        Column(
            "US dollars",
            [*(Span(f"{row.cost.quantize(CENT):,}{marks(row.unpriced, row.disputed)}") for row in rows), Span(money(total), STRONG)],
        ),
        Column("", [*(Span(f"{row.share:.1%}", QUIET) for row in rows), Span("")], priority=2),
    ]
    savable = ((row, advice_of(row.name)) for row in rows if grouping == "cause" and row.cost >= CENT)
    advice = [f"To save some of the ${row.cost.quantize(CENT):,} for {row.name}: {words}." for row, words in savable if words][:ADVISED]
    divided = DIVIDED if rest is None else f"{DIVIDED} spend --by cause divides the rest."
    return [*table(columns, width, glyphs), *paragraphs([*advice, divided, *footnotes], width, glyphs)]
