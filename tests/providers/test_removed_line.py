"""The line about removed items: its words, how it is recognised, and that every format carries it there and back."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session import Session
from session.items import Compaction, FunctionCall, FunctionCallOutput, Item, Message, Reasoning
from session.removed import ID_LENGTH, Removed, short_id
from tests.contracts.wires import WIRES, Wire

REMOVED = Removed(143, "m3", "m212")
LINE = "[143 earlier items removed to fit the window; recall ids m3 to m212]"
IDS = st.one_of(st.sampled_from(("m3", "3fa9c1d2e4f5", "call.x_7-")), st.text(min_size=1))


def view_of(*items: Item, removed: Removed | None = REMOVED) -> Session:
    return Session.showing(Session(), list(items), breaks=frozenset(), settled=0, removed=removed)


def test_the_line_names_the_number_and_the_ids() -> None:
    assert REMOVED.line == LINE
    assert Removed(1, "m3", "m3").line == "[1 earlier item removed to fit the window; recall id m3]"
    assert Removed(12_345, "m3", "m9").line.startswith("[12,345 earlier items")


def test_a_long_or_odd_id_is_shown_by_its_hash() -> None:
    assert short_id("m3") == "m3"
    shown = {short_id(item_id) for item_id in ("x" * 13, "two words", "a]b", "é", "550e8400-e29b-41d4-a716-446655440000")}
    assert len(shown) == 5
    assert {len(item_id) for item_id in shown} == {ID_LENGTH}


@given(st.integers(1, 10**12), IDS, IDS)
def test_a_line_is_read_back_as_what_it_says(count: int, first: str, last: str) -> None:
    line = Removed(count, first, first if count == 1 else last).line
    read = Removed.from_line(line)
    assert read is not None
    assert read.line == line
    assert len(line) <= 110


@pytest.mark.parametrize(
    "text",
    [
        "",
        LINE + " ",
        LINE + "\n",
        LINE.replace("143", "0143"),
        LINE.replace("143", "1,43"),
        LINE.replace("143", "1"),
        LINE.replace("m3", "m 3"),
    ],
)
def test_any_other_text_is_no_line(text: str) -> None:
    assert Removed.from_line(text) is None


@pytest.mark.parametrize("value", [None, 3, {}, {"count": "3", "first": "a", "last": "b"}, {"count": 0, "first": "a", "last": "b"}])
def test_damaged_metadata_says_nothing(value: object) -> None:
    assert Session(metadata={"removed_items": value}).removed is None


@pytest.mark.parametrize("wire", [kind() for kind in WIRES], ids=lambda wire: wire.name)
def test_a_view_begins_with_the_line_once_and_after_the_system_prompt(wire: Wire) -> None:
    view = view_of(Message("system", "Rules."), Message("assistant", "b"), Message("user", "c"))
    payload = wire.sent(view)
    text = json.dumps(payload)
    assert text.count(LINE) == 1
    assert "Earlier messages were removed" not in text
    assert text.index(LINE) < text.index('"b"')
    if "openai" in wire.name:
        assert text.index("Rules.") < text.index(LINE)
    again = wire.back(payload)
    assert again.removed == REMOVED
    assert [item.text for item in again.items if isinstance(item, Message)] == ["Rules.", "b", "c"]


@pytest.mark.parametrize("wire", [kind() for kind in WIRES], ids=lambda wire: wire.name)
@pytest.mark.parametrize("text", [LINE, LINE + " ", LINE + "  "])
def test_a_user_who_says_the_line_is_read_back_as_a_user(wire: Wire, text: str) -> None:
    for removed in (None, REMOVED):
        again = wire.back(wire.sent(view_of(Message("user", text), Message("assistant", "b"), Message("user", "c"), removed=removed)))
        assert [item.text for item in again.items if isinstance(item, Message)] == [text, "b", "c"]
        assert again.removed == removed


@pytest.mark.parametrize("wire", [kind() for kind in WIRES], ids=lambda wire: wire.name)
def test_a_view_with_nothing_to_say_has_no_line(wire: Wire) -> None:
    assert LINE not in json.dumps(wire.sent(view_of(Message("system", "Rules."))))


def test_the_line_stays_with_a_saved_copied_or_forked_view() -> None:
    view = view_of(Message("user", "c"))
    for other in (Session.from_dict(view.to_dict()), view.copy(), view.fork(), view.read_only()):
        assert other.removed == REMOVED
    assert view_of(Message("user", "c"), removed=None).removed is None


def test_calls_and_summaries_follow_the_line() -> None:
    view = view_of(
        Compaction("All."), Reasoning("hm", signature="s" * 40), FunctionCall("read", "{}", "c1"), FunctionCallOutput("read", "x", "c1")
    )
    for kind in WIRES:
        payload = kind().sent(view)
        assert kind().violations(payload) == []
        assert json.dumps(payload).index(LINE) < json.dumps(payload).index("All.")
