"""Totals that start from what the provider reported (`Totals` in `decision/view.py`). The rules cited by number are in `__init__.py`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress
from typing import TYPE_CHECKING

from session.units import HELD, NONE

from .conformal import THOUSAND, Increment, Increments
from .hosts import Hosts
from .plausibility import PlausibilityCheck, RequestCounts, is_small
from .rule import CalibrationRule

if TYPE_CHECKING:
    from ..decision.view import View

WORTH_PART = 900
"""Thousandths of the average cost of the local tokens that were added that a removed one is worth, if few are removed."""
WORTH_MOST = 1_100
"""Thousandths of the median increment's cost that the average may be: more is text that is in no log, and did not come with the items."""


@dataclass(frozen=True, slots=True)
class Anchor:
    """The request from which totals start. Amounts are tokens.

    Attributes:
        start: Where the response to it begins in the log.
        tokens: Its cost.
        reported: The last report that was accepted: of this request if it is `exact`, else of an earlier one. None if a saved view stated
            the cost.
        offset: The cost less the local count.
        output: The response, as reported.
        is_exact: True if this very request was reported. False if its cost is a prediction from an earlier report.
        edits: How often the request had been changed before its end.
    """

    start: int
    tokens: int
    reported: int | None
    offset: int
    output: int
    is_exact: bool
    edits: int


