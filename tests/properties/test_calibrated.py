"""Guarantee: twin, fits and idempotent, with what the provider reported."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import event, given
from hypothesis import strategies as st

from context_window.following import Following
from context_window.trimming.anchor import CalibrationRule
from context_window.trimming.limits import Limits
from session.session import Session
from tests.support.anchored import fold_anchored
from tests.support.harness import MEASURER, again, copy_of, process
from tests.support.strategies import limits, reported, sessions
from tests.support.twin import Facts, cost

RULES = st.builds(
    CalibrationRule,
    coverage=st.sampled_from((950, 950, 500)),
    prior=st.sampled_from((400, 50, 0)),
    least=st.sampled_from((10, 0)),
    removed=st.sampled_from((800, 1000, 0)),
    remembered=st.sampled_from((100, 3)),
)


@st.composite
def calibrated(draw: st.DrawFn) -> tuple[Session, Limits]:
    log = draw(reported(draw(sessions())))
    bounds = draw(limits(sum(map(cost, log.items))))
    return log, replace(bounds, calibration=draw(RULES))


@given(st.data())
def test_calibrated_twin(data: st.DataObject) -> None:
    """with constant policy and counts, the incremental fold equals the plain from-scratch one at every prefix, whenever it was called:
    calibration is a function of the log"""
    whole, bounds = data.draw(calibrated())
    every = data.draw(st.sampled_from((1, 7, 7, 11, 60)))  # the slow twin takes the square of what it compares
    log = copy_of(whole)
    following, known = Following(log, bounds, MEASURER), Facts()
    for item in whole.items:
        log.append(item)
        if len(log.items) >= whole.settled and data.draw(st.integers(1, every)) == 1:  # a view is there as a whole
            compare(following, log, known)
    compare(following, log, known)
    event(f"anchored: {following.fold.anchor is not None}")
    event(f"learned: {len(following.fold.increments)}")
    event(f"trimmed: {bool(following.fold.tally.altered)}")


def compare(following: Following, log: Session, known: Facts) -> None:
    outcome = again(following, log)
    twin = fold_anchored(log, following.fold.limits, known)
    assert list(outcome.view.items) == twin.view()
    assert outcome.total == twin.total()
    assert outcome.plan.after == outcome.total


@given(calibrated())
def test_calibrated_fits(drawn: tuple[Session, Limits]) -> None:
    """tokens(view), what the converter must add included, ≤ budget; else `over_budget`, and nothing unprotected left"""
    log, bounds = drawn
    outcome = process(log, bounds)
    assert outcome.plan.over_budget == (outcome.total > bounds.budget)
    if outcome.plan.over_budget:
        fold = outcome.following.fold
        assert all(fold.is_protected(place) for place in fold.shown)


@given(calibrated())
def test_calibrated_views_say_what_they_cost(drawn: tuple[Session, Limits]) -> None:
    """a view within its limits, reprocessed by the same function and policy, is unchanged: reports of other requests do not count"""
    log, bounds = drawn
    first = process(log, bounds)
    if first.view is log or first.plan.over_budget:
        return
    second = process(first.view, bounds)
    assert second.total == first.total
    assert second.view is first.view
