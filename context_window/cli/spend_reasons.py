"""`context-window spend --by cause` and its like: the money of all sessions, divided among what it paid for."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING

from .output import say, say_values, show
from .spend_tables import about, csv_of, repeats

if TYPE_CHECKING:
    from session.transcripts.reported_requests import Request

    from ..spend import Ledger
    from ..spend.tables import Filter


def show_reasons(
    grouping: str,
    requests: Sequence[Request],
    ledger: Ledger,
    passes: Filter,
    notes: Sequence[str],
    *,
    sort: str | None,
    top: int | None,
    as_json: bool,
    as_csv: bool,
) -> None:
    """Show the rows of a grouping of `REASONS`.

    Args:
        grouping: The grouping.
        requests: The requests that passed the filters.
        ledger: All that was read.
        passes: The filter.
        notes: Sentences on what is shown.
        sort: `cost`, `requests` or `name`; None for the dearest first.
        top: Rows to show; None for all.
        as_json: True to print one JSON object.
        as_csv: True to print the rows as CSV.
    """
    from ..display.reasons import reason_lines
    from ..spend.reasons import ReasonRow, leading_reasons, reasons_by
    from ..spend.tables import price_notes, sum_of

    rows = reasons_by(grouping, requests)
    if sort == "name":
        rows.sort(key=lambda row: row.name)
    elif sort == "requests":
        rows.sort(key=lambda row: -row.requests)
    rows = leading_reasons(rows, top)
    total = sum_of("total", requests)
    if as_json:
        names = ("name", "requests", "cost_usd", "unpriced_requests", "disputed_requests", "disputed_usd")
        sums = {name: value for name, value in total.to_dict().items() if name in names}
        say_values({"by": grouping, "rows": [row.to_dict() for row in rows], "total": sums, **about(ledger, passes)})
    elif as_csv:
        say(csv_of([row.to_dict() for row in rows], ReasonRow("", 0, Decimal(0), 0.0).to_dict()))
    elif ledger.logs:
        footnotes = [*notes, *price_notes(requests), *repeats(ledger)]
        show(lambda width, glyphs: reason_lines(grouping, rows, total, footnotes, width, glyphs))
