"""Guarantee: the bound on an increment holds for all but a few of those it was learned from, and depends on the latest ones alone."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor
from random import Random
from statistics import fmean, median_high
from typing import TypeAlias

from hypothesis import event, example, given
from hypothesis import strategies as st

from context_window.calibration.conformal import SAMPLES_MIN, SCALE_MAX, Increment, Increments
from context_window.settings.budget import UNKNOWN
from tests.support.engine import CalibrationRule

Step: TypeAlias = tuple[int, int, int]
"""Reported tokens of the request before, and the increment: its local count and its reported tokens."""

RULES = st.builds(
    CalibrationRule,
    coverage=st.integers(1, 999),
    prior_score=st.sampled_from((0, 50, 400)),
    prior_samples=st.sampled_from((0, 6, 20)),
    request_part=st.sampled_from((20, 50)),
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
    """at the stated coverage, but for one more, the one furthest out"""
    increments, remembered = learned(rule, steps), capped(rule, steps)
    covered = sum(reported <= increments.bound(request, local) for request, local, reported in remembered)
    event(f"all are covered: {covered == len(remembered)}")
    assert covered >= ceil(Fraction(rule.coverage, 1_000) * len(remembered)) - 1


@given(RULES, STEPS, REQUESTS, REQUESTS, AMOUNTS, AMOUNTS)
def test_the_bound_grows_with_the_request_and_with_the_increment(
    rule: CalibrationRule, steps: list[Step], request: int, larger_request: int, local: int, larger: int
) -> None:
    """a larger increment after a larger request is never bounded lower"""
    increments = learned(rule, steps)
    (request, larger_request), (local, larger) = sorted((request, larger_request)), sorted((local, larger))
    assert increments.bound(request, local) <= increments.bound(request, larger)
    assert increments.bound(request, local) <= increments.bound(larger_request, local)
    if rule.coverage >= 700:
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
    is_enough = len(remembered) >= SAMPLES_MIN
    event(f"enough: {is_enough}")
    ratio = median_high(Fraction(1_000 * reported // own, 1_000) for _, own, reported in remembered) if is_enough else Fraction(1)
    scores = [
        Fraction(ceil(1_000 * (reported - floor(ratio * own)) / scale(before, own, rule)), 1_000) for before, own, reported in remembered
    ]
    expected, size = floor(ratio * local), scale(request, local, rule)
    assert increments.bound(request, local) == expected + ceil(quantile(scores, rule) * size)
    assert increments.likely(request, local) == max(0, expected + floor((median_high(scores) if is_enough else 0) * size))


ORDINARY = st.lists(st.tuples(REQUESTS, st.integers(1, SCALE_MAX), st.integers(-20, 20)), max_size=60)
"""Requests, increments that count in full, and thousandths by which a report differs from the count."""
DEFAULTS = st.sampled_from((CalibrationRule(), CalibrationRule(prior_score=50), UNKNOWN))


@given(DEFAULTS, ORDINARY, ORDINARY, REQUESTS, AMOUNTS, st.integers(0, 10**6), REQUESTS, AMOUNTS)
def test_one_jump_of_any_size_changes_no_later_bound(
    rule: CalibrationRule, before: list[Step], after: list[Step], request: int, local: int, jump: int, later: int, added: int
) -> None:
    """text that is in no log, once, leaves bounds on ordinary increments as they were, but for the spread of their own ratios"""
    jumped, plain = learned(rule, ordinary(before)), learned(rule, ordinary(before))
    jumped.learn(request, local, local + jump)
    plain.learn(request, local, local)
    most = added * 4 // 100 + 1
    assert abs(jumped.bound(later, added) - plain.bound(later, added)) <= most
    for step in ordinary(after):
        jumped.learn(*step)
        plain.learn(*step)
        assert abs(jumped.bound(later, added) - plain.bound(later, added)) <= most


def ordinary(steps: list[Step]) -> list[Step]:
    """The steps with reports that differ little from their counts."""
    return [(request, local, local + int(local * thousandths / 1_000)) for request, local, thousandths in steps]


def test_ordinary_increments_stay_covered_among_jumps() -> None:
    """One request in thirty grows by 500 to 20,000 tokens more than counted: the others are covered, and their bounds are near"""
    random, bounds = Random(3), list[tuple[int, int, int]]()
    for rule in (CalibrationRule(prior_score=200), UNKNOWN):
        for _ in range(20):
            increments, request = Increments(rule), random.randrange(5_000, 40_000)
            for _ in range(100):
                local, jump = random.randrange(50, 3_000), random.randrange(500, 20_000) if random.random() < 1 / 30 else 0
                reported = int(local * random.gauss(1.02, 0.04)) + jump
                if not jump:
                    bounds.append((request, reported, increments.bound(request, local)))
                increments.follow(Increment(request, local, reported))
                request += reported
    assert fmean(bound >= reported for _, reported, bound in bounds) > 0.98
    assert fmean((bound - reported) / (request + reported) for request, reported, bound in bounds) < 0.011
    assert fmean(bound - reported > (request + reported) / 5 for request, reported, bound in bounds) < 0.002


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


def scale(request: int, local: int, rule: CalibrationRule) -> Fraction:
    """The increment up to a limit, a part of the request before it, and 20 tokens."""
    return Fraction(min(local, SCALE_MAX) + request // rule.request_part + 20)


def quantile(scores: list[Fraction], rule: CalibrationRule) -> Fraction:
    """The highest score that is covered, of all but one; at least the prior until enough are seen."""
    rank = ceil(Fraction(rule.coverage, 1_000) * len(scores)) - 1
    prior = rule.prior_score if len(scores) < rule.prior_samples else 0
    return max([Fraction(max(prior, rule.min_score), 1_000), *sorted(scores)[: max(0, rank)][-1:]])
