"""A request never ends in the assistant's turn by accident (docs/provider-rules.md, A1 and G3)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from context_window.counting.overhead import request_overhead
from session import AgentHandoff, Compaction, FunctionCall, FunctionCallOutput, Message, Session
from session.items import Item
from session.providers import validate_anthropic, validate_google
from session.providers.additions import CLOSING, PREAMBLE
from session.providers.anthropic import from_anthropic, to_anthropic
from session.providers.google import from_google, to_google
from session.providers.openai_chat import from_openai_chat, to_openai_chat
from session.providers.openai_responses import from_openai_responses, to_openai_responses
from session.units import grouping, request_points
from tests.support.any_logs import cut, logs
from tests.support.counting import Letters
from tests.support.harness import process, trim
from tests.support.strategies import limits, sessions
from tests.support.twin import answers as outputs_of
from tests.support.twin import cost, is_answer, is_summary, needs_closing

CALL_IN_FLIGHT: list[Item] = [
    Message("user", "Go."),
    FunctionCall("run", "{}", "c"),
    Message("user", "And?"),
    Message("assistant", "Wait."),
]
ENDS: dict[str, list[Item]] = {
    "late output": [*CALL_IN_FLIGHT, FunctionCallOutput("run", "done", "c")],
    "system message after an answer": [Message("user", "Go."), Message("assistant", "Done."), Message("system", "Be brief.")],
    "blank user message after an answer": [Message("user", "Go."), Message("assistant", "Done."), Message("user", " ")],
    "blank summary after an answer": [Message("user", "Go."), Message("assistant", "Done."), Compaction("")],
    "summary of the assistant": [Message("user", "Go."), Message("assistant", "So far.", extra={"summary": True})],
}


def whole_anthropic(session: Session) -> dict[str, Any]:
    messages, system = to_anthropic(session)
    return {"model": "m", "max_tokens": 1, "messages": messages, **({"system": system} if system else {})}


def whole_google(session: Session) -> dict[str, Any]:
    contents, system = to_google(session)
    return {"model": "gemini-3-pro", "contents": contents, **({"system_instruction": system} if system else {})}


def whole_openai(session: Session) -> list[Any]:
    """The messages of both of OpenAI's APIs; those of a kind without a role are no words of the assistant."""
    return [session.to_openai_messages(), session.to_openai_responses()]


def ends_in_answer(session: Session) -> bool:
    """True if nothing, or an output without a call, follows the last answer."""
    items = list(session.items)
    orphans = {position for position, call in outputs_of(items).items() if call is None}
    last = next((item for position, item in reversed(list(enumerate(items))) if position not in orphans), None)
    return last is None or is_answer(last)


def validate_as_request(session: Session) -> None:
    """Validate the requests with a log, unless it has nothing to send."""
    request, contents = whole_anthropic(session), whole_google(session)
    assert not request["messages"] or validate_anthropic(request) == []
    assert not contents["contents"] or validate_google(contents) == []
    assert [messages[-1] for messages in whole_openai(session) if messages and messages[-1].get("role") == "assistant"] == []


@pytest.mark.parametrize("end", ENDS)
def test_a_log_that_does_not_end_in_a_response_makes_a_whole_request(end: str) -> None:
    validate_as_request(Session(ENDS[end]))


@given(logs())
def test_every_request_of_a_log_ends_with_the_user(session: Session) -> None:
    """A request never ends in the assistant's turn by accident: of any log, at every point where the model was called behind
    something other than its own words."""
    for end in request_points(session):
        if not ends_in_answer(cut(session, end)):
            validate_as_request(cut(session, end))


@given(data=st.data())
def test_every_view_ends_with_the_user(data: st.DataObject) -> None:
    """The same of every view, whatever was taken out of it."""
    log = data.draw(sessions())
    if ends_in_answer(log):
        return
    bounds = data.draw(limits(sum(map(cost, log.items))))
    for outcome in (process(log, bounds), trim(log, bounds)):
        event(f"closed: {grouping(log).needs_closing}")
        validate_as_request(outcome.view)


@given(logs())
def test_planners_reserve_the_line_where_a_request_needs_it(session: Session) -> None:
    """Planners reserve the line exactly as the slow twin does; a converter adds it to the request if its last answer says something."""
    items = list(session.items)
    is_reserved = grouping(session).needs_closing
    assert is_reserved == needs_closing(items, session.response_breaks)
    messages = to_anthropic(session).messages
    is_sent = bool(messages) and messages[-1] == {"role": "user", "content": [{"type": "text", "text": CLOSING}]}
    event(f"reserved: {is_reserved}, sent: {is_sent}")
    if not any(is_summary(item) or is_unsendable(item) for item in items):
        assert is_sent == is_reserved
        for messages in (*whole_openai(session), to_google(session).contents):  # in OpenAI's formats a system message may come last
            assert is_reserved or not messages or messages[-1] not in CLOSINGS


CLOSINGS = (
    {"role": "user", "content": CLOSING},
    {"type": "message", "role": "user", "content": CLOSING},
    {"role": "user", "parts": [{"text": CLOSING}]},
)


def is_unsendable(item: Item) -> bool:
    """True for an answer that may have nothing to send: then an earlier one is the last."""
    return is_answer(item) and not isinstance(item, FunctionCall) and not (isinstance(item, Message) and item.text.strip())


def test_the_line_counts_as_a_message_of_the_user() -> None:
    overhead = request_overhead(Letters(), [], 0)
    assert overhead.closing == overhead.preamble - len(PREAMBLE) + len(CLOSING)


OPENAI_FORMATS: tuple[tuple[Any, Any], ...] = (
    (to_openai_chat, from_openai_chat),
    (to_openai_responses, from_openai_responses),
)


@pytest.mark.parametrize("end", ENDS)
def test_a_round_trip_keeps_the_line(end: str) -> None:
    """Reading a payload removes the line, and writing it again adds it: the payload stays the same."""
    session = Session([*ENDS[end], Message("assistant", "Later.")])
    for log in (Session(ENDS[end]), session):
        assert to_anthropic(from_anthropic(*to_anthropic(log))) == to_anthropic(log)
        assert to_google(from_google(*to_google(log))) == to_google(log)
        assert CLOSING not in [item.text for item in from_google(*to_google(log)).items if isinstance(item, Message)]
        for write, read in OPENAI_FORMATS:
            assert write(read(write(log))) == write(log)
            assert CLOSING not in [item.text for item in read(write(log)).items if isinstance(item, Message)]


def test_a_user_who_says_the_line_is_not_mistaken_for_it() -> None:
    session = Session([Message("user", "Go."), Message("assistant", "Done."), Message("user", CLOSING)])
    from_openai = [read(write(session)) for write, read in OPENAI_FORMATS]
    for log in (from_anthropic(*to_anthropic(session)), from_google(*to_google(session)), *from_openai):
        assert [item.text for item in log.items if isinstance(item, Message)] == ["Go.", "Done.", CLOSING]


def test_a_handoff_after_an_answer_does_not_end_a_request_in_the_assistants_turn() -> None:
    validate_as_request(Session([Message("user", "Go."), Message("assistant", "Done."), AgentHandoff("billing")]))
