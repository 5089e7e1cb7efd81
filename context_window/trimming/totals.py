"""What a view costs: the local count, corrected to a bound by what the provider reported. What is in the view is in `state.py`."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Mapping, Sequence

from session.units import KIND_CALL, KIND_SILENT, KIND_USER, Grouping

from .anchor import THOUSAND, Anchor, CalibrationRule, Increments
from .limits import Limits
from .tally import Tally


class Totals:
    """The costs of a view, item by item and as a whole.

    Attributes:
        limits: What it may hold.
        groups: The units of the log.
        tally: Its sums.
        anchor: The last of the provider's reports, if any can be used.
        increments: How far what came between reports was above its local count.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.groups = Grouping()
        self.tally = Tally()
        self.anchor: Anchor | None = None
        self.increments = Increments(limits.calibration or CalibrationRule())
        self._tokens = array("q")
        self._gone = bytearray()  # why an item is not in the view, as a number; 0 where it is

    def __len__(self) -> int:
        return len(self._tokens)

    def tokens(self, place: int) -> int:
        """What the item costs in the view."""
        return 0 if self._gone[place] else self._tokens[place]

    @property
    def overhead(self) -> int:
        """Tokens of the request beside the items of the view, as far as is known here: what converters must add is in it."""
        limits = self.limits
        return limits.overhead + limits.synthetic * self.tally.unanswered + (limits.preamble if self._needs_preamble() else 0)

    @property
    def counted(self) -> int:
        """Tokens of the request with this view, by the local count."""
        return self.overhead + self.tally.total

    @property
    def correction(self) -> int:
        """What the provider's reports say that the request costs more than by the local count; 0 without any."""
        return self.total - self.counted

    @property
    def reported(self) -> int | None:
        """What the provider reported of the last request whose report was gone by."""
        return None if self.anchor is None else self.anchor.reported

    @property
    def settled(self) -> int | None:
        """What a view said that it costs, where totals go by that: nothing was reported since."""
        return self.anchor.tokens if self.anchor is not None and self.anchor.reported is None else None

    @property
    def total(self) -> int:
        """Tokens of the request with this view: the local count, corrected to an upper bound where the provider has reported one."""
        counted = self.overhead + self.tally.total  # as `counted`, of which this is asked most often
        if self.anchor is None:
            return counted
        return max(0, counted + self._correction(self.anchor, self.tally.fresh, self.tally.removed))

    @property
    def estimate(self) -> int:
        """The same as the likeliest figure instead of a bound."""
        anchor, fresh = self.anchor, self.tally.fresh
        if anchor is None:
            return self.counted
        return self.counted + anchor.offset + self.increments.likely(anchor.tokens, fresh + anchor.unsaid(self.tally.said)) - fresh

    def total_of(self, places: Sequence[int]) -> int:
        """Tokens of the request with these items of the view alone, what converters add as it is now."""
        tally, anchor = self.tally, self.anchor
        tokens = sum(map(self.tokens, places))
        if anchor is None:
            return self.overhead + tokens
        fresh = sum(self.tokens(place) for place in places if place >= anchor.place)
        removed = tally.removed + (tally.total - tally.fresh) - (tokens - fresh)
        return max(0, self.overhead + tokens + self._correction(anchor, fresh, removed))

    def overhead_of(self, costs: Mapping[int, int]) -> int:
        """Tokens of a request beside its items, if these were in it and nothing had been taken out: by place, what each costs."""
        groups, limits, anchor = self.groups, self.limits, self.anchor
        first = next((groups.kind[place] for place in costs if groups.kind[place] != KIND_SILENT), KIND_USER)
        waiting = sum(groups.kind[place] == KIND_CALL and not groups.answered[place] for place in costs)
        overhead = limits.overhead + limits.synthetic * waiting + (limits.preamble if first != KIND_USER else 0)
        if anchor is None:
            return overhead
        tokens = sum(costs.values())
        fresh = sum(cost for place, cost in costs.items() if place >= anchor.place)
        said = sum(cost for place, cost in costs.items() if groups.response[place] == anchor.place)
        return max(-tokens, overhead + self._correction(anchor, fresh, 0, said))

    def room_for(self, places: Sequence[int]) -> int:
        """What may be left of the tokens of these items, so that the request is within the budget; negative where nothing may."""
        tokens, anchor = sum(map(self.tokens, places)), self.anchor
        ways = set()  # what a lost token is worth depends on whether it was in the reported request
        if anchor is not None and places:
            if places[-1] >= anchor.place:
                ways.add((1, 0))
            if places[0] < anchor.place:
                ways.add((0, 1))
        return self._room(tokens, 0, ways)

    def room_before(self, tokens: int, saved: int) -> int | None:
        """Return what `room_for` would say of outputs after the last report, had they not been cut yet; None if they are none such.

        Args:
            tokens: What the outputs cost before they were cut.
            saved: What the cuts took.
        """
        if self.anchor is None:
            return self._room(tokens, saved, set())
        return self._room(tokens, saved, {(1, 0)}) if self.anchor.place <= self.groups.frontier else None

    def total_before(self, saved: int) -> int:
        """Return what the request would cost with so many more tokens after the last report."""
        more = self.counted + saved
        if self.anchor is None:
            return more
        return max(0, more + self._correction(self.anchor, self.tally.fresh + saved, self.tally.removed))

    def _room(self, tokens: int, saved: int, ways: set[tuple[int, int]]) -> int:
        excess, anchor = self.total_before(saved) - self.limits.budget, self.anchor
        if anchor is None or not ways:
            return tokens - excess
        fresh, removed = self.tally.fresh + saved, self.tally.removed
        now = self._correction(anchor, fresh, removed)

        def gained(less: int) -> int:
            return less + min(now - self._correction(anchor, fresh - new * less, removed + old * less) for new, old in ways)

        return tokens - (bisect_left(range(tokens), excess, key=gained) if gained(tokens) >= excess else max(tokens, excess))

    def _correction(self, anchor: Anchor, fresh: int, removed: int, said: int | None = None) -> int:
        gone, request = max(0, removed), anchor.tokens - anchor.offset
        worth = self.increments.rule.removed * min(anchor.tokens, request)
        kept_back = gone - gone * worth // (THOUSAND * max(1, request))
        new = fresh + anchor.unsaid(self.tally.said if said is None else said)
        return anchor.offset + self.increments.bound(anchor.tokens, new) - fresh + kept_back

    def _needs_preamble(self) -> bool:
        """Whether the first item of the view that becomes a message is not the user's."""
        gone, kind = self._gone, self.groups.kind
        first = self.tally.first
        while first < len(gone) and (gone[first] or kind[first] == KIND_SILENT):
            first += 1
        self.tally.first = first
        return first < len(gone) and kind[first] != KIND_USER
