"""Plain items of a saved session are built without the checks of their classes, and are the same items."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from session import FormatError, FunctionCall, FunctionCallOutput, Message, Session
from session.items import ROLES, ItemBase
from session.plain_items import plain_item
from session.serial import item_from_dict, item_to_dict
from session.store import SessionStore
from tests.session.test_items import JSON

TEXTS = st.text(max_size=8)
PARTS = st.lists(TEXTS, max_size=2)
TIMES = st.floats(allow_nan=False, allow_infinity=False)
PLAIN = st.one_of(
    st.builds(Message, st.sampled_from(ROLES), PARTS, created_at=TIMES),
    st.builds(FunctionCall, TEXTS, TEXTS, TEXTS, created_at=TIMES),
    st.builds(FunctionCallOutput, TEXTS, PARTS, TEXTS, created_at=TIMES),
)
ODD: tuple[Any, ...] = (None, True, 0, 1.5, float("nan"), "", "user", "\ud800", "a\ud83d\ude00", [], {}, ["a"], [{"type": "text"}])


def by_its_class(values: dict[str, Any]) -> object:
    """Return the item that its class makes of these values; None if the class or `item_from_dict` refuses them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("session.serial.plain_item", lambda _: None)
        try:
            return item_from_dict(values)
        except FormatError:
            return None


@given(st.data())
def test_a_plain_item_is_the_item_that_its_class_makes(data: st.DataObject) -> None:
    """Rows are not trusted: values that are not exactly those of a plain item are left to the classes."""
    values = json.loads(json.dumps(item_to_dict(data.draw(PLAIN))))
    mappings = [values, *(values.get("content") or values.get("output") or ())]
    for name in data.draw(st.lists(st.sampled_from([*values, "pinned", "extra", "text"]), max_size=2)):
        data.draw(st.sampled_from(mappings))[name] = data.draw(st.sampled_from(ODD) | JSON)
    built, checked = plain_item(values), by_its_class(values)
    event(f"plain: {built is not None}")
    if built is not None:
        assert built == checked
        assert repr(built) == repr(checked)
        assert item_to_dict(built) == item_to_dict(checked)


@pytest.mark.parametrize(
    "item", [Message("user", "a"), FunctionCall("a", "{}", "c"), FunctionCallOutput("a", "b", "c")], ids=lambda i: i.type
)
def test_no_odd_value_of_any_field_is_taken(item: Any) -> None:
    """Whatever stands in place of a value, the item is the one that its class makes."""
    for name in ("type", "id", "created_at", "role", "content", "name", "arguments", "call_id", "output", "text", "pinned"):
        for odd in ODD:
            values = json.loads(json.dumps(item_to_dict(item)))
            for place in (values, *(values.get("content") or values.get("output") or ())):
                before, place[name] = dict(place), odd
                built = plain_item(values)
                assert built is None or built == by_its_class(values), (name, odd)
                place.clear()
                place.update(before)


@given(PLAIN)
def test_items_with_nothing_unusual_are_plain(item: Any) -> None:
    parts = getattr(item, "content", getattr(item, "output", ()))
    assert (plain_item(item_to_dict(item)) == item) == (len(parts) < 2)


def test_plain_items_share_nothing_that_can_change() -> None:
    first, second = (plain_item(item_to_dict(FunctionCall("a", "{}", name))) for name in "cd")
    assert isinstance(first, FunctionCall)
    assert isinstance(second, FunctionCall)
    assert first.extra is not second.extra
    assert first.metadata is not second.metadata


def test_a_stored_session_opens_without_checking_plain_items_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Opening costs what reading the rows costs, and little more."""
    session = Session(id="s")
    session.append(Message("user", "hello", pinned=True))
    for number in range(20):
        session.append(FunctionCall("read", "{}", f"c{number}"))
        session.append(FunctionCallOutput("read", "a line", f"c{number}"))
        session.append(Message("assistant", "done"))
    checked: list[object] = []
    original = ItemBase.__post_init__

    def check(item: ItemBase) -> None:
        checked.append(item)
        original(item)

    with SessionStore(tmp_path / "sessions.db") as store:
        store.save(session)
        monkeypatch.setattr(ItemBase, "__post_init__", check)
        opened = store.open("s")
    assert opened.items == session.items
    assert len(checked) == 1  # the pinned message is not plain
