"""Guarantee: twin, whatever the strategy. The engine against the slow form written from the prose."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import event, given
from hypothesis import strategies as st

from context_window.strategies import PriorityTrim
from tests.support.engine import Engine
from tests.support.harness import copy_of, exact, trim
from tests.support.strategic import Recorder, decided, decided_by, strategies
from tests.support.strategies import chosen_limits, sessions
from tests.support.twin import cost


@given(st.data())
def test_twin(data: st.DataObject) -> None:
    """with constant policy and counts, the incremental fold equals the plain from-scratch one at every prefix, whenever it was called"""
    full_log = data.draw(sessions(max_steps=12))
    strategy = data.draw(strategies())
    bounds = decided_by(strategy, data.draw(chosen_limits(sum(map(cost, full_log.items)))))
    calls = data.draw(st.sampled_from(("at the end", "sometimes")))
    log = copy_of(full_log)
    engine = Engine(log, bounds)
    for item in full_log.items:
        log.append(item)
        if item is full_log.items[-1] or (calls == "sometimes" and data.draw(st.integers(0, 7)) == 7):
            outcome = engine.process(log)
            twin = decided(log, bounds, strategy)
            assert list(outcome.view.items) == twin.view()
            assert outcome.total == twin.total()
            event(f"{type(strategy).__name__} takes something: {bool(twin.dropped or twin.cleared)}")


@given(st.data())
def test_one_shot_twin(data: st.DataObject) -> None:
    """`trim_session(session)` is the one-shot form: no history, to the budget; and it may take the newest first"""
    log = data.draw(sessions(max_steps=12))
    strategy = data.draw(strategies())
    bounds = decided_by(strategy, data.draw(chosen_limits(sum(map(cost, log.items)))))
    bounds = replace(bounds, newest_first=data.draw(st.booleans()))
    outcome = trim(log, bounds)
    twin = decided(log, exact(bounds), strategy, one_shot=True)
    assert list(outcome.view.items) == twin.view()
    assert outcome.total == twin.total()


@given(st.data())
def test_what_a_strategy_is_given_is_what_is_in_the_view(data: st.DataObject) -> None:
    """measured units and budget in: each item of the view is in one unit, with its tokens, and with what protects it, also after another
    strategy has taken something"""
    log = data.draw(sessions(max_steps=12))
    strategy = data.draw(strategies())
    bounds = replace(data.draw(chosen_limits(sum(map(cost, log.items)))), newest_first=data.draw(st.booleans()))
    recorders = Recorder(), Recorder()
    outcome = trim(log, decided_by(PriorityTrim() | strategy | recorders[0], bounds))
    chain = PriorityTrim() | strategy | recorders[1]
    twin = decided(log, exact(decided_by(chain, bounds)), chain, one_shot=True)
    assert list(outcome.view.items) == twin.view()
    assert (recorders[0].units, recorders[0].budgets) == (recorders[1].units, recorders[1].budgets)
    for units, others, budget in zip(recorders[0].units, recorders[1].units, recorders[0].budgets, strict=True):
        assert [unit.contents for unit in units] == [unit.contents for unit in others]
        assert sum(unit.tokens for unit in units) + budget.overhead == budget.total
        event(f"something can be cleared: {any(unit.clearing_saves for unit in units)}")
        event(f"something is shortened: {any(unit.is_shortened for unit in units)}")
