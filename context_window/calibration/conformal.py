"""An upper bound on the tokens by which a request grows, from how far earlier increments exceeded their local counts.

Split conformal prediction with whole numbers only, so that every machine gets the same figures. Theory of operation, rules 3 and 4.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from typing import NamedTuple

from .rule import CalibrationRule

THOUSAND = 1_000

SAMPLES_MIN = 5
"""Increments that must have been seen before their median is used."""
SCALE_MAX = 5_000
"""Tokens of an increment that count in the scale of its error. Text that is in no log does not grow with an output of 50,000 tokens, and
over so many tokens the errors of a count cancel out."""
WORTH_PART = 850
"""Thousandths of the average increment's cost of a local token that a removed token is worth."""


class Increment(NamedTuple):
    """The increase from one request to the next. Amounts are tokens.

    Attributes:
        request: The earlier request, as reported.
        local: The increment by the local count.
        reported: The increment as reported.
    """

    request: int
    local: int
    reported: int

    def joined(self, following: Increment) -> Increment | None:
        """Return this increment and the one after it as a single one if the second report takes back what the first had too much.

        Some reports are too high by tokens that the next one lacks. Their excess then says nothing of increments. Of two errors of
        counting that is hardly ever true: the first is more than half of its count, and the second cancels three quarters of it or more.
        None if this is not so.
        """
        excess, lack = self.reported - self.local, following.local - following.reported
        is_taken_back = 2 * excess > self.local and 4 * abs(lack - excess) <= excess
        if not is_taken_back or following.request != self.request + self.reported:
            return None
        return Increment(self.request, self.local + following.local, self.reported + following.reported)


class Increments:
    """The latest increments, and how far each exceeded its local count.

    The score of an increment, in thousandths, is its excess over the local count divided by a scale (`_scale`): providers add tokens in
    proportion to the new items and to the request before. If a provider counts every token higher, only the new items matter. So the bound
    is at least their count times the median ratio of earlier increments.
    """

    def __init__(self, rule: CalibrationRule) -> None:
        self.rule = rule
        self._scores: deque[int] = deque()
        self._sorted_scores: list[int] = []
        self._latest: Increment | None = None
        self._amounts: deque[tuple[int, int]] = deque(maxlen=rule.max_samples)  # local and reported tokens
        self._worth: int | None = None
        self._median_ratio = 0
        self._bound_score = max(rule.prior_score, rule.min_score)

    def __len__(self) -> int:
        return len(self._scores)

    def follow(self, increment: Increment) -> None:
        """Take the increment after the latest one. If it takes back what that one had too much, both count as one."""
        joined = None if self._latest is None else self._latest.joined(increment)
        if joined is not None:
            del self._sorted_scores[bisect_left(self._sorted_scores, self._scores.pop())]
            self._amounts.pop()
        self._latest = increment if joined is None else joined
        self.learn(*self._latest)

    def learn(self, request_tokens: int, local_tokens: int, reported_tokens: int) -> None:
        """Take an increment whose cost has been reported.

        Args:
            request_tokens: Reported tokens of the earlier request.
            local_tokens: The increment by the local count.
            reported_tokens: The increment as reported.
        """
        rule = self.rule
        capped = min(reported_tokens, rule.max_ratio * local_tokens)
        score = -(-THOUSAND * (capped - local_tokens) // _scale(request_tokens, local_tokens))  # rounded up
        if len(self._scores) == rule.max_samples:
            del self._sorted_scores[bisect_left(self._sorted_scores, self._scores.popleft())]
        self._scores.append(score)
        insort(self._sorted_scores, score)
        self._amounts.append((local_tokens, capped))
        ratios = sorted(THOUSAND * reported // local for local, reported in self._amounts)
        self._median_ratio = ratios[len(ratios) // 2] if len(ratios) >= SAMPLES_MIN else 0
        samples = len(self._sorted_scores)
        rank = -(-(samples + 1) * rule.coverage // THOUSAND)
        quantile = self._sorted_scores[rank - 1] if rank <= samples else max(rule.prior_score, self._sorted_scores[-1])
        self._bound_score = max(rule.min_score, quantile)
        local, reported = map(sum, zip(*self._amounts, strict=True))
        is_known = len(self._amounts) >= rule.worth_samples and local >= rule.worth_tokens
        self._worth = WORTH_PART * reported // local if is_known else None

    def bound(self, request_tokens: int, local_tokens: int) -> int:
        """Return the most tokens that a new increment should cost, at the rule's coverage; 0 if nothing is new.

        Args:
            request_tokens: Reported tokens of the earlier request.
            local_tokens: The increment by the local count.
        """
        if local_tokens <= 0:
            return 0
        by_score = local_tokens - (-self._bound_score * _scale(request_tokens, local_tokens) // THOUSAND)
        return max(by_score, -(-self._median_ratio * local_tokens // THOUSAND))

    def removed(self, anchor_tokens: int, anchor_local: int, tokens: int) -> int:
        """Return the least that the provider's count falls by if these local tokens of a request are removed.

        The average increment tells, once enough is known of it. Until then it is a part of what the request itself cost a local token.

        Args:
            anchor_tokens: The reported tokens of the request.
            anchor_local: Its local count.
            tokens: The local tokens that are removed.
        """
        if self._worth is not None:
            return tokens * self._worth // THOUSAND
        local = max(1, anchor_local)
        return tokens * self.rule.removal_worth * min(anchor_tokens, anchor_local) // (THOUSAND * local)

    def likely(self, request_tokens: int, local_tokens: int) -> int:
        """Return the likeliest cost of a new increment. Arguments as for `bound`."""
        if local_tokens <= 0:
            return 0
        median = self._sorted_scores[len(self._sorted_scores) // 2] if len(self._sorted_scores) >= SAMPLES_MIN else 0
        return max(0, local_tokens + median * _scale(request_tokens, local_tokens) // THOUSAND)


def _scale(request_tokens: int, local_tokens: int) -> int:
    """Return the tokens that an error is divided by: the increment up to `SCALE_MAX`, a twentieth of the request before it, and 20."""
    return min(local_tokens, SCALE_MAX) + request_tokens // 20 + 20
