"""Rules for single tools: which results are cleared first, and which are kept."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from context_window import Action, BudgetError, ContextWindow, ContextWindowManager, Reason, ToolRule
from session import FunctionCall, FunctionCallOutput, Message, MessageCategory, Session
from session.parts import Text
from tests.support.checks import cost_cleared, protected, twin_after
from tests.support.engine import Engine, rule_for
from tests.support.harness import ladder, trim
from tests.support.strategies import TOOLS, limits, sessions
from tests.support.twin import answers, cost, fold, unit_of

RULES = st.dictionaries(st.sampled_from(TOOLS), st.builds(ToolRule, st.sampled_from(("normal", "first", "never")), st.integers(0, 2)))


def manager(budget: int, **options: Any) -> ContextWindowManager:
    return ContextWindowManager(token_counter=len, context_window=ContextWindow(max_tokens=budget, **options))


def rounds(*tools: str, size: int = 900) -> Session:
    """A log in which these tools were called one after the other."""
    session = Session(id="s")
    session.add_message("user", "Look.", "u0")
    for number, tool in enumerate(tools):
        session.append(FunctionCall(tool, "{}", f"c{number}", id=f"call{number}"))
        session.append(FunctionCallOutput(tool, "x" * size, f"c{number}", id=f"{tool}{number}"))
    session.add_message("assistant", "Done.", "a0")
    session.add_message("user", "y" * 600, "u1")
    return session


def cleared(asked: ContextWindowManager, session: Session) -> list[str]:
    return [entry.item_id for entry in asked.plan_session(session).changes if entry.action is Action.CLEAR]


def test_first_are_cleared_before_older_results_of_other_tools() -> None:
    session = rounds("read", "list", "read", "list")
    assert cleared(manager(4_200), session) == ["read0", "list1"]
    assert cleared(manager(4_200, tool_rules={"list": ToolRule(clear="first")}), session) == ["list1", "list3"]


def test_never_cleared_ones_stay_and_others_go() -> None:
    session = rounds("plan", "read", "read", "read")
    asked = manager(4_200, tool_rules={"plan": ToolRule(clear="never")})
    assert cleared(asked, session) == ["read1", "read2"]
    assert asked.plan_session(session).decisions[2].reason is Reason.KEPT_BY_RULE


def test_the_newest_results_of_a_tool_stay_until_newer_ones_come() -> None:
    session = rounds("read", "read", "bash", "bash")
    asked = manager(4_200, tool_rules={"read": ToolRule(keep_last=1)})
    assert cleared(asked, session) == ["read0", "bash2"]
    session.append(FunctionCall("read", "{}", "c9", id="call9"))
    session.append(FunctionCallOutput("read", "x" * 900, "c9", id="read9"))
    session.add_message("assistant", "Done.", "a1")
    session.add_message("user", "z" * 700, "u2")
    assert cleared(asked, session) == ["read0", "read1", "bash2", "bash3"]


def test_a_pattern_covers_the_tools_that_have_no_rule_of_their_own() -> None:
    """a rule under exactly the tool's name comes before patterns, and the first pattern that matches before later ones"""
    first, never, normal = ToolRule(clear="first"), ToolRule(clear="never"), ToolRule()
    rules = {"mcp__github__*": first, "mcp__*": never, "mcp__github__get_issue": normal, "read[1]": never}
    assert rule_for("mcp__github__list", rules) is first
    assert rule_for("mcp__github__get_issue", rules) is normal
    assert rule_for("mcp__files__read", rules) is never
    assert rule_for("read[1]", rules) is never
    assert rule_for("MCP__github__list", rules) is None


def test_the_results_of_tools_under_one_pattern_go_by_it_and_are_counted_for_each_tool() -> None:
    session = rounds("bash", "hub__list", "hub__get", "hub__get")
    assert cleared(manager(4_200), session) == ["bash0", "hub__list1"]
    assert cleared(manager(4_200, tool_rules={"hub__*": ToolRule(clear="first", keep_last=1)}), session) == ["bash0", "hub__get2"]
    assert cleared(manager(4_200, tool_rules={"hub__*": ToolRule(clear="never")}), session) == ["bash0"]


