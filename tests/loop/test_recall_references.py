"""Answers to recalls are not copied into the log: it has a reference, and views show what was recalled."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_window import ContextWindow, ContextWindowManager, Extract
from context_window.recall import LARGEST_COPY, PAGE, REFERENCE, REFERRED, as_shown
from session import Session
from session.items import FunctionCall, FunctionCallOutput
from session.parts import Image
from tests.support.counting import Letters
from tests.support.pictures import png

LINES = "\n".join(f"{number}: compiled module_{number * 7919 % 20_011}" for number in range(1, 20_001))

FEW_LINES = LINES[:20_000]


def manager(tokens: int = 60_000) -> ContextWindowManager:
    window = ContextWindow(max_tokens=tokens, strategy=Extract(), largest_output=0.1)
    return ContextWindowManager(token_counter=Letters(), context_window=window)


def log_with(output: Any = LINES) -> Session:
    log = Session()
    log.add_message("user", "Build all.", "task")
    log.append(FunctionCall("build", "{}", "b", id="build"))
    log.append(FunctionCallOutput("build", output, "b", id="built"))
    return log


def recall(log: Session, manager: ContextWindowManager, **arguments: object) -> FunctionCallOutput:
    """Let the model recall, as a loop does. Return the item that the log got."""
    call = log.add_function_call("recall", arguments)
    answer = manager.recall_tool("anthropic").handle(log, call.arguments)
    item = answer.item_for(call)
    log.append(item)
    return item


def text_in_view(log: Session, manager: ContextWindowManager) -> str:
    last = manager.process_session(log).items[-1]
    assert isinstance(last, FunctionCallOutput)
    return last.text


def test_five_recalls_add_little_to_the_log_and_are_read_whole() -> None:
    """Less than 10 KB, of an output of 800 KB; each answer is in the view that the model reads next."""
    log, limits = log_with(), manager()
    before = len(json.dumps(log.to_dict()))
    for number in range(5):
        limits.process_session(log)
        recall(log, limits, id="built", from_line=4_000 * number + 1)
        assert f"{4_000 * number + 7}: compiled module_{(4_000 * number + 7) * 7919 % 20_011}" in text_in_view(log, limits)
    assert len(json.dumps(log.to_dict())) - before < 10_000
    assert not any("compiled" in item.text for item in log.items if isinstance(item, FunctionCallOutput) and item.name == "recall")


@given(st.integers(1, 700), st.none() | st.integers(1, 300), st.sampled_from(("", "module_77", "compiled")), st.booleans())
def test_the_same_log_shows_the_same(first: int, count: int | None, query: str, is_saved: bool) -> None:
    """What is shown depends on the log up to the call alone: not on what came later, nor on the process. It counts as what is shown."""
    log, limits = log_with(FEW_LINES), manager(200_000)
    arguments = {"query": query} if query else {"id": "built", "from_line": first, "lines": count}
    item = recall(log, limits, **arguments)
    shown = text_in_view(log, limits)
    assert (shown == item.text) == (REFERENCE not in item.extra)
    log.add_message("assistant", "I see: compiled module_77.")
    log.add_message("user", "Go on.")
    other = Session.from_dict(json.loads(json.dumps(log.to_dict()))) if is_saved else log
    view = manager(200_000).process_session(other)
    assert [each.text for each in view.items if isinstance(each, FunctionCallOutput) and each.name == "recall"] == [shown]
    sent = json.dumps(view.to_anthropic_messages()[0])
    assert json.dumps(shown)[1:-1] in sent
    assert limits.process_session(log).items == view.items
    assert limits.get_token_usage()["total"] >= len(shown)


def test_without_a_manager_a_reference_says_what_it_is() -> None:
    """What is made of the log itself has no content that only a view shows."""
    log, limits = log_with(), manager()
    recall(log, limits, id="built", from_line=9_000)
    assert REFERRED in json.dumps(log.to_anthropic_messages()[0])


def test_a_small_answer_an_error_and_one_of_a_view_are_copies() -> None:
    limits = manager()
    for log, arguments in ((log_with("short " * 50), {"id": "built"}), (log_with(), {"id": "nothing"})):
        item = recall(log, limits, **arguments)
        assert REFERENCE not in item.extra
        assert len(item.text) <= LARGEST_COPY
        assert text_in_view(log, limits) == item.text


def test_an_image_is_shown_again_and_not_held_twice() -> None:
    log, limits = log_with([Image(data=png(9, 9), media_type="image/png")]), manager(200_000)
    item = recall(log, limits, id="built")
    assert REFERENCE in item.extra
    shown = limits.process_session(log).items[-1]
    assert isinstance(shown, FunctionCallOutput)
    assert any(isinstance(part, Image) for part in shown.output)


@pytest.mark.parametrize("mark", [True, 0, -5, PAGE + 1, 10**30, "500", None, [1]])
def test_a_mark_that_makes_no_sense_changes_nothing(mark: object) -> None:
    """A log may come from anywhere."""
    log = log_with()
    call = log.add_function_call("recall", {"id": "built"})
    log.append(FunctionCallOutput("recall", "text", call.call_id, extra={REFERENCE: mark}))
    assert as_shown(log.items, len(log.items) - 1) is log.items[-1]
    other = Session([FunctionCall("x", "{}", "c"), FunctionCallOutput("recall", "text", "another", extra={REFERENCE: 900})])
    assert as_shown(other.items, 1) is other.items[1]
