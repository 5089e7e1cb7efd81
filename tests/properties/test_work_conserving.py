"""Guarantee: work_conserving."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import event, given
from hypothesis import strategies as st

from context_window.decision.plan import Action, Reason
from tests.support.harness import ladder, process, trim
from tests.support.strategies import limits, sessions
from tests.support.twin import cost
from tests.support.watching import watched_steps


@given(st.data())
def test_work_conserving(data: st.DataObject) -> None:
    """before the last step of a trim the view exceeded its goal"""
    log = data.draw(sessions())
    bounds = data.draw(limits(sum(map(cost, log.items))))
    with watched_steps() as steps:
        process(log, bounds)
        for outcome in ladder(log, bounds):
            trim(log, replace(bounds, budget=max(1, outcome.total)))  # the view before the last step fills this exactly
    event(f"steps: {min(len(steps), 3)}")
    assert all(step.total > step.goal for step in steps)


@given(st.data())
def test_truncation_fills_the_budget(data: st.DataObject) -> None:
    """one-shot truncation fills the budget exactly"""
    log = data.draw(sessions())
    bounds = data.draw(limits(sum(map(cost, log.items))))
    outcome = trim(log, bounds)
    cuts = [decision for decision in outcome.plan if decision.action is Action.TRUNCATE and decision.cut is not None]
    if not any(decision.cut and decision.cut.head + decision.cut.tail for decision in cuts) or outcome.plan.over_budget:
        return
    event("truncated")
    # A character as a reader sees it may be up to eleven letters long, and is never split: of an output that keeps
    # nothing too, what its part has more than that may be too little for one. A cut may take along reasoning that is bound to
    # what precedes it, and that the model would refuse then.
    bound = sum(decision.before for decision in outcome.plan if decision.reason is Reason.BOUND_REASONING)
    assert 0 <= bounds.budget - outcome.total <= 11 * len(cuts) + bound
    if not bound and all(
        item.text.isascii() and "\r" not in item.text
        for decision in cuts
        if (item := log.get_by_id(decision.item_id)) and hasattr(item, "text")
    ):
        assert outcome.total == bounds.budget
