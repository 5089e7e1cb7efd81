"""Why requests have cost what they have, as tables: by cause, tool called, command, MCP server and skill. Figures of `spend --by cause`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from session.transcripts.reported_requests import Request

from ..display.reasons import HEADS
from ..spend.reasons import REASON_GROUPINGS, REST, ReasonRow, advice_of, leading_reasons, reasons_by

CAUSES_MAX, ROWS_MAX = 30, 20
"""Rows of the table of causes, and of the others. The last one sums up the rest."""


@dataclass(frozen=True, slots=True)
class ReasonTable:
    """The money of the requests, divided by one property of what it paid for.

    Attributes:
        name: The property.
        head: The head of its column.
        rows: The rows, the dearest first. They add up to the money of the requests.
        advice: By name of a row: what it takes to save it. Empty if nothing is known for any row.
    """

    name: str
    head: str
    rows: Sequence[ReasonRow]
    advice: dict[str, str]


def reason_tables(requests: Sequence[Request]) -> list[ReasonTable]:
    """Return the tables, without those that have nothing to say; none if it is not known what prompts were made of."""
    if not any(request.makeup is not None for request in requests):
        return []
    tables = []
    for grouping in REASON_GROUPINGS:
        rows = reasons_by(grouping, requests)
        if {row.name for row in rows} - {REST.get(grouping)}:
            is_cause = grouping == "cause"
            shown = leading_reasons(rows, CAUSES_MAX if is_cause else ROWS_MAX)
            advice = {row.name: words for row in shown if is_cause and (words := advice_of(row.name))}
            tables.append(ReasonTable(grouping, HEADS[grouping], shown, advice))
    return tables
