"""The bands of a chart of billed tokens, by their price."""

from __future__ import annotations

from ..spend.tables import SpendRow

BILLED_BANDS = ("cache reads", "input", "cache writes", "output")


def billed(row: SpendRow) -> tuple[float, ...]:
    """Return the tokens of each band."""
    return row.cache_read, row.input_tokens, row.cache_write + row.cache_write_1h, row.output_tokens