def test_kept_results_give_way_before_the_view_is_over_budget() -> None:
    session = rounds("plan", "read", "plan", size=600)
    asked = manager(1_000, tool_rules={"plan": ToolRule(clear="never")})
    plan = asked.plan_session(session)
    assert not plan.over_budget
    dropped = {entry.item_id: entry.reason for entry in plan.changes if entry.action is Action.DROP}
    assert {"plan0", "read1", "plan2"} <= dropped.keys()


@pytest.mark.parametrize("newest_first", [False, True])
def test_kept_results_are_dropped_one_by_one_the_lowest_category_first_and_of_it_the_oldest(newest_first: bool) -> None:
    session = Session([Message("user", "Plan it.")], id="s")
    for number, category in enumerate(("DIALOG", "SYSTEM_OUTPUT", "SYSTEM_OUTPUT", "CONTEXT", "SYSTEM_OUTPUT")):
        session.append(FunctionCall("plan", "{}", f"c{number}", id=f"call{number}", category=MessageCategory(category)))
        session.append(FunctionCallOutput("plan", "p" * 600, f"c{number}", id=f"plan{number}"))
        session.append(Message("assistant", "Next.", id=f"a{number}"))
    session.append(Message("user", "And now?"))
    order = ["plan4", "plan2", "plan1", "plan0", "plan3"] if newest_first else ["plan1", "plan2", "plan4", "plan0", "plan3"]
    counts = set()
    for budget in range(200, 3_600, 100):
        asked = manager(budget, tool_rules={"plan": ToolRule(clear="never")})
        view = asked.trim_session(session, preserve_recency=not newest_first)
        gone = [name for name in order if view.get_by_id(name) is None]
        assert gone == order[: len(gone)], budget
        counts.add(len(gone))
    assert counts == set(range(6))


@pytest.mark.parametrize("form", ["log", "request"])
def test_what_loaded_a_tool_stays_while_the_tool_is_called(form: str) -> None:
    """results with `tool_reference` are kept whole while their tools are called: without them the provider forgets the tools"""
    session = Session(id="s")
    session.add_message("user", "Look.", "u0")
    texts = {
        "log": ["mcp__tickets__find", "mcp__tickets__add"],
        "request": ['{"type":"tool_reference","tool_name":"mcp__tickets__find"}'] * 9,
    }
    for number, tool in enumerate(["ToolSearch", "ToolSearch", "read", "mcp__tickets__find", "read", "read"]):
        session.append(FunctionCall(tool, "{}", f"c{number}", id=f"call{number}"))
        parts = [Text(text) for text in texts[form]] if number == 1 else [Text("x" * 900)]
        extra = {"loaded_tools": 2} if number == 1 and form == "log" else {}
        session.append(FunctionCallOutput(tool, parts, f"c{number}", id=f"{tool}{number}", extra=extra))
    session.add_message("assistant", "Done.", "a0")
    session.add_message("user", "y" * 600, "u1")
    plan = manager(3_000).plan_session(session)
    loader = plan.decisions[4]
    assert (loader.item_id, loader.action, loader.reason) == ("ToolSearch1", Action.KEEP, Reason.KEPT_BY_RULE)
    assert [entry.item_id for entry in plan.changes][:3] == ["ToolSearch0", "read2", "mcp__tickets__find3"]


@given(st.data())
def test_loaded_tools_twin(data: st.DataObject) -> None:
    """the engine keeps what loaded a tool that was called since as the slow form does"""
    log = data.draw(sessions())
    items = [
        replace(item, output=(Text(data.draw(st.sampled_from(TOOLS))),) * 4, extra={"loaded_tools": 4})
        if isinstance(item, FunctionCallOutput) and data.draw(st.booleans())
        else item
        for item in log.items
    ]
    log = Session(items, id="s")
    bounds = replace(data.draw(limits(sum(map(cost, items)))), tool_rules=data.draw(RULES) or {"none": ToolRule()})
    outcome = Engine(log, bounds).process(log)
    twin = fold(log, bounds)
    assert list(outcome.view.items) == twin.view()
    event(f"kept: {any(map(twin.loads_in_use, range(len(items))))}")


