"""With `clear_superseded`, a result goes first if its file was read again in full, or written, later."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from context_window import Action, BudgetError, ContextWindow, ContextWindowManager, Reason, ToolRule
from context_window.display.plan import plan_text
from session import FunctionCall, FunctionCallOutput, Session
from tests.support.checks import cost_cleared, protected, twin_after
from tests.support.engine import FileAccess, file_access
from tests.support.harness import process, trim
from tests.support.strategies import limits, sessions
from tests.support.twin import cost


@pytest.mark.parametrize(
    ("tool", "arguments", "access"),
    [
        ("Read", {"file_path": "/a/b.py"}, ("/a/b.py", True)),
        ("Read", {"file_path": "/a/b.py", "offset": 10, "limit": 5}, ("/a/b.py", False)),
        ("read_file", {"path": "./b.py", "offset": None}, ("b.py", True)),
        ("mcp__files__read_text_file", {"path": "b.py", "head": 3}, ("b.py", False)),
        ("fs.cat", {"filename": "b.py"}, ("b.py", True)),
        ("Write", {"file_path": "b.py", "content": "x"}, ("b.py", True)),
        ("create_file", {"file": "b.py", "text": "x"}, ("b.py", True)),
        ("str_replace_based_edit_tool", {"command": "view", "path": "b.py"}, ("b.py", True)),
        ("str_replace_based_edit_tool", {"command": "view", "path": "b.py", "view_range": [1, 5]}, ("b.py", False)),
        ("str_replace_based_edit_tool", {"command": "create", "path": "b.py", "file_text": "x"}, ("b.py", True)),
        ("str_replace_based_edit_tool", {"command": "str_replace", "path": "b.py", "old_str": "x"}, None),
        ("Bash", {"command": "cat b.py"}, None),
        ("Read", {"pages": "3"}, None),
        ("Read", {"path": 3}, None),
    ],
)
def test_the_file_of_a_call(tool: str, arguments: dict[str, Any], access: tuple[str, bool] | None) -> None:
    assert file_access(tool, json.dumps(arguments)) == (None if access is None else FileAccess(*access))


@pytest.mark.parametrize("arguments", ["", "{", "[]", "3", "[" * 9_999])
def test_arguments_that_are_no_object_name_no_file(arguments: str) -> None:
    assert file_access("Read", arguments) is None


def test_a_rule_names_the_argument() -> None:
    assert file_access("slurp", '{"target": "b.py"}', ToolRule(reads="target")) == FileAccess("b.py", replaces=True)
    assert file_access("slurp", '{"target": "b.py", "page": 2}', ToolRule(reads="target")) == FileAccess("b.py", replaces=False)
    assert file_access("dump", '{"to": "b.py", "page": 2}', ToolRule(writes="to")) == FileAccess("b.py", replaces=True)
    assert file_access("dump", '{"path": "b.py"}', ToolRule(writes="to")) is None
    for options in ({"reads": ""}, {"writes": 3}, {"reads": "a", "writes": "b"}):
        with pytest.raises(BudgetError):
            ToolRule(**options)


def log_of(*steps: tuple[str, dict[str, Any], str]) -> Session:
    """A log of calls of a tool, with these arguments and outputs."""
    session = Session(id="s")
    session.add_message("user", "Look.", "u0")
    for number, (tool, arguments, output) in enumerate(steps):
        session.append(FunctionCall(tool, json.dumps(arguments), f"c{number}", id=f"call{number}"))
        session.append(FunctionCallOutput(tool, output, f"c{number}", is_error=output == "failed", id=f"output{number}"))
    session.add_message("assistant", "Done.", "a0")
    session.add_message("user", "y" * 700, "u1")
    return session


def manager(budget: int, **options: Any) -> ContextWindowManager:
    return ContextWindowManager(token_counter=len, context_window=ContextWindow(max_tokens=budget, **options))


A, B = {"path": "a.py"}, {"path": "b.py"}


def test_a_stale_read_goes_before_an_older_result_and_the_plan_names_what_supersedes_it() -> None:
    session = log_of(("read", B, "b" * 900), ("read", A, "a" * 900), ("read", A, "A" * 900))
    assert manager(3_200).plan_session(session).changes[0].item_id == "output0"
    plan = manager(3_200, clear_superseded=True, target_ratio=0.95).plan_session(session)
    (change,) = plan.changes
    assert (change.item_id, change.action, change.reason, change.superseded_by) == (
        "output1",
        Action.CLEAR,
        Reason.SUPERSEDED,
        "output2",
    )
    assert "its file was read again or written later: output2" in str(plan)
    assert "its file was read again or written later: output2" in plan_text(plan, 120)
    assert plan.to_dict()["decisions"][4]["superseded_by"] == "output2"
    assert manager(3_200, clear_superseded=True).recall(session, "output1") is session.get_by_id("output1")


@pytest.mark.parametrize(
    ("last", "is_stale"),
    [
        (("write", {**A, "content": "x"}, "written"), True),
        (("read", {**A, "offset": 3}, "x"), False),
        (("read", A, "failed"), False),
        (("write", {**A, "content": "x"}, "failed"), False),
        (("read", B, "x"), False),
    ],
)
def test_only_a_full_read_or_a_write_that_succeeds_supersedes(last: tuple[str, dict[str, Any], str], is_stale: bool) -> None:
    session = log_of(("bash", {}, "b" * 900), ("read", A, "a" * 900), last)
    plan = manager(2_200, clear_superseded=True, target_ratio=0.95).plan_session(session)
    assert plan.changes[0].item_id == ("output1" if is_stale else "output0")


def test_an_older_write_of_the_file_goes_first_too() -> None:
    session = log_of(("bash", {}, "b" * 900), ("write", {**A, "content": "x" * 900}, "written"), ("read", A, "x"))
    plan = manager(2_200, clear_superseded=True, target_ratio=0.95).plan_session(session)
    assert [(entry.item_id, entry.superseded_by) for entry in plan.changes] == [("call1", "output2")]


@given(st.data())
def test_superseded_results_are_cleared_before_others(data: st.DataObject) -> None:
    """nothing is cleared by age while a superseded result can be"""
    log = data.draw(sessions())
    bounds = replace(data.draw(limits(sum(map(cost, log.items)))), clear_superseded=True, tool_rules={}, items_max=None)
    outcome = trim(log, bounds)
    cleared = [entry.reason for entry in outcome.plan if entry.action is Action.CLEAR]
    event(f"superseded ones were cleared: {Reason.SUPERSEDED in cleared}")
    if set(cleared) - {Reason.SUPERSEDED}:
        twin = twin_after(outcome)
        kept_back = protected(list(log.items), log.response_breaks)
        for index, decision in enumerate(outcome.plan):
            free = index not in kept_back and decision.category.name == "SYSTEM_OUTPUT"
            is_call = log.items[index].type == "function_call"
            if free and decision.action is Action.KEEP and twin.early(index) and (bounds.clear_call_inputs or not is_call):
                assert cost_cleared(log.items[index]) >= decision.after


@given(st.data())
def test_every_superseded_result_names_a_later_output(data: st.DataObject) -> None:
    """the plan names the item that supersedes a cleared one: a later output of the log"""
    log = data.draw(sessions())
    bounds = replace(data.draw(limits(sum(map(cost, log.items)))), clear_superseded=True)
    for index, decision in enumerate(process(log, bounds).plan):
        assert (decision.superseded_by is not None) == (decision.reason is Reason.SUPERSEDED)
        if decision.superseded_by is not None:
            later = log.position(decision.superseded_by)
            assert later is not None
            assert later > index
            assert isinstance(log.items[later], FunctionCallOutput)
