"""Guarantee: monotone."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from hypothesis import event, given
from hypothesis import strategies as st

from context_window import Action
from session.items import FunctionCall, FunctionCallOutput
from session.parts import Image
from session.session import Session
from tests.support.engine import Limits, fair_parts
from tests.support.harness import trim
from tests.support.strategies import limits, sessions
from tests.support.twin import cost, poured

WHOLE = {Action.DROP: 0, Action.CLEAR: 1, Action.TRUNCATE: 2, Action.REPLACE_IMAGES: 3, Action.KEEP: 4}


@given(st.data())
def test_monotone(data: st.DataObject) -> None:
    """one-shot, shares fixed in tokens: a larger budget leaves every item at least as whole"""
    log = data.draw(sessions())
    total = sum(map(cost, log.items))
    bounds = data.draw(limits(total))
    if any(bounds.shares):
        bounds = replace(bounds, items_max=None)  # of items, too, a share is a part: one that is fixed in tokens would be another
    shares = [int(share * bounds.budget) for share in bounds.shares]
    larger_budget = bounds.budget + data.draw(st.integers(1, max(1, total)))

    def with_budget(budget: int) -> dict[str, tuple[int, int]]:
        fixed = tuple(Fraction(share, budget) for share in shares)
        outcome = trim(log, replace(bounds, budget=budget, shares=(fixed[0], fixed[1], fixed[2], fixed[3])))
        return {decision.item_id: (WHOLE[decision.action], decision.after) for decision in outcome.plan}

    smaller, larger = with_budget(bounds.budget), with_budget(larger_budget)
    if smaller != larger:
        event("the larger budget shows more")
    assert all(larger[item_id] >= smaller[item_id] for item_id in smaller)


def test_one_output_that_cannot_shrink_takes_no_room_from_others_as_the_budget_grows() -> None:
    """Found by the property above: what the small output did not need went to the large ones only while the stiff one stood apart."""
    ids = ("small", "large", "stiff", "large too")
    texts = ("x", "x" * 300, "x" * 300, "x" * 300)
    log = Session([FunctionCall("tool", "", one, id=f"call {one}") for one in ids])
    for one, text in zip(ids, texts, strict=True):
        content = (Image(url="u", width=60, height=10), text) if one == "stiff" else text
        log.append(FunctionCallOutput("tool", content, one, id=one))
    before = dict.fromkeys(ids, 0)
    for budget in range(100, sum(map(cost, log.items)), 3):
        bounds = Limits(budget, budget, budget, (Fraction(0),) * 4, images_kept=1)
        after = {decision.item_id: decision.after for decision in trim(log, bounds).plan if decision.item_id in ids}
        assert all(after[one] >= before[one] for one in ids), budget
        before = after


@given(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)).map(sorted), max_size=5))
def test_parts_are_fair(outputs: list[list[int]]) -> None:
    """The room is shared out as if a token at a time went to the one that has the least; none gets less for more room."""
    least, most = tuple(low for low, _ in outputs), tuple(high for _, high in outputs)
    before = list(least)
    for room in range(sum(least) - 2, sum(most) + 2):
        parts = fair_parts(room, least, most)
        assert parts == poured(room, least, most)
        assert all(now >= then for now, then in zip(parts, before, strict=True))
        before = parts
