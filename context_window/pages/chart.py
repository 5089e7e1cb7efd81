"""`Chart`: amounts over a row of points, stacked by band. Plain data, which `chart_markup` draws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

MarkerShape: TypeAlias = Literal["trim", "compaction", "break"]
"""The shapes of markers: a triangle, a diamond, a cross."""
DOLLARS = "US dollars"
"""The unit of a chart of money. Its axis has a dollar sign."""
BANDS_MAX = 8
"""Bands that have a colour and a pattern of their own."""


@dataclass(frozen=True, slots=True)
class ChartMarker:
    """Something that happened at a point.

    Attributes:
        kind: Its shape.
        text: A short description for readers of the point: "trimmed 4 outputs, 12,000 tokens".
    """

    kind: MarkerShape
    text: str


@dataclass(frozen=True, slots=True)
class ChartPoint:
    """One step of a chart, such as a request.

    Attributes:
        label: Its name: "request 12, 14:03".
        amounts: Its amounts by band, in the order of the chart's bands. None of them is negative.
        markers: Events at it.
        tick: Its name below the axis, of a few characters; empty if the axis leaves it out.
    """

    label: str
    amounts: tuple[float, ...]
    markers: tuple[ChartMarker, ...] = ()
    tick: str = ""


@dataclass(frozen=True, slots=True)
class Chart:
    """Amounts over points, stacked by band.

        Chart("window", "The window", ("System", "Dialog"), (ChartPoint("request 1", (900, 40)), ChartPoint("request 2", (900, 80))))

    Attributes:
        id: Begins the ids of its elements. Unique in the page; letters, digits and hyphens.
        title: Its title, shown above it.
        bands: Names of the bands, the lowest first; at most `BANDS_MAX`. A band's colour depends on its index, so charts of one page can
            agree. One without amounts is left out of the legend.
        points: The points, the oldest first.
        unit: The unit of the amounts, as a plural.
        point_name: A word for a point, as a singular.
        limit: An amount that is drawn as a line, such as the budget; None for none.
        limit_name: The name of that line.
        first_band: The index of the first band's colour: charts of different amounts then look different.
        marker_names: What each shape stands for, for the legend.
    """

    id: str
    title: str
    bands: tuple[str, ...]
    points: Sequence[ChartPoint]
    unit: str = "tokens"
    point_name: str = "request"
    limit: float | None = None
    limit_name: str = "limit"
    first_band: int = 0
    marker_names: tuple[tuple[MarkerShape, str], ...] = (("trim", "trim"), ("compaction", "compaction"), ("break", "cache break"))

    def __post_init__(self) -> None:
        if self.first_band + len(self.bands) > BANDS_MAX:
            raise ValueError(f"a chart has at most {BANDS_MAX} bands, not {self.first_band + len(self.bands)}")
        if any(len(point.amounts) != len(self.bands) for point in self.points):
            raise ValueError(f"each point has an amount for each of the {len(self.bands)} bands")
