"""Guarantee: work_conserving."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import event, given
from hypothesis import strategies as st

from context_window.trimming import steps
from context_window.trimming.plan import Action, Reason
from context_window.trimming.state import ViewState
from tests.support.harness import process, trim
from tests.support.strategies import limits, sessions
from tests.support.twin import cost


@given(st.data())
def test_work_conserving(data: st.DataObject) -> None:
    """before the last step of a trim the view exceeded its goal"""
    log = data.draw(sessions())
    bounds = replace(data.draw(limits(sum(map(cost, log.items)))), items_max=None)
    seen: list[tuple[int, int]] = []  # (tokens before the step, goal)
    taken = steps.take_tokens

    def watched(view: ViewState, goal: int) -> None:
        clear, drop = view.clear, view.drop

        def clear_watched(place: int, reason: Reason) -> None:
            seen.append((view.total, goal))
            clear(place, reason)

        def drop_watched(head: int, reason: Reason) -> None:
            seen.append((view.total, goal))
            drop(head, reason)

        view.clear, view.drop = clear_watched, drop_watched  # type: ignore[method-assign]
        try:
            taken(view, goal)
        finally:
            view.clear, view.drop = clear, drop  # type: ignore[method-assign]

    steps.take_tokens = watched
    try:
        process(log, bounds)
        trim(log, bounds)
    finally:
        steps.take_tokens = taken
    assert all(tokens > goal for tokens, goal in seen)


@given(st.data())
def test_truncation_fills_the_budget(data: st.DataObject) -> None:
    """one-shot truncation fills the budget exactly"""
    log = data.draw(sessions())
    bounds = data.draw(limits(sum(map(cost, log.items))))
    outcome = trim(log, bounds)
    cuts = [one for one in outcome.plan if one.action is Action.TRUNCATE and one.cut is not None and one.cut.head + one.cut.tail]
    if not cuts or outcome.plan.over_budget:
        return
    event("truncated")
    # A character as a reader sees it may be up to eleven letters long, and is never split.
    assert 0 <= bounds.budget - outcome.total <= 11 * len(cuts)
    if all(item.text.isascii() and "\r" not in item.text for one in cuts if (item := log.get_by_id(one.item_id)) and hasattr(item, "text")):
        assert outcome.total == bounds.budget
