"""Guarantee: twin. The engine against the slow form written from the prose."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import event, given, target
from hypothesis import strategies as st

from context_window.following import Following
from session.session import Session
from tests.support.harness import MEASURER, again, copy_of, exact, trim
from tests.support.strategies import limits, sessions
from tests.support.twin import cost, fold, one_shot


@given(st.data())
def test_twin(data: st.DataObject) -> None:
    """with constant policy and counts, the incremental fold equals the plain from-scratch one at every prefix, whenever it
    was called"""
    whole = data.draw(sessions())
    bounds = data.draw(limits(sum(map(cost, whole.items))))
    calls = data.draw(st.sampled_from(("always", "sometimes", "at the end")))
    log = copy_of(whole)
    following = Following(log, bounds, MEASURER)
    for item in whole.items:
        log.append(item)
        if calls == "always" or (calls == "sometimes" and data.draw(st.booleans())):
            compare(following, log)
    compare(following, log)
    twin = fold(log, bounds)
    event(f"trims: {bool(twin.dropped or twin.cleared or twin.cuts)}")
    target(float(len(twin.cleared)), label="cleared")


def compare(following: Following, log: Session) -> None:
    outcome = again(following, log)
    twin = fold(log, following.fold.limits)
    assert list(outcome.view.items) == twin.view()
    assert outcome.total == twin.total()


@given(st.data())
def test_one_shot_twin(data: st.DataObject) -> None:
    """`trim_session(session)` is the one-shot form: no history, trims exactly to the budget"""
    log = data.draw(sessions())
    bounds = data.draw(limits(sum(map(cost, log.items))))
    bounds = replace(bounds, newest_first=data.draw(st.booleans()))
    outcome = trim(log, bounds)
    twin = one_shot(log, exact(bounds))
    assert list(outcome.view.items) == twin.view()
    assert outcome.total == twin.total()
