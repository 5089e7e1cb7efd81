"""The report on one session: the window at each request, what the requests cost and why, and where the cache broke."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import tzinfo
from pathlib import Path

from session.items import Item
from session.transcripts.reported_requests import Request
from session.units import PRIORITY

from .. import pages
from ..display.spend import money
from ..pages import Chart, HtmlPage, document
from ..pages.chart import MarkerShape
from ..pages.shapes import round_step
from ..pages.templates import filled
from ..spend.names import local_time
from ..spend.tables import sum_of
from ..timeline import MarkerKind, Point, Timeline
from .billed import BILLED_BANDS, billed
from .names import item_names
from .reasons import reason_tables

FOLDER = Path(__file__).parent
ROWS_MAX = 20
"""Rows of the tables of largest items and of cache breaks."""
NEAR = 2
"""A budget above so many times the largest prompt is not drawn."""
WINDOW_BANDS = (*(category.value for category in PRIORITY), "overhead")
SHAPES: dict[MarkerKind, MarkerShape] = {
    MarkerKind.TRIM: "trim",
    MarkerKind.COMPACTION: "compaction",
    MarkerKind.CACHE_BREAK: "break",
}
"""The shape of each kind of marker."""


def session_page(
    timeline: Timeline,
    *,
    title: str,
    source: str = "",
    items: Sequence[Item] = (),
    explained: Sequence[Request] = (),
    back: str = "",
    zone: tzinfo | None = None,
) -> HtmlPage:
    """Return the report on a session. Its figures are those of `context-window timeline`.

    Args:
        timeline: The session's timeline.
        title: Title of the page, such as the log's name.
        source: The log's name, if that is not the title.
        items: The session's items. Default: the page has no table of requests with their largest items.
        explained: The session's requests with their makeup. Default: the page does not say why they cost what they did.
        back: The address of the page of all sessions. Default: there is none.
        zone: The time zone. Default: the machine's.
    """
    points = timeline.points
    breaks = [(point, marker) for point in points for marker in point.markers if marker.kind is MarkerKind.CACHE_BREAK]
    breaks.sort(key=lambda pair: (-(pair[1].cost or 0), -pair[1].tokens))
    names = item_names(items)
    added = sorted((point for point in points if point.added_tokens), key=lambda point: -point.added_tokens)
    body = filled(
        "session.html",
        FOLDER,
        title=title,
        timeline=timeline,
        spent=timeline.spent,
        elsewhere=timeline.spent_elsewhere,
        in_log=timeline.spent_in_log,
        largest=max((point.total for point in points), default=0),
        when=_period(timeline, zone),
        counts=[(kind.value, sum(marker.kind is kind for point in points for marker in point.markers)) for kind in MarkerKind],
        charts=[
            chart for chart in (_window_chart(timeline, zone), _billed_chart(timeline, zone), _money_chart(timeline, zone)) if chart.points
        ],
        breaks=breaks[:ROWS_MAX],
        left_out=max(0, len(breaks) - ROWS_MAX),
        added=added[:ROWS_MAX],
        label=lambda point: _name(point, zone),
        source=source,
        back=back,
        names=names,
        reasons=reason_tables(explained),
        money=money,
        price=lambda cost: "unknown" if cost is None else f"{cost:,.4f}",
    )
    return document(title, body)


def _window_chart(timeline: Timeline, zone: tzinfo | None) -> Chart:
    """Return the chart of prompts by category. The budget is drawn if a prompt came near it: else it would flatten all others."""
    points = [
        pages.ChartPoint(_name(point, zone), (*point.tokens, point.overhead), _markers(point), tick)
        for point, tick in _ticked(timeline.points)
    ]
    is_near = NEAR * max((point.total for point in timeline.points), default=0) >= timeline.budget
    limit = timeline.budget if is_near else None
    return Chart("window", "The window at each request", WINDOW_BANDS, points, limit=limit, limit_name="budget")


def _billed_chart(timeline: Timeline, zone: tzinfo | None) -> Chart:
    """Return the chart of billed tokens by their price. It has no points if the log reports none."""
    reported = [point for point in timeline.points if point.request is not None]
    points = [
        pages.ChartPoint(_name(point, zone), billed(sum_of("", [point.request] if point.request else [])), tick=tick)
        for point, tick in _ticked(reported)
    ]
    return Chart("billed", "Billed tokens of each request", BILLED_BANDS, points)


def _money_chart(timeline: Timeline, zone: tzinfo | None) -> Chart:
    """Return the chart of dollars by request. It has no points if no price is known."""
    priced = [point for point in timeline.points if point.cost is not None]
    points = [pages.ChartPoint(_name(point, zone), (float(point.cost or 0),), tick=tick) for point, tick in _ticked(priced)]
    return Chart("money", "Price of each request", ("price",), points, unit=pages.DOLLARS, first_band=5)


def _ticked(points: Sequence[Point]) -> list[tuple[Point, str]]:
    """Return the points, each with its name below a chart: round numbers of requests, empty texts for those between."""
    step = round_step(len(points))
    return [
        (point, f"request {point.number}" if index == 0 else f"{point.number:,}" if point.number % step == 0 else "")
        for index, point in enumerate(points)
    ]


def _markers(point: Point) -> tuple[pages.ChartMarker, ...]:
    return tuple(
        pages.ChartMarker(
            SHAPES[marker.kind], f"{marker.kind.value}: {marker.tokens:,} tokens" + (f", {marker.cause}" if marker.cause else "")
        )
        for marker in point.markers
    )


def _name(point: Point, zone: tzinfo | None) -> str:
    """Return the name of a request: its number, and its time if that is known."""
    if point.is_next:
        return "the next request"
    time = local_time(point.time, zone)
    return f"request {point.number:,}" + (f", {time:%Y-%m-%d %H:%M}" if time else "")


def _period(timeline: Timeline, zone: tzinfo | None) -> str:
    times = [time for point in timeline.points if (time := local_time(point.time, zone))]
    if not times:
        return ""
    first, last = min(times), max(times)
    return f"{first:%Y-%m-%d %H:%M} to {last:%Y-%m-%d %H:%M}, {zone or 'local time'}"
