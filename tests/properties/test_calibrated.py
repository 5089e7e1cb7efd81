"""Guarantee: twin, fits and idempotent, with what the provider reported."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from context_window import Plan
from session.items import Message
from session.session import Session
from session.usage import Usage
from tests.support.anchored import fold_anchored
from tests.support.checks import free_tokens
from tests.support.engine import CalibrationRule, Engine, Limits
from tests.support.harness import copy_of, is_settled, process
from tests.support.strategies import limits, reported, sessions
from tests.support.twin import Facts, cost

RULES = st.builds(
    CalibrationRule,
    coverage=st.sampled_from((950, 950, 500)),
    prior_score=st.sampled_from((400, 50, 0)),
    min_score=st.sampled_from((60, 0)),
    removal_worth=st.sampled_from((800, 1000, 0)),
    worth_tokens=st.sampled_from((5_000, 30)),
    max_samples=st.sampled_from((100, 3)),
)


@st.composite
def calibrated(draw: st.DrawFn) -> tuple[Session, Limits]:
    log = draw(reported(draw(sessions())))
    bounds = replace(draw(limits(sum(map(cost, log.items)))), drops_thinking=draw(st.booleans()))
    return log, replace(bounds, calibration=draw(RULES))


@given(st.data())
def test_calibrated_twin(data: st.DataObject) -> None:
    """with constant policy and counts, the incremental fold equals the plain from-scratch one at every prefix, whenever it was called:
    calibration is a function of the log"""
    full_log, bounds = data.draw(calibrated())
    every = data.draw(st.sampled_from((2, 11, 30, 60, 60)))  # the slow twin takes the square of the length
    log = copy_of(full_log)
    engine, facts = Engine(log, bounds), Facts()
    for item in full_log.items:
        log.append(item)
        if len(log.items) >= full_log.settled and data.draw(st.integers(1, every)) == 1:  # a view is there as a whole
            compare(engine, log, facts)
    plan = compare(engine, log, facts)
    event(f"anchored: {plan.calibrated}")
    event(f"trimmed: {bool(plan.changes)}")


def turn(log: Session, size: int, reported: int, output: int = 0) -> None:
    """Append a question of that many characters, and an answer whose request was reported to cost that much."""
    log.add_message("user", "q" * size)
    log.append(Message("assistant", "a", usage=Usage(reported, 0, 0, output)))


@pytest.mark.parametrize(
    ("turns", "question"),
    [
        pytest.param([(10, 30, 500)], 10, id="hidden reasoning that left with its turn"),
        pytest.param([(10, 30)], 9_000, id="more than 5,000 new tokens"),
        pytest.param([(10, 30), (100, 239), (100, 248)], 50, id="an excess that the next report takes back"),
    ],
)
def test_calibrated_twin_of_a_small_log(turns: list[tuple[int, ...]], question: int) -> None:
    """Rules of calibration that random logs seldom reach."""
    log = Session()
    for figures in turns:
        turn(log, *figures)
    log.add_message("user", "q" * question)
    bounds = Limits(100_000, 100_000, 65_000, (Fraction(1, 4),) * 4, drops_thinking=True, calibration=CalibrationRule(prior_score=100))
    compare(Engine(log, bounds), log, Facts())


def compare(engine: Engine, log: Session, facts: Facts) -> Plan:
    outcome = engine.process(log)
    twin = fold_anchored(log, engine.limits, facts)
    assert list(outcome.view.items) == twin.view()
    assert outcome.total == twin.total()
    return outcome.plan


@given(calibrated())
def test_calibrated_fits(drawn: tuple[Session, Limits]) -> None:
    """tokens(view), what the converter must add included, ≤ budget; else `over_budget`, and nothing unprotected left"""
    log, bounds = drawn
    outcome = process(log, bounds)
    assert outcome.plan.over_budget == (outcome.total > bounds.budget)
    if outcome.plan.over_budget:
        assert free_tokens(log, outcome.view, cost, outcome.limits) == 0


@given(calibrated())
def test_calibrated_views_say_what_they_cost(drawn: tuple[Session, Limits]) -> None:
    """a view within its limits, reprocessed by the same function and policy, is unchanged: reports of other requests do not count"""
    log, bounds = drawn[0], replace(drawn[1], drops_thinking=False)  # a view may lack the question that made reasoning free
    first = process(log, bounds)
    if first.view.items == log.items or not is_settled(first):
        return
    second = process(first.view, bounds)
    assert second.total == first.total
    assert second.view.items == first.view.items
