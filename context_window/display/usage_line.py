"""The line below each turn of a chat: the window as a bar and in tokens, and the price. Layout only."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from session.items import MessageCategory

from .charts import bar
from .glyphs import FREE, OVERHEAD, STRONG, Glyphs
from .lines import Line, Span, flow
from .render import Draw


def money(dollars: Decimal) -> str:
    """Return an amount in US dollars, with four decimals below one dollar."""
    return f"${dollars:,.4f}" if dollars < 1 else f"${dollars:,.2f}"


def usage_line(tokens: dict[str, int], costs: Sequence[str]) -> Draw:
    """Return the budget as a bar and in tokens, and what the turn and the session cost. At 80 columns that is one line.

    Args:
        tokens: Tokens of the next request, in the form of `get_token_usage`.
        costs: What the turn and the session cost, in words.
    """
    amounts = {name: tokens[name] for name in (*(category.value for category in MessageCategory), OVERHEAD)}
    amounts[FREE] = max(0, tokens["available"])
    used = round(100 * tokens["total"] / tokens["budget"])
    figures = [f"{tokens['total']:,} of {tokens['budget']:,} tokens", f"{used}%" if used else "<1%"]

    def draw(width: int, glyphs: Glyphs) -> list[Line]:
        columns = min(20, width // 8)
        spans = [*(Span(figure, STRONG) for figure in figures), *map(Span, costs)]
        first, *others = flow(spans, width - columns - 2, glyphs)
        return [[*bar(amounts, columns, glyphs), Span("  "), *first], *([Span(" " * (columns + 2)), *line] for line in others)]

    return draw
