"""What all sessions have cost, on one screen of 80 columns and 24 lines. Layout only."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from ..spend.overview import Overview
from ..spend.tables import SpendRow, leading
from .glyphs import STRONG, Glyphs
from .lines import Column, Line, Span, fit, paragraphs, table, wrapped
from .spend import money

WIDEST = 120
HEIGHT = 24
"""Lines of the screen."""
MOST, CAUSES = 3, 3
"""Rows of each property if there is room, besides one for the others; and causes."""
LIMITS_SHOWN = 4
HINT = "context-window spend has all rows, spend --by cause says why; gateway -- claude {saves}."
UNKNOWN_LIMITS = " setup claude-code shows your plan's limits here."
WORTH_SAYING = Decimal("0.01")
"""Saved US dollars."""


def overview_lines(overview: Overview, limits: Sequence[str], footnotes: Sequence[str], width: int, glyphs: Glyphs) -> list[Line]:
    """Return the lines, none wider than `width` columns.

    Args:
        overview: The figures.
        limits: Sentences on the limits of plans.
        footnotes: Sentences below the tables.
        width: Columns.
        glyphs: Characters to draw with.
    """
    width = min(width, WIDEST)
    lines = _rows("all sessions", overview.periods, width, glyphs)
    if limits:
        lines.append([Span(fit("limits of plans", width, glyphs), STRONG)])
        lines += [[Span(fit(glyphs.safe(text), width, glyphs))] for text in limits[:LIMITS_SHOWN]]
    saved = overview.saved.quantize(WORTH_SAYING)
    hint = HINT.format(saves=f"would have saved {f'some ${saved:,}' if saved >= WORTH_SAYING else 'nothing'}, {overview.scope}")
    if not limits and any(row.name == "claude_code" for row in overview.groups.get("tool", ())):
        hint += UNKNOWN_LIMITS
    notes = paragraphs([*footnotes, hint], width, glyphs)
    groups = {name: rows for name, rows in overview.groups.items() if len(rows) > (name == "tool")}
    room = HEIGHT - len(lines) - len(notes)
    most = min(max(MOST - 1, (room - 1 - CAUSES) // max(1, len(groups)) - 1), MOST + 1)
    for name, rows in groups.items():
        some = rows if len(rows) <= most else leading(rows, most - 1)
        lines += _rows(f"{overview.scope} by {name}", some, width, glyphs, keeps_end=name == "project")
    return [*lines, *_causes(overview, HEIGHT - len(lines) - len(notes), width, glyphs), *notes]


def _causes(overview: Overview, room: int, width: int, glyphs: Glyphs) -> list[Line]:
    """Return the head and the dearest causes, in whole sentences: as many as there is room for, but at least one."""
    head = f"what was dear, {overview.scope}{'' if overview.is_explained else ', by the sizes of prompts'}"
    lines: list[Line] = []
    for row in overview.causes[:CAUSES]:
        count = "" if overview.is_explained else f"{row.count:,} "
        sentence = wrapped(f"${row.cost.quantize(WORTH_SAYING):,} for {count}{row.name}: {row.advice}", width, glyphs)
        if not lines:
            lines.append([Span(fit(head, width, glyphs), STRONG)])
        elif len(lines) + len(sentence) > room:
            break
        lines += ([Span(line)] for line in sentence)
    return lines


def _rows(head: str, rows: Sequence[SpendRow], width: int, glyphs: Glyphs, *, keeps_end: bool = False) -> list[Line]:
    names = [Span(glyphs.safe(row.name)) for row in rows]
    columns = [
        Column(head, names, is_left=True, is_elastic=True, keeps_end=keeps_end, is_last_resort=True, minimum=min(36, width // 2)),
        Column("requests", [Span(f"{row.requests:,}") for row in rows], priority=1, minimum=8),
        Column("tokens", [Span(f"{row.total:,}") for row in rows], priority=2, minimum=15),
        Column("US dollars", [Span(money(row)) for row in rows], minimum=10),
    ]
    return table(columns, width, glyphs)
