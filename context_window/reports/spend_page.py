"""The report on many sessions: tokens and money over time, why, and by model, project, tool and session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from pathlib import Path

from session.transcripts.reported_requests import Request

from ..display.spend import money
from ..pages import DOLLARS, Chart, ChartPoint, HtmlPage, document
from ..pages.templates import filled
from ..spend.ledger import LogFault
from ..spend.tables import SpendRow, leading, local_day, price_notes, spend_by, sum_of
from .billed import BILLED_BANDS, billed
from .periods import period_for, period_names, period_ticks
from .reasons import reason_tables
from .tree import ID_LENGTH, Link, SessionKey, session_tree

FOLDER = Path(__file__).parent
GROUPINGS = ("model", "project", "tool")
ROWS_MAX = 50
"""Rows of a table. The last one sums up the rest."""
MODELS_MAX = 7
"""Models with a band of their own in the chart of money. One more band is for the others."""
OTHERS = "other models"
TITLE = "Tokens and money"


@dataclass(frozen=True, slots=True)
class Table:
    """A table of sums.

    Attributes:
        name: What a row sums up.
        rows: The rows.
    """

    name: str
    rows: Sequence[SpendRow]


def spend_page(
    requests: Sequence[Request],
    *,
    zone: tzinfo | None = None,
    repeated: int = 0,
    faults: Sequence[LogFault] = (),
    titles: Mapping[SessionKey, str] | None = None,
    pages: Mapping[SessionKey, Sequence[Link]] | None = None,
) -> HtmlPage:
    """Return the report on these requests. Its figures are those of `context-window spend`.

    Args:
        requests: The requests. The page says why they cost what they did if they have their makeup.
        zone: The time zone of days. Default: the machine's.
        repeated: Reports that were left out since another log has the same request.
        faults: Logs that could not be read in full.
        titles: As for `session_tree`.
        pages: As for `session_tree`.
    """
    days = [day for request in requests if (day := local_day(request, zone=zone)) is not None]
    period, names = period_for(days), period_names(days)
    by_period = spend_by(period, requests, zone=zone)
    tables = [Table(name, leading(sorted(spend_by(name, requests), key=_by_cost), ROWS_MAX)) for name in GROUPINGS]
    body = filled(
        "spend.html",
        FOLDER,
        title=TITLE,
        total=sum_of("total", requests),
        sessions=len({request.session for request in requests}),
        first=min(days).isoformat() if days else "",
        last=max(days).isoformat() if days else "",
        zone="the local time zone" if zone is None else str(zone),
        charts=[
            chart for chart in (_money_chart(requests, period, names, zone=zone), _token_chart(by_period, period, names)) if chart.points
        ],
        reasons=reason_tables(requests),
        tree=session_tree(requests, zone=zone, titles=titles, pages=pages),
        id_length=ID_LENGTH,
        tables=[*tables, Table(period, leading(by_period[::-1], ROWS_MAX))],
        notes=price_notes(requests),
        repeated=repeated,
        faults=faults,
        money=money,
    )
    return document(TITLE, body)


def _by_cost(row: SpendRow) -> tuple[object, ...]:
    return -row.cost, -row.total, row.name


def _money_chart(requests: Sequence[Request], period: str, names: Sequence[str], *, zone: tzinfo | None) -> Chart:
    """Return the chart of dollars by period, stacked by model. It has no points if no price is known."""
    models = sorted(spend_by("model", requests), key=_by_cost)
    named_models = [row.name for row in models if row.cost][:MODELS_MAX]
    costs: dict[tuple[str, str], float] = {}
    for model in models:
        band = model.name if model.name in named_models else OTHERS
        model_requests = [request for request in requests if (request.model or "(unknown)") == model.name]
        for row in spend_by(period, model_requests, zone=zone):
            costs[row.name, band] = costs.get((row.name, band), 0.0) + float(row.cost)
    bands = (*named_models, OTHERS) if any(band == OTHERS and cost for (_, band), cost in costs.items()) else tuple(named_models)
    ticks = zip(names if named_models else (), period_ticks(period, names), strict=False)
    points = [ChartPoint(name, tuple(costs.get((name, band), 0.0) for band in bands), tick=tick) for name, tick in ticks]
    return Chart("money", f"Money by {period}", bands or ("",), points, unit=DOLLARS, point_name=period)


def _token_chart(rows: Sequence[SpendRow], period: str, names: Sequence[str]) -> Chart:
    """Return the chart of tokens by period, stacked by their price."""
    by_name = {row.name: row for row in rows}
    empty = SpendRow("")
    ticks = zip(names, period_ticks(period, names), strict=True)
    points = [ChartPoint(name, billed(by_name.get(name, empty)), tick=tick) for name, tick in ticks]
    return Chart("tokens", f"Tokens by {period}", BILLED_BANDS, points, point_name=period)
