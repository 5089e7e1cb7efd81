"""Guarantee: priority. Stated of one trim, so tested on the one-shot form, whose every step is a step of one trim."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import event, given
from hypothesis import strategies as st

from context_window import Action, Reason
from session.items import Compaction, FunctionCall, FunctionCallOutput, Message, MessageCategory
from session.units import PRIORITY
from tests.support.checks import cost_cleared, protected
from tests.support.harness import ladder, trim
from tests.support.strategies import limits, sessions
from tests.support.twin import cost, unit_of

ORDER = (MessageCategory.SYSTEM_OUTPUT, MessageCategory.DIALOG, MessageCategory.CONTEXT)

LATER = (Reason.OVER_BUDGET, Reason.UNREAD_CONTEXT, Reason.LAST_RESORT)
"""Reasons of what is taken after pass one."""

BY_AGE: dict[str, Any] = {"tool_rules": {}, "clear_superseded": False}


@given(st.data())
def test_priority(data: st.DataObject) -> None:
    """at each token trim, nothing is taken from a category at or below its share while a lower one has anything unprotected
    to give"""
    log = data.draw(sessions())
    bounds = replace(
        data.draw(limits(sum(map(cost, log.items)))),
        items_max=None,
        binds_thinking=False,
        keep_first_message=False,
        tool_rules={},
        clear_superseded=False,
    )
    bounds = replace(bounds, newest_first=data.draw(st.booleans()))
    free = {item.id for item in log.items} - {log.items[position].id for position in protected(list(log.items), log.response_breaks)}
    for outcome in ladder(log, bounds):
        if any(isinstance(item, Compaction) for item in log.items):  # beside a summary the first message is spared
            users = [item for item in outcome.view.items if isinstance(item, Message) and item.role == "user"]
            free.difference_update([item.id for item in users if item.category is not MessageCategory.CONTEXT][:1])
        for rank, category in enumerate(ORDER):
            taken = [
                decision
                for decision in outcome.plan
                if decision.reason is Reason.OVER_BUDGET
                and decision.category is category
                and decision.action is not Action.REPLACE_IMAGES  # older images go before anything else, of whatever category
            ]
            if not taken:
                continue
            event(f"pass two took from {category.value}")
            for lower in ORDER[:rank]:
                left = [
                    decision
                    for decision in outcome.plan
                    if decision.category is lower and decision.item_id in free and decision.action is not Action.DROP
                ]
                assert left == [], f"{category} gave below its share while {lower} still had {[decision.item_id for decision in left]}"


@given(st.data())
def test_pass_one_stops_at_the_share(data: st.DataObject) -> None:
    """Pass one takes from a category only while it is above its share: without the last unit that it took, the category was above it."""
    log = data.draw(sessions())
    drawn = data.draw(limits(sum(map(cost, log.items))))
    bounds = replace(drawn, items_max=None, images_max=len(log.items) * 10, binds_thinking=False, **BY_AGE)  # placeholders can cost more
    units = unit_of(list(log.items), log.response_breaks)
    for outcome in ladder(log, bounds):
        plan = outcome.plan
        for rank, category in enumerate(PRIORITY):
            rows = [(position, decision) for position, decision in enumerate(plan) if decision.category is category]
            taken = [position for position, decision in rows if decision.reason is Reason.OVER_SHARE]
            if taken and all(decision.reason not in LATER for _, decision in rows):
                event(f"pass one alone took from {category.value}")
                largest = max(sum(plan.decisions[member].before for member in units[position]) for position in taken)
                assert sum(decision.after for _, decision in rows) + largest > int(bounds.shares[rank] * plan.budget)


@given(st.data())
def test_outputs_and_calls_are_cleared_before_any_is_dropped(data: st.DataObject) -> None:
    """In SYSTEM_OUTPUT outputs and calls are first cleared, oldest first, and only then are units dropped, oldest first."""
    log = data.draw(sessions())
    bounds = replace(data.draw(limits(sum(map(cost, log.items)))), items_max=None, **BY_AGE)
    outcome = trim(log, bounds)
    dropped = [
        decision for decision in outcome.plan if decision.category is MessageCategory.SYSTEM_OUTPUT and decision.action is Action.DROP
    ]
    if not any(decision.reason in (Reason.OVER_SHARE, Reason.OVER_BUDGET) for decision in dropped):
        return
    kept_back = {log.items[position].id for position in protected(list(log.items), log.response_breaks)}
    for decision in outcome.plan:
        item = log.get_by_id(decision.item_id)
        is_whole = (
            decision.action is Action.KEEP and decision.category is MessageCategory.SYSTEM_OUTPUT and decision.item_id not in kept_back
        )
        if is_whole and (isinstance(item, FunctionCallOutput) or (isinstance(item, FunctionCall) and bounds.clear_call_inputs)):
            assert cost_cleared(item) >= decision.after
