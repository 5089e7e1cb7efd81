"""Reasoning: with its unit, or gone after an edit where the model binds it to what precedes it."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import event, given
from hypothesis import strategies as st

from context_window.trimming.plan import Action, Reason
from session.items import MessageCategory, Reasoning
from tests.support.harness import trim
from tests.support.strategies import limits, sessions
from tests.support.twin import cost

NO_EDITS = (Reason.ORPHAN, Reason.BOUND_REASONING)


@given(st.data())
def test_reasoning(data: st.DataObject) -> None:
    """Models that bind thinking to the prompt before it: at an edit every reasoning item after the edited place is dropped
    too, as decisions of the plan, the last response's included; other models keep reasoning with its unit"""
    log = data.draw(sessions())
    bounds = replace(data.draw(limits(sum(map(cost, log.items)))), binds_thinking=True)
    outcome = trim(log, bounds)
    edits = [place for place, one in enumerate(outcome.plan) if one.action is not Action.KEEP and one.reason not in NO_EDITS]
    if edits:
        event("edited")
        thoughts = [item for item in outcome.view.items if isinstance(item, Reasoning)]
        free = [item.id for item in thoughts if not item.pinned and item.category is not MessageCategory.SYSTEM]
        assert [item_id for item_id in free if (log.position(item_id) or 0) > edits[0]] == []
    unbound = trim(log, replace(bounds, binds_thinking=False))
    assert all(one.reason is not Reason.BOUND_REASONING for one in unbound.plan)
