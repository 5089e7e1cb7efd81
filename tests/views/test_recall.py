"""Recall in corner cases: ids in placeholders, ambiguous ids, and errors."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from context_window import ArgumentError, ContextWindow, ContextWindowManager, RecallError, Session
from context_window.recall import recall, recall_tool
from session.items import FunctionCall, FunctionCallOutput, Message
from session.parts import Image, Text
from tests.support.engine import SHOWN, Cut, DigestPart, changed, cleared, digest, image_placeholder

PICTURE = Image(url="https://example.org/a.png", width=300, height=200)


def manager(tokens: int) -> ContextWindowManager:
    return ContextWindowManager(context_window=ContextWindow(max_tokens=tokens), token_counter=len)


def reading() -> Session:
    """A log whose output is cleared under a small budget."""
    log = Session()
    log.add_message("user", "read it")
    call = log.add_function_call("Read", {})
    log.append(FunctionCallOutput("Read", "x" * 900, call.call_id, id="read"))
    log.add_message("assistant", "done")
    log.add_message("user", "thanks")
    return log


# Placeholders


@pytest.mark.parametrize("scheme", ["data:", "DATA:"])
def test_the_placeholder_of_an_image_in_a_data_url_does_not_hold_the_image(scheme: str) -> None:
    image = Image(url=f"{scheme}image/png;base64,{'A' * 50_000}", width=8, height=6)
    assert image_placeholder(Message("user", [image], id="m"), 0, image) == "[image 8x6 taken out; recall id m#0]"


@pytest.mark.parametrize("source", ["url", "path"])
def test_a_placeholder_repeats_the_beginning_of_a_long_address(source: str) -> None:
    address = "https://example.org/a.png?signature=" + "0123456789abcdef" * 200
    image = Image(**{source: address}, width=8, height=6, open_path=False)  # type: ignore[arg-type]
    placeholder = image_placeholder(Message("user", [image], id="m"), 0, image)
    assert placeholder == f"[image 8x6 {address[:SHOWN]} taken out; recall id m#0]"


# Views and logs


@pytest.mark.parametrize(
    "make_copy",
    [Session.fork, copy.deepcopy, lambda view: Session.from_dict(view.to_dict()), lambda view: Session(view.items)],
    ids=["forked", "copied", "saved", "built anew"],
)
def test_recall_from_a_view_without_its_log_explains_the_problem(make_copy: Callable[[Session], Session]) -> None:
    log = reading()
    alone = make_copy(manager(300).process_session(log))
    with pytest.raises(RecallError, match=r"does not know the log.*recall it from the log"):
        recall(alone, "read")
    assert recall_tool("anthropic").handle(alone, {"id": "read"}).is_error
    assert recall(alone, log.items[0].id) == log.items[0]  # which is whole


def test_a_read_only_view_knows_its_log() -> None:
    log = reading()
    assert recall(manager(300).process_session(log).read_only(), "read") is log.get_by_id("read")


@pytest.mark.parametrize("index", [0, 1, 2, 9])
def test_images_of_reduced_items_are_not_recalled(index: int) -> None:
    """Its parts may have moved."""
    alone = Session([changed(Message("user", ["a", PICTURE, PICTURE], id="m"), (1,), None)])
    with pytest.raises(RecallError, match="taken out") as caught:
        recall(alone, f"m#{index}")
    assert caught.value.item_id == f"m#{index}"


@pytest.mark.parametrize("mine", [{"mine": 1}, "kept", None, 0])
def test_callers_may_use_the_mark_of_views_in_extra(mine: object) -> None:
    log = Session()
    item = log.append(Message("user", "important", extra={"context_window": mine}))
    assert recall(log, item.id) is item


def test_every_mark_of_a_view_is_known() -> None:
    output = FunctionCallOutput("Read", ["x" * 900, PICTURE], "c", id="o")
    for reduced in (cleared(output), changed(output, (1,), None), changed(output, (), Cut(3, 3, 0)), digest([DigestPart(output, (0,))])):
        with pytest.raises(RecallError, match="taken out"):
            recall(Session([reduced]), "o")


def test_all_items_of_a_digest_are_known() -> None:
    call = FunctionCall("Read", '{"path": "a.py"}', "c", id="f")
    alone = Session([digest([DigestPart(call, (0,)), DigestPart(FunctionCallOutput("Read", "x" * 900, "c", id="o"), (0,))])])
    with pytest.raises(RecallError, match="taken out"):
        recall(alone, "o")
    with pytest.raises(RecallError, match="nothing in the session has it"):
        recall(alone, "p")


def test_the_tool_gives_a_call_with_its_output() -> None:
    """A digest may show the path that was read, and nothing of its content."""
    log = Session()
    for number in range(2):  # the same call id twice
        log.append(FunctionCall("Read", '{"path": "a.py"}', "c", id=f"f{number}"))
        log.append(FunctionCallOutput("Read", f"text {number}", "c", id=f"o{number}"))
    log.append(FunctionCall("Read", "{}", "d", id="waits"))
    handle = recall_tool("anthropic").handle
    assert handle(log, {"id": "f0"}).output == (Text('Read({"path": "a.py"})'), Text("text 0"))
    assert handle(log.fork(), {"id": "f1"}).output == (Text('Read({"path": "a.py"})'), Text("text 1"))
    assert handle(log, {"id": "waits"}).output == (Text("Read({})"),)
    assert recall(log, "f0") is log.items[0]


# Ambiguous ids


def twofold() -> Session:
    """A log in which `m#1` is both an item and an image of another item."""
    log = Session()
    log.append(Message("user", ["look", PICTURE], id="m"))
    log.append(Message("user", "another", id="m#1"))
    return log


def test_an_ambiguous_id_raises_and_explains_the_alternatives() -> None:
    log = twofold()
    with pytest.raises(RecallError, match=r"an item has it, and an image of item 'm'; recall 'm' to get that image, or ask get_by_id"):
        recall(log, "m#1")
    assert recall(log, "m") is log.items[0]


def test_the_tool_answers_an_ambiguous_id_with_both() -> None:
    answer = recall_tool("anthropic").handle(twofold(), {"id": "m#1"})
    assert (answer.output, answer.is_error) == ((Text("another"), PICTURE), False)


@pytest.mark.parametrize("id", ["m#01", "m#0", "m#2", "m#", "m#-1", "m#1 ", "m#¹", "m#" + "1" * 50, "#1", "x#1"], ids=ascii)
def test_only_the_number_of_an_image_names_one(id: str) -> None:
    with pytest.raises(RecallError):
        recall(Session([Message("user", ["look", PICTURE], id="m")]), id)


# Wrong arguments


@pytest.mark.parametrize("id", [5, None, b"m", ["m"], 10**5_000], ids=["number", "none", "bytes", "list", "huge"])
def test_an_id_that_is_not_a_string_is_rejected(id: Any) -> None:
    with pytest.raises(ArgumentError, match="pass the recall id from a placeholder"):
        manager(300).recall(Session(), id)


@pytest.mark.parametrize("session", [None, "log", []])
def test_other_objects_are_rejected_as_sessions(session: Any) -> None:
    with pytest.raises(ArgumentError, match="pass the Session"):
        manager(300).recall(session, "m")
    with pytest.raises(ArgumentError, match="pass the Session"):
        recall_tool("anthropic").handle(session, {"id": "m"})


@pytest.mark.parametrize(
    "arguments",
    [{"id": None}, {"id": ["m"]}, {"id": {"id": "m"}}, {"id": 10**5_000}, {}, 7, "{", "[]", "7", "[" * 100_000],
    ids=["none", "list", "mapping", "huge", "nothing", "number", "broken", "no mapping", "a number", "deep"],
)
def test_a_call_without_an_id_explains_the_argument(arguments: Any) -> None:
    answer = recall_tool("anthropic").handle(Session([Message("user", "x", id="m")]), arguments)
    assert answer.is_error
    assert "Pass" in str(answer.output[0])


def test_a_model_may_take_the_quotes_off_a_number() -> None:
    log = Session([Message("user", "x", id="7")])
    assert recall_tool("anthropic").handle(log, json.dumps({"id": 7})).output == (Text("x"),)


@pytest.mark.parametrize("provider", ["mistral", "", None, 5, ["anthropic"]])
def test_an_unknown_provider_is_rejected(provider: Any) -> None:
    with pytest.raises(ArgumentError, match="pass one of anthropic"):
        manager(300).recall_tool(provider)


# Ranges


def numbered(count: int) -> Session:
    log = Session()
    for number in range(count):
        log.add_message("user" if number % 2 == 0 else "assistant", f"text {number} " + "x" * 80, f"m{number}")
    return log


def listed(log: Session, id: str) -> str:
    answer = recall_tool("anthropic").handle(log, {"id": id})
    assert not answer.is_error
    (part,) = answer.output
    assert isinstance(part, Text)
    return part.text


def test_a_range_is_answered_by_a_list_of_its_items() -> None:
    log = numbered(10)
    log.add_function_call("Read", {"path": "a.py"}, "c")
    lines = listed(log, f"m8 to {log.items[-1].id}").splitlines()
    assert lines[:2] == [f"m8: user message: text 8 {'x' * 53}…", f"m9: assistant message: text 9 {'x' * 53}…"]
    assert lines[2] == f'{log.items[-1].id}: Read call: Read({{"path": "a.py"}})'


def test_a_long_range_says_how_to_go_on() -> None:
    log = numbered(120)
    lines = listed(log, "m3 to m110").splitlines()
    assert (len(lines), lines[-1]) == (51, "58 more: recall m53 to m110")
    assert listed(log, "m110 to m3").splitlines() == lines


def test_the_range_in_the_line_about_removed_items_can_be_listed() -> None:
    log = numbered(60)
    odd = Session([replace(item, id=f"{item.id} with spaces") for item in log.items])
    for session in (log, odd):
        view = manager(2_500).process_session(session)
        assert view.removed is not None
        ends = view.removed.line.partition("recall ids ")[2].rstrip("]")
        for source in (session, view):
            lines = listed(source, ends).splitlines()
            assert len(lines) == min(51, view.removed.count)
            assert "text 0" in lines[0]


@pytest.mark.parametrize("id", ["m0 to", " to m1", "m0 to nobody", "m0 to m1 to m2", "m0 - m1"])
def test_anything_else_is_no_range(id: str) -> None:
    assert recall_tool("anthropic").handle(numbered(3), {"id": id}).is_error


def test_an_item_with_such_an_id_is_recalled_itself() -> None:
    log = numbered(3)
    log.add_message("user", "the odd one", "m0 to m1")
    assert listed(log, "m0 to m1") == "the odd one"