def test_a_rule_that_makes_no_sense_is_an_error() -> None:
    with pytest.raises(BudgetError, match="clear"):
        ToolRule(clear="last")  # type: ignore[arg-type]
    for keep_last in (-1, 1.5, True):
        with pytest.raises(BudgetError, match="keep_last"):
            ToolRule(keep_last=keep_last)  # type: ignore[arg-type]
    invalid: list[Any] = [{"read": "never"}, {1: ToolRule()}, [], None]
    for rules in invalid:
        with pytest.raises(BudgetError, match="tool_rules"):
            ContextWindow(tool_rules=rules)


@given(st.data())
def test_kept_results_go_last(data: st.DataObject) -> None:
    """what a rule keeps is not cleared, and not dropped while anything that no rule keeps can be"""
    log = data.draw(sessions())
    bounds = replace(data.draw(limits(sum(map(cost, log.items)))), tool_rules=data.draw(RULES), binds_thinking=False)
    calls, kept_back = answers(list(log.items)), protected(list(log.items), log.response_breaks)
    units = unit_of(list(log.items), log.response_breaks)
    for outcome in ladder(log, replace(bounds, keep_first_message=False)):
        by_age = {Reason.OVER_BUDGET, Reason.OVER_SHARE, Reason.TOO_MANY_ITEMS}
        for tool, rule in bounds.tool_rules.items():
            results = [position for position, call in calls.items() if call is not None and name_of(log, calls, position) == tool]
            decisions = {position: outcome.plan.decisions[position] for position in results}
            is_cleared = any(decision.action is Action.CLEAR for decision in decisions.values())
            assert not (is_cleared and rule.clear == "never")
            dropped = [position for position, entry in decisions.items() if entry.action is Action.DROP and entry.reason in by_age]
            full_log = [position for position, entry in decisions.items() if entry.action not in (Action.DROP, Action.CLEAR)]
            if is_cleared and not dropped:
                event("cleared but for the newest")
                assert len(full_log) >= min(rule.keep_last, len(results))
            if dropped and rule.clear == "never":
                event("dropped although it is never cleared")
                twin = twin_after(outcome)
                stays = kept_back | {*twin.first_message()}
                left = [
                    position for position, entry in enumerate(outcome.plan) if entry.action is not Action.DROP and position not in stays
                ]
                assert all(any(map(twin.kept, units[position])) for position in left)


@given(st.data())
def test_first_results_are_cleared_before_others(data: st.DataObject) -> None:
    """nothing is cleared by age while a result of a tool that is cleared first can be"""
    log = data.draw(sessions())
    bounds = replace(
        data.draw(limits(sum(map(cost, log.items)))), tool_rules={"read": ToolRule("first")}, items_max=None, clear_superseded=False
    )
    outcome = trim(log, bounds)
    kept_back = protected(list(log.items), log.response_breaks)
    calls = answers(list(log.items))
    others = [
        position for position, entry in enumerate(outcome.plan) if entry.action is Action.CLEAR and name_of(log, calls, position) != "read"
    ]
    for position, decision in enumerate(outcome.plan):
        is_result = (
            position in calls and calls[position] is not None and name_of(log, calls, position) == "read" and position not in kept_back
        )
        if others and is_result and decision.action is Action.KEEP and decision.category.name == "SYSTEM_OUTPUT":
            event("a result that cannot be smaller")
            assert cost_cleared(log.items[position]) >= decision.after


def name_of(log: Session, calls: dict[int, int | None], position: int) -> str:
    return getattr(log.items[calls.get(position, position) or 0], "name", "")
