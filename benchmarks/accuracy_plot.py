"""What the drawings of both accuracy benchmarks share: a chart of dots, tokens across on a logarithmic scale, percent up."""

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
    """One record: how many tokens, how far off in percent, whose model, and whether constants were kept from it."""

    tokens: int
    percent: float
    provider: str
    held_out: bool


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart without its dots. What is beyond an edge lies on it.

    Attributes:
        title: What is compared.
        caption: What the vertical axis says.
        least: Percent at the lower edge.
        most: Percent at the upper edge.
        step: Percent between two lines.
        decades: The powers of ten, in tokens, between which the horizontal axis goes.
    """

    title: str
    caption: str
    least: int
    most: int
    step: int
    decades: tuple[int, int]

    def drawn(self, dots: Iterable[Dot]) -> str:
        """The chart with these dots as SVG: held-out ones are filled and lie on top, the others are rings."""
        placed = sorted(dots, key=lambda dot: dot.held_out)
        providers = [provider for provider in COLOURS if any(dot.provider == provider for dot in placed)]
        return "\n".join((*self._axes(), *_legend(providers), *map(self._dot, placed), "</svg>", ""))

    def _axes(self) -> Iterator[str]:
        yield (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" '
            'font-family="sans-serif" font-size="12">'
        )
        yield f"<title>{escape(self.title)}</title>"
        yield f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>'
        for percent in range(self.least, self.most + 1, self.step):
            height = self._down(percent)
            shade = "#666666" if percent == 0 else "#dddddd"
            yield f'<line x1="{LEFT}" y1="{height:.1f}" x2="{WIDTH - RIGHT}" y2="{height:.1f}" stroke="{shade}"/>'
            yield f'<text x="{LEFT - 6}" y="{height + 4:.1f}" text-anchor="end">{percent:+d}%</text>'
        for decade in range(self.decades[0], self.decades[1] + 1):
            across = self._across(10**decade)
            yield f'<line x1="{across:.1f}" y1="{TOP}" x2="{across:.1f}" y2="{HEIGHT - BOTTOM}" stroke="#dddddd"/>'
            yield f'<text x="{across:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{10**decade:,}</text>'
        yield f'<text x="{(LEFT + WIDTH - RIGHT) / 2:.1f}" y="{HEIGHT - 10}" text-anchor="middle">tokens the provider reported</text>'
        yield f'<text x="{LEFT}" y="18">{escape(self.caption)}</text>'

    def _dot(self, dot: Dot) -> str:
        colour = COLOURS[dot.provider]
        fill = f'fill="{colour}" fill-opacity="0.7"' if dot.held_out else 'fill="none"'
        return f'<circle cx="{self._across(dot.tokens):.1f}" cy="{self._down(dot.percent):.1f}" r="3" {fill} stroke="{colour}"/>'

    def _across(self, tokens: int) -> float:
        """Pixels from the left."""
        first, last = self.decades
        return LEFT + (WIDTH - RIGHT - LEFT) * (min(max(log10(tokens), first), last) - first) / (last - first)

    def _down(self, percent: float) -> float:
        """Pixels from the top."""
        return TOP + (HEIGHT - BOTTOM - TOP) * (self.most - min(max(percent, self.least), self.most)) / (self.most - self.least)


def _legend(providers: Iterable[str]) -> Iterator[str]:
    across = LEFT + 6
    for provider in providers:
        yield f'<circle cx="{across}" cy="36" r="4" fill="{COLOURS[provider]}"/><text x="{across + 9}" y="40">{escape(provider)}</text>'
        across += 90
    yield f'<text x="{across + 14}" y="40">filled: held out; rings: fitted on</text>'
