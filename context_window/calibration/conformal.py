"""An upper bound on the tokens by which a request grows, from how far earlier increments exceeded their local counts.

Split conformal prediction with whole numbers only, so that every machine gets the same figures. Theory of operation, rules 3 and 4.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from .rule import CalibrationRule

THOUSAND = 1_000

SAMPLES_MIN = 5
"""Increments that must have been seen before their medians are used."""
SCALE_MAX = 5_000
"""Tokens of an increment that count in the scale of its error. Text that is in no log does not grow with an output of 50,000 tokens, and
over so many tokens the errors of a count cancel out."""
JUMP = 2
"""An increment of more than so many times what is expected has a jump in it: text that is in no log."""


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
    """The latest increments, and how far each exceeded what is expected of its local count.

    Expected is the median ratio of reported to local tokens, once there are enough. The score of an increment, in thousandths, is its
    excess over that, divided by a scale (`_scale`): providers add tokens in proportion to the new items, and tools in proportion to the
    request before. One score more is left out than the coverage allows: a jump, text that is in no log, says nothing of the next increment.

    Attributes:
        rule: The constants.
        jumps: Tokens of the jumps in the latest increments: what they had beyond `JUMP` times what is expected.
    """

    def __init__(self, rule: CalibrationRule) -> None:
        self.rule = rule
        self._seen: deque[Increment] = deque(maxlen=rule.max_samples)
        self.jumps = 0
        self._latest: Increment | None = None
        self._ratio = THOUSAND
        self._median_score = 0
        self._bound_score = max(rule.min_score, rule.prior_score if rule.prior_samples else 0)

    def __len__(self) -> int:
        return len(self._seen)

    def follow(self, increment: Increment) -> None:
        """Take the increment after the latest one. If it takes back what that one had too much, both count as one."""
        joined = None if self._latest is None else self._latest.joined(increment)
        if joined is not None:
            self._seen.pop()
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
        self._seen.append(Increment(request_tokens, local_tokens, reported_tokens))
        capped = [seen._replace(reported=min(seen.reported, rule.max_ratio * seen.local)) for seen in self._seen]
        samples = len(capped)
        if samples >= SAMPLES_MIN:
            self._ratio = sorted(THOUSAND * seen.reported // seen.local for seen in capped)[samples // 2]
        scores = sorted(-(THOUSAND * (self.expected(seen.local) - seen.reported) // self._scale(*seen[:2])) for seen in capped)
        self._median_score = scores[samples // 2] if samples >= SAMPLES_MIN else 0
        left_out = 1 + samples * (THOUSAND - rule.coverage) // THOUSAND
        floors = rule.min_score, rule.prior_score if samples < rule.prior_samples else 0
        self._bound_score = max(*floors, *scores[: samples - left_out][-1:])
        self.jumps = sum(max(0, seen.reported - JUMP * self.expected(seen.local)) for seen in self._seen)

    def bound(self, request_tokens: int, local_tokens: int) -> int:
        """Return the most tokens that a new increment should cost, at the rule's coverage; 0 if nothing is new.

        Args:
            request_tokens: Reported tokens of the earlier request.
            local_tokens: The increment by the local count.
        """
        if local_tokens <= 0:
            return 0
        return self.expected(local_tokens) - (-self._bound_score * self._scale(request_tokens, local_tokens) // THOUSAND)

    def likely(self, request_tokens: int, local_tokens: int) -> int:
        """Return the likeliest cost of a new increment. Arguments as for `bound`."""
        if local_tokens <= 0:
            return 0
        return max(0, self.expected(local_tokens) + self._median_score * self._scale(request_tokens, local_tokens) // THOUSAND)

    def expected(self, local_tokens: int) -> int:
        """Return what these local tokens cost by the median increment."""
        return self._ratio * local_tokens // THOUSAND

    def _scale(self, request_tokens: int, local_tokens: int) -> int:
        """Return the tokens that an error is divided by: the increment up to `SCALE_MAX`, a part of the request before it, and 20."""
        return min(local_tokens, SCALE_MAX) + request_tokens // self.rule.request_part + 20
