"""A timeline as lines: a stacked column per request, its markers, and the largest jumps. Layout only."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from itertools import accumulate, groupby, pairwise

from ..timeline.points import MarkerKind, Point, Timeline
from .glyphs import BAD, OVERHEAD, QUIET, STRONG, STYLES, Glyphs
from .lines import Column, Line, Span, flow, paragraphs, table, width_of
from .spend import CENT
from .usage import heading

WIDEST = 120
"""Maximum width in columns."""
NARROWEST = 30
"""Columns below which there is no chart."""
HEIGHT = 12
"""Rows of the chart."""
COLUMN = 4
"""Most columns of the screen that a request takes."""
JUMPS = 5
"""Requests in the table of the largest jumps."""
MARKERS_LISTED = 8
"""Markers in the table of markers."""
SIGNS = {MarkerKind.COMPACTION: "C", MarkerKind.TRIM: "T", MarkerKind.CACHE_BREAK: "!"}
"""Sign of each marker below the chart. Of several in one column, the first of these is shown."""


def timeline_lines(timeline: Timeline, title: str, footnotes: Sequence[str], width: int, glyphs: Glyphs) -> list[Line]:
    """Return the lines of the timeline, none wider than `width` columns.

    Args:
        timeline: The timeline.
        title: Its title.
        footnotes: Sentences below it.
        width: Columns.
        glyphs: Characters to draw with.
    """
    width = min(width, WIDEST)
    lines = [*heading(title, timeline.model or "", width, glyphs), *flow(_headline(timeline), width, glyphs)]
    if width >= NARROWEST:
        lines += [[], *_chart(timeline, width, glyphs), [], *flow(_legend(timeline, glyphs), width, glyphs)]
    for block in (_jumps(timeline, width, glyphs), _marker_table(timeline, width, glyphs)):
        lines += [[], *block] if block else []
    return [*lines, *([[]] if footnotes else []), *paragraphs(footnotes, width, glyphs)]


def _headline(timeline: Timeline) -> Iterator[Span]:
    requests = len(timeline.points) - 1
    current, peak = timeline.points[-1].total, max(point.total for point in timeline.points)
    yield Span("1 request" if requests == 1 else f"{requests:,} requests", STRONG)
    yield Span(f"{current:,} tokens now")
    if peak > current:
        yield Span(f"{peak:,} at most")
    spent = timeline.spent
    if not spent.requests:
        yield Span("counted: the log reports no usage")
        return
    yield Span(f"{spent.total:,} tokens in all")
    yield Span(f"{spent.cache_read:,} of them read from the cache")
    if spent.known_cost is not None:
        yield Span(f"{cents(spent.known_cost)}{'+' if spent.unpriced else ''} US dollars")


def digits_of(costs: Iterable[Decimal | None]) -> int:
    """Return the digits behind the point of all prices in a column: four if all are below a dollar and some below a cent, else two."""
    sizes = [abs(cost) for cost in costs if cost]
    return 4 if sizes and min(sizes) < CENT and max(sizes) < 1 else 2


def cents(cost: Decimal | None, digits: int | None = None) -> str:
    """Return a price in US dollars, or a word if it is unknown.

    Args:
        cost: The price.
        digits: Digits behind the point, as `digits_of` returns them. Default: two, four below a cent.
    """
    if cost is None:
        return "unknown"
    digits = digits_of([cost]) if digits is None else digits
    return "<0.01" if digits == 2 and 0 < cost < CENT else f"{cost:,.{digits}f}"


def cents_of(costs: Iterable[Decimal | None]) -> list[str]:
    """Return the prices of a column, with as many digits each."""
    costs = list(costs)
    return [cents(cost, digits_of(costs)) for cost in costs]


# The chart


def _chart(timeline: Timeline, width: int, glyphs: Glyphs) -> list[Line]:
    """Return the rows of the chart: the amounts at the left, a stack per request, signs of markers and numbers of requests below."""
    highest = max(1, *(point.total for point in timeline.points))
    labels = {row: _short(highest * (row + 1) // HEIGHT) for row in (HEIGHT - 1, HEIGHT // 2 - 1)}
    margin = max(map(width_of, labels.values())) + 1
    groups = _columns(timeline.points, width - margin - 1)
    stacks = [_stack(max(group, key=lambda point: point.total), highest) for group, _ in groups]
    widths = [columns for _, columns in groups]
    lines: list[Line] = []
    for row in reversed(range(HEIGHT)):
        cells = [(stack[row] if row < len(stack) else "", columns) for stack, columns in zip(stacks, widths, strict=True)]
        label = Span(f"{labels.get(row, ''):>{margin - 1}} ", QUIET)
        lines.append([label, Span(glyphs.mark, QUIET), *_runs(cells, glyphs)])
    signs = [(_sign(group), columns) for group, columns in groups]
    if any(sign for sign, _ in signs):
        lines.append([Span(" " * (margin + 1)), Span("".join(f"{sign:<{columns}}" for sign, columns in signs), BAD)])
    numbers = _numbers(timeline, sum(widths))
    return [*lines, [Span(" " * (margin + 1)), Span(numbers, QUIET)]]


def _columns(points: Sequence[Point], width: int) -> list[tuple[Sequence[Point], int]]:
    """Return the points of each column of the chart, and how wide it is drawn: of many requests, a column shows the largest."""
    if len(points) <= width:
        return [([point], min(COLUMN, width // len(points))) for point in points]
    bounds = [column * len(points) // width for column in range(width + 1)]
    return [(points[start:end], 1) for start, end in pairwise(bounds)]


def _stack(point: Point, highest: int) -> list[str]:
    """Return the names of a column's cells from the bottom up: what a prompt begins with lies at the bottom.

    A cell shows the largest category in its part of the prompt, so categories much smaller than a cell may be in none.
    """
    names, amounts = zip(*_amounts(point), strict=True)
    spans = list(pairwise((0, *accumulate(amounts))))
    cells = -(-point.total * HEIGHT // highest)
    bounds = [min(cell * highest / HEIGHT, point.total) for cell in range(cells + 1)]
    shares = [[min(high, end) - max(low, start) for start, end in spans] for low, high in pairwise(bounds)]
    return [names[share.index(max(share))] for share in shares]


def _runs(cells: Sequence[tuple[str, int]], glyphs: Glyphs) -> Line:
    """Return a row of cells, with one span for neighbours of the same category."""
    return [
        Span((glyphs.cells[name] if name else " ") * sum(columns for _, columns in run), STYLES.get(name, ""))
        for name, run in groupby(cells, key=lambda cell: cell[0])
    ]


def _sign(points: Sequence[Point]) -> str:
    kinds = {marker.kind for point in points for marker in point.markers}
    return next((sign for kind, sign in SIGNS.items() if kind in kinds), "")


def _numbers(timeline: Timeline, width: int) -> str:
    """Return the numbers of the first and the last column."""
    last = f"{len(timeline.points):,}"
    return f"1{last:>{width - 1}}" if width > len(last) + 1 else last[:width]


def _short(tokens: int) -> str:
    """Return a round number of tokens for the axis."""
    if tokens < 1_000:
        return str(tokens)
    return f"{tokens / 1_000:.1f}k" if tokens < 10_000 else f"{tokens // 1_000:,}k"


def _legend(timeline: Timeline, glyphs: Glyphs) -> Iterator[Span]:
    names = [OVERHEAD, *(category.value for category in timeline.points[-1].by_category)]
    used = {name for point in timeline.points for name, tokens in _amounts(point) if tokens}
    yield from (Span(f"{glyphs.cells[name]} {name}", STYLES[name]) for name in names if name in used)
    kinds = {marker.kind for point in timeline.points for marker in point.markers}
    yield from (Span(f"{sign} {kind.value}", BAD) for kind, sign in SIGNS.items() if kind in kinds)


def _amounts(point: Point) -> list[tuple[str, int]]:
    return [(OVERHEAD, point.overhead), *((category.value, tokens) for category, tokens in point.by_category.items())]


# The tables


def _jumps(timeline: Timeline, width: int, glyphs: Glyphs) -> list[Line]:
    """Return the requests whose prompt grew most."""
    growth = [(point.total - before.total, point) for before, point in pairwise(timeline.points)]
    largest = sorted((jump for jump in growth if jump[0] > 0), key=lambda jump: (-jump[0], jump[1].number))[:JUMPS]
    if not largest:
        return []
    jumps = [point for _, point in largest]
    columns = [
        Column("Largest jumps", [Span(_name(point)) for point in jumps], is_left=True, is_elastic=True, is_last_resort=True),
        Column("tokens", [Span(f"+{tokens:,}") for tokens, _ in largest]),
        Column("to", [Span(f"{point.total:,}") for point in jumps], priority=2),
        Column("largest new item", [Span(glyphs.safe(point.added)) for point in jumps], is_left=True, is_elastic=True, priority=3),
        Column("its tokens", [Span(f"{point.added_tokens:,}" if point.added else "") for point in jumps], priority=1),
    ]
    return table(columns, width, glyphs)


def _marker_table(timeline: Timeline, width: int, glyphs: Glyphs) -> list[Line]:
    """Return the markers with the most tokens, in the order of the requests."""
    markers = [(point, marker) for point in timeline.points for marker in point.markers]
    if not markers:
        return []
    listed = sorted(sorted(markers, key=lambda row: -row[1].tokens)[:MARKERS_LISTED], key=lambda row: row[0].number)
    columns = [
        Column("Markers", [Span(_name(point)) for point, _ in listed], is_left=True),
        Column("", [Span(marker.kind.value, BAD) for _, marker in listed], is_left=True, is_elastic=True, is_last_resort=True, priority=3),
        Column("tokens", [Span(f"{marker.tokens:,}") for _, marker in listed]),
        Column(
            "US dollars", [Span("" if cost == "unknown" else cost) for cost in cents_of(marker.cost for _, marker in listed)], priority=1
        ),
        Column("cause", [Span(glyphs.safe(marker.cause)) for _, marker in listed], is_left=True, is_elastic=True, priority=2),
    ]
    omitted = len(markers) - len(listed)
    footer = [f"{glyphs.ellipsis} and {omitted:,} smaller ones"] if omitted else []
    return [*table(columns, width, glyphs), *paragraphs(footer, width, glyphs)]


def _name(point: Point) -> str:
    return "next request" if point.is_next else f"request {point.number:,}"


def timeline_draw(timeline: Timeline, title: str, footnotes: Sequence[str] = ()) -> Callable[[int, Glyphs], list[Line]]:
    """Return a function that draws the timeline."""
    return lambda width, glyphs: timeline_lines(timeline, title, footnotes, width, glyphs)
