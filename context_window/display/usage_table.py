"""The usage of several sessions as one table: a row for each. Layout only."""

from __future__ import annotations

from collections.abc import Sequence

from ..usage.report import UsageReport
from .glyphs import STRONG, Glyphs
from .lines import Column, Line, Span, paragraphs, table

WIDEST = 120
"""Maximum width in columns."""
FOOTNOTE = (
    "Each row is a session's window now. `context-window spend` adds up what the sessions cost; pass a single path for the whole report."
)


def usage_table(reports: Sequence[UsageReport], width: int, glyphs: Glyphs) -> list[Line]:
    """Return the lines of the table, none wider than `width` columns.

    Args:
        reports: The sessions' reports.
        width: Columns.
        glyphs: Characters to draw with.
    """
    width = min(width, WIDEST)
    columns = [
        Column("session", [Span(glyphs.safe(report.title)) for report in reports], is_left=True, is_elastic=True),
        Column("items", [Span(f"{report.items:,}") for report in reports], priority=2),
    ]
    for index, row in enumerate(reports[0].rows):
        columns.append(Column(row.category.value, [Span(f"{report.rows[index].tokens:,}") for report in reports], priority=1))
    columns += [
        Column("overhead", [Span(f"{report.overhead:,}") for report in reports], priority=1),
        Column("tokens", [Span(f"{report.total:,}", STRONG) for report in reports]),
        Column("budget", [Span(f"{report.budget:,}") for report in reports], priority=3),
        Column("in use", [Span(f"{report.total / report.budget:.1%}") for report in reports]),
        Column("", [Span("over" if report.over_budget else "") for report in reports], is_left=True),
    ]
    return [*table(columns, width, glyphs), *paragraphs([FOOTNOTE], width, glyphs)]
