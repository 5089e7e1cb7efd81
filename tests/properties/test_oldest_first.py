"""Guarantee: oldest_first."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from context_window import Action, Reason
from session.items import MessageCategory
from tests.support.checks import check_oldest_first, cost_cleared, protected
from tests.support.harness import trim
from tests.support.strategies import limits, sessions, without_compactions
from tests.support.twin import cost, unit_of

BY_AGE: dict[str, Any] = {"tool_rules": {}, "clear_superseded": False}


@given(st.data())
def test_oldest_first(data: st.DataObject) -> None:
    """at each trim, per category, the dropped units are a prefix of those that could be dropped, and so are the
    cleared ones; a unit is as old as the item that completed it"""
    log = without_compactions(data.draw(sessions()))
    bounds = replace(data.draw(limits(sum(map(cost, log.items)))), binds_thinking=False, keep_first_message=False, **BY_AGE)
    outcome = trim(log, bounds)
    check_oldest_first(log, outcome.view)
    items = list(log.items)
    units = unit_of(items, log.response_breaks)
    kept_back = protected(items, log.response_breaks)
    is_call = [item.type == "function_call" for item in items]  # of a unit, the outputs are cleared before the calls
    cleared = [
        (units[position][-1], is_call[position], position) for position, entry in enumerate(outcome.plan) if entry.action is Action.CLEAR
    ]
    for position, decision in enumerate(outcome.plan):
        free = decision.reason is Reason.FITS and position not in kept_back and decision.category is MessageCategory.SYSTEM_OUTPUT
        may_go = items[position].type == "function_call_output" or (is_call[position] and bounds.clear_call_inputs)
        if cleared and free and may_go and cost_cleared(items[position]) < decision.after:
            assert (units[position][-1], is_call[position], position) > max(cleared), "a newer output or call was cleared before this one"


@given(st.data())
def test_newest_first(data: st.DataObject) -> None:
    """`preserve_recency=False` takes the newest first: the dropped units of a category are a suffix of those that could be dropped."""
    log = without_compactions(data.draw(sessions()))
    bounds = replace(
        data.draw(limits(sum(map(cost, log.items)))),
        binds_thinking=False,
        keep_first_message=False,
        tool_rules={},
        clear_superseded=False,
        newest_first=True,
    )
    outcome = trim(log, bounds)
    items = list(log.items)
    kept_back = protected(items, log.response_breaks)
    units = {tuple(unit): unit for unit in unit_of(items, log.response_breaks).values() if not kept_back.intersection(unit)}
    for category in {decision.category for decision in outcome.plan}:
        ages = {True: [0], False: [len(items)]}
        for unit in units.values():
            decision = outcome.plan.decisions[unit[0]]
            if decision.category is category and decision.reason not in (Reason.ORPHAN, Reason.REPLACED_PROMPT):
                ages[decision.action is not Action.DROP].append(unit[-1])
        assert max(ages[True]) <= min(ages[False])
