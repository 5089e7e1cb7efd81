"""`Shapes`: a chart's bands, points and marks in the coordinates of its picture."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from itertools import accumulate, pairwise
from math import ceil, floor, log10

from .chart import DOLLARS, Chart, ChartPoint, MarkerShape

WIDTH, HEIGHT = 600, 240
"""Size of the picture in its own units. The page stretches it."""
HEADROOM = 24
"""Units above the highest amount, for markers."""
STEPS_MAX = 5
"""Most steps of the vertical axis."""
TICKS_MAX = 8
"""Most names below the horizontal axis."""
ROOM, ROOM_NARROW = 0.11, 0.24
"""What such a name takes of the width at most: on most screens, and on a telephone."""
EDGE = 0.06
"""Part of the width at either end in which a name is not centred, since it would leave the picture."""
SLOTS = 12
"""Fewest points that the width is divided among: a few points leave the right side empty."""
_SUFFIXES = ((1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k"))


@dataclass(frozen=True, slots=True)
class Band:
    """One band.

    Attributes:
        name: Its name.
        style: The number of its colour and pattern.
        path: Its outline, as a path of SVG.
    """

    name: str
    style: int
    path: str


@dataclass(frozen=True, slots=True)
class Tick:
    """A name below the horizontal axis.

    Attributes:
        x: The middle of its point, in percent of the width.
        text: The name.
        anchor: The part of the name that stands there: `start`, `middle` or `end`.
        is_minor: True if there is no room for it on a telephone.
    """

    x: str
    text: str
    anchor: str
    is_minor: bool


@dataclass(frozen=True, slots=True)
class PlacedPoint:
    """One point.

    Attributes:
        x: Its left edge.
        width: Its width.
        text: Its label, amounts and markers as a sentence.
        markers: The shapes at it.
        middle: The middle between its edges.
    """

    x: str
    width: str
    text: str
    markers: tuple[MarkerShape, ...]
    middle: str


class Shapes:
    """The shapes of a chart."""

    def __init__(self, chart: Chart) -> None:
        """
        Args:
            chart: The chart.
        """
        self.chart = chart
        self.totals = [sum(point.amounts) for point in chart.points]
        highest = max((*self.totals, chart.limit or 0))
        self.step = _step(highest)
        self.steps = max(1, ceil(highest / self.step))
        self._width = WIDTH / max(SLOTS, len(chart.points))

    @property
    def bands(self) -> list[Band]:
        """The bands that have an amount at any point, the lowest first."""
        floors = [(0.0, *accumulate(point.amounts)) for point in self.chart.points]
        used = [index for index in range(len(self.chart.bands)) if any(point.amounts[index] for point in self.chart.points)]
        return [
            Band(self.chart.bands[index], self.chart.first_band + index, self._outline([(row[index], row[index + 1]) for row in floors]))
            for index in used
        ]

    @property
    def points(self) -> Iterator[PlacedPoint]:
        """The points, from left to right."""
        edges = [_number(index * self._width) for index in range(len(self.chart.points) + 1)]
        for index, ((x, _), point) in enumerate(zip(pairwise(edges), self.chart.points, strict=True)):
            kinds = tuple(dict.fromkeys(marker.kind for marker in point.markers))
            yield PlacedPoint(x, _number(self._width), self._text(point), kinds, _number((index + 0.5) * self._width))

    @property
    def lines(self) -> list[str]:
        """Heights of the lines of the vertical axis, from the top."""
        return [self.height(self.step * number) for number in range(self.steps, -1, -1)]

    @property
    def axis(self) -> list[str]:
        """Labels of these lines."""
        name = money_mark if self.chart.unit == DOLLARS else short_amount
        return [name(self.step * number) for number in range(self.steps, -1, -1)]

    @property
    def ticks(self) -> list[Tick]:
        """The names below the horizontal axis. One that would touch the one before it is left out."""
        placed: list[Tick] = []
        free = free_narrow = 0.0  # where the last name ends
        for index, point in enumerate(self.chart.points):
            x = (index + 0.5) * self._width / WIDTH
            anchor = "start" if x < EDGE else "end" if x > 1 - EDGE else "middle"
            left, right = {"start": (0.0, 1.0), "middle": (0.5, 0.5), "end": (1.0, 0.0)}[anchor]
            if point.tick and x - left * ROOM >= free:
                is_minor = x - left * ROOM_NARROW < free_narrow
                free, free_narrow = x + right * ROOM, free_narrow if is_minor else x + right * ROOM_NARROW
                placed.append(Tick(_number(100 * x), point.tick, anchor, is_minor))
        return placed

    @property
    def marker_kinds(self) -> list[tuple[MarkerShape, str]]:
        """The shapes that occur, with their names."""
        used = {marker.kind for point in self.chart.points for marker in point.markers}
        return [(kind, name) for kind, name in self.chart.marker_names if kind in used]

    @property
    def description(self) -> str:
        """The chart in a sentence or two, for those who do not see it."""
        if not self.chart.points:
            return "No points yet."
        marks = sum(len(point.markers) for point in self.chart.points)
        ends = f"from {amount_text(self.totals[0])} at {self.chart.points[0].label} to {amount_text(self.totals[-1])}"
        text = f"{len(self.chart.points):,} {self.chart.point_name}s, {ends} {self.chart.unit} at {self.chart.points[-1].label}."
        text += f" The most is {amount_text(max(self.totals))}."
        return text + (f" {marks:,} markers." if marks else "")

    @property
    def fills_width(self) -> bool:
        """True if the last point stands at the right edge."""
        return len(self.chart.points) >= SLOTS

    @property
    def last_text(self) -> str:
        """The newest point as a sentence."""
        return self._text(self.chart.points[-1])

    @property
    def rows(self) -> Iterator[tuple[str, list[str], str]]:
        """The rows of the table: the label, the amounts with their sum, and the markers."""
        for point, total in zip(self.chart.points, self.totals, strict=True):
            yield point.label, [*map(amount_text, point.amounts), amount_text(total)], "; ".join(marker.text for marker in point.markers)

    def height(self, amount: float) -> str:
        """Return the vertical coordinate of an amount."""
        return _number(HEIGHT - (HEIGHT - HEADROOM) * amount / (self.step * self.steps))

    def _outline(self, spans: list[tuple[float, float]]) -> str:
        """Return the path along the upper edges of a band and back along its lower ones. Each point has a step of its own."""
        forth = [f"V{self.height(upper)}H{_number((index + 1) * self._width)}" for index, (_, upper) in enumerate(spans)]
        back = [f"V{self.height(spans[index][0])}H{_number(index * self._width)}" for index in range(len(spans) - 1, -1, -1)]
        return f"M0 {HEIGHT}{''.join(forth)}{''.join(back)}Z"

    def _text(self, point: ChartPoint) -> str:
        named = zip(self.chart.bands, point.amounts, strict=True)
        amounts = [f"{name} {amount_text(amount)}" for name, amount in reversed(list(named)) if amount]
        sentences = [f"{point.label}: {amount_text(sum(point.amounts))} {self.chart.unit}", ", ".join(amounts)]
        return ". ".join(text for text in (*sentences, *(marker.text for marker in point.markers)) if text)


def amount_text(amount: float) -> str:
    """Return an amount with separators, and without decimals it does not need."""
    return f"{int(amount):,}" if amount == int(amount) else f"{amount:,.2f}"


def money_text(amount: Decimal) -> str:
    """Return an amount in US dollars. One below a dollar has four decimals."""
    return f"${amount:,.2f}" if amount >= 1 else f"${amount:.4f}"


def short_amount(amount: float) -> str:
    """Return an amount of an axis in few characters: 120k."""
    for size, suffix in _SUFFIXES:
        if amount >= size:
            return f"{amount / size:g}{suffix}"
    return f"{amount:g}"


def money_mark(amount: float) -> str:
    """Return US dollars as an axis shows them: $1,500, $0.25, $0.0025."""
    text = f"{amount:,.6f}".rstrip("0").rstrip(".")
    whole, _, decimals = text.partition(".")
    return f"${whole}.{decimals:0<2}" if decimals else f"${whole}"


def round_step(count: int) -> int:
    """Return how many of `count` points lie between two names of the axis: 1, 2 or 5 times a power of ten."""
    step = 1
    while count > TICKS_MAX * step:
        step = step * 5 // 2 if str(step)[0] == "2" else 2 * step
    return step


def _step(highest: float) -> float:
    """Return the round amount between two lines, so that at most `STEPS_MAX` steps reach the highest amount."""
    if highest <= 0:
        return 1
    power = 10.0 ** floor(log10(highest / STEPS_MAX))
    return next(factor * power for factor in (1, 2, 2.5, 5, 10, 20) if ceil(highest / (factor * power)) <= STEPS_MAX)


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
