"""Strategies that look at the items: each policy is three lines, shown in docs/guides/strategies.md."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from context_window import ContextWindow, ContextWindowManager, FunctionCall, FunctionCallOutput, MeasuredUnit, Session, StrategyBudget
from context_window.strategies import Chain, NeverTrim
from tests.project.test_documents import examples
from tests.support.counting import Letters
from tests.support.shared import ROOT


def guide() -> dict[str, Any]:
    """Return the names that the guide's examples define."""
    names: dict[str, Any] = {}
    for example in examples(ROOT / "docs/guides/strategies.md"):
        exec(compile(example, "strategies.md", "exec"), names)
    return names


def call(session: Session, name: str, path: str, output: str = "x" * 200, *, is_error: bool = False) -> str:
    """Append a call with its output, and return the output's id."""
    made = session.add_function_call(name, {"path": path})
    result = session.add_function_output(name, output, made.call_id, is_error=is_error)
    session.add_message("assistant", "ok")
    return result.id


def changed(session: Session, strategy: Callable[..., Any], target: float = 0.01) -> set[str]:
    """Return the ids of the items that the strategy takes if it may take everything."""
    total = ContextWindowManager(token_counter=Letters()).analyze_session(session)["total_tokens"]
    window = ContextWindow(max_tokens=total - 1, target_ratio=target, strategy=Chain(strategy, NeverTrim()))
    plan = ContextWindowManager(token_counter=Letters(), context_window=window).plan_session(session)
    return {decision.item_id for decision in plan.changes}


def test_stale_reads_of_a_file_are_cleared() -> None:
    session = Session()
    session.add_message("user", "go")
    first, other = call(session, "read_file", "a.py"), call(session, "read_file", "b.py")
    written, second = call(session, "write_file", "a.py"), call(session, "read_file", "a.py")
    third = call(session, "read_file", "a.py")
    session.add_message("user", "and now?")
    assert changed(session, guide()["stale_reads"]) == {first, second}
    assert {other, written, third}.isdisjoint(changed(session, guide()["stale_reads"]))


def test_errors_are_kept() -> None:
    session = Session()
    session.add_message("user", "go")
    fine, failed = call(session, "run", "a"), call(session, "run", "b", is_error=True)
    session.add_message("user", "and now?")
    taken = changed(session, guide()["keep_errors"])
    assert fine in taken
    assert failed not in taken
    assert session.items[0].id in taken


def test_the_last_three_results_of_each_tool_are_kept() -> None:
    session = Session()
    session.add_message("user", "go")
    runs = [call(session, "run", str(number)) for number in range(5)]
    looks = [call(session, "look", str(number)) for number in range(2)]
    session.add_message("user", "and now?")
    assert changed(session, guide()["last_three_results"]) == set(runs[:2])
    assert len(looks) == 2


@pytest.mark.parametrize("name", ["stale_reads", "keep_errors", "last_three_results"])
def test_each_policy_is_at_most_three_lines(name: str) -> None:
    text = (ROOT / "docs/guides/strategies.md").read_text(encoding="utf-8")
    body = text.partition(f"def {name}(units, budget):\n")[2].partition("\n\n" if name == "last_three_results" else "```")[0]
    assert 1 <= len(body.strip().splitlines()) <= 3


def test_a_unit_shows_its_items() -> None:
    session = Session()
    session.add_message("user", "go", "u1")
    session.append(FunctionCall("look", '{"at": 1}', "c1", id="f1"))
    session.append(FunctionCall("run", "{}", "c2", id="f2"))
    session.append(FunctionCallOutput("look", "seen", "c1", id="o1"))
    session.append(FunctionCallOutput("run", "no " * 200, "c2", id="o2", is_error=True))
    session.add_message("assistant", "done", "a1")
    session.add_message("user", "more", "u2")
    session.add_context("a file")
    session.add_message("user", "even more", "u3")
    earlier: list[MeasuredUnit] = []

    def watch(units: Sequence[MeasuredUnit], _budget: StrategyBudget) -> list[Any]:
        earlier[:] = units
        return []

    changed(session, watch)
    by_first = {unit.ids[0]: unit for unit in earlier}
    tools = by_first["f1"]
    assert tools.ids == ("f1", "f2", "o1", "o2")
    assert tools.tool_names == ("look", "run")
    assert [json.loads(made.arguments) for made in tools.calls] == [{"at": 1}, {}]
    assert [output.is_error for output in tools.outputs] == [False, True]
    assert tools.contents == session.items[1:5]
    assert {unit.ids[0]: unit.age for unit in earlier if len(unit.ids[0]) == 2} == {"u1": 2, "f1": 2, "a1": 2, "u2": 1, "u3": 0}
    assert all(unit.items == len(unit.contents) == len(unit.places) for unit in earlier)
    assert "seen" not in repr(tools), "a log of units holds no content"
