"""The errors of `token_accuracy.py` as a drawing: one dot a request, how long it is against how far off its count was."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import log10
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

if TYPE_CHECKING:
    from token_accuracy import Record

WIDTH, HEIGHT = 720, 420
LEFT, RIGHT, TOP, BOTTOM = 60, 16, 56, 48
MOST = 50
"""Percent at the upper and lower edge; what is further off lies on the edge."""
DECADES = (1, 5)
"""The horizontal axis goes from 10 to 100,000 tokens; what is shorter or longer lies on its ends."""
COLOURS = {"Claude": "#c2571a", "OpenAI": "#14735a", "Gemini": "#2a5bd7"}


def plot(records: Sequence[Record]) -> str:
    """The drawing as SVG: held-out requests are filled dots, the others rings."""
    return "\n".join((*_axes(), *_legend(), *map(_dot, sorted(records, key=lambda record: record.held_out)), "</svg>", ""))


def _axes() -> Iterator[str]:
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="sans-serif" font-size="12">'
    )
    yield "<title>Estimated against reported tokens of whole requests</title>"
    yield f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>'
    for percent in range(-MOST, MOST + 1, 25):
        height = _down(percent)
        shade = "#666666" if percent == 0 else "#dddddd"
        yield f'<line x1="{LEFT}" y1="{height:.1f}" x2="{WIDTH - RIGHT}" y2="{height:.1f}" stroke="{shade}"/>'
        yield f'<text x="{LEFT - 6}" y="{height + 4:.1f}" text-anchor="end">{percent:+d}%</text>'
    for decade in range(DECADES[0], DECADES[1] + 1):
        across = _across(10**decade)
        yield f'<line x1="{across:.1f}" y1="{TOP}" x2="{across:.1f}" y2="{HEIGHT - BOTTOM}" stroke="#dddddd"/>'
        yield f'<text x="{across:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{10**decade:,}</text>'
    yield f'<text x="{(LEFT + WIDTH - RIGHT) / 2:.1f}" y="{HEIGHT - 10}" text-anchor="middle">tokens the provider reported</text>'
    yield f'<text x="{LEFT}" y="18">Estimate less report, percent of the report</text>'


def _legend() -> Iterator[str]:
    for number, (provider, colour) in enumerate(COLOURS.items()):
        across = LEFT + 6 + 90 * number
        yield f'<circle cx="{across}" cy="36" r="4" fill="{colour}"/><text x="{across + 9}" y="40">{escape(provider)}</text>'
    yield f'<text x="{LEFT + 290}" y="40">filled: held out; rings: fitted on</text>'


def _dot(record: Record) -> str:
    colour = COLOURS[record.provider]
    fill = f'fill="{colour}" fill-opacity="0.7"' if record.held_out else 'fill="none"'
    percent = 100 * (record.estimated - record.reported) / record.reported
    return f'<circle cx="{_across(record.reported):.1f}" cy="{_down(percent):.1f}" r="3" {fill} stroke="{colour}"/>'


def _across(tokens: int) -> float:
    """Pixels from the left."""
    first, last = DECADES
    return LEFT + (WIDTH - RIGHT - LEFT) * (min(max(log10(tokens), first), last) - first) / (last - first)


def _down(percent: float) -> float:
    """Pixels from the top."""
    return TOP + (HEIGHT - BOTTOM - TOP) * (MOST - min(max(percent, -MOST), MOST)) / (2 * MOST)
