"""Guarantee: the bound on an increment holds for all but a few of those it was learned from, and depends on the latest ones alone."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor
from random import Random
from statistics import median_high
from typing import TypeAlias

from hypothesis import event, example, given
from hypothesis import strategies as st

from context_window.calibration.conformal import SAMPLES_MIN, SCALE_MAX, Increment, Increments
from tests.support.engine import CalibrationRule

Step: TypeAlias = tuple[int, int, int]
"""Reported tokens of the request before, and the increment: its local count and its reported tokens."""

RULES = st.builds(
    CalibrationRule,
    coverage=st.integers(1, 999),
    prior_score=st.sampled_from((0, 50, 400)),
    min_score=st.sampled_from((0, 10, 60)),
    max_samples=st.sampled_from((1, 3, 100)),
    max_ratio=st.sampled_from((1, 3)),
)
REQUESTS = st.integers(0, 200_000)
AMOUNTS = st.one_of(st.integers(1, 40), st.integers(1, 50_000))
STEPS = st.lists(st.tuples(REQUESTS, AMOUNTS, AMOUNTS), max_size=12)


def learned(rule: CalibrationRule, steps: list[Step]) -> Increments:
    increments = Increments(rule)
    for step in steps:
        increments.learn(*step)
    return increments


def capped(rule: CalibrationRule, steps: list[Step]) -> list[Step]:
    """The steps that are remembered. Tokens beyond some times the local count are in no log and are left out."""
    return [(request, local, min(reported, rule.max_ratio * local)) for request, local, reported in steps[-rule.max_samples :]]


@given(RULES, STEPS)
def test_the_bound_holds_for_all_but_a_few_of_the_increments_it_was_learned_from(rule: CalibrationRule, steps: list[Step]) -> None:
    """at the stated coverage, of those seen and one more; of all of them while there are too few for that"""
    increments, remembered = learned(rule, steps), capped(rule, steps)
    covered = sum(reported <= increments.bound(request, local) for request, local, reported in remembered)
    event(f"all are covered: {covered == len(remembered)}")
    assert covered >= min(len(remembered), ceil(Fraction(rule.coverage, 1_000) * (len(remembered) + 1)))


@given(RULES, STEPS, REQUESTS, REQUESTS, AMOUNTS, AMOUNTS)
def test_the_bound_grows_with_the_request_and_with_the_increment(
    rule: CalibrationRule, steps: list[Step], request: int, larger_request: int, local: int, larger: int
) -> None:
    """a larger increment after a larger request is never bounded lower, unless increments have always cost less than counted"""
    increments = learned(rule, steps)
    (request, larger_request), (local, larger) = sorted((request, larger_request)), sorted((local, larger))
    assert increments.bound(request, local) <= increments.bound(request, larger)
    if increments.bound(0, 1_000) >= 1_000:
        assert increments.bound(request, local) <= increments.bound(larger_request, local)
    if rule.coverage >= 500:
        assert increments.likely(request, local) <= increments.bound(request, local)


@given(RULES, STEPS, STEPS, st.randoms(use_true_random=False), REQUESTS, AMOUNTS)
def test_only_the_latest_increments_count_in_any_order(
    rule: CalibrationRule, earlier: list[Step], latest: list[Step], random: Random, request: int, local: int
) -> None:
    """an increment that is no longer remembered has no effect, and neither has the order of the others"""
    increments = learned(rule, [*earlier, *latest])
    remembered = [*earlier, *latest][-rule.max_samples :]
    shuffled = random.sample(remembered, len(remembered))
    for other in (learned(rule, remembered), learned(rule, shuffled)):
        assert len(other) == len(increments)
        assert other.bound(request, local) == increments.bound(request, local)
        assert other.likely(request, local) == increments.likely(request, local)


@example(rule=CalibrationRule(), steps=[(100, 10, 15)] * 5, request=1_000, local=0)
@example(rule=CalibrationRule(), steps=[(100, 10, 15)] * 5, request=1_000, local=-1)
@example(rule=CalibrationRule(min_score=0, prior_score=0), steps=[(0, 3, 4)] * 5, request=0, local=30_000)  # a third more, in thousandths
@given(rule=RULES, steps=STEPS, request=REQUESTS, local=st.one_of(st.integers(-5, 2), st.integers(-50, 50_000)))
def test_the_increments_equal_their_slow_twin(rule: CalibrationRule, steps: list[Step], request: int, local: int) -> None:
    """rule 3 of `context_window/calibration`, in fractions; scores and ratios are kept in thousandths"""
    increments, remembered = learned(rule, steps), capped(rule, steps)
    if local <= 0:
        assert increments.bound(request, local) == increments.likely(request, local) == 0
        return
    scores = [Fraction(ceil(1_000 * (reported - own) / scale(before, own)), 1_000) for before, own, reported in remembered]
    ratios = [Fraction(floor(Fraction(1_000 * reported, own)), 1_000) for _, own, reported in remembered]
    is_enough = len(remembered) >= SAMPLES_MIN
    event(f"enough: {is_enough}")
    margin = max(Fraction(rule.min_score, 1_000), quantile(scores, rule)) * scale(request, local)
    assert increments.bound(request, local) == max(local + ceil(margin), ceil(median_high(ratios) * local) if is_enough else 0)
    likely = local + floor((median_high(scores) if is_enough else 0) * scale(request, local))
    assert increments.likely(request, local) == max(0, likely)


@given(RULES, STEPS, REQUESTS, AMOUNTS, AMOUNTS, st.integers(1, 2_000), REQUESTS, AMOUNTS)
def test_an_excess_that_the_next_report_takes_back_teaches_nothing(
    rule: CalibrationRule, steps: list[Step], before: int, first: int, second: int, excess: int, request: int, local: int
) -> None:
    """Where a report was too high by tokens that the next one lacks, the two increments count as one"""
    steps, excess = steps[: rule.max_samples - 1], first // 2 + excess  # none is forgotten
    misplaced, together = learned(rule, steps), learned(rule, steps)
    misplaced.follow(Increment(before, first, first + excess))
    misplaced.follow(Increment(before + first + excess, second, second - excess))
    together.follow(Increment(before, first + second, first + second))
    assert len(misplaced) == len(together)
    assert misplaced.bound(request, local) == together.bound(request, local)


@given(RULES, STEPS, REQUESTS, AMOUNTS, AMOUNTS, st.integers(1, 2_000), REQUESTS, AMOUNTS)
def test_an_excess_that_stays_is_learned(
    rule: CalibrationRule, steps: list[Step], before: int, first: int, second: int, excess: int, request: int, local: int
) -> None:
    """An increment is joined with the next one only if that takes back most of its excess"""
    following, alone = learned(rule, steps), learned(rule, steps)
    for increment in (
        Increment(before, first, first + 4 * excess),
        Increment(before + first + 4 * excess, second, second - 3 * excess + 1),
    ):
        following.follow(increment)
        alone.learn(*increment)
    assert len(following) == len(alone)
    assert following.bound(request, local) == alone.bound(request, local)


def scale(request: int, local: int) -> Fraction:
    """The increment up to a limit, a twentieth of the request before it, and 20 tokens."""
    return Fraction(min(local, SCALE_MAX) + request // 20 + 20)


def quantile(scores: list[Fraction], rule: CalibrationRule) -> Fraction:
    """The order statistic of one-sided split conformal prediction. Beyond the scores: the highest, or the prior if that is higher."""
    rank = ceil(Fraction(rule.coverage, 1_000) * (len(scores) + 1))
    return sorted(scores)[rank - 1] if rank <= len(scores) else max([Fraction(rule.prior_score, 1_000), *scores])
