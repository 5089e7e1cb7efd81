"""The reasons for a session's cost as tables for any width. Layout only."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal

from ..timeline.why import Why
from .glyphs import QUIET, STRONG, STYLES, Glyphs
from .lines import Column, Line, Span, paragraphs, table
from .timeline import WIDEST, cents, cents_of
from .usage import heading

ROWS = 8
"""Rows of each list."""


def why_lines(why: Why, title: str, width: int, glyphs: Glyphs) -> list[Line]:
    """Return the lines of the tables, none wider than `width` columns.

    Args:
        why: The reasons.
        title: The log's name.
        width: Columns.
        glyphs: Characters to draw with.
    """
    width = min(width, WIDEST)
    blocks = [*heading(title, why.timeline.model or "", width, glyphs)], _parts(why, width, glyphs)
    lists = _tools(why, width, glyphs), _items(why, width, glyphs), _breaks(why, width, glyphs), _rereads(why, width, glyphs)
    lines = [line for block in (*blocks, *lists) if block for line in ([], *block)][1:]
    return [*lines, [], *paragraphs(footnotes_of(why), width, glyphs)]


def _parts(why: Why, width: int, glyphs: Glyphs) -> list[Line]:
    total = why.timeline.spent.cost
    parts = [(name, cost) for name, cost in why.parts.items() if cost] + [("total", total)]
    styles = [STRONG if name == "total" else "" for name, _ in parts]
    columns = [
        Column("", [Span(glyphs.cells.get(name, ""), STYLES.get(name, "")) for name, _ in parts], is_left=True, priority=1),
        Column(
            "Money",
            [Span(name, style) for (name, _), style in zip(parts, styles, strict=True)],
            is_left=True,
            is_elastic=True,
            is_last_resort=True,
        ),
        Column("US dollars", list(map(Span, cents_of(cost for _, cost in parts), styles))),
        Column("", [Span(_share(cost, total), QUIET) for _, cost in parts], priority=2),
    ]
    return table(columns, width, glyphs)


def _tools(why: Why, width: int, glyphs: Glyphs) -> list[Line]:
    tools = why.tools[:ROWS]
    columns = [
        Column("Tools", [Span(glyphs.safe(tool.name)) for tool in tools], is_left=True, is_elastic=True),
        Column("US dollars", list(map(Span, cents_of(tool.cost for tool in tools)))),
        Column("", [Span(_share(tool.cost, why.timeline.spent.cost), QUIET) for tool in tools], priority=2),
        Column("tokens", [Span(f"{tool.tokens:,}") for tool in tools], priority=3),
        Column("calls", [Span(f"{tool.calls:,}") for tool in tools], priority=1),
    ]
    return table(columns, width, glyphs) if tools else []


def _items(why: Why, width: int, glyphs: Glyphs) -> list[Line]:
    items = why.items[:ROWS]
    columns = [
        Column("Items", [Span(glyphs.safe(item.what), STYLES[item.category]) for item in items], is_left=True, is_elastic=True),
        Column("US dollars", list(map(Span, cents_of(item.cost for item in items)))),
        Column("tokens", [Span(f"{item.tokens:,}") for item in items], priority=3),
        Column("requests", [Span(f"{item.requests:,}") for item in items], priority=2),
        Column("id", [Span(glyphs.safe(item.item_id), QUIET) for item in items], is_left=True, is_elastic=True, priority=1),
    ]
    return table(columns, width, glyphs) if items else []


def _breaks(why: Why, width: int, glyphs: Glyphs) -> list[Line]:
    breaks = sorted(why.breaks.items(), key=lambda row: (-row[1][2], row[0]))
    columns = [
        Column("Cache breaks", [Span(glyphs.safe(cause)) for cause, _ in breaks], is_left=True, is_elastic=True),
        Column("US dollars", list(map(Span, cents_of(cost for _, (_, _, cost) in breaks)))),
        Column("tokens", [Span(f"{tokens:,}") for _, (_, tokens, _) in breaks], priority=2),
        Column("breaks", [Span(f"{count:,}") for _, (count, _, _) in breaks], priority=1),
    ]
    return table(columns, width, glyphs) if breaks else []


def _rereads(why: Why, width: int, glyphs: Glyphs) -> list[Line]:
    files = why.rereads[:ROWS]
    columns = [
        Column("Files read again", [Span(glyphs.safe(file.path)) for file in files], is_left=True, is_elastic=True, keeps_end=True),
        Column("US dollars", list(map(Span, cents_of(Decimal(file.cost) for file in files)))),
        Column("tokens", [Span(f"{file.tokens:,}") for file in files], priority=3),
        Column("reads", [Span(f"{file.reads:,}") for file in files], priority=2),
        Column("of the same part", [Span(f"{file.same:,}") for file in files], priority=1),
    ]
    return table(columns, width, glyphs) if files else []


def footnotes_of(why: Why) -> Iterator[str]:
    """Yield sentences about what views would have saved, and about what the tables lack."""
    savings, spent = why.savings, why.timeline.spent
    if not spent.requests or spent.known_cost is None:
        yield "The price of the session's requests is unknown, so the tables have no money."
    elif not savings.trims:
        yield f"Views under a budget of {savings.budget:,} tokens would have been the same: --max-tokens N replays a smaller one."
    else:
        word = "saved" if savings.saved >= 0 else "cost more by"
        trims = "1 trim" if savings.trims == 1 else f"{savings.trims:,} trims"
        yield (
            f"Views under a budget of {savings.budget:,} tokens would have {word} {cents(abs(savings.saved))} of {cents(savings.cost)} "
            f"US dollars ({savings.managed_prompt_tokens:,} prompt tokens instead of {savings.prompt_tokens:,}, {trims})."
        )
    if spent.unpriced and spent.known_cost is not None:
        yield f"The price of {spent.unpriced:,} of {spent.requests:,} requests is unknown; no sum has them."
    yield "Overhead is what the log does not hold: the system prompt, tool definitions, framing. The cost of cache breaks is in these rows."


def _share(cost: Decimal, total: Decimal) -> str:
    return f"{100 * cost / total:.1f}%" if total else ""


def why_draw(why: Why, title: str) -> Callable[[int, Glyphs], list[Line]]:
    """Return a function that draws the tables."""
    return lambda width, glyphs: why_lines(why, title, width, glyphs)
