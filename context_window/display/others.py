"""The other sessions of a transcript, a line each: sub-agents', or sessions that lie in the same file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .glyphs import QUIET, Glyphs
from .lines import Column, Line, Span, table, wrapped
from .usage import WIDEST


def draw_others(others: Sequence[Mapping[str, Any]], equals: int, width: int, glyphs: Glyphs) -> list[Line]:
    """The lines of the list.

    Args:
        others: For each: `session_id`, `agent_id`, `total` (tokens), `items`.
        equals: How many sessions of the file could have been shown as well; more than one is worth a word.
        width: Columns.
        glyphs: What to draw with.
    """
    width = min(width, WIDEST)
    names = [f"agent {one['agent_id']}" if one["agent_id"] else f"session {one['session_id']}" for one in others]
    columns = [
        Column("Also in this transcript", [Span(glyphs.shown(name)) for name in names], left=True, elastic=True),
        Column("tokens", [Span(f"{one['total']:,}") for one in others]),
        Column("items", [Span(f"{one['items']:,}") for one in others], keep=1),
    ]
    note = "counted for themselves; --session ID shows one"
    if equals > 1:
        note += f" ({equals:,} sessions in this file have equal rank: the first is shown)"
    return [*table(columns, width, glyphs), *([Span(line, QUIET)] for line in wrapped(note, width, glyphs))]
