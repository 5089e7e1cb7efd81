"""Guarantee: twin. The engine against the slow form written from the prose."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import event, given, target
from hypothesis import strategies as st

from session.session import Session
from tests.support.engine import Engine
from tests.support.harness import copy_of, exact, process, trim
from tests.support.strategies import chosen_limits, sessions
from tests.support.twin import Facts, Twin, cost, fold, one_shot, responses


@given(st.data())
def test_twin(data: st.DataObject) -> None:
    """with constant policy and counts, the incremental fold equals the plain from-scratch one at every prefix, whenever it
    was called"""
    full_log = data.draw(sessions())
    bounds = replace(data.draw(chosen_limits(sum(map(cost, full_log.items)))), drops_thinking=data.draw(st.booleans()))
    calls = data.draw(st.sampled_from(("always", "sometimes", "at the end")))
    log = copy_of(full_log)
    engine, facts = Engine(log, bounds), Facts()
    for item in full_log.items:
        log.append(item)
        if calls == "always" or (calls == "sometimes" and data.draw(st.booleans())):
            compare(engine, log, facts)
    twin = compare(engine, log, facts)
    event(f"trims: {bool(twin.dropped or twin.cleared or twin.cuts)}")
    target(float(len(twin.cleared)), label="cleared")


EDITS = st.sampled_from(("grow", "grow", "grow", "grow", "pin", "unpin", "system", "pin what is new"))


@given(st.data())
def test_twin_after_edits(data: st.DataObject) -> None:
    """An in-place edit of the log starts the fold again: pinning, unpinning, and a new system message, between calls"""
    full_log = data.draw(sessions())
    bounds = replace(data.draw(chosen_limits(sum(map(cost, full_log.items)))), drops_thinking=data.draw(st.booleans()))
    log = copy_of(full_log)
    left = list(full_log.items)
    engine = Engine(log, bounds)
    while left:
        edit = data.draw(EDITS)
        if edit == "grow" or not log.items:
            count = data.draw(st.integers(1, 8))
            for item in left[:count]:
                log.append(item)
            del left[:count]
        elif edit == "system":
            log.add_message("system", f"rules {len(left)}", f"system {len(log.items)} {len(left)}", 0.0, replace=True)
        elif edit == "unpin":
            for item in [entry for entry in log.items if entry.pinned][:2]:
                log.unpin(item.id)
        else:
            log.pin(log.items[-1 if edit == "pin what is new" else data.draw(st.integers(0, len(log.items) - 1))].id)
        if data.draw(st.booleans()):
            compare(engine, log)
            event(f"after {edit}")
    compare(engine, log)
    cold = process(log, bounds)
    warm = engine.process(log)
    assert list(warm.view.items) == list(cold.view.items)
    assert warm.plan == cold.plan


def compare(engine: Engine, log: Session, facts: Facts | None = None) -> Twin:
    """The twin, computed from scratch but for what the log is at each length: `facts`, as long as the log only grows."""
    outcome = engine.process(log)
    twin = fold(log, engine.limits, facts)
    assert list(outcome.view.items) == twin.view()
    assert outcome.total == twin.total()
    assert outcome.view.removed == twin.removed_line()
    assert outcome.view.usage_noted_after == outcome.plan.usage_noted_after == twin.usage_noted_after()
    return twin


@given(st.data())
def test_twin_after_a_refusal(data: st.DataObject) -> None:
    """Other amounts hold from the last request on; earlier decisions stay, since that request was sent with them"""
    full_log = data.draw(sessions())
    first = data.draw(chosen_limits(sum(map(cost, full_log.items))))
    budget = first.budget * data.draw(st.integers(50, 110)) // 100 + 1
    later = replace(first, budget=budget, trigger=min(first.trigger, budget), target=min(first.target, budget))
    change = data.draw(st.integers(0, len(full_log.items)))
    log = copy_of(full_log)
    engine = Engine(log, first)
    twin = Twin(list(full_log.items), full_log.response_breaks, first)
    for position, item in enumerate([*full_log.items, None]):
        if position == change:
            engine.process(log)
            engine.change_limits(later)
            engine.process(log)
        if item is not None:
            log.append(item)
    for response in responses(twin.items, twin.breaks):
        twin.grow(response[0])
        twin.limits = later if response[0] >= change else first
        twin.trim()
    twin.grow(len(full_log.items))
    twin.limits = later
    twin.trim()
    outcome = engine.process(log)
    assert list(outcome.view.items) == twin.view()
    assert outcome.total == twin.total()
    assert outcome.view.removed == twin.removed_line()
    assert outcome.view.usage_noted_after == outcome.plan.usage_noted_after == twin.usage_noted_after()
    event(f"trims: {bool(twin.dropped or twin.cleared or twin.cuts)}")


@given(st.data())
def test_one_shot_twin(data: st.DataObject) -> None:
    """`trim_session(session)` is the one-shot form: no history, trims exactly to the budget"""
    log = data.draw(sessions())
    bounds = data.draw(chosen_limits(sum(map(cost, log.items))))
    bounds = replace(bounds, newest_first=data.draw(st.booleans()))
    outcome = trim(log, bounds)
    twin = one_shot(log, exact(bounds))
    assert list(outcome.view.items) == twin.view()
    assert outcome.total == twin.total()
    assert outcome.view.removed == twin.removed_line()
    assert outcome.view.usage_noted_after == outcome.plan.usage_noted_after == twin.usage_noted_after()
