"""Sums of spent tokens as a table for any width. Layout only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal

from ..spend.tables import SpendRow
from .glyphs import STRONG, Glyphs
from .lines import Column, Line, Span, fit, paragraphs, table

WIDEST = 120
"""Maximum width in columns."""
SESSION = 45
"""Columns that a session's name may always have."""

CENT = Decimal("0.01")
PARTS = ("input", "cache read", "cache write", "output")
"""The columns that add up to the total."""


def spend_lines(
    title: str,
    rows: Sequence[SpendRow],
    total: SpendRow,
    footnotes: Sequence[str],
    width: int,
    glyphs: Glyphs,
    more: tuple[str, Sequence[Decimal]] | None = None,
    titles: Mapping[str, str] | None = None,
) -> list[Line]:
    """Return the lines of the table, none wider than `width` columns.

    Args:
        title: Head of the first column.
        rows: The rows.
        total: Their sum, the last row.
        footnotes: Sentences below the table.
        width: Columns.
        glyphs: Characters to draw with.
        more: The head and the US dollars of one more column, the last for the total.
        titles: What rows are called instead of their names.
    """
    width = min(width, WIDEST)
    rows_and_total = [*rows, total]
    texts = [glyphs.safe((titles or {}).get(row.name, row.name).removeprefix("https://")) for row in rows_and_total]
    if title == "session":
        texts = [fit(text, max(SESSION, width * 2 // 5), glyphs) for text in texts]
    names = [Span(text, STRONG if row is total else "") for text, row in zip(texts, rows_and_total, strict=True)]
    columns = [Column(title, names, is_left=True, is_elastic=True, keeps_end=title == "project", is_last_resort=True)]
    amounts = {
        "requests": ([row.requests for row in rows_and_total], 2),
        "input": ([row.input_tokens for row in rows_and_total], 3),
        "cache read": ([row.cache_read for row in rows_and_total], 5),
        "cache write": ([row.cache_write + row.cache_write_1h for row in rows_and_total], 6),
        "output": ([row.output_tokens for row in rows_and_total], 4),
        "reasoning": ([row.reasoning for row in rows_and_total], 1),
        "total": ([row.total for row in rows_and_total], 0),
    }
    for head, (numbers, priority) in amounts.items():
        texts = [f"{number:,}" for number in numbers] if head != "reasoning" else [_reasoning(row) for row in rows_and_total]
        columns.append(Column(head, [Span(text) for text in texts], priority=priority if any(numbers) else min(priority, 1)))
    columns.append(Column("US dollars", [Span(money(row)) for row in rows_and_total]))
    if more is not None:
        columns.append(Column(more[0], [Span(f"{cost.quantize(CENT):,}") for cost in more[1]]))
    lines = table(columns, width, glyphs)
    heads = "".join(span.text for span in lines[0])
    hidden = [head for head in PARTS if head not in heads and any(amounts[head][0])]
    if hidden:
        footnotes = [f"The total includes columns for which there is no room here: {', '.join(hidden)}.", *footnotes]
    return [*lines, *paragraphs(footnotes, width, glyphs)]


def _reasoning(row: SpendRow) -> str:
    """Return the reasoning tokens of a row, with `+` if the logs of some of its requests do not tell."""
    if row.known_reasoning is None:
        return "unknown"
    return f"{row.reasoning:,}{'+' if row.reasoned < row.requests else ''}"


def money(row: SpendRow) -> str:
    """Return the price of a row in cents, with its marks."""
    if row.known_cost is None:
        return "unknown"
    return f"{row.known_cost.quantize(CENT):,}{row.marks}"
