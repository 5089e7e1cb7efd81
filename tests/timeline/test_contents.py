"""The items in a window at each request: they add up to its points, and are named by their files and commands."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_window import ContextWindowManager
from context_window.timeline import log_reports
from context_window.timeline.reasons import SUBJECT, subjects_of
from session import Compaction, FunctionCall, FunctionCallOutput, Item, Message, Reasoning, Session, Usage
from tests.support.shared import needs_transcripts

from .test_recorded import FOLDERS, accounts

WORDS = "The quick brown fox jumps over the lazy dog. "
KINDS = st.sampled_from(["user", "call", "orphan", "summary", "answer"])


def session_of(kinds: list[str]) -> Session:
    log = Session()
    for number, kind in enumerate(kinds):
        if kind == "user":
            log.append(Message("user", WORDS * (number % 5)))
        elif kind == "call":
            log.append(FunctionCall("Read", f'{{"file_path": "{number}.py"}}', f"c{number}"))
            log.append(FunctionCallOutput("Read", WORDS * 5, f"c{number}"))
        elif kind == "orphan":
            log.append(FunctionCallOutput("Read", WORDS, f"o{number}"))
        elif kind == "summary":
            log.append(Compaction("So far.", tuple(item.id for item in log.items)))
        else:
            log.append(Message("assistant", "Done."))
    return log


@given(st.lists(KINDS, max_size=25))
def test_the_items_of_a_request_are_its_window(kinds: list[str]) -> None:
    """At every request, also after compactions: no more and no less than its point has in categories, and each item once."""
    log = session_of(kinds)
    contents = ContextWindowManager().contents(log)
    assert contents.timeline == ContextWindowManager().timeline(log)
    for point in contents.timeline.points:
        window = contents.at(point.number)
        assert sum(tokens for tokens, _ in window) == sum(point.tokens)
        assert len({item.item_id for _, item in window}) == len(window)
        assert {item.item_id for _, item in window} <= {item.id for item in log.items[: point.length]}


def test_what_a_summary_stands_for_is_in_earlier_windows_only() -> None:
    contents = ContextWindowManager().contents(session_of(["user", "answer", "user", "answer", "summary", "user", "answer"]))
    before, after = ([item.what.partition(":")[0] for _, item in contents.at(number)] for number in (2, 4))
    assert before == ["user message", "assistant message", "user message"]
    assert after == ["compaction", "user message", "assistant message"]


def test_items_are_smaller_where_the_provider_counted_less() -> None:
    log = Session([Message("user", WORDS * 20), Message("assistant", "Done.", usage=Usage(input_tokens=50, output_tokens=1))])
    contents = ContextWindowManager().contents(log)
    assert [tokens for tokens, _ in contents.at(1)] == [sum(contents.timeline.points[0].tokens)]
    assert sum(contents.timeline.points[0].tokens) <= 50


def test_costs_are_those_of_the_reasons() -> None:
    log = Session(metadata={"model": "claude-opus-4-6"})
    for number in range(3):
        log.append(Message("user", WORDS * 50))
        log.append(Message("assistant", "Done.", usage=Usage(input_tokens=4_000 + number, output_tokens=9)))
    manager = ContextWindowManager("claude-opus-4-6")
    costs = {item.item_id: item.cost for item in manager.contents(log).items}
    why = manager.why(log)
    assert {item.item_id: item.cost for item in why.items} == {name: cost for name, cost in costs.items() if cost}
    assert sum(costs.values(), Decimal(0)) > 0


def test_an_item_is_named_by_its_file_its_command_or_its_words() -> None:
    items: list[Item] = [
        Message("user", "Mend\n the till."),
        FunctionCall("Read", '{"file_path": "src/till.py"}', "1"),
        FunctionCallOutput("Read", "x", "1"),
        FunctionCall("shell", '{"command": ["bash", "-lc", "pytest -q"]}', "2"),
        FunctionCallOutput("shell", "x", "2"),
        FunctionCall("apply_patch", '{"input": "*** Begin Patch\\n*** Update File: a/b.py\\n"}', "3"),
        FunctionCall("Grep", '{"pattern": "def till"}', "5"),
        FunctionCall("look", "{", "4"),
        FunctionCallOutput("look", "x", "none"),
        Reasoning("hm"),
        Message("assistant", WORDS * 99),
    ]
    *names, long = subjects_of(items, with_words=True)
    assert names == [
        "user message: Mend the till.",
        "Read call: src/till.py",
        "Read output: src/till.py",
        "shell call: pytest -q",
        "shell output: pytest -q",
        "apply_patch call: a/b.py",
        "Grep call: def till",
        "look call",
        "look output",
        "reasoning",
    ]
    assert len(long) <= SUBJECT + len("assistant message: ")


@needs_transcripts
@pytest.mark.no_cover
@pytest.mark.parametrize("folder", FOLDERS)
def test_recorded_windows_add_up(folder: str) -> None:
    for path, account in accounts(folder):
        contents = ContextWindowManager().contents(account.sessions[0], log_reports(path, account))
        points = contents.timeline.points
        for point in {points[0], points[len(points) // 2], points[-1]}:
            tokens = sum(tokens for tokens, _ in contents.at(point.number))
            assert tokens == sum(point.tokens), (path, point.number)
