"""What was at hand under every policy, and its whole bill (`outcomes.py`), as an SVG: a panel per window."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import NamedTuple

from .replay import Outcome
from .table import Estimate, figures_of, mean_of_sessions

PANEL, GAP, LEFT, TOP, BOTTOM, HEIGHT = 270, 18, 44, 44, 40, 300
LEGEND_ROW, LEGEND_COLUMNS = 18, 3
BILLS = (0.0, 2.2)
AT_HAND = (0.5, 1.05)
OURS, OTHERS = "#14735a", "#c2571a"
OUR_POLICIES = frozenset({"default", "target-90", "extract", "arrivals", "drop-oldest", "sliding-window"})
OVER = 0.005
"""A policy with more of its requests over the window is drawn as a ring: it has not kept to the window, so its F is no comparison."""


class Dot(NamedTuple):
    """A policy in a panel.

    Attributes:
        letter: Its letter in the legend.
        bill: Its whole bill, in parts of that without a window.
        at_hand: The part of requests in which everything that the agent used again was in view.
        is_ours: True for this library's.
        over: Part of its requests that are over the window.
    """

    letter: str
    bill: float
    at_hand: Estimate
    is_ours: bool
    over: float


def plot(outcomes: Sequence[Outcome], labels: Mapping[str, str]) -> str:
    """Return the plot as SVG.

    Args:
        outcomes: The outcomes.
        labels: The policies: their names in the outcomes, and in the legend.
    """
    percents = sorted({outcome.percent for outcome in outcomes})
    width = LEFT + len(percents) * (PANEL + GAP)
    rows = -(-len(labels) // LEGEND_COLUMNS)
    height = TOP + HEIGHT + BOTTOM + LEGEND_ROW * (rows + 2)
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">',
        "<title>Requests with everything at hand that the agent used again, and the bill</title>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
    ]
    for number, percent in enumerate(percents):
        of_window = [outcome for outcome in outcomes if outcome.percent == percent]
        lines += _panel(LEFT + number * (PANEL + GAP), percent, _dots(of_window, labels), has_scale=number == 0)
    lines += _legend(labels, width)
    return "\n".join((*lines, "</svg>", ""))


def _dots(outcomes: Sequence[Outcome], labels: Mapping[str, str]) -> Iterator[Dot]:
    for number, name in enumerate(labels):
        needs = [outcome.needs[name] for outcome in outcomes]
        at_hand = mean_of_sessions([part for need in needs if (part := need.part("at hand")) is not None])
        bill = mean_of_sessions([need.whole_bill for need in needs])
        yield Dot(_letter(number), bill.value, at_hand, name in OUR_POLICIES, figures_of(outcomes, name).over)


def _letter(number: int) -> str:
    return chr(ord("A") + number)


def _panel(left: int, percent: int, dots: Iterator[Dot], *, has_scale: bool) -> Iterator[str]:
    yield f'<text x="{left + PANEL / 2}" y="{TOP - 24}" text-anchor="middle" font-weight="bold">window: {percent} % of the session</text>'
    for tenth in range(6, 12, 2):
        y = _y(tenth / 10)
        shade, dash = ("#333333", ' stroke-dasharray="5 3"') if tenth == 10 else ("#dddddd", "")
        yield f'<line x1="{left}" y1="{y:.1f}" x2="{left + PANEL}" y2="{y:.1f}" stroke="{shade}"{dash}/>'
        if has_scale:
            yield f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{tenth / 10:.1f}</text>'
    yield f'<text x="{left + 4}" y="{_y(1) - 5:.1f}" fill="#333333">the whole session in view</text>'
    for half in range(5):
        x = _x(left, half / 2)
        yield f'<line x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{TOP + HEIGHT}" stroke="#dddddd"/>'
        yield f'<text x="{x:.1f}" y="{TOP + HEIGHT + 16}" text-anchor="middle">{half / 2:.1f}</text>'
    yield f'<text x="{left + PANEL / 2}" y="{TOP + HEIGHT + 32}" text-anchor="middle">whole bill, in parts of that without a window</text>'
    if has_scale:
        yield f'<text x="{left}" y="{TOP - 8}">requests with everything at hand</text>'
    for dot in reversed(list(dots)):  # the first of the legend on top
        yield from _dot(left, dot)


def _dot(left: int, dot: Dot) -> Iterator[str]:
    x, y = _x(left, dot.bill), _y(dot.at_hand.value)
    colour = OURS if dot.is_ours else OTHERS
    fill = "#ffffff" if dot.over > OVER else colour
    bar = f'x1="{x:.1f}" y1="{_y(dot.at_hand.low):.1f}" x2="{x:.1f}" y2="{_y(dot.at_hand.high):.1f}"'
    yield f'<line {bar} stroke="{colour}" stroke-opacity="0.35"/>'
    yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="8" fill="{fill}" stroke="{colour}" fill-opacity="0.85"/>'
    text = colour if dot.over > OVER else "#ffffff"
    yield f'<text x="{x:.1f}" y="{y + 4:.1f}" text-anchor="middle" fill="{text}" font-size="11">{dot.letter}</text>'


def _legend(labels: Mapping[str, str], width: int) -> Iterator[str]:
    top = TOP + HEIGHT + BOTTOM + LEGEND_ROW
    for number, (name, label) in enumerate(labels.items()):
        x = LEFT + number % LEGEND_COLUMNS * ((width - LEFT) // LEGEND_COLUMNS)
        y = top + number // LEGEND_COLUMNS * LEGEND_ROW
        text = f'<tspan font-weight="bold">{_letter(number)}</tspan> {escape(label.replace("`", ""))}'
        yield f'<text x="{x}" y="{y}" fill="{OURS if name in OUR_POLICIES else OTHERS}">{text}</text>'
    y = top + -(-len(labels) // LEGEND_COLUMNS) * LEGEND_ROW
    note = "Green: this library. Rings: some requests are larger than the window. Bars: 95 %, by session."
    yield f'<text x="{LEFT}" y="{y}" fill="#666666">{note}</text>'


def _x(left: int, bill: float) -> float:
    return left + PANEL * _between(bill, *BILLS)


def _y(part: float) -> float:
    return TOP + HEIGHT * (1 - _between(part, *AT_HAND))


def _between(value: float, low: float, high: float) -> float:
    return min(1.0, max(0.0, (value - low) / (high - low)))
