"""Guarantee: fits."""

from __future__ import annotations

from hypothesis import event, given
from hypothesis import strategies as st

from tests.support.checks import free_tokens, is_shortest
from tests.support.engine import Outcome
from tests.support.harness import process, trim
from tests.support.strategies import chosen_limits, sessions
from tests.support.twin import Twin, cost, twin_of


@given(st.data())
def test_fits(data: st.DataObject) -> None:
    """tokens(view), what the converter must add included, ≤ budget; else `over_budget`/`ContextOverflowError` with the
    numbers and the culprits, and nothing unprotected left"""
    log = data.draw(sessions())
    bounds = data.draw(chosen_limits(sum(map(cost, log.items))))
    for outcome in (process(log, bounds), trim(log, bounds)):
        counted = recount(outcome)
        assert counted == outcome.total == outcome.plan.after
        assert outcome.plan.over_budget == (counted > bounds.budget)
        event(f"over budget: {outcome.plan.over_budget}")
        if outcome.plan.over_budget:
            assert free_tokens(log, outcome.view, cost, outcome.limits) == 0
            assert_nothing_left_to_truncate(outcome)
            largest = max(map(cost, outcome.view.items), default=0)
            assert [culprit.after for culprit in outcome.plan.culprits[:1]] == ([largest] if largest else [])


def recount(outcome: Outcome) -> int:
    """The request counted again from the view's items and the texts that a converter would add."""
    fresh = twin_of(outcome.view, outcome.limits)
    fresh.grow(len(fresh.items))
    return fresh.total()


def assert_nothing_left_to_truncate(outcome: Outcome) -> None:
    twin = Twin(list(outcome.log.items), outcome.log.response_breaks, outcome.limits)
    twin.grow(len(twin.items))
    assert [position for position in twin.unread_context() if outcome.view.get_by_id(twin.items[position].id)] == []
    shrinkable = [*twin.unread_outputs(), *twin.unread_calls(), *(twin.unread_messages() if twin.limits.clamp_messages else [])]
    assert [position for position in shrinkable if not is_shortest(outcome, position)] == []
