"""Calibration with reported usage, the slow and obvious way: every score is computed anew at every request.

The rule, for a request whose log has an answer with reported usage (the *anchor*):

1. What is new since: the anchor's answer, of which the larger of the local and the reported count is taken, and all after it.
2. The scale of an error: what is new, a twentieth of what was reported, and 20 tokens.
3. The score of an earlier step: what it had more than was expected, in thousandths of its scale. What no byte of the log could have
   made is not counted: the tool added it, and the log does not have it.
4. The quantile: of fewer than 19 scores the highest, or the prior where that is higher; from 19 on the order statistic of the
   one-sided split-conformal rule. At least 1 %.
5. The bound: the anchor, what is new, and the quantile of the scale. The point: the same with the median score.

The constants are fitted on the two thirds of the recorded sessions that are not held out (`session_accuracy.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

ENOUGH = 19
"""Scores from which their order statistic is taken. One of 20 is the least that can be missed with the highest of 19."""
REMEMBERED = 100
"""Scores of a session that count, the latest."""
FEW = 5
"""Below so many scores their median is not taken for the usual error."""
FLOOR = 10
"""The least quantile, thousandths."""
MISSED = 50
"""Requests that may exceed the bound, of a thousand."""
PART, ALLOWED = 20, 20
"""The scale has one part in so many of what was reported, and so many tokens."""
OVERCOUNT = 4
"""Whatever the counter is, so many times its count is believed of a step."""
PRIORS = {"OpenAI": 50, "Claude": 200, "Gemini": 270}
"""What a session of which little is known is taken to be off by, thousandths: about the 99th percentile of the scores of agents that
log all they send."""
UNKNOWN = 400
"""The same where neither the model nor the counter is known: an allowance, not measured."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """An answer in a log, and what came between it and the next. Amounts are tokens.

    Attributes:
        reported: The prompt that it answered; 0 where that was not reported.
        output: The answer, as reported; 0 where it was not.
        own: The answer, counted here; its reasoning included.
        after: What came after it, counted here.
        ceiling: The most that answer and rest can cost, a token a byte.
        edited: Whether something after it took earlier content out of the prompt.
    """

    reported: int
    output: int
    own: int
    after: int
    ceiling: int
    edited: bool = False

    @property
    def added(self) -> int:
        """What it adds to the next prompt."""
        return max(self.own, self.output) + self.after


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a prompt costs, in tokens.

    Attributes:
        anchor: The last prompt that was reported.
        added: What was counted since.
        point: The likeliest total.
        bound: What the total does not exceed, at the stated coverage.
    """

    anchor: int
    added: int
    point: int
    bound: int


def estimate(exchanges: Sequence[Exchange], prior: int = UNKNOWN, missed: int = MISSED) -> Estimate | None:
    """What the prompt costs that comes after these exchanges; None where no usage was reported in them.

    Args:
        exchanges: All of the log so far, in order.
        prior: Thousandths by which a session of which little is known may be off.
        missed: Requests that may exceed the bound, of a thousand.
    """
    last = _last_reported(exchanges)
    if last is None:
        return None
    anchor, added = exchanges[last].reported, sum(one.added for one in exchanges[last:])
    scale = scale_of(anchor, added)
    found = list(scores(exchanges))[-REMEMBERED:]
    usual = sorted(found)[len(found) // 2] if len(found) >= FEW else 0
    return Estimate(anchor, added, anchor + added + scale * usual // 1_000, anchor + added + _up(scale * quantile(found, prior, missed)))


def scores(exchanges: Sequence[Exchange]) -> Iterator[int]:
    """What each step was off by, in thousandths of its scale.

    A step goes from one reported prompt to the next. One with an edit in it tells nothing; where the prompt became smaller there was
    one that the log does not show.
    """
    places = [place for place, one in enumerate(exchanges) if one.reported]
    for first, next_one in pairwise(places):
        step = exchanges[first:next_one]
        observed = exchanges[next_one].reported - step[0].reported
        if any(one.edited for one in step) or observed < 0:
            continue
        added = sum(one.added for one in step)
        believed = min(observed, max(OVERCOUNT * added, sum(max(one.ceiling, one.added) for one in step)))
        scale = scale_of(step[0].reported, added)
        yield -((added - believed) * 1_000 // scale)


def quantile(found: Sequence[int], prior: int, missed: int = MISSED) -> int:
    """Thousandths of its scale that the next step will not be off by more."""
    if len(found) < ENOUGH:
        return max(FLOOR, prior, *found)
    place = -(-(len(found) + 1) * (1_000 - missed) // 1_000)
    return max(FLOOR, sorted(found)[min(place, len(found)) - 1])


def scale_of(anchor: int, added: int) -> int:
    """Tokens of which the error of a step is a part."""
    return added + anchor // PART + ALLOWED


def _last_reported(exchanges: Sequence[Exchange]) -> int | None:
    return max((place for place, one in enumerate(exchanges) if one.reported), default=None)


def _up(thousandths: int) -> int:
    return -(-thousandths // 1_000)
