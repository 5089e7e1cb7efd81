"""Sizes of hypothetical requests: with fewer items, or with outputs of another length. Tokens throughout.

`ViewContents.total` is the size of the request with the present view.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence

from session.units import KIND_CALL, KIND_NOTE, KIND_SILENT, KIND_USER, NONE

from .view_contents import ViewContents


def total_of(view: ViewContents, places: Sequence[int]) -> int:
    """Return the total of a request with only these items of the view, and the overhead of the present view."""
    tokens = sum(map(view.tokens, places))
    newer = sum(view.tokens(place) for place in places if place >= view.mark)
    return max(0, view.overhead + tokens + view.totals.correction(view, newer, view.tokens_at_mark - (tokens - newer)))


def total_with(view: ViewContents, added: int) -> int:
    """Return the total if the items from the mark on cost this many tokens more."""
    newer, removed = view.tally.newer, view.removed
    return max(0, view.counted + added + view.totals.correction(view, newer + added, removed))


def untrimmed_overhead(view: ViewContents, costs: Mapping[int, int]) -> int:
    """Return the overhead of the untrimmed request, including the correction.

    Args:
        view: The view.
        costs: Local tokens of each item of that request, by position in the log, in order.
    """
    groups, limits = view.groups, view.limits
    messages = (place for place in costs if groups.kind[place] != KIND_SILENT)
    first = min(messages, key=view.order_key, default=NONE) if view.moved else next(messages, NONE)
    unanswered = sum(groups.kind[place] == KIND_CALL and not groups.answered[place] for place in costs)
    closing = limits.closing if view.needs_closing else 0
    usage_note = limits.usage_note if view.tally.usage_noted != NONE else 0
    is_headless = first != NONE and groups.kind[first] not in (KIND_USER, KIND_NOTE)
    opening = limits.note if view.had_note else limits.preamble if is_headless else 0
    overhead = limits.overhead + opening + closing + usage_note + limits.synthetic * unanswered
    return max(-sum(costs.values()), overhead + view.totals.untrimmed_correction(view, costs))


def room_for(view: ViewContents, places: Sequence[int]) -> int:
    """Return the tokens that these items may have if the request is to fit the budget; negative if it does not even fit without them.

    Taking one token may lower the total by less than one, and by different amounts before and after the mark. The smaller one counts.
    """
    tokens = sum(map(view.tokens, places))
    excess = view.total - view.limits.budget
    if not places:
        return -excess
    correction, newer, removed = view.totals.correction, view.tally.newer, view.removed
    present = correction(view, newer, removed)

    def gain(lost_tokens: int) -> int:
        gains = []
        if places[-1] >= view.mark:
            gains.append(lost_tokens + present - correction(view, newer - lost_tokens, removed))
        if places[0] < view.mark:
            gains.append(lost_tokens + present - correction(view, newer, removed + lost_tokens))
        return min(gains)

    return tokens - (bisect_left(range(tokens), excess, key=gain) if gain(tokens) >= excess else max(tokens, excess))
