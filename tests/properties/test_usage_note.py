"""The line about usage: there once it is due, counted, the same until a trim makes room, in every format, and only if it is wanted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, event, given
from hypothesis import strategies as st

from context_window import BudgetError, ContextWindow, ContextWindowManager
from context_window.counting.overhead import request_overhead
from session import Message, Session
from session.providers.additions import USAGE_NOTE
from session.providers.anthropic import from_anthropic, to_anthropic
from session.providers.google import from_google, to_google
from session.providers.openai_chat import from_openai_chat, to_openai_chat
from session.providers.openai_responses import from_openai_responses, to_openai_responses
from session.removed import Removed
from session.session_log import USAGE_NOTED_AFTER
from session.units import grouping
from tests.support.carried_out import carried_out
from tests.support.counting import Letters
from tests.support.engine import Engine
from tests.support.harness import copy_of, process, trim
from tests.support.strategies import limits, sessions
from tests.support.twin import cost, responses

FORMATS: dict[str, tuple[Callable[[Session], Any], Callable[[Any], Session]]] = {
    "anthropic": (to_anthropic, lambda wire: from_anthropic(*wire)),
    "google": (to_google, lambda wire: from_google(*wire)),
    "openai_chat": (to_openai_chat, from_openai_chat),
    "openai_responses": (to_openai_responses, from_openai_responses),
}


@given(st.data())
def test_the_model_is_told_when_it_is_due(data: st.DataObject) -> None:
    """A request that costs at least so much has the line, and no other request has it. A plan that is applied gives the same line"""
    log = data.draw(sessions())
    bounds = data.draw(limits(sum(map(cost, log.items))))
    outcome = trim(log, bounds)
    noted = outcome.view.usage_noted_after
    event(f"told: {noted is not None}")
    assert noted == outcome.plan.usage_noted_after == carried_out(outcome.plan, log).usage_noted_after
    if noted is not None:
        assert outcome.total >= bounds.usage_noted_from
    elif grouping(log).is_followed and any(isinstance(item, Message) and item.text.strip() for item in to_messages(outcome.view)):
        assert outcome.total < bounds.usage_noted_from


def to_messages(view: Session) -> list[Message]:
    return [item for item in view.messages() if item.role in ("user", "assistant")]


@given(st.data())
def test_the_line_stays_until_a_trim_makes_room(data: st.DataObject) -> None:
    """Between two trims it comes once, at the end of a request, and stays in its place"""
    full_log = data.draw(sessions())
    bounds = replace(data.draw(limits(sum(map(cost, full_log.items)))), usage_note=25)
    log, noted_before, taken_before = copy_of(full_log), None, None
    engine = Engine(log, bounds)
    for point in [response[0] for response in responses(list(full_log.items), full_log.response_breaks)]:
        for item in full_log.items[len(log.items) : point]:
            log.append(item)
        outcome = engine.process(log)
        noted = outcome.view.usage_noted_after
        taken = [(entry.item_id, entry.action, entry.images, entry.cut) for entry in outcome.plan.changes]
        if taken == taken_before:
            assert noted in (noted_before, outcome.view.items[-1].id) if noted_before is None else noted == noted_before
        event(f"told: {noted is not None}, trimmed since: {taken != taken_before}")
        noted_before, taken_before = noted, taken


@pytest.mark.parametrize("name", FORMATS)
@given(st.data())
def test_every_format_has_the_line_once_and_no_reader_takes_it_for_words_of_the_user(name: str, data: st.DataObject) -> None:
    """Reading gives a session that tells the model at the same place"""
    there, back = FORMATS[name]
    log = data.draw(sessions())
    bounds = replace(data.draw(limits(sum(map(cost, log.items)))), usage_noted_from=1)
    view = process(log, bounds).view
    assume(view.usage_noted_after is not None)
    wire = there(view)
    assert str(wire).count(USAGE_NOTE) == 1
    returned = back(wire)
    assert USAGE_NOTE not in str(list(returned.items))
    assert returned.usage_noted_after is not None
    assert there(returned) == wire


@pytest.mark.parametrize("name", FORMATS)
def test_a_request_of_the_two_lines_only_is_read_and_written_unchanged(name: str) -> None:
    """Reading gives a session that tells the model at the same place, also where no other message has words"""
    there, back = FORMATS[name]
    view = Session([Message("system", "x"), Message("user", "\n")])
    view.metadata |= {USAGE_NOTED_AFTER: view.items[-1].id, **Removed(17, "i1", "i19").to_metadata()}
    wire = there(view)
    assert str(wire).count("17 earlier items") == str(wire).count(USAGE_NOTE) == 1
    assert there(back(wire)) == wire


def managed(tokens: int, note_usage_at: float | None = 0.8) -> ContextWindowManager:
    return ContextWindowManager(token_counter=Letters(), context_window=ContextWindow(max_tokens=tokens, note_usage_at=note_usage_at))


def requests(manager: ContextWindowManager, turns: int) -> Iterator[tuple[Session, int]]:
    """The view of each request of a log that grows, and its total."""
    log = Session(id="s")
    for turn in range(turns):
        log.add_message("user", f"question {turn} " + "x" * 200, f"x{turn}")
        yield manager.process_session(log), manager.usage().total
        log.add_message("assistant", f"answer {turn} " + "y" * 200, f"y{turn}")


def test_the_line_comes_at_80_percent_and_goes_with_the_next_trim() -> None:
    cost_of_line = request_overhead(Letters(), [], 0).usage_note
    before: list[Any] = []
    told, trims = 0, 0
    was_removed = None
    for view, total in requests(managed(4_000), 40):
        request = to_openai_chat(view)
        is_told = {"role": "user", "content": USAGE_NOTE} in request
        assert is_told == (view.usage_noted_after is not None) == (total >= 0.8 * 4_000)
        assert sum(4 + len(message["content"]) for message in request) <= total <= 4_000
        if view.removed == was_removed:
            assert request[: len(before)] == before
            if is_told and not told:
                assert request[-1]["content"] == USAGE_NOTE
                assert total >= 0.8 * 4_000 + cost_of_line
        else:
            trims += 1
            assert not is_told
        before, told, was_removed = request, is_told, view.removed
    assert trims > 3


def test_nobody_is_told_by_default_or_in_a_window_that_the_line_would_fill() -> None:
    line = request_overhead(Letters(), [], 0).usage_note
    for manager, is_told in ((managed(4_000, None), False), (managed(20 * line - 1), False), (managed(20 * line), True)):
        assert any(view.usage_noted_after is not None for view, _ in requests(manager, 20)) == is_told


@pytest.mark.parametrize("share", [0, 1.1, -1, "0.8", True])
def test_the_share_is_above_0_and_at_most_1(share: Any) -> None:
    with pytest.raises(BudgetError, match="note_usage_at"):
        ContextWindow(note_usage_at=share)


def test_a_line_that_the_log_came_with_stays_until_something_is_taken() -> None:
    """Also under limits that have no line of their own"""
    view = next(view for view, _ in requests(managed(4_000), 40) if view.usage_noted_after is not None)
    assert managed(4_000, None).process_session(view).items == view.items
    smaller = managed(2_000, None).process_session(view)
    assert smaller.removed is not None
    assert smaller.usage_noted_after is None
