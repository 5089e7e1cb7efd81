"""Totals that start from what the provider reported. Implements `trimming/totals.py`. The rules are in `__init__.py`, cited by number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from session.units import NONE

from ..trimming.calibration_rule import CalibrationRule
from ..trimming.fold import Fold
from ..trimming.view_contents import ViewContents
from .conformal import Increment, Increments
from .plausibility import PlausibilityCheck, RequestCounts, is_small


@dataclass(frozen=True, slots=True)
class Anchor:
    """The request from which totals start. Amounts are tokens.

    Attributes:
        place: Where the response to it begins in the log.
        tokens: Its cost.
        reported: The last report that was accepted: of this request if it is `exact`, else of an earlier one. None if a saved view stated
            the cost.
        offset: The cost less the local count.
        output: The response, as reported.
        is_exact: True if this very request was reported. False if its cost is a prediction from an earlier report.
        edits: How often the request had been changed before its end.
    """

    place: int
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

    def __init__(self, rule: CalibrationRule | None) -> None:
        """
        Args:
            rule: The constants. With None, reports are ignored, but an anchor can be adopted from another fold.
        """
        self.anchor: Anchor | None = None
        self.log_anchor: Anchor | None = None
        self.increments = Increments(rule or CalibrationRule())
        self.resets = 0
        self._ignores_reports = rule is None
        self._request = RequestCounts()
        self._plausibility = PlausibilityCheck()
        self._reported_response = NONE  # the response whose report came last
        self._response_tokens = 0  # local tokens of the anchor's response, of its items before `_response_end`
        self._response_end = 0

    # The local count corrected

    def correction(self, view: ViewContents, newer: int, removed: int) -> int:
        """Return the tokens that a request costs beyond its local count (rules 2 to 5). 0 without an anchor.

        Args:
            view: The view.
            newer: Local tokens of the request's items from the mark on.
            removed: Local tokens taken from the items before the mark since it was set.
        """
        anchor = self.anchor
        return 0 if anchor is None else self._corrected(anchor, newer, removed, self._unlogged(view, anchor))

    def untrimmed_correction(self, view: ViewContents, costs: Sequence[int]) -> int:
        """Return the same for a request from which nothing was taken: by position, the local tokens of each item; -1 if it is not sent."""
        anchor = self.log_anchor
        if anchor is None:
            return 0
        newer = [(place, cost) for place, cost in enumerate(costs[anchor.place :], anchor.place) if cost != NONE]
        response = sum(cost + view.free_tokens(place) for place, cost in newer if view.groups.response[place] == anchor.place)
        unlogged = 0 if view.turn_start > anchor.place else max(0, anchor.output - response)
        return self._corrected(anchor, sum(cost for _, cost in newer), 0, unlogged)

    def estimate(self, view: ViewContents) -> int:
        """Return the likeliest total of the request with this view, where `ViewContents.total` is an upper bound."""
        anchor, newer = self.anchor, view.tally.newer
        if anchor is None:
            return view.counted
        return view.counted + anchor.offset + self.increments.likely(anchor.tokens, newer + self._unlogged(view, anchor)) - newer

    def _corrected(self, anchor: Anchor, newer: int, removed: int, unlogged: int) -> int:
        removed_tokens = max(0, removed)
        not_credited = removed_tokens - self.increments.removed(anchor.tokens, anchor.tokens - anchor.offset, removed_tokens)
        return anchor.offset + self.increments.bound(anchor.tokens, newer + unlogged) - newer + not_credited

    def _unlogged(self, view: ViewContents, anchor: Anchor) -> int:
        """Return the tokens of the anchor's response that were reported and are not in the log, but may be in the next prompt (rule 4)."""
        if view.turn_start > anchor.place:
            return 0
        response, end = view.groups.response, self._response_end
        while end < len(response) and response[end] == anchor.place:
            self._response_tokens += view.form_tokens(end)
            end += 1
        self._response_end = end
        return max(0, anchor.output - self._response_tokens)

    # Requests and reports

    def on_request(self, view: ViewContents) -> None:
        """Count the request that is about to be answered, so that a report can be matched with it (rule 1)."""
        if not self._ignores_reports:
            self._request = self._counts(view)

    def on_report(self, fold: Fold, tokens: int, output: int, sent_count: int | None = None) -> None:
        """Use a report of the request that the log's last response answers: once for each response, before the next one begins.

        Args:
            fold: The log.
            tokens: Reported tokens of the request.
            output: Reported tokens of the response.
            sent_count: Local count of the request that was sent, if that is known: it may have been of another view.
        """
        fold.reopen()
        start, earlier, request = fold.groups.response_starts[-1], self.anchor, self._request
        if self._ignores_reports or start < fold.decides_from or start == self._reported_response:
            return
        self._reported_response = start
        is_accepted = self._plausibility.accepts(tokens, request, sent_count)
        is_exact = is_accepted and sent_count in (None, request.local)
        if is_exact and earlier is not None:
            self._learn(earlier, request, tokens)
        cost = tokens if is_exact else self._plausibility.predict(request.local)
        if cost is None or (not is_accepted and earlier is None):
            self._set_anchor(fold, None)
        else:
            reported = tokens if is_accepted or earlier is None else earlier.reported  # if not accepted, go on from the earlier report
            self._set_anchor(fold, Anchor(start, cost, reported, cost - request.local, output, is_exact, request.edits))
        if not is_accepted and not is_small(tokens, request.untrimmed):
            self.log_anchor = Anchor(start, tokens, tokens, tokens - request.untrimmed, output, True, request.edits)

    def on_saved_total(self, fold: Fold, tokens: int) -> None:
        """Start from the recorded cost of a view: the log so far is that view."""
        if not self._ignores_reports:
            fold.reopen()
            self._plausibility.trust(tokens, fold.counted)
            self._set_anchor(fold, Anchor(len(fold), tokens, None, tokens - fold.counted, 0, is_exact=False, edits=fold.tally.edits))

    def forget(self, fold: Fold) -> None:
        """Forget all reports: the requests to come have other tools, another agent or another model."""
        fold.reopen()
        self.resets += self.anchor is not None
        self._set_anchor(fold, None)
        self._reported_response = NONE
        self._plausibility.forget()
        self.increments = Increments(self.increments.rule)

    def adopt(self, fold: Fold, view_totals: ReportedTotals) -> None:
        """Use what the fold of the view knows from reports. This fold has the same log, but its own view was not sent."""
        fold.reopen()
        self.increments = view_totals.increments
        self._set_anchor(fold, view_totals.log_anchor)

    def is_reported(self, fold: Fold) -> bool:
        """True if the request that the log's last response answers was reported."""
        starts = fold.groups.response_starts
        return bool(starts) and self._reported_response == starts[-1]

    def is_unedited(self, fold: Fold) -> bool:
        """True if a report applied now has the same effect as one applied when the response arrived: no edit came between."""
        return self._ignores_reports or fold.final_tally.edits == self._request.edits

    def _learn(self, earlier: Anchor, request: RequestCounts, tokens: int) -> None:
        """Learn from what the request had more than the anchor's, if both were reported and nothing was edited in between (rule 3)."""
        if earlier.is_exact and earlier.edits == request.edits and request.added > 0 and tokens > earlier.tokens:
            self.increments.follow(Increment(earlier.tokens, request.added, tokens - earlier.tokens))

    def _counts(self, view: ViewContents) -> RequestCounts:
        tally, local = view.tally, view.counted
        note = view.limits.note if view.has_note and not view.had_note else 0
        untrimmed = local - note + view.log_tokens - tally.summarised - tally.total if tally.altered else local
        unlogged = 0 if self.anchor is None else self._unlogged(view, self.anchor)
        return RequestCounts(local, unlogged, tally.newer + unlogged, untrimmed, tally.edits)

    def _set_anchor(self, fold: Fold, anchor: Anchor | None) -> None:
        """Start totals here. The items of the view from the anchor's place on have come since."""
        self.anchor = self.log_anchor = anchor
        self._response_tokens, self._response_end = 0, len(fold)
        if anchor is None:
            fold.set_mark(0)
            return
        fold.set_mark(anchor.place)
        response = fold.groups.response
        self._response_tokens = sum(fold.form_tokens(place) for place in range(anchor.place, len(fold)) if response[place] == anchor.place)
