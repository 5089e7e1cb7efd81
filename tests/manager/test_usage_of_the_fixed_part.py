"""The usage report says what every request costs besides its items: each tool's definition, those never called, and thinking."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_window import ContextWindowManager, Reasoning, Session, UsageReport

FORMS: dict[str, Any] = {
    "claude-sonnet-4-5": lambda name, text: {"name": name, "description": text, "input_schema": {"type": "object"}},
    "gpt-5": lambda name, text: {"type": "function", "function": {"name": name, "description": text, "parameters": {"type": "object"}}},
    "gemini-2.5-pro": lambda name, text: {"function_declarations": [{"name": name, "description": text}]},
}


def report_of(model: str, sizes: dict[str, int], called: list[str]) -> UsageReport:
    session = Session()
    session.add_message("user", "Begin.")
    for name in called:
        call = session.add_function_call(name, {})
        session.add_function_output(name, "done", call.call_id)
    tools = [FORMS[model](name, "It does what it says. " * size) for name, size in sizes.items()]
    return ContextWindowManager(model, tools=tools, max_tokens=100_000).usage(session)


@given(
    st.sampled_from(sorted(FORMS)),
    st.dictionaries(st.sampled_from(["Read", "Bash", "mcp__github__search", "Write"]), st.integers(1, 60), min_size=1),
    st.lists(st.sampled_from(["Read", "Bash", "Unknown"]), max_size=4),
)
def test_each_definition_has_its_tokens_and_calls(model: str, sizes: dict[str, int], called: list[str]) -> None:
    """one row per tool, the largest first, with its calls; together at most what tools cost, which is part of the overhead"""
    report = report_of(model, sizes, called)
    assert {row.name: row.calls for row in report.definitions} == {name: called.count(name) for name in sizes}
    tokens = [row.tokens for row in report.definitions]
    assert tokens == sorted(tokens, reverse=True)
    assert min(tokens) > 0
    assert report.tools_overhead <= report.overhead
    by_name = {row.name: row.tokens for row in report.definitions}
    assert all(by_name[first] > by_name[second] for first in sizes for second in sizes if sizes[first] > sizes[second] + 20)
    values = report.to_dict()
    assert values["definitions"] == [row.to_dict() for row in report.definitions]
    assert {row.server for row in report.definitions} == {"github" if name.startswith("mcp") else None for name in sizes}


def test_the_report_names_the_largest_tools_that_were_never_called() -> None:
    sizes = {"Read": 90, "a": 10, "b": 20, "c": 30, "d": 40}
    text = " ".join(str(report_of("claude-sonnet-4-5", sizes, ["Read"])).split())
    report = report_of("claude-sonnet-4-5", sizes, ["Read"])
    unused = sum(row.tokens for row in report.definitions if row.name != "Read")
    assert f"overhead: 5 tool definitions {sum(row.tokens for row in report.definitions):,} tokens" in text
    assert f"never called {unused:,} (d, c, b and 1 more)" in text
    assert "never called" not in str(report_of("claude-sonnet-4-5", {"Read": 3}, ["Read"]))
    assert "tool definition" not in str(ContextWindowManager("gpt-5").usage(Session()))


def test_the_report_and_the_plan_name_what_servers_cost() -> None:
    """overhead is split by server and name, and a plan says what each tool's definition costs and which were never called"""
    sizes = {"mcp__github__issues": 40, "mcp__github__search": 20, "mcp__files__read": 10, "Bash": 30, "mcp__only": 1}
    tools = [FORMS["claude-sonnet-4-5"](name, "It does what it says. " * size) for name, size in sizes.items()]
    session = Session()
    session.add_message("user", "Begin.")
    manager = ContextWindowManager("claude-sonnet-4-5", tools=tools, max_tokens=100_000)
    plan, report = manager.plan_session(session), manager.usage(session)
    assert plan.definitions == report.definitions
    assert plan.to_dict()["definitions"] == report.to_dict()["definitions"]
    tokens = {row.name: row.tokens for row in plan.definitions}
    servers = f"by server: github {tokens['mcp__github__issues'] + tokens['mcp__github__search']:,}, files {tokens['mcp__files__read']:,}"
    for text in (str(plan), str(report)):
        assert servers in " ".join(text.split())
        assert "never called" in text


@pytest.mark.parametrize("texts", [[], ["I think. " * 40], ["I think. " * 40, "And on. " * 9]])
def test_thinking_has_a_figure_of_its_own(texts: list[str]) -> None:
    session = Session()
    session.add_message("user", "Begin.")
    for text in texts:
        session.append(Reasoning(text, signature="s" * 200))
    session.add_message("assistant", "Done.")
    report = ContextWindowManager("claude-sonnet-4-5", max_tokens=9_000).usage(session)
    assert (report.thinking_tokens > 0) == bool(texts)
    assert (f"thinking {report.thinking_tokens:,} tokens" in str(report)) == bool(texts)
    assert report.to_dict()["thinking_tokens"] == report.thinking_tokens <= sum(row.tokens for row in report.rows)
