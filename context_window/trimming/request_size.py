"""Sizes of hypothetical requests: with fewer items, or with outputs of another length. Tokens throughout.

`ViewContents.total` is the size of the request with the present view.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Sequence

from session.units import KIND_CALL, KIND_NOTE, KIND_SILENT, KIND_USER, NONE

from .view_contents import ViewContents, place_of


def total_of(view: ViewContents, places: Sequence[int]) -> int:
    """Return the total of a request with only these items of the view, and the overhead of the present view."""
    tokens = sum(map(view.tokens, places))
    newer = sum(view.tokens(place) for place in places if place >= view.mark)
    return max(0, view.overhead + tokens + view.totals.correction(view, newer, view.tokens_at_mark - (tokens - newer)))


def total_with(view: ViewContents, added: int) -> int:
    """Return the total if the items from the mark on cost this many tokens more."""
    newer, removed = view.tally.newer, view.removed
    return max(0, view.counted + added + view.totals.correction(view, newer + added, removed))


class UntrimmedItems:
    """The items of a request from which nothing was taken, kept up to date.

    Attributes:
        costs: By position in the log, the local tokens of each item of that request; -1 if the item is in no request.
    """

    def __init__(self, view: ViewContents) -> None:
        self._view = view
        self.costs = array("q")
        self._tokens = 0  # the sum of the costs
        self._speaks = bytearray()  # by position: 1 if the item becomes a message where the log has it
        self._waits = bytearray()  # by position: 1 if the item is a call without an output
        self._summaries: list[int] = []  # order keys of the request's summaries that are shown elsewhere, in order

    def append(self) -> None:
        """Append an item, for now as one that is in no request."""
        self.costs.append(NONE)
        self._speaks.append(0)
        self._waits.append(0)

    def set(self, place: int, cost: int) -> None:
        """Set the cost of an item: -1 if it is in no request."""
        groups = self._view.groups
        if place in self._view.moved and (cost == NONE) != (self.costs[place] == NONE):
            key = self._view.order_key(place)
            at = bisect_left(self._summaries, key)
            self._summaries[at : at + (cost == NONE)] = [] if cost == NONE else [key]
        self._tokens += max(0, cost) - max(0, self.costs[place])
        self.costs[place] = cost
        self._speaks[place] = cost != NONE and groups.kind[place] != KIND_SILENT and place not in self._view.moved
        self._waits[place] = cost != NONE and groups.kind[place] == KIND_CALL and not groups.answered[place]

    @property
    def overhead(self) -> int:
        """The overhead of the request, in tokens, including the correction."""
        view, groups, limits = self._view, self._view.groups, self._view.limits
        closing = limits.closing if view.needs_closing else 0
        usage_note = limits.usage_note if view.tally.usage_noted != NONE else 0
        first = self._first_spoken()
        is_headless = first != NONE and groups.kind[first] not in (KIND_USER, KIND_NOTE)
        opening = limits.note if view.had_note else limits.preamble if is_headless else 0
        overhead = limits.overhead + opening + closing + usage_note + limits.synthetic * self._waits.count(1)
        return max(-self._tokens, overhead + view.totals.untrimmed_correction(view, self.costs))

    def _first_spoken(self) -> int:
        """Return the position of the first item that becomes a message, -1 if there is none."""
        first = self._speaks.find(1)
        keys = [*self._summaries[:1], *([self._view.order_key(first)] if first != NONE else [])]
        return place_of(min(keys)) if keys else NONE


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
