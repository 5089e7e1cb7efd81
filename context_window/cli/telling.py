"""Steps of a story told in a terminal: what the demo says between what it shows."""

from __future__ import annotations

from ..display.glyphs import QUIET, STRONG, Glyphs
from ..display.lines import Line, Span, wrapped
from ..display.rendering import Draw
from ..display.usage import WIDEST


def step(number: int, text: str, aside: str = "") -> Draw:
    """A numbered paragraph, its lines indented below the number, and below it what is less loud."""

    def draw(width: int, glyphs: Glyphs) -> list[Line]:
        room = min(width, WIDEST) - 3
        told = [Span(line, STRONG) for line in wrapped(text, room, glyphs)]
        told += [Span(line, QUIET) for line in wrapped(aside, room, glyphs) if aside]
        lines = [[Span(f"{number}. " if not place else "   ", "bold cyan"), span] for place, span in enumerate(told)]
        return [*([[]] if number > 1 else []), *lines, []]

    return draw
