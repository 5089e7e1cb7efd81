"""Calibration with reported usage, the slow and obvious way: every score is computed again at every request. For logs without edits.

The rule, for a request whose log has a response with reported usage (the *anchor*):

1. The increment: the anchor's response, at the larger of its local and its reported count, and all items after it.
2. The scale of an error: the increment, a part of the reported prompt, and 20 tokens. Expected of an increment is its local count, times
   the median ratio of reported to counted tokens, once there are five.
3. The score of an earlier increment: its excess over that, in thousandths of its scale. Tokens beyond some times the count are in no log,
   most of them, and are not scored.
4. The quantile: the highest score that is covered, if one more is left out than the coverage allows. It is at least the prior until enough
   scores were seen, and has a least value.
5. The bound: the anchor, what is expected of the increment, and the quantile of the scale. The point: the same with the median score.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from context_window.counting.item_tokens import Measurer
from context_window.settings.context_window import ContextWindow
from session.session import Session
from session.units import grouping
from tests.support.engine import BOUNDLESS, CalibrationRule, Engine, Limits

FEW = 5
ALLOWED, ADDED_MAX = 20, 5_000


@dataclass(frozen=True, slots=True)
class Exchange:
    """An answer in a log, and what came between it and the next. Amounts are tokens.

    Attributes:
        reported: The prompt that it answered; 0 where that was not reported.
        output: The answer, as reported; 0 where it was not.
        local_output: The answer, counted here; its reasoning included.
        after: What came after it, counted here.
    """

    reported: int
    output: int
    local_output: int
    after: int

    @property
    def added(self) -> int:
        """Tokens that it adds to the next prompt. The reported output counts only if the request was reported too."""
        return (max(self.local_output, self.output) if self.reported else self.local_output) + self.after


@dataclass(frozen=True, slots=True)
class Estimate:
    """The cost of a prompt, in tokens.

    Attributes:
        point: The likeliest total.
        bound: What the total does not exceed, at the stated coverage.
    """

    point: int
    bound: int


def estimate(exchanges: Sequence[Exchange], rule: CalibrationRule) -> Estimate | None:
    """The cost of the prompt after these exchanges; None if no usage was reported in them.

    Args:
        exchanges: All of the log so far, in order.
        rule: Its settings.
    """
    last = max((position for position, exchange in enumerate(exchanges) if exchange.reported), default=None)
    if last is None:
        return None
    anchor, added = exchanges[last].reported, sum(exchange.added for exchange in exchanges[last:])
    if not added:
        return Estimate(anchor, anchor)
    scale = scale_of(anchor, added, rule)
    samples = scores(exchanges, rule)
    usual = sorted(samples)[len(samples) // 2] if len(samples) >= FEW else 0
    expected = added * ratio(exchanges, rule) // 1_000
    return Estimate(
        point=anchor + max(0, expected + scale * usual // 1_000), bound=anchor + expected - (-scale * quantile(samples, rule) // 1_000)
    )


def ratio(exchanges: Sequence[Exchange], rule: CalibrationRule) -> int:
    """Median of reported to counted tokens, in thousandths; 1,000 while there are few samples."""
    samples = [min(observed, rule.max_ratio * added) * 1_000 // added for _, added, observed in steps(exchanges)][-rule.max_samples :]
    return sorted(samples)[len(samples) // 2] if len(samples) >= FEW else 1_000


def scores(exchanges: Sequence[Exchange], rule: CalibrationRule) -> list[int]:
    """The errors of the latest increments, in thousandths of their scales."""
    usual = ratio(exchanges, rule)
    return [
        -((added * usual // 1_000 - min(observed, rule.max_ratio * added)) * 1_000 // scale_of(anchor, added, rule))
        for anchor, added, observed in list(steps(exchanges))[-rule.max_samples :]
    ]


def steps(exchanges: Sequence[Exchange]) -> Iterator[tuple[int, int, int]]:
    """From one reported prompt to the next: the first one's tokens, those counted since, and those that the second one has more.

    One after which less was reported, or in which nothing is new, tells nothing.
    """
    places = [position for position, exchange in enumerate(exchanges) if exchange.reported]
    result: list[tuple[int, int, int]] = []
    for first, last in pairwise(places):
        anchor, added = exchanges[first].reported, sum(exchange.added for exchange in exchanges[first:last])
        observed = exchanges[last].reported - anchor
        if observed > 0 and added > 0:
            if result and is_taken_back(result[-1], (anchor, added, observed)):
                before, earlier_added, earlier_observed = result.pop()
                result.append((before, earlier_added + added, earlier_observed + observed))
            else:
                result.append((anchor, added, observed))
    yield from result


def is_taken_back(first: tuple[int, int, int], second: tuple[int, int, int]) -> bool:
    """Whether the first of two steps was half its count too high or more, and the second as much too low, give or take a quarter."""
    (before, added, observed), (anchor, next_added, next_observed) = first, second
    too_high, too_low = observed - added, next_added - next_observed
    return anchor == before + observed and too_high > added / 2 and abs(too_high - too_low) <= too_high / 4


def quantile(samples: Sequence[int], rule: CalibrationRule) -> int:
    """Thousandths of its scale that the next step will not be off by more."""
    position = -(-len(samples) * rule.coverage // 1_000) - 1
    prior = rule.prior_score if len(samples) < rule.prior_samples else 0
    return max([rule.min_score, prior, *sorted(samples)[: max(0, position)][-1:]])


def scale_of(anchor: int, added: int, rule: CalibrationRule) -> int:
    """Tokens: the error of a step is a part of them."""
    return min(added, ADDED_MAX) + anchor // rule.request_part + ALLOWED


def exchanges_of(session: Session, measurer: Measurer) -> list[Exchange]:
    """The answers of a log."""
    groups, items = grouping(session), session.items
    exchanges = []
    for start, end in zip(groups.response_starts, [*groups.response_starts, len(items)][1:], strict=True):
        answer = [items[position] for position in range(start, end) if groups.response[position] == start]
        usage = next((item.usage for item in answer if item.usage is not None), None)
        local_output = sum(measurer.measure(item).tokens for item in answer)
        after = sum(measurer.measure(item).tokens for item in items[start + len(answer) : end])
        exchanges.append(Exchange(*((0, 0) if usage is None else (usage.total_input, usage.output_tokens)), local_output, after))
    return exchanges


def estimates_along(session: Session, measurer: Measurer, rule: CalibrationRule) -> list[Estimate | None]:
    """The library's estimate of each request, from the log before it alone, and of one at the end."""
    limits = Limits(BOUNDLESS, BOUNDLESS, BOUNDLESS, ContextWindow().shares.exact, images_max=BOUNDLESS, calibration=rule)
    log = Session(metadata=dict(session.metadata))
    log.restore_seams(session.response_breaks, 0)
    engine = Engine(log, limits, measurer=measurer)
    estimates = []
    starts = set(grouping(session).response_starts)
    for position, item in enumerate(session.items):
        if position in starts:
            estimates.append(_estimate(engine, log))
        log.append(item)
    return [*estimates, _estimate(engine, log)]


def _estimate(engine: Engine, log: Session) -> Estimate | None:
    point = engine.estimate(log)
    return None if point is None else Estimate(point, engine.process(log).total)
