"""Reasoning: with its unit, or gone after an edit where the model binds it to what precedes it."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from context_window import Action, Reason
from session.items import FunctionCall, FunctionCallOutput, Message, MessageCategory, Reasoning
from session.session import Session
from tests.support.engine import Limits
from tests.support.harness import trim
from tests.support.strategies import limits, sessions
from tests.support.twin import cost, unit_of

NONE = Fraction(0)
NO_EDITS = (Reason.ORPHAN, Reason.REPLACED_PROMPT, Reason.BOUND_REASONING)


@given(st.data())
def test_reasoning(data: st.DataObject) -> None:
    """Models that bind thinking to the prompt before it: at an edit every reasoning item after the edited place is dropped
    too, as decisions of the plan, the last response's included; other models keep reasoning with its unit"""
    log = data.draw(sessions())
    bounds = replace(data.draw(limits(sum(map(cost, log.items)))), binds_thinking=True)
    outcome = trim(log, bounds)
    edited = [
        index if decision.action is Action.DROP else wire_place(log, index)
        for index, decision in enumerate(outcome.plan)
        if decision.action is not Action.KEEP and decision.reason not in NO_EDITS
    ]
    if edited:
        event("edited")
        thoughts = [item for item in outcome.view.items if isinstance(item, Reasoning)]
        free = [item.id for item in thoughts if not item.pinned and item.category is not MessageCategory.SYSTEM]
        assert [item_id for item_id in free if (log.position(item_id) or 0) > min(edited)] == []
    unbound = trim(log, replace(bounds, binds_thinking=False))
    assert all(decision.reason is not Reason.BOUND_REASONING for decision in unbound.plan)


def wire_place(log: Session, index: int) -> int:
    """Where a request shows a change of this item: an output stands right after the calls of its response."""
    items = list(log.items)
    calls = [entry for entry in unit_of(items, log.response_breaks)[index] if isinstance(items[entry], FunctionCall)]
    return max(calls) if calls and isinstance(items[index], FunctionCallOutput) else index


@pytest.mark.parametrize("binds", [True, False])
def test_a_cleared_output_takes_the_reasoning_that_follows_its_call(binds: bool) -> None:
    """In the log the reasoning stands before the output; in a request the output comes first, right after its call."""
    log = Session(
        [
            Message("user", "read it"),
            Reasoning("before", signature="signed", id="before"),
            FunctionCall("Read", "{}", "c"),
            Reasoning("after", signature="signed", id="after"),
            FunctionCallOutput("Read", "x" * 900, "c", id="output"),
            Message("assistant", "done"),
            Message("user", "thanks"),
        ]
    )
    total = sum(map(cost, log.items))
    bounds = Limits(budget=total - 1, trigger=total - 1, target=total - 1, shares=(NONE, NONE, NONE, NONE), binds_thinking=binds)
    outcome = trim(log, bounds)
    assert [decision.item_id for decision in outcome.plan.changes] == (["after", "output"] if binds else ["output"])
    reasons = {decision.reason for decision in outcome.plan.changes if decision.item_id == "after"}
    assert reasons == ({Reason.BOUND_REASONING} if binds else set())
