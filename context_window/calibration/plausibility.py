"""Decides whether reported usage belongs to the trimmed view or to the untrimmed log. Whole numbers only.

A log may have been sent untrimmed, or trimmed by other rules. Its reports are then of larger requests than the views made of it here.
"""

from __future__ import annotations

from typing import NamedTuple

PART = 10
"""If a view lacks less than this part (1/10) of itself, it does not matter whether reports are of the view or of the log."""


def is_small(tokens: int, local: int) -> bool:
    """True if a report is below a fourth of the local count of its request. Some tools report only uncached tokens."""
    return 4 * tokens <= local


class RequestCounts(NamedTuple):
    """Local counts of a request when its response began. Amounts are tokens.

    Attributes:
        local: The request.
        unlogged: Output that was reported for the response before it and is not in the log, such as hidden reasoning.
        added: The request's items since the report before, with `unlogged`.
        untrimmed: The same request with the whole log in it, save what summaries stand for.
        edits: How often the request had been changed before its end.
        summarised: Those of its items that a summary stands for and that are in it nonetheless, being the last.
    """

    local: int = 0
    unlogged: int = 0
    added: int = 0
    untrimmed: int = 0
    edits: int = 0
    summarised: int = 0


class _RequestFigures(NamedTuple):
    """The reported tokens of a request, and its local count."""

    tokens: int
    local: int

    def reported_worth(self, local_tokens: int) -> int:
        """Return a provider's count of some local tokens: as many, or fewer if it counts less than the local count."""
        return local_tokens if self.tokens >= self.local else local_tokens * self.tokens // self.local


class PlausibilityCheck:
    """The evidence for and against the reports so far being of views.

    1. While a view lacks little of the log, reports are accepted: the two differ by no more than that.
    2. Otherwise a report is accepted if it is nearer to the cost predicted for the view than to the cost of the log. It must be much
       nearer if earlier reports speak against views. If earlier reports clearly speak for views, every report is accepted: a figure that
       jumps because of text that no log has is not doubted for long.
    3. Predictions start from the last report that is surely of a view. It is sure if the view lacked nothing then, or if what the view had
       lost since the report before was mostly missing from the figures too, on balance over all reports.
    4. Before there is a sure report, reports are accepted until the balance is against them. It is against them from the start if the view
       has less than half of the log and the first report is nearer to the log.
    """

    def __init__(self) -> None:
        self._balance = 0  # tokens that views had lost: those missing from the reports, less those still in them
        self._sure: _RequestFigures | None = None
        self._latest: tuple[_RequestFigures, int] | None = None  # with the local count of the untrimmed request
        self._small: _RequestFigures | None = None  # the latest report, if it was below a fourth of the count

    def accepts(self, tokens: int, request: RequestCounts, sent_count: int | None = None) -> bool:
        """True if a report should be used.

        A small report is not (`is_small`). But if such reports grow with the log, and are no lower than the last sure one, the tool has
        sent less than its log has.

        Args:
            tokens: The reported tokens.
            request: The request that it would be of.
            sent_count: Local count of the request that was really sent, if that is known.
        """
        local = request.local if sent_count is None else sent_count
        before, self._small = self._small, _RequestFigures(tokens, local) if is_small(tokens, local) else None
        if self._small is not None and not self._grows(before, self._small):
            self._skip(request)
            return False
        if sent_count is not None:
            self.trust(tokens, sent_count)
            return True
        return self._judge(tokens, request)

    def _judge(self, tokens: int, request: RequestCounts) -> bool:
        """True if the report can be of this request (rules 1 to 4)."""
        local, missing = request.local, request.untrimmed - request.local
        little = local // PART + 20
        if self._latest is not None:
            evidence = self._evidence(*self._latest, tokens, request)
            self._balance = max(-little, min(little, self._balance + evidence))
        elif self._sure is None and self._balance < little and missing > local and 2 * tokens > local + request.untrimmed:
            self._balance = -little
        self._latest = _RequestFigures(tokens, local), request.untrimmed
        if self._sure is None:
            is_accepted, balance_min = self._balance >= 0, little
        else:
            base = self._sure.tokens + request.unlogged
            sure = _RequestFigures(base, self._sure.local)
            predicted = base + sure.reported_worth(local - sure.local)
            tolerance = sure.reported_worth(missing) // 2 if self._balance >= 0 else max(2 * little, predicted // PART)
            is_accepted = missing <= little or self._balance >= little or tokens - predicted <= tolerance
            if not is_accepted:  # cap unlogged output at what the report can account for
                base = max(self._sure.tokens, min(base, tokens - (request.untrimmed - sure.local)))
            self._sure, balance_min = _RequestFigures(base, sure.local), 0
        if is_accepted and (missing <= 0 or self._balance >= balance_min):
            self._sure = _RequestFigures(tokens, local)
        return is_accepted

    def trust(self, tokens: int, local: int) -> None:
        """Start predictions from a request with this local count that surely cost `tokens`."""
        self._sure, self._latest = _RequestFigures(tokens, local), None

    def forget(self) -> None:
        """Forget reports of another model, agent or tools. The balance stays: how a log is sent does not depend on those."""
        self._sure = self._latest = self._small = None

    def predict(self, local: int) -> int | None:
        """Return the tokens of a request with this local count, from the last sure report; None if there is none."""
        return None if self._sure is None else self._sure.tokens + self._sure.reported_worth(local - self._sure.local)

    def _grows(self, before: _RequestFigures | None, report: _RequestFigures) -> bool:
        """True if a small report has at least half of what the request gained since the small report before it."""
        if before is None or self._sure is None or report.tokens < self._sure.tokens:
            return False
        return 2 * (report.tokens - before.tokens) >= report.local - before.local > 0

    def _skip(self, request: RequestCounts) -> None:
        """Pass over a report that cannot be of the whole request."""
        self._latest = None
        if self._sure is not None:
            self._sure = _RequestFigures(self._sure.tokens + request.unlogged, self._sure.local)

    @staticmethod
    def _evidence(latest: _RequestFigures, latest_untrimmed: int, tokens: int, request: RequestCounts) -> int:
        """Return the tokens that the view has lost since the latest report: those missing from this one, less those still in it."""
        grown = request.local - latest.local
        lost_tokens = latest.reported_worth(request.untrimmed - latest_untrimmed - grown)
        surplus = tokens - latest.tokens - request.unlogged - latest.reported_worth(grown)
        return lost_tokens - 2 * max(0, min(lost_tokens, surplus)) if lost_tokens > 0 else 0
