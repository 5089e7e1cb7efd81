"""Guarantee: fits."""

from __future__ import annotations

from hypothesis import event, given
from hypothesis import strategies as st

from context_window.trimming.placeholders import changed
from context_window.trimming.plan import Cut
from session.items import FunctionCallOutput
from tests.support.checks import free_tokens
from tests.support.harness import Outcome, process, trim
from tests.support.strategies import limits, sessions
from tests.support.twin import Twin, cost, responses


@given(st.data())
def test_fits(data: st.DataObject) -> None:
    """tokens(view), what the converter must add included, ≤ budget; else `over_budget`/`ContextOverflowError` with the
    numbers and the culprits, and nothing unprotected left"""
    log = data.draw(sessions())
    bounds = data.draw(limits(sum(map(cost, log.items))))
    for outcome in (process(log, bounds), trim(log, bounds)):
        counted = recount(outcome)
        assert counted == outcome.total == outcome.plan.after
        assert outcome.plan.over_budget == (counted > bounds.budget)
        event(f"over budget: {outcome.plan.over_budget}")
        if outcome.plan.over_budget:
            assert free_tokens(log, outcome.view, cost) == 0
            assert_nothing_left_to_truncate(outcome)
            largest = max(map(cost, outcome.view.items), default=0)
            assert [culprit.tokens for culprit in outcome.following.culprits()[:1]] == ([largest] if outcome.view.items else [])


def recount(outcome: Outcome) -> int:
    """The request counted anew from the view's items, and from what a converter would add to them."""
    fresh = Twin(list(outcome.view.items), outcome.view.response_breaks, outcome.following.fold.limits)
    fresh.grow(len(fresh.items))
    return fresh.total()


def assert_nothing_left_to_truncate(outcome: Outcome) -> None:
    items = list(outcome.log.items)
    said = responses(items, outcome.log.response_breaks)
    shown = {item.id: item for item in outcome.view.items}
    decisions = {decision.item_id: decision for decision in outcome.plan}
    for item in items[said[-1][0] :] if said else []:
        if isinstance(item, FunctionCallOutput) and item.id in shown and not item.pinned and item.category.value != "SYSTEM":
            shortest = changed(item, decisions[item.id].images, Cut(0, 0, 0))
            assert cost(shown[item.id]) <= cost(shortest)