class ReportedTotals:
    """The reported bound on a request's tokens.

    Attributes:
        anchor: The request from which totals start; None if no report can be used.
        log_anchor: The same for the untrimmed log. It differs from `anchor` if the latest report was not of the view (rule 6).
        increments: How far additions to requests exceeded their local counts.
        resets: How often reports had to be forgotten.
    """

    def __init__(self, rule: CalibrationRule | None, decides_from: int = 0) -> None:
        """
        Args:
            rule: The constants. With None, reports are ignored, but an anchor can be adopted from other totals.
            decides_from: Reports of responses before this position belong to no view.
        """
        self._decides_from = decides_from
        self.anchor: Anchor | None = None
        self.log_anchor: Anchor | None = None
        self.increments = Increments(rule or CalibrationRule())
        self.resets = 0
        self._ignores_reports = rule is None
        self._request = RequestCounts()
        self._plausibility = PlausibilityCheck()
        self._reported_response = NONE  # the response whose report came last
        self._least_local: int | None = None  # local count of the smallest request that totals started from
        self._least_offset = 0
        self._hosts = Hosts()

    # The local count corrected

    def correction(self, view: View, newer: int, taken: int) -> int:
        """Return the tokens that a request costs beyond its local count (rules 2 to 5). 0 without an anchor.

        Args:
            view: The view.
            newer: Local tokens of the request's items from the mark on.
            taken: Local tokens taken from the items before the mark since it was set.
        """
        anchor = self.anchor
        return 0 if anchor is None else self._corrected(anchor, newer, taken, self._unlogged(view, anchor))

    def untrimmed_correction(self, view: View, costs: Sequence[int]) -> int:
        """Return the same for a request from which nothing was taken: by position, the local tokens of each item; -1 if it is not sent."""
        anchor = self.log_anchor
        if anchor is None:
            return 0
        newer = [(at, cost) for at, cost in enumerate(costs[anchor.start :], anchor.start) if cost != NONE]
        response = sum(cost + view.log.free.get(at, 0) for at, cost in newer if view.log.groups.response[at] == anchor.start)
        unlogged = 0 if view.log.turn_start > anchor.start else max(0, anchor.output - response)
        return self._corrected(anchor, sum(cost for _, cost in newer), 0, unlogged)

    def estimate(self, view: View) -> int:
        """Return the likeliest total of the request with this view, where `View.total` is an upper bound."""
        anchor, newer = self.anchor, view.newer
        if anchor is None:
            return view.counted
        return view.counted + anchor.offset + self.increments.likely(anchor.tokens, newer + self._unlogged(view, anchor)) - newer

    def _corrected(self, anchor: Anchor, newer: int, taken: int, unlogged: int) -> int:
        removed = max(0, taken)
        not_credited = removed - self._credit(anchor, removed)
        unknown = min(removed, self._least_local or 0) * (THOUSAND - self.increments.rule.removal_worth) // THOUSAND
        offset = anchor.offset + min(not_credited, max(0, self._least_offset - anchor.offset) + unknown) if removed else anchor.offset
        return offset + self._hosts.gap(anchor.tokens) + self.increments.bound(anchor.tokens, newer + unlogged) - newer

    def _credit(self, anchor: Anchor, removed: int) -> int:
        """Return the least that the provider's count falls by if these local tokens of the anchor's request are removed (rule 5)."""
        rule, local = self.increments.rule, anchor.tokens - anchor.offset
        added = max(0, local - (self._least_local or 0))
        known = known_worth = 0
        if added >= max(1, rule.worth_tokens):
            known = min(removed, added)
            rest = (2 * THOUSAND - WORTH_PART) * (added - known)
            reported = max(0, added + anchor.offset - self._least_offset - self.increments.jumps)
            cost = min(reported, self.increments.expected(added) * WORTH_MOST // THOUSAND)
            known_worth = cost * max(WORTH_PART * known, THOUSAND * added - rest) // (THOUSAND * added)
        worth = rule.removal_worth * min(anchor.tokens, local)
        return known_worth + (removed - known) * worth // (THOUSAND * max(1, local))

    def _unlogged(self, view: View, anchor: Anchor) -> int:
        """Return the tokens of the anchor's response that were reported and are not in the log, but may be in the next prompt (rule 4)."""
        log, at, tokens = view.log, anchor.start, 0
        if log.turn_start > at:
            return 0
        while at < len(log) and log.groups.response[at] == anchor.start:
            tokens += log.tokens[at] + log.free.get(at, 0)
            at += 1
        return max(0, anchor.output - tokens)

    # Requests and reports

    def on_request(self, view: View) -> None:
        """Count the request that is about to be answered, so that a report can be matched with it (rule 1)."""
        if not self._ignores_reports:
            self._request = self._counts(view)

    def on_report(self, view: View, tokens: int, output: int, sent_count: int | None = None, host: str = "") -> None:
        """Use a report of the request that the log's last response answers: once for each response, before the next one begins.

        Args:
            view: The view.
            tokens: Reported tokens of the request.
            output: Reported tokens of the response.
            sent_count: Local count of the request that was sent, if that is known: it may have been of another view.
            host: Who ran the model, if a router chose among several.
        """
        start, earlier, request = view.log.groups.response_starts[-1], self.anchor, self._request
        if self._ignores_reports or start < self._decides_from or start == self._reported_response:
            return
        self._reported_response = start
        is_accepted = self._plausibility.accepts(tokens, request, sent_count)
        is_exact = is_accepted and sent_count in (None, request.local)
        if is_exact and earlier is not None:
            self._learn(earlier, request, tokens, host)
        self._hosts.meet(host)
        cost = tokens if is_exact else self._plausibility.predict(request.local)
        if cost is None or (not is_accepted and earlier is None):
            self._set_anchor(view, None)
        else:
            reported = tokens if is_accepted or earlier is None else earlier.reported  # if not accepted, go on from the earlier report
            offset = cost - request.local + (request.summarised if sent_count is None else 0)
            self._set_anchor(view, Anchor(start, cost, reported, offset, output, is_exact, request.edits))
        if not is_accepted and not is_small(tokens, request.untrimmed):
            self.log_anchor = Anchor(start, tokens, tokens, tokens - request.untrimmed, output, True, request.edits)

    def on_saved_total(self, view: View, tokens: int) -> None:
        """Start from the recorded cost of a view: the log so far is that view."""
        if not self._ignores_reports:
            self._plausibility.trust(tokens, view.counted)
            self._set_anchor(view, Anchor(len(view), tokens, None, tokens - view.counted, 0, is_exact=False, edits=view.changes))

    def forget(self, view: View) -> None:
        """Forget all reports: the requests to come have other tools, another agent or another model."""
        self.resets += self.anchor is not None
        self._set_anchor(view, None)
        self._reported_response = NONE
        self._plausibility.forget()
        self.increments = Increments(self.increments.rule)
        self._hosts = Hosts()

    def adopt(self, view: View, view_totals: ReportedTotals) -> None:
        """Use what the totals of the view that was sent know from reports. This view has the same log, but was not sent."""
        self.increments, self._hosts = view_totals.increments, view_totals._hosts
        self._set_anchor(view, view_totals.log_anchor)
        self._least_local, self._least_offset = view_totals._least_local, view_totals._least_offset

    def is_reported(self, view: View) -> bool:
        """True if the request that the log's last response answers was reported."""
        starts = view.log.groups.response_starts
        return bool(starts) and self._reported_response == starts[-1]

    def is_unedited(self, view: View) -> bool:
        """True if a report applied now has the same effect as one applied when the response arrived: no edit came between."""
        return self._ignores_reports or view.changes == self._request.edits

    def _learn(self, earlier: Anchor, request: RequestCounts, tokens: int, host: str) -> None:
        """Learn from what the request had more than the anchor's, if both were reported and nothing was edited in between (rule 3)."""
        if not earlier.is_exact or earlier.edits != request.edits or request.added <= 0:
            return
        if self._hosts.is_another(host):
            self._hosts.learn(host, tokens, earlier.tokens + self.increments.likely(earlier.tokens, request.added))
        elif tokens > earlier.tokens:
            self.increments.follow(Increment(earlier.tokens, request.added, tokens - earlier.tokens))

    def _counts(self, view: View) -> RequestCounts:
        local = view.counted
        note = view.limits.note if view.has_note and not view.log.had_note else 0
        untrimmed = local - note + view.log.total - view.replaced_tokens - sum(view.tokens) if view.edits else local
        unlogged = 0 if self.anchor is None else self._unlogged(view, self.anchor)
        return RequestCounts(local, unlogged, view.newer + unlogged, untrimmed, view.changes, _summarised_tokens(view))

    def _set_anchor(self, view: View, anchor: Anchor | None) -> None:
        """Start totals here. The items of the view from the anchor's at on have come since."""
        self.anchor = self.log_anchor = anchor
        if anchor is None:
            self._least_local = None
        elif self._least_local is None or anchor.tokens - anchor.offset < self._least_local:
            self._least_local, self._least_offset = anchor.tokens - anchor.offset, anchor.offset
        view.set_mark(0 if anchor is None else anchor.start)


def _summarised_tokens(view: View) -> int:
    """Return the tokens of the units in the view that a summary stands for, and that leave it once they are no longer the last."""
    log, groups = view.log, view.log.groups
    if log.replaced == view.replaced:
        return 0
    both = list(compress(range(len(view)), map(int.__and__, log.summarised, view.shown)))
    leaving = {head for head in {groups.head[at] for at in both} if log.is_summarised(head) and groups.unit_protection[head] != HELD}
    return sum(view.costs[at] for at in both if groups.head[at] in leaving)
