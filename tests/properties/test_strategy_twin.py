"""Guarantee: twin, whatever the strategy. The engine against the slow form written from the prose."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import event, given
from hypothesis import strategies as st

from context_window.trimming.strategy_units import UnitsInView, budget_of
from context_window.decision.replay import Replay
from tests.support.harness import MEASURER, again, copy_of, exact, trim
from tests.support.strategic import StrategicTwin, decided, decided_by, strategies
from tests.support.strategies import limits, sessions
from tests.support.twin import cost


@given(st.data())
def test_twin(data: st.DataObject) -> None:
    """with constant policy and counts, the incremental fold equals the plain from-scratch one at every prefix, whenever it was called"""
    whole = data.draw(sessions(max_steps=12))
    strategy = data.draw(strategies())
    bounds = decided_by(strategy, data.draw(limits(sum(map(cost, whole.items)))))
    calls = data.draw(st.sampled_from(("at the end", "sometimes")))
    log = copy_of(whole)
    tracker = Replay(log, bounds, MEASURER)
    for item in whole.items:
        log.append(item)
        if item is whole.items[-1] or (calls == "sometimes" and data.draw(st.integers(0, 7)) == 7):
            outcome = again(tracker, log)
            twin = decided(log, bounds, strategy)
            assert list(outcome.view.items) == twin.view()
            assert outcome.total == twin.total()
            event(f"{type(strategy).__name__} takes something: {bool(twin.dropped or twin.cleared)}")


@given(st.data())
def test_one_shot_twin(data: st.DataObject) -> None:
    """`trim_session(session)` is the one-shot form: no history, to the budget; and it may take the newest first"""
    log = data.draw(sessions(max_steps=12))
    strategy = data.draw(strategies())
    bounds = decided_by(strategy, data.draw(limits(sum(map(cost, log.items)))))
    bounds = replace(bounds, newest_first=data.draw(st.booleans()))
    outcome = trim(log, bounds)
    twin = decided(log, exact(bounds), strategy, one_shot=True)
    assert list(outcome.view.items) == twin.view()
    assert outcome.total == twin.total()


@given(st.data())
def test_what_a_strategy_is_given_is_what_is_in_the_view(data: st.DataObject) -> None:
    """measured units and budget in: each item of the view is in one unit, with its tokens, and with what protects it"""
    log = data.draw(sessions(max_steps=12))
    bounds = replace(data.draw(limits(sum(map(cost, log.items)))), newest_first=data.draw(st.booleans()))
    if data.draw(st.booleans()):  # as it is, with much to clear in it
        bounds = bounds.boundless()
    outcome = trim(log, bounds)
    twin = StrategicTwin(list(log.items), log.response_breaks, exact(bounds))
    twin.grow(len(log.items))
    twin.trim()
    fold = outcome.tracker.fold
    units = UnitsInView(fold)
    assert list(units) == twin.measured() == [units[place] for place in range(len(units))]
    assert [unit.contents for unit in units] == [unit.contents for unit in twin.measured()]
    assert units[1:] == tuple(twin.measured()[1:])
    assert budget_of(fold, fold.limits) == twin.budget()
    assert sum(unit.tokens for unit in units) + twin.budget().overhead == outcome.total
    event(f"something can be cleared: {any(unit.clearing_saves for unit in units)}")
    assert sorted(place for unit in units for place in unit.places) == list(fold.visible)
