"""Rule: an output that is large for the window is shown as its first, last and most valuable lines, from its first request on.

So one output never displaces everything else, and what providers cache is small from the start. The rest is one call of `recall` away.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate

from session.items import FunctionCallOutput

from ..validation import exact_fraction
from .edits import LinePrice
from .extracts import Line, cut_to_lines
from .frontier import outputs_of
from .limits import BOUNDLESS, Limits, portion
from .line_choice import choose_within, read_terms
from .plan import Action, Cut, Reason
from .tool_rules import RECALL, rule_for
from .view import Rule, View

END = 4
"""The first and the last lines each get the `END`th part of the room."""
ROOMS = (10, 9, 8, 6, 4)
"""Tenths of the room that are tried: lines are priced by their lengths, so together they may cost more."""


class Arrivals(Rule):
    """Shortens outputs that the model has not read yet and that cost more than their part of the budget (`Limits.output_part`).

    What was recalled or put back is never shortened. An output that the model has read stays as it was then.
    """

    def decide(self, view: View) -> View:
        """Return the view with shorter outputs."""
        draft = view
        for at in outputs_of(view):
            most = largest_output(view.limits, view.log.calls[at].name)
            is_new = at >= view.log.groups.frontier and view.edit(at).action in (Action.KEEP, Action.REPLACE_IMAGES)
            if is_new and view.costs[at] > most and (tokens := view.cut_tokens(at, cut := _cut(view, at, most))) < view.costs[at]:
                draft = view.draft() if draft is view else draft
                draft.truncate(at, cut, tokens, Reason.LARGE_OUTPUT)
        return draft


def largest_output(limits: Limits, tool: str) -> int:
    """Return the tokens that an output of a tool may have when it comes."""
    rule = rule_for(tool, limits.tool_rules)
    part = limits.output_part
    if rule is not None and rule.largest_output is not None:
        part = exact_fraction(rule.largest_output)
    elif rule is not None and rule.keeps:
        part = None
    return BOUNDLESS if part is None or part == 1 or tool == RECALL else portion(part, limits.budget)


def _cut(view: View, index: int, most: int) -> Cut:
    """Return the cut of a large output to its first, last and most valuable lines; if that takes too much, to its ends."""
    log, item = view.log, view.log.items[index]
    read_terms(view, view.visible())
    if (lines := log.terms[index].lines) and isinstance(item, FunctionCallOutput):
        price = log.measures.line_price(item)
        for room in [most * tenths // 10 for tenths in ROOMS]:
            ends, tokens = _ends(lines, price, room // END)
            cut = cut_to_lines(item, lines, choose_within(view, index, ends, room - tokens))
            if (tokens := log.measures.cut_tokens(item, cut)) <= most:
                return replace(cut, tokens=tokens)
    return log.measures.truncated(item, most)


def _ends(lines: Sequence[Line], price: LinePrice, room: int) -> tuple[list[int], int]:
    """Return the numbers of the first and the last lines that fit into so many tokens each, and the tokens of both."""
    prices = [price.of(end - start) for _, start, end in lines]
    first = sum(total <= room for total in accumulate(prices))
    last = min(len(lines) - first, sum(total <= room for total in accumulate(reversed(prices))))
    numbers = [*range(first), *range(len(lines) - last, len(lines))]
    return numbers, sum(map(prices.__getitem__, numbers))
