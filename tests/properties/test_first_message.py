"""Guarantee: first message."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import event, given
from hypothesis import strategies as st

from context_window import ContextWindow, ContextWindowManager, Reason
from session.items import Message, MessageCategory
from session.session import Session
from tests.support.checks import check_oldest_first, free_tokens
from tests.support.engine import Outcome
from tests.support.harness import ladder, process, trim
from tests.support.strategies import limits, sessions
from tests.support.twin import cost


@given(st.data())
def test_first_message(data: st.DataObject) -> None:
    """with `keep_first_message`, the first user message stays until nothing else can be dropped"""
    log = data.draw(sessions())
    bounds = replace(data.draw(limits(sum(map(cost, log.items)))), keep_first_message=True)
    for outcome in (trim(log, bounds), *ladder(log, bounds)):
        messages = [item for item in log.items if is_message_of_the_user(item)]
        reasons = [outcome.plan.decisions[log.items.index(item)].reason for item in messages]
        if reasons and reasons[0] in (Reason.OVER_BUDGET, Reason.OVER_SHARE, Reason.TOO_MANY_ITEMS):
            event("nothing else was left")
            assert free_tokens(log, outcome.view, cost, outcome.limits) == 0
        event(f"kept as the first: {Reason.FIRST_MESSAGE in reasons}")


@given(st.data())
def test_only_the_first_message_is_spared(data: st.DataObject) -> None:
    """what else is dropped is the oldest of its category"""
    log = data.draw(sessions())
    bounds = replace(data.draw(limits(sum(map(cost, log.items)))), keep_first_message=True, binds_thinking=False)
    bounds = replace(bounds, tool_rules={}, clear_superseded=False)  # these spare results whatever their age
    outcome = trim(log, bounds)
    first = first_of_view(outcome)
    if not any(decision.reason is Reason.COMPACTED for decision in outcome.plan):
        check_oldest_first(log, outcome.view, excused=lambda item: item.id == first)


@given(st.data())
def test_a_conversation_keeps_its_first_message(data: st.DataObject) -> None:
    """the view's first user message is the log's, unless a summary stands for it or a request point left nothing else"""
    log = data.draw(sessions())
    bounds = replace(data.draw(limits(sum(map(cost, log.items)))), keep_first_message=True)
    outcome = process(log, bounds)
    if outcome.total <= bounds.budget and bounds.items_max is None:
        kept = [decision for decision in outcome.plan if decision.reason is Reason.FIRST_MESSAGE]
        assert len(kept) <= 1
        assert [decision.item_id for decision in kept] in ([], [first_of_view(outcome)])


def first_of_view(outcome: Outcome) -> str | None:
    return next((item.id for item in outcome.view.items if is_message_of_the_user(item)), None)


def is_message_of_the_user(item: object) -> bool:
    return isinstance(item, Message) and item.role == "user" and item.category is not MessageCategory.CONTEXT


def test_the_task_outlives_everything_but_the_frontier() -> None:
    log = Session(id="s")
    log.append(Message("user", "never touch /vendor", id="task"))
    for turn in range(8):
        log.append(Message("assistant", "y" * 100, id=f"a{turn}"))
        log.append(Message("user", "z" * 100, id=f"u{turn}"))
    manager = ContextWindowManager(
        token_counter=len, context_window=ContextWindow(max_tokens=400, keep_first_message=True, clamp_messages=False)
    )
    view, plan = manager.process_session(log), manager.plan_session(log)
    assert view.items[0].id == "task"
    assert plan.decisions[0].reason is Reason.FIRST_MESSAGE
    assert not plan.over_budget
    log.append(Message("assistant", "y" * 100, id="a"))
    log.append(Message("user", "z" * 290, id="question"))
    assert [item.id for item in manager.process_session(log).items] == ["question"] or manager.plan_session(log).over_budget
    without = ContextWindowManager(token_counter=len, context_window=ContextWindow(max_tokens=400))
    assert without.process_session(log).get_by_id("task") is None
