"""Guarantee: work_conserving."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from hypothesis import event, given
from hypothesis import strategies as st

from context_window import Action, Reason
from session.items import FunctionCall, Item
from tests.support.engine import BOUNDLESS, Outcome
from tests.support.harness import trim
from tests.support.strategies import limits, sessions
from tests.support.twin import cost


@given(st.data())
def test_work_conserving(data: st.DataObject) -> None:
    """before the last step of a trim the view exceeded its goal: a budget that the view fills exactly gives the same view"""
    log = data.draw(sessions())
    bounds = replace(data.draw(limits(sum(map(cost, log.items)))), items_max=None, usage_noted_from=BOUNDLESS)
    shares = [int(share * bounds.budget) for share in bounds.shares]

    def trimmed(budget: int) -> Outcome:
        system, context, dialog, output = (Fraction(share, budget) for share in shares)  # fixed in tokens
        return trim(log, replace(bounds, budget=budget, shares=(system, context, dialog, output)))

    budget, steps = bounds.budget, 0
    while budget > 0:
        outcome = trimmed(budget)
        if not 0 < outcome.total <= budget or any(decision.cut for decision in outcome.plan):
            break
        assert trimmed(outcome.total).plan.decisions == outcome.plan.decisions
        budget, steps = outcome.total - 1, steps + 1
    event(f"steps: {min(steps, 3)}")


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
    if not bound and all(is_cut_to_the_letter(log.get_by_id(decision.item_id)) for decision in cuts):
        assert outcome.total == bounds.budget


def is_cut_to_the_letter(item: Item | None) -> bool:
    """True if each character of the item's text is one letter: of a call, none is escaped in the JSON of its arguments."""
    if isinstance(item, FunctionCall):
        return item.arguments.isascii() and "\\" not in item.arguments
    text = getattr(item, "text", "")
    return text.isascii() and "\r" not in text
