"""Guarantee: monotone."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from hypothesis import event, given
from hypothesis import strategies as st

from context_window.trimming.plan import Action
from tests.support.harness import trim
from tests.support.strategies import limits, sessions
from tests.support.twin import cost

WHOLE = {Action.DROP: 0, Action.CLEAR: 1, Action.TRUNCATE: 2, Action.REPLACE_IMAGES: 3, Action.KEEP: 4}


@given(st.data())
def test_monotone(data: st.DataObject) -> None:
    """one-shot, shares fixed in tokens: a larger budget leaves every item at least as whole"""
    log = data.draw(sessions())
    total = sum(map(cost, log.items))
    bounds = data.draw(limits(total))
    shares = [int(share * bounds.budget) for share in bounds.shares]
    larger_budget = bounds.budget + data.draw(st.integers(1, max(1, total)))

    def with_budget(budget: int) -> dict[str, tuple[int, int]]:
        fixed = tuple(Fraction(share, budget) for share in shares)
        outcome = trim(log, replace(bounds, budget=budget, shares=(fixed[0], fixed[1], fixed[2], fixed[3])))
        return {one.item_id: (WHOLE[one.action], one.after) for one in outcome.plan}

    smaller, larger = with_budget(bounds.budget), with_budget(larger_budget)
    if smaller != larger:
        event("the larger budget shows more")
    assert all(larger[item_id] >= smaller[item_id] for item_id in smaller)
