"""The scatter plot of both accuracy benchmarks, as SVG: tokens on a logarithmic x axis, percent on the y axis."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import log10
from typing import NamedTuple
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 720, 420
LEFT, RIGHT, TOP, BOTTOM = 60, 36, 56, 48
COLOURS = {"Claude": "#c2571a", "OpenAI": "#14735a", "Gemini": "#2a5bd7", "other": "#777777"}


class Dot(NamedTuple):
    """One record: reported tokens, error in percent, the maker of the model, and True if no constant was fitted on it."""

    tokens: int
    percent: float
    provider: str
    held_out: bool


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart without its dots. Dots beyond an edge are drawn on it.

    Attributes:
        title: Title of the drawing.
        caption: Label of the y axis.
        lowest: Percent at the lower edge.
        highest: Percent at the upper edge.
        step: Percent between two grid lines.
        decades: Powers of ten at both ends of the x axis, in tokens.
    """

    title: str
    caption: str
    lowest: int
    highest: int
    step: int
    decades: tuple[int, int]

    def svg(self, dots: Iterable[Dot]) -> str:
        """Return the chart with these dots as SVG. Held-out dots are filled and on top; the others are rings."""
        sorted_dots = sorted(dots, key=lambda dot: dot.held_out)
        providers = [provider for provider in COLOURS if any(dot.provider == provider for dot in sorted_dots)]
        return "\n".join((*self._axes(), *_legend(providers), *map(self._dot, sorted_dots), "</svg>", ""))

    def _axes(self) -> Iterator[str]:
        yield (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" '
            'font-family="sans-serif" font-size="12">'
        )
        yield f"<title>{escape(self.title)}</title>"
        yield f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>'
        for percent in range(self.lowest, self.highest + 1, self.step):
            y = self._y(percent)
            shade = "#666666" if percent == 0 else "#dddddd"
            yield f'<line x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}" stroke="{shade}"/>'
            yield f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{percent:+d}%</text>'
        for decade in range(self.decades[0], self.decades[1] + 1):
            x = self._x(10**decade)
            yield f'<line x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{HEIGHT - BOTTOM}" stroke="#dddddd"/>'
            yield f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{10**decade:,}</text>'
        yield f'<text x="{(LEFT + WIDTH - RIGHT) / 2:.1f}" y="{HEIGHT - 10}" text-anchor="middle">tokens the provider reported</text>'
        yield f'<text x="{LEFT}" y="18">{escape(self.caption)}</text>'

    def _dot(self, dot: Dot) -> str:
        colour = COLOURS[dot.provider]
        fill = f'fill="{colour}" fill-opacity="0.7"' if dot.held_out else 'fill="none"'
        return f'<circle cx="{self._x(dot.tokens):.1f}" cy="{self._y(dot.percent):.1f}" r="3" {fill} stroke="{colour}"/>'

    def _x(self, tokens: int) -> float:
        """Pixels from the left."""
        first, last = self.decades
        return LEFT + (WIDTH - RIGHT - LEFT) * (min(max(log10(tokens), first), last) - first) / (last - first)

    def _y(self, percent: float) -> float:
        """Pixels from the top."""
        return TOP + (HEIGHT - BOTTOM - TOP) * (self.highest - min(max(percent, self.lowest), self.highest)) / (self.highest - self.lowest)


def _legend(providers: Iterable[str]) -> Iterator[str]:
    x = LEFT + 6
    for provider in providers:
        yield f'<circle cx="{x}" cy="36" r="4" fill="{COLOURS[provider]}"/><text x="{x + 9}" y="40">{escape(provider)}</text>'
        x += 90
    yield f'<text x="{x + 14}" y="40">filled: held out; rings: fitted on</text>'
