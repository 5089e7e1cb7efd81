"""What several commands say in the same words, and the steps of a story that the demo tells between what it shows."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from ..display.glyphs import QUIET, STRONG, Glyphs
from ..display.lines import Line, Span, wrapped
from ..display.rendering import Draw
from ..display.usage import WIDEST

if TYPE_CHECKING:
    from session.providers import Violation

    from ..trimming.plan import Plan

SHOWN = 3
"""Items that stand in the way, and sorts of objections, that are named in a line."""


def over_budget(planned: Plan) -> str:
    """By how much a plan's view does not fit, what of it is largest, and what to do."""
    from ..errors import FEWER_TOOLS, overhead_told
    from ..trimming.summary import overhead_stands_out

    leads = overhead_stands_out(planned)
    largest = [overhead_told(planned.overhead)] if leads else []
    largest += [f"{one.what} ({one.after:,} tokens: {one.reason.value})" for one in planned.culprits]
    advice = FEWER_TOOLS if leads else "Shorten or unpin what is kept, or allow more tokens"
    over = planned.after - planned.budget
    return f"over budget by {over:,} tokens although all that could go is gone; largest: {', '.join(largest[:SHOWN])}. {advice}"


def refused(violations: tuple[Violation, ...]) -> str:
    """What a provider would object to in words: the first of each rule, then how many more there are."""
    first = {one.rule: one for one in reversed(violations)}
    counts = Counter(one.rule for one in violations)
    told = [
        f"{one.where}: {one.message}{f' (and {counts[rule] - 1} more)' if counts[rule] > 1 else ''}" for rule, one in sorted(first.items())
    ]
    return f"as a request it would be refused: {'; '.join(told[:SHOWN])}{'; …' if len(told) > SHOWN else ''}"


def step(number: int, text: str, aside: str = "") -> Draw:
    """A numbered paragraph, its lines indented below the number, and below it what is less loud."""

    def draw(width: int, glyphs: Glyphs) -> list[Line]:
        room = min(width, WIDEST) - 3
        told = [Span(line, STRONG) for line in wrapped(text, room, glyphs)]
        told += [Span(line, QUIET) for line in wrapped(aside, room, glyphs) if aside]
        lines = [[Span(f"{number}. " if not place else "   ", "bold cyan"), span] for place, span in enumerate(told)]
        return [*([[]] if number > 1 else []), *lines, []]

    return draw
