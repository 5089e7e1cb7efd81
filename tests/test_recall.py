"""Recall in its corners: what placeholders name, which id wins, and what is said where nothing comes back."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from context_window import BudgetError, ContextWindow, ContextWindowManager, RecallError, Session
from context_window.recall import recall, recall_tool
from context_window.trimming.placeholders import SHOWN, changed, cleared, image_placeholder
from context_window.trimming.plan import Cut
from session.items import FunctionCallOutput, Message
from session.parts import Image, Text

PICTURE = Image(url="https://example.org/a.png", width=300, height=200)


def manager(tokens: int) -> ContextWindowManager:
    return ContextWindowManager(context_window=ContextWindow(max_tokens=tokens), token_counter=len)


def reading() -> Session:
    """A log whose output is cleared as soon as there is little room."""
    log = Session()
    log.add_message("user", "read it")
    call = log.add_function_call("Read", {})
    log.append(FunctionCallOutput("Read", "x" * 900, call.call_id, id="read"))
    log.add_message("assistant", "done")
    log.add_message("user", "thanks")
    return log


# What placeholders say


@pytest.mark.parametrize("scheme", ["data:", "DATA:"])
def test_the_placeholder_of_an_image_in_a_data_url_does_not_hold_the_image(scheme: str) -> None:
    image = Image(url=f"{scheme}image/png;base64,{'A' * 50_000}", width=8, height=6)
    assert image_placeholder(Message("user", [image], id="m"), 0, image) == "[image 8x6 taken out; recall id m#0]"


@pytest.mark.parametrize("source", ["url", "path"])
def test_a_placeholder_repeats_the_beginning_of_a_long_address(source: str) -> None:
    address = "https://example.org/a.png?signature=" + "0123456789abcdef" * 200
    image = Image(**{source: address}, width=8, height=6, open_path=False)  # type: ignore[arg-type]
    told = image_placeholder(Message("user", [image], id="m"), 0, image)
    assert told == f"[image 8x6 {address[:SHOWN]} taken out; recall id m#0]"


# Which log


@pytest.mark.parametrize(
    "made",
    [Session.fork, copy.deepcopy, lambda view: Session.from_dict(view.to_dict()), lambda view: Session(view.items)],
    ids=["forked", "copied", "saved", "built anew"],
)
def test_a_view_that_knows_no_log_says_so_of_what_was_taken_out(made: Callable[[Session], Session]) -> None:
    log = reading()
    alone = made(manager(300).process_session(log))
    with pytest.raises(RecallError, match=r"does not know the log.*recall it from the log"):
        recall(alone, "read")
    assert recall_tool("anthropic").handle(alone, {"id": "read"}).is_error
    assert recall(alone, log.items[0].id) == log.items[0]  # which is whole


def test_a_read_only_view_knows_its_log() -> None:
    log = reading()
    assert recall(manager(300).process_session(log).read_only(), "read") is log.get_by_id("read")


@pytest.mark.parametrize("place", [0, 1, 2, 9])
def test_no_image_is_looked_for_in_an_item_that_is_not_whole(place: int) -> None:
    """Its parts may stand elsewhere than they did."""
    alone = Session([changed(Message("user", ["a", PICTURE, PICTURE], id="m"), (1,), None)])
    with pytest.raises(RecallError, match="taken out") as caught:
        recall(alone, f"m#{place}")
    assert caught.value.item_id == f"m#{place}"


@pytest.mark.parametrize("mine", [{"mine": 1}, "kept", None, 0])
def test_what_the_caller_notes_under_the_mark_of_views_hides_nothing(mine: object) -> None:
    log = Session()
    item = log.append(Message("user", "important", extra={"context_window": mine}))
    assert recall(log, item.id) is item


def test_every_mark_of_a_view_is_known() -> None:
    output = FunctionCallOutput("Read", ["x" * 900, PICTURE], "c", id="o")
    for shown in (cleared(output), changed(output, (1,), None), changed(output, (), Cut(3, 3, 0))):
        with pytest.raises(RecallError, match="taken out"):
            recall(Session([shown]), "o")


# Which of two


def twofold() -> Session:
    """A log in which `m#1` is an item, and an image of another."""
    log = Session()
    log.append(Message("user", ["look", PICTURE], id="m"))
    log.append(Message("user", "another", id="m#1"))
    return log


def test_an_id_of_two_things_gives_neither_and_says_how_to_get_both() -> None:
    log = twofold()
    with pytest.raises(RecallError, match=r"an item has it, and an image of item 'm'; recall 'm' to get that image, or ask get_by_id"):
        recall(log, "m#1")
    assert recall(log, "m") is log.items[0]


def test_a_model_that_asks_for_an_id_of_two_things_is_given_both() -> None:
    answer = recall_tool("anthropic").handle(twofold(), {"id": "m#1"})
    assert (answer.output, answer.is_error) == ((Text("another"), PICTURE), False)


@pytest.mark.parametrize("id", ["m#01", "m#0", "m#2", "m#", "m#-1", "m#1 ", "m#¹", "m#" + "1" * 50, "#1", "x#1"], ids=ascii)
def test_only_the_number_of_an_image_names_one(id: str) -> None:
    with pytest.raises(RecallError):
        recall(Session([Message("user", ["look", PICTURE], id="m")]), id)


# What is none


@pytest.mark.parametrize("id", [5, None, b"m", ["m"], 10**5_000], ids=["number", "none", "bytes", "list", "huge"])
def test_an_id_that_is_no_text_is_told(id: Any) -> None:
    with pytest.raises(BudgetError, match="pass the recall id that a placeholder names"):
        manager(300).recall(Session(), id)


@pytest.mark.parametrize("session", [None, "log", []])
def test_a_session_that_is_none_is_told(session: Any) -> None:
    with pytest.raises(BudgetError, match="pass the Session"):
        manager(300).recall(session, "m")
    with pytest.raises(BudgetError, match="pass the Session"):
        recall_tool("anthropic").handle(session, {"id": "m"})


@pytest.mark.parametrize(
    "arguments",
    [{"id": None}, {"id": ["m"]}, {"id": {"id": "m"}}, {"id": 10**5_000}, {}, 7, "{", "[]", "7", "[" * 100_000],
    ids=["none", "list", "mapping", "huge", "nothing", "number", "broken", "no mapping", "a number", "deep"],
)
def test_a_model_that_passes_no_id_is_told_what_to_pass(arguments: Any) -> None:
    answer = recall_tool("anthropic").handle(Session([Message("user", "x", id="m")]), arguments)
    assert answer.is_error
    assert "Pass" in str(answer.output[0])


def test_a_model_may_take_the_quotes_off_a_number() -> None:
    log = Session([Message("user", "x", id="7")])
    assert recall_tool("anthropic").handle(log, json.dumps({"id": 7})).output == (Text("x"),)


@pytest.mark.parametrize("provider", ["mistral", "", None, 5, ["anthropic"]])
def test_a_provider_whose_form_is_not_known_is_told(provider: Any) -> None:
    with pytest.raises(BudgetError, match="pass one of anthropic"):
        manager(300).recall_tool(provider)
