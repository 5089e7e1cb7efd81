"""Guarantee: accounts."""

from __future__ import annotations

from hypothesis import event, given
from hypothesis import strategies as st

from context_window import Action, ContextWindow, ContextWindowManager, Reason
from session import Session
from session.items import Compaction, MessageCategory, Reasoning
from tests.support.carried_out import carried_out
from tests.support.checks import check_sums, protected
from tests.support.counting import Letters
from tests.support.harness import process, trim
from tests.support.strategies import limits, reported, sessions
from tests.support.twin import cost, is_summary, unit_of


@given(st.data())
def test_accounts(data: st.DataObject) -> None:
    """a plan has one decision per item, in order; its rows sum exactly to its totals"""
    log = data.draw(sessions())
    bounds = data.draw(limits(sum(map(cost, log.items))))
    for outcome in (process(log, bounds), trim(log, bounds)):
        plan = outcome.plan
        assert [decision.item_id for decision in plan] == [item.id for item in log.items]
        assert [decision.before for decision in plan] == list(map(cost, log.items))
        costs = {decision.item_id: decision.after for decision in plan if decision.action is not Action.DROP}
        assert costs == {item.id: cost(item) for item in outcome.view.items}
        check_sums(outcome)
        applied = carried_out(plan, log)
        assert applied.items == outcome.view.items
        assert applied.response_breaks == outcome.view.response_breaks


REASONS = {
    Action.KEEP: {
        Reason.FITS,
        Reason.SYSTEM,
        Reason.PINNED,
        Reason.SUMMARY,
        Reason.FRONTIER,
        Reason.WAITING,
        Reason.FIRST_MESSAGE,
        Reason.KEPT_BY_RULE,
    },
    Action.REPLACE_IMAGES: {Reason.TOO_MANY_IMAGES, Reason.OVER_BUDGET, Reason.LAST_RESORT},
    Action.TRUNCATE: {Reason.LAST_RESORT},
    Action.CLEAR: {Reason.OVER_SHARE, Reason.OVER_BUDGET, Reason.SUPERSEDED},
    Action.DROP: {
        Reason.OVER_SHARE,
        Reason.OVER_BUDGET,
        Reason.TOO_MANY_ITEMS,
        Reason.COMPACTED,
        Reason.ORPHAN,
        Reason.REPLACED_PROMPT,
        Reason.BOUND_REASONING,
        Reason.UNREAD_CONTEXT,
    },
}


@given(st.data())
def test_every_decision_has_a_reason_that_explains_it(data: st.DataObject) -> None:
    """every decision has its reason: an item kept as protected is protected, and an item was changed because a limit was exceeded"""
    log = data.draw(sessions())
    bounds = data.draw(limits(sum(map(cost, log.items))))
    kept_back, units = protected(list(log.items), log.response_breaks), unit_of(list(log.items), log.response_breaks)
    for outcome in (process(log, bounds), trim(log, bounds)):
        for position, (item, decision) in enumerate(zip(log.items, outcome.plan, strict=True)):
            event(f"{decision.action.name} {decision.reason.name}")
            assert decision.reason in REASONS[decision.action]
            if decision.action is Action.KEEP:
                assert (decision.reason in {Reason.FITS, Reason.FIRST_MESSAGE, Reason.KEPT_BY_RULE}) == (position not in kept_back)
                is_spared = bounds.keep_first_message or any(isinstance(other, Compaction) for other in log.items)
                assert decision.reason is not Reason.FIRST_MESSAGE or is_spared
                assert (decision.reason is Reason.PINNED) >= item.pinned
                unit = [log.items[member] for member in units[position]]
                assert (decision.reason is Reason.PINNED) <= any(member.pinned or is_summary(member) for member in unit)
                assert (decision.reason is Reason.SYSTEM) <= any(member.category is MessageCategory.SYSTEM for member in unit)
                assert (decision.reason is Reason.SYSTEM) >= (item.category is MessageCategory.SYSTEM and not item.pinned)
            assert (decision.reason is Reason.BOUND_REASONING) <= (isinstance(item, Reasoning) and bounds.binds_thinking)
            assert decision.reason is not Reason.UNREAD_CONTEXT or item.category is MessageCategory.CONTEXT
            assert decision.reason is not Reason.TOO_MANY_ITEMS or bounds.items_max is not None


@given(st.data())
def test_display_and_trigger_read_the_same_numbers(data: st.DataObject) -> None:
    """display and trigger read the same numbers"""
    log = data.draw(sessions())
    if is_reported := data.draw(st.booleans()):
        log = data.draw(reported(log))
    budget = data.draw(st.integers(1, 1 + 2 * sum(map(cost, log.items))))
    manager = ContextWindowManager(token_counter=Letters(), context_window=ContextWindow(max_tokens=budget))
    for session in (log, manager.process_session(log)):
        stats = manager.analyze_session(session)
        usage = manager.get_token_usage()
        report = manager.usage()
        assert stats["total_tokens"] == usage["total"] == report.total == sum(stats["per_category"].values()) + stats["overhead_tokens"]
        assert [usage[row.category.value] for row in report.rows] == [row.tokens for row in report.rows]
        assert sum(row.items for row in report.rows) == report.items
        assert usage["available"] == budget - usage["total"] == manager.available_tokens == report.available
    view = manager.process_session(log)
    after = manager.get_token_usage()
    plan = manager.plan_session(log)
    assert after["total"] == plan.after
    assert plan.changes or plan.freed == 0
    if not (is_reported and any(isinstance(item, Compaction) for item in log.items)):  # with both, the corrections may be rounded apart
        assert manager.analyze_session(log)["total_tokens"] == manager.usage(log).total == plan.before
    assert len(plan) - len(plan.never_sent) == manager.usage(log).items
    assert after == manager.get_token_usage(view)


def test_a_cleared_output_that_is_unread_again_costs_its_placeholder() -> None:
    """display and trigger read the same numbers: here the late output of a second call makes a cleared output unread again"""
    session = Session()
    session.add_message("user", "x")
    first, late = (session.add_function_call(name, "x") for name in ("first", "late"))
    session.add_function_output("first", "x" * 900, first.call_id)
    latest = session.add_function_call("latest", "x")
    session.add_function_output("latest", "x", latest.call_id)
    session.add_message("user", "x")
    manager = ContextWindowManager(token_counter=Letters(), context_window=ContextWindow(max_tokens=200))
    assert list(manager.plan_session(session))[3].action is Action.CLEAR
    session.add_message("assistant", "x")
    session.add_function_output("late", "x", late.call_id)
    view = manager.process_session(session)
    plan = manager.plan_session(session)
    assert list(plan)[3].action is Action.CLEAR
    assert plan.after == manager.get_token_usage(view)["total"] > 200
