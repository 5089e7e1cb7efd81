"""What a provider reported, made a bound on the next request. Whole numbers only, so that it is the same everywhere.

A request's tokens are anchored on the last report. What has come since is bounded by the conformal rule: as far above its local count
as, of the increments seen before, all but a few were.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from dataclasses import dataclass

THOUSAND = 1_000

ENOUGH = 5
"""Increments from which on the usual one is gone by."""


@dataclass(frozen=True, slots=True)
class CalibrationRule:
    """How reports are used. Ratios are in thousandths. The figures are from `benchmarks/session_accuracy.py`.

    Attributes:
        coverage: The part of requests whose bound is to hold.
        prior: How far above its local count an increment may be, before enough have been seen.
        least: Likewise, however exact those were that have been seen.
        removed: What a token is worth at the least when it is taken out: a local one, or where the provider counts less, one of its.
        remembered: How many increments are remembered.
        beyond: An increment of more than this times its local count holds what is in no log: it counts as one of this size.
    """

    coverage: int = 950
    prior: int = 400
    least: int = 10
    removed: int = 800
    remembered: int = 100
    beyond: int = 3


@dataclass(frozen=True, slots=True)
class Anchor:
    """The last report, as far as it is about the view.

    Attributes:
        place: Where the response begins that answered the reported request.
        tokens: What that request cost.
        reported: What was reported last: of that request where it is `exact`, else of one before. None where a view said what it costs.
        offset: The same, less its local count.
        answered: Tokens of that response, as reported.
        exact: Whether the request was reported; else it is what the report before it leads to.
        edits: How often the request had been changed by then.
    """

    place: int
    tokens: int
    reported: int | None
    offset: int
    answered: int
    exact: bool
    edits: int

    def unsaid(self, said: int) -> int:
        """Tokens of the response that were reported and are not in the local count, which is `said`."""
        return max(0, self.answered - said)


class Increments:
    """How far increments were above their local counts: the scores of those seen last, in thousandths.

    A score goes by what is new and by a twentieth of what was there: what a provider adds depends on both. Where it counts each token
    for more, what is new alone matters: a bound is no lower than what is new times the usual ratio.
    """

    def __init__(self, rule: CalibrationRule) -> None:
        self.rule = rule
        self._recent: deque[int] = deque()
        self._sorted: list[int] = []
        self._ratios: deque[int] = deque(maxlen=rule.remembered)
        self._ratio = 0
        self._score = max(rule.prior, rule.least)

    def __len__(self) -> int:
        return len(self._recent)

    def learn(self, anchored: int, local: int, observed: int) -> None:
        """What is new in a request has been reported.

        Args:
            anchored: Tokens of the request before it.
            local: Tokens of what is new, as counted here.
            observed: The same, as reported.
        """
        rule = self.rule
        above = min(observed, rule.beyond * local) - local
        score = -(-THOUSAND * above // _scale(anchored, local))  # rounded up
        if len(self._recent) == rule.remembered:
            del self._sorted[bisect_left(self._sorted, self._recent.popleft())]
        self._recent.append(score)
        insort(self._sorted, score)
        self._ratios.append(THOUSAND * min(observed, rule.beyond * local) // local)
        self._ratio = sorted(self._ratios)[len(self._ratios) // 2] if len(self._ratios) >= ENOUGH else 0
        seen = len(self._sorted)
        place = -(-(seen + 1) * rule.coverage // THOUSAND)
        self._score = max(rule.least, self._sorted[place - 1] if place <= seen else max(rule.prior, self._sorted[-1]))

    def bound(self, anchored: int, local: int) -> int:
        """Tokens that what is new costs at the most, at the stated coverage; 0 where nothing is new."""
        if local <= 0:
            return 0
        return max(local - (-self._score * _scale(anchored, local) // THOUSAND), -(-self._ratio * local // THOUSAND))

    def likely(self, anchored: int, local: int) -> int:
        """Tokens that it most likely costs."""
        middle = self._sorted[len(self._sorted) // 2] if len(self._sorted) >= ENOUGH else 0
        return max(0, local + middle * _scale(anchored, local) // THOUSAND) if local > 0 else 0


def _scale(anchored: int, local: int) -> int:
    return local + anchored // 20 + 20
