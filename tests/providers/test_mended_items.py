"""`mended_items`: what a request of a view has that the view lacks, and the other way around."""

from __future__ import annotations

import json
from itertools import pairwise
from operator import is_
from typing import Any

import pytest
from hypothesis import given

from session import FunctionCall, FunctionCallOutput, Message, Reasoning, Session
from session.items import Item
from session.providers.additions import INTERRUPTED
from session.providers.anthropic import to_anthropic
from session.providers.google import to_google
from session.providers.mended_items import mended_items
from session.units import grouping, is_blank
from tests.support.any_logs import logs

A, B = FunctionCall("run", "{}", "a", id="a"), FunctionCall("run", "{}", "b", id="b")


def output(call: FunctionCall) -> FunctionCallOutput:
    return FunctionCallOutput("run", "done", call.call_id, id=f"of {call.id}")


@pytest.mark.parametrize(
    ("items", "ids"),
    [
        ([A, B, output(A), Message("user", "So?", id="u")], ["a", "b", "b-interrupted", "of a", "u"]),
        ([A, Message("user", "So?", id="u"), output(A)], ["a", "u", "of a"]),
        ([Message("user", " ", id="u"), Message("assistant", "", id="x"), A, output(A)], ["a", "of a"]),
        ([Message("user", "Hi", id="u"), Reasoning("hm", "s", id="r"), Message("assistant", "\n", id="x")], ["u"]),
        ([Reasoning("hm", "s", id="r"), Message("assistant", " ", id="x"), A], ["r", "a", "a-interrupted"]),
        ([Message("assistant", (), id="x", extra={"anthropic_blocks": [{"type": "compaction", "content": "c"}]})], ["x"]),
        ([A, FunctionCall("run", "{}", "a", id="a2"), output(A)], ["a", "a2", "a-interrupted", "of a"]),
    ],
    ids=["one of two calls", "a late output", "blank messages", "thinking alone", "thinking before a call", "carried", "equal ids"],
)
def test_blank_messages_go_and_interrupted_calls_get_an_output(items: list[Item], ids: list[str]) -> None:
    assert [item.id for item in mended_items(Session(items))] == ids


@pytest.mark.parametrize("seams", [{"breaks": frozenset({"b"})}, {"breaks": frozenset(), "ends": frozenset({"a"})}], ids=["breaks", "ends"])
def test_the_outputs_of_two_responses_stay_with_their_calls(seams: dict[str, Any]) -> None:
    view = Session.showing(Session(), [A, B], settled=0, **seams)
    assert [item.id for item in mended_items(view)] == ["a", "a-interrupted", "b", "b-interrupted"]


@given(logs())
def test_every_call_has_one_output_and_nothing_else_is_added_or_lost(session: Session) -> None:
    items = mended_items(session)
    added = [item for item in items if item.id.endswith("-interrupted")]
    kept = [item for item in items if item not in added]
    assert all(map(is_, kept, [item for item in session.items if item.id in {each.id for each in kept}]))
    lost = [item for item in session.items if item not in kept]
    assert all(isinstance(item, Reasoning) or (isinstance(item, Message) and is_blank(item)) for item in lost)
    groups = grouping(_with_seams(items, session))
    assert [answered for answered, item in zip(groups.answered, items, strict=True) if isinstance(item, FunctionCall)].count(0) == 0


@given(logs())
def test_the_converters_send_the_same_with_and_without_the_added_outputs(session: Session) -> None:
    items = mended_items(session)
    mended = _with_seams(items, session)
    view = _with_seams([item for item in items if not item.id.endswith("-interrupted")], session)
    later = {item.id for before, item in pairwise(items) if before.id.endswith("-interrupted")}  # after a blank message, which is left out
    view.restore_seams(session.response_breaks | later, 0, ends=session.request_ends)
    for convert in (to_anthropic, to_google):
        assert _text(convert(mended)) == _text(convert(view))


def _with_seams(items: list[Item], session: Session) -> Session:
    copy = Session(items)
    copy.restore_seams(session.response_breaks, 0, ends=session.request_ends)
    return copy


def _text(payload: Any) -> str:
    return json.dumps(payload).replace(f"{INTERRUPTED} ", INTERRUPTED)  # in a log, the line gets a space more
