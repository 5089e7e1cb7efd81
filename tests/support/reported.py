"""Calibration with reported usage, the slow and obvious way: every score is computed anew at every request. For logs without edits.

The rule, for a request whose log has an answer with reported usage (the *anchor*):

1. What is new since: the anchor's answer, of which the larger of the local and the reported count is taken, and all after it.
2. The scale of an error: what is new, a twentieth of what was reported, and 20 tokens.
3. The score of an earlier step: what it had more than was counted, in thousandths of its scale. What is beyond some times the count
   is in no log, most of it, and is not scored.
4. The quantile: the order statistic of the one-sided split-conformal rule; while that is beyond the scores that there are, the
   highest of them, or the prior where that is higher. It has a least value.
5. The bound: the anchor, what is new, and the quantile of the scale; no less of what is new than the median of what steps had of what
   was counted, once there are five. The point: the same with the median score.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from context_window.config import ContextWindow
from context_window.counting.measure import Measurer
from context_window.following import Following
from context_window.trimming.anchor import CalibrationRule
from context_window.trimming.limits import BOUNDLESS, Limits
from session.session import Session
from session.units import grouping

FEW = 5
PART, ALLOWED = 20, 20


@dataclass(frozen=True, slots=True)
class Exchange:
    """An answer in a log, and what came between it and the next. Amounts are tokens.

    Attributes:
        reported: The prompt that it answered; 0 where that was not reported.
        output: The answer, as reported; 0 where it was not.
        own: The answer, counted here; its reasoning included.
        after: What came after it, counted here.
    """

    reported: int
    output: int
    own: int
    after: int

    @property
    def added(self) -> int:
        """What it adds to the next prompt. Of an answer to a request that was not reported, nothing that was reported is gone by."""
        return (max(self.own, self.output) if self.reported else self.own) + self.after


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a prompt costs, in tokens.

    Attributes:
        point: The likeliest total.
        bound: What the total does not exceed, at the stated coverage.
    """

    point: int
    bound: int


def estimate(exchanges: Sequence[Exchange], rule: CalibrationRule) -> Estimate | None:
    """What the prompt costs that comes after these exchanges; None where no usage was reported in them.

    Args:
        exchanges: All of the log so far, in order.
        rule: Its settings.
    """
    last = max((place for place, one in enumerate(exchanges) if one.reported), default=None)
    if last is None:
        return None
    anchor, added = exchanges[last].reported, sum(one.added for one in exchanges[last:])
    if not added:
        return Estimate(anchor, anchor)
    scale = scale_of(anchor, added)
    found = list(scores(exchanges, rule))[-rule.remembered :]
    usual = sorted(found)[len(found) // 2] if len(found) >= FEW else 0
    return Estimate(
        point=anchor + max(0, added + scale * usual // 1_000),
        bound=anchor + max(added - (-scale * quantile(found, rule) // 1_000), -(-added * ratio(exchanges, rule) // 1_000)),
    )


def ratio(exchanges: Sequence[Exchange], rule: CalibrationRule) -> int:
    """What most steps had of what was counted, in thousandths; 0 while there are few."""
    found = [min(observed, rule.beyond * added) * 1_000 // added for _, added, observed in steps(exchanges)][-rule.remembered :]
    return sorted(found)[len(found) // 2] if len(found) >= FEW else 0


def scores(exchanges: Sequence[Exchange], rule: CalibrationRule) -> Iterator[int]:
    """What each step was off by, in thousandths of its scale."""
    for anchor, added, observed in steps(exchanges):
        yield -((added - min(observed, rule.beyond * added)) * 1_000 // scale_of(anchor, added))


def steps(exchanges: Sequence[Exchange]) -> Iterator[tuple[int, int, int]]:
    """From one reported prompt to the next: what the first had, what was counted since, and what the second had more.

    One after which less was reported, or in which nothing is new, tells nothing.
    """
    places = [place for place, one in enumerate(exchanges) if one.reported]
    for first, last in pairwise(places):
        anchor, added = exchanges[first].reported, sum(one.added for one in exchanges[first:last])
        observed = exchanges[last].reported - anchor
        if observed > 0 and added > 0:
            yield anchor, added, observed


def quantile(found: Sequence[int], rule: CalibrationRule) -> int:
    """Thousandths of its scale that the next step will not be off by more."""
    place = -(-(len(found) + 1) * rule.coverage // 1_000)
    return max(rule.least, sorted(found)[place - 1] if place <= len(found) else max([rule.prior, *found]))


def scale_of(anchor: int, added: int) -> int:
    """Tokens of which the error of a step is a part."""
    return added + anchor // PART + ALLOWED


def exchanges_of(session: Session, measurer: Measurer) -> list[Exchange]:
    """The answers of a log."""
    groups, items = grouping(session), session.items
    exchanges = []
    for start, end in zip(groups.starts, [*groups.starts, len(items)][1:], strict=True):
        answer = [items[place] for place in range(start, end) if groups.response[place] == start]
        usage = next((item.usage for item in answer if item.usage is not None), None)
        own = sum(measurer.measured(item).tokens for item in answer)
        after = sum(measurer.measured(item).tokens for item in items[start + len(answer) : end])
        exchanges.append(Exchange(*((0, 0) if usage is None else (usage.total_input, usage.output_tokens)), own, after))
    return exchanges


def told_along(session: Session, measurer: Measurer, rule: CalibrationRule) -> list[Estimate | None]:
    """What the library says of the request of each answer, from the log before it alone; and at last of one at the end."""
    limits = Limits(BOUNDLESS, BOUNDLESS, BOUNDLESS, ContextWindow().shares.exact, images_max=BOUNDLESS, calibration=rule)
    log = Session(metadata=dict(session.metadata))
    log.restore_seams(session.response_breaks, 0)
    following = Following(log, limits, measurer)
    told = []
    starts = set(grouping(session).starts)
    for place, item in enumerate(session.items):
        if place in starts:
            told.append(_told(following, log))
        log.append(item)
    return [*told, _told(following, log)]


def _told(following: Following, log: Session) -> Estimate | None:
    following.catch_up(log)
    return None if following.fold.anchor is None else Estimate(following.fold.estimate, following.fold.total)
