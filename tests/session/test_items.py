"""Items: frozen, cleaned in the constructor, and independent of the caller's data."""

import copy
import dataclasses
import enum
import json
import math
import pickle
import time
from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session import FormatError, MessageCategory, Usage
from session.errors import DuplicateItemError, ReadOnlyError, SessionError, TranscriptError, UnknownItemError, short
from session.items import (
    ITEM_TYPES,
    AgentConfigUpdate,
    AgentHandoff,
    Compaction,
    FunctionCall,
    FunctionCallOutput,
    Item,
    ItemBase,
    Message,
    Reasoning,
    copy_with,
    new_id,
)
from session.parts import Image, Text
from session.sanitize import MAX_BITS, MAX_DEPTH, MAX_VALUES, clean_json

SYSTEM, CONTEXT, DIALOG, SYSTEM_OUTPUT = MessageCategory

ONE_OF_EACH: tuple[Item, ...] = (
    Message("user", ["hello", Image(url="u")], interrupted=True, extra={"a": {"b": [1]}}),
    Reasoning("hm", "sig", "data", usage=Usage(1, 2, 3, 4)),
    FunctionCall("bash", "{}", "c1", metadata={"thought": ["x"]}, agent_id="a"),
    FunctionCallOutput("bash", "out", "c1", is_error=True, pinned=True),
    AgentHandoff("b", "a", "why"),
    AgentConfigUpdate("be brief", ["bash"]),
    Compaction("so far", ["x", "y"], category=CONTEXT),
)


def deep(levels: int) -> list[Any]:
    categories: list[Any] = []
    for _ in range(levels - 1):
        categories = [categories]
    return categories


# Defaults


@pytest.mark.parametrize(
    ("item", "kind", "category"),
    [
        (Message("system", ""), "message", SYSTEM),
        (Message("developer", ""), "message", SYSTEM),
        (Message("user", ""), "message", DIALOG),
        (Message("assistant", ""), "message", DIALOG),
        (Reasoning(), "reasoning", DIALOG),
        (FunctionCall("f", "", "c"), "function_call", SYSTEM_OUTPUT),
        (FunctionCallOutput("f", "", "c"), "function_call_output", SYSTEM_OUTPUT),
        (AgentHandoff("b"), "agent_handoff", SYSTEM),
        (AgentConfigUpdate(), "agent_config_update", SYSTEM),
        (Compaction("s"), "compaction", DIALOG),
    ],
)
def test_types_and_default_categories(item: Item, kind: str, category: MessageCategory) -> None:
    assert (item.type, item.category) == (kind, category)
    assert (item.agent_id, item.pinned, item.usage, item.extra) == (None, False, None, {})


def test_categories_fall_in_priority() -> None:
    assert [category.name for category in MessageCategory] == ["SYSTEM", "CONTEXT", "DIALOG", "SYSTEM_OUTPUT"]


def test_an_explicit_category_is_kept() -> None:
    assert Message("system", "", category=CONTEXT).category is CONTEXT
    assert FunctionCall("f", "", "c", category=DIALOG).category is DIALOG


def test_ids_are_short_and_new() -> None:
    new_ids = {new_id() for _ in range(1_000)}
    assert len(new_ids) == 1_000
    assert all(len(item_id) == 12 and set(item_id) <= set("0123456789abcdef") for item_id in new_ids)
    assert Message("user", "").id != Message("user", "").id


def test_created_at_is_now_by_default() -> None:
    before = time.time()
    assert before <= Message("user", "").created_at <= time.time()


def test_content_and_output_are_parts() -> None:
    assert Message("user", "a").content == (Text("a"),)
    assert FunctionCallOutput("f", ["a", "b"], "c").output == (Text("a"), Text("b"))
    assert Message("user", ["a", Image(url="u"), "b"]).text == "a\nb"
    assert FunctionCallOutput("f", ["a", Image(url="u"), "b"], "c").text == "a\nb"


@pytest.mark.parametrize(
    ("extra", "expected"), [({}, False), ({"summary": True}, True), ({"summary": 1}, False), ({"summary": "true"}, False)]
)
def test_a_summary_is_recognized_by_extra_not_by_its_text(extra: dict[str, object], expected: bool) -> None:
    assert Message("assistant", "[Conversation Summary]", extra=extra).is_summary is expected


# Refused values


SOUND: dict[Any, dict[str, Any]] = {
    Message: {"role": "user", "content": "x"},
    Reasoning: {},
    FunctionCall: {"name": "f", "arguments": "{}", "call_id": "c"},
    FunctionCallOutput: {"name": "f", "output": "x", "call_id": "c"},
    AgentHandoff: {"to_agent": "b"},
    AgentConfigUpdate: {},
    Compaction: {"summary": "s"},
}
WRONG: list[tuple[Any, str, object, str]] = [
    (Message, "role", "tool", ""),
    (Message, "role", ["user"], ""),
    (Message, "content", None, ""),
    (Message, "content", ["x", 5], "[1]"),
    (Message, "interrupted", 1, ""),
    (Message, "id", "", ""),
    (Message, "id", 5, ""),
    (Message, "id", None, ""),
    (Message, "created_at", "now", ""),
    (Message, "created_at", True, ""),
    (Message, "created_at", math.nan, ""),
    (Message, "created_at", -math.inf, ""),
    (Message, "created_at", 10**5_000, ""),
    (Message, "agent_id", 5, ""),
    (Message, "category", "DIALOGUE", ""),
    (Message, "pinned", 1, ""),
    (Message, "pinned", 10**5_000, ""),
    (Message, "pinned", deep(100_000), ""),
    (Message, "usage", {"input_tokens": 5}, ""),
    (Message, "extra", None, ""),
    (Message, "extra", [], ""),
    (Message, "extra", "x", ""),
    (Reasoning, "text", None, ""),
    (Reasoning, "signature", b"sig", ""),
    (Reasoning, "data", 5, ""),
    (FunctionCall, "name", 5, ""),
    (FunctionCall, "arguments", {"a": 1}, ""),
    (FunctionCall, "call_id", None, ""),
    (FunctionCall, "metadata", {"a": {1}}, ".a"),
    (FunctionCall, "metadata", 5, ""),
    (FunctionCallOutput, "name", None, ""),
    (FunctionCallOutput, "output", {"a": 1}, ""),
    (FunctionCallOutput, "call_id", 5, ""),
    (FunctionCallOutput, "is_error", 0, ""),
    (AgentHandoff, "to_agent", None, ""),
    (AgentHandoff, "from_agent", 5, ""),
    (AgentHandoff, "reason", 5, ""),
    (AgentConfigUpdate, "instructions", 5, ""),
    (AgentConfigUpdate, "tools", "bash", ""),
    (AgentConfigUpdate, "tools", 5, ""),
    (AgentConfigUpdate, "tools", {"bash": 1}, ""),
    (AgentConfigUpdate, "tools", ["bash", None], "[1]"),
    (Compaction, "summary", None, ""),
    (Compaction, "replaces", "x", ""),
    (Compaction, "replaces", None, ""),
    (Compaction, "replaces", [5], "[0]"),
]


@pytest.mark.parametrize(("kind", "name", "value", "inside"), WRONG, ids=range(len(WRONG)))
def test_an_invalid_value_is_named(kind: Any, name: str, value: object, inside: str) -> None:
    kind(**SOUND[kind])
    with pytest.raises(FormatError) as caught:
        kind(**{**SOUND[kind], name: value})
    assert caught.value.where == f"{kind.__name__}.{name}{inside}"
    assert str(caught.value).startswith(f"{caught.value.where}: ")
    assert len(str(caught.value)) < 300


class Role(enum.StrEnum):
    USER = "user"


def test_subclasses_of_json_types_become_plain_values() -> None:
    item = Message(Role.USER, "x", created_at=5, extra={"a": Role.USER, "b": (1, 2)})  # type: ignore[arg-type]
    assert type(item.role) is str
    assert type(item.created_at) is float
    assert type(item.extra["a"]) is str
    assert item.extra["b"] == [1, 2]


def test_lists_of_texts_may_be_generators() -> None:
    assert AgentConfigUpdate(tools=(name for name in ("a", "b\ud800"))).tools == ("a", "b\ufffd")
    assert Compaction("s", (name for name in ("a", "b"))).replaces == ("a", "b")


@pytest.mark.parametrize(
    "item",
    [
        Message("user", "\ud800", id="\ud800", agent_id="\ud800", extra={"\ud800": "\ud800"}),
        Reasoning("\ud800", "\ud800", "\ud800"),
        FunctionCall("\ud800", "\ud800", "\ud800", metadata={"\ud800": ["\ud800"]}),
        FunctionCallOutput("\ud800", ["\ud800"], "\ud800"),
        AgentHandoff("\ud800", "\ud800", "\ud800"),
        AgentConfigUpdate("\ud800", ["\ud800"]),
        Compaction("\ud800", ["\ud800"]),
    ],
    ids=lambda item: item.type,
)
def test_no_text_of_an_item_keeps_a_lone_surrogate(item: Item) -> None:
    repr(item).encode()
    assert "\\ud800" not in repr(item)
    assert "\ufffd" in repr(item)


# JSON data


def test_later_changes_of_the_callers_data_do_not_reach_the_item() -> None:
    empty: dict[str, Any] = {}
    inner: list[Any] = [1]
    carried = {"inner": inner}
    nothing, something = Message("user", "", extra=empty), Message("user", "", extra=carried)
    call = FunctionCall("f", "", "c", metadata=empty, extra=carried)
    empty["summary"] = True
    inner.append(2)
    carried["more"] = []
    assert (nothing.extra, something.extra) == ({}, {"inner": [1]})
    assert (call.metadata, call.extra) == ({}, {"inner": [1]})
    assert not nothing.is_summary


def test_items_do_not_share_their_empty_data() -> None:
    assert Message("user", "").extra is not Message("user", "").extra


def test_any_mapping_is_stored_as_a_plain_dict() -> None:
    item = Message("user", "", extra=MappingProxyType({"a": MappingProxyType({"b": 1})}))
    assert type(item.extra) is dict
    assert type(item.extra["a"]) is dict


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.text(), JSON, max_size=5))
def test_json_values_are_stored_unchanged(data: dict[str, Any]) -> None:
    carried = Message("user", "", extra=data).extra
    assert carried == data
    assert json.dumps(carried) == json.dumps(data)
    assert json.loads(json.dumps(carried)) == data


LONGEST = 2**MAX_BITS - 1


@pytest.mark.parametrize(
    ("value", "position"),
    [
        (math.nan, ""),
        ([0, math.inf], "[1]"),
        ({"b": [{}, {"c": -math.inf}]}, ".b[1].c"),
        (10**5_000, ""),
        ([LONGEST + 1], "[0]"),
        (-LONGEST - 1, ""),
        ({1: 2}, ".1"),
        ({None: 2}, ".None"),
        ({("a",): 2}, ".a value of type tuple"),
        (dict.fromkeys(("\ud800", "\udfff")), ".\ufffd"),
        ({"k" * 5_000: {1}}, ".a text of 5,000 characters that begins with 'kkkk'"),
        ({1, 2}, ""),
        (b"bytes", ""),
        (object(), ""),
        (deep(MAX_DEPTH), "[0]" * (MAX_DEPTH - 1)),
        ([0] * (MAX_VALUES + 1), ""),
    ],
    ids=range(16),
)
def test_a_value_that_json_cannot_hold_is_refused_with_its_place(value: object, position: str) -> None:
    with pytest.raises(FormatError) as caught:
        Message("user", "", extra={"a": value})
    assert caught.value.where == f"Message.extra.a{position}"
    assert len(caught.value.problem) < 200


@pytest.mark.parametrize("value", [LONGEST, -LONGEST, [0] * 1_000, deep(MAX_DEPTH - 1), -0.0, 5e-324], ids=range(6))
def test_json_values_at_the_limits_are_accepted(value: object) -> None:
    item = Message("user", "", extra={"a": value})
    assert json.loads(json.dumps(item.extra)) == {"a": value}


def test_data_nested_a_hundred_thousand_deep_is_refused_at_once() -> None:
    with pytest.raises(FormatError, match="nested deeper than 100 levels"):
        Message("user", "", extra={"a": deep(100_000)})


def test_data_that_contains_itself_is_refused() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(FormatError, match="nested deeper"):
        clean_json(loop, "x")


@pytest.mark.no_cover  # a million levels in one or two lines
def test_lists_that_share_members_do_not_exhaust_memory() -> None:
    """Forty lists in memory would be a trillion in JSON."""
    bomb: list[Any] = []
    for _ in range(40):
        bomb = [bomb, bomb]
    with pytest.raises(FormatError, match="more than 1,000,000 values"):
        clean_json(bomb, "x")


# Values


@pytest.mark.parametrize("item", ONE_OF_EACH, ids=lambda item: item.type)
@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, dataclasses.replace, lambda item: pickle.loads(pickle.dumps(item))])
def test_a_copy_of_an_item_equals_it_and_has_an_empty_memo(item: Item, again: Callable[[Item], Item]) -> None:
    object.__setattr__(item, "memo", "measured")
    other = again(item)
    assert other == item
    assert repr(other) == repr(item)
    assert other.memo is None  # the memo is not part of the value
    assert type(other) is type(item)


def test_a_deep_copy_shares_no_data() -> None:
    item = ONE_OF_EACH[0]
    assert copy.deepcopy(item).extra["a"] is not item.extra["a"]
    assert dataclasses.replace(item, pinned=True).extra["a"] is not item.extra["a"]


@pytest.mark.parametrize("item", ONE_OF_EACH, ids=lambda item: item.type)
def test_items_are_frozen(item: Item) -> None:
    for name in (field.name for field in dataclasses.fields(item)):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(item, name, None)
    with pytest.raises((AttributeError, TypeError)):
        item.more = 1  # type: ignore[union-attr]
    assert not hasattr(item, "__dict__")


def test_items_are_equal_by_value_and_hashable() -> None:
    assert {Message("user", "x", id="a", created_at=1.0), Message("user", "x", id="a", created_at=1.0)} == {
        Message("user", "x", id="a", created_at=1.0)
    }
    assert Message("user", "x", id="a", created_at=1.0) != Message("user", "x", id="b", created_at=1.0)
    assert Message("user", "x", id="a", created_at=1.0, extra={"a": 1}) != Message("user", "x", id="a", created_at=1.0)


def test_there_are_seven_item_classes() -> None:
    assert {type(item) for item in ONE_OF_EACH} == ITEM_TYPES
    assert ItemBase not in ITEM_TYPES


# Errors

ERRORS = [
    DuplicateItemError("a"),
    DuplicateItemError("a", "another message"),
    UnknownItemError("a"),
    ReadOnlyError("append"),
    FormatError("items[3].id", "missing"),
    FormatError("", "missing"),
    TranscriptError("a.jsonl", "not JSON", 7),
]


@pytest.mark.parametrize("error", ERRORS, ids=range(len(ERRORS)))
@pytest.mark.parametrize("again", [copy.copy, lambda error: pickle.loads(pickle.dumps(error))])
def test_errors_survive_copying_and_pickling(error: SessionError, again: Callable[[SessionError], SessionError]) -> None:
    other = again(error)
    assert type(other) is type(error)
    assert str(other) == str(error)
    assert vars(other) == vars(error)


def test_error_messages_name_the_problem_and_its_place() -> None:
    messages = [
        "the session already has an item with id 'a': ids are unique in a session; leave `id` out to get a new one",
        "another message",
        "no item of the session has the id 'a'; `items` lists all items",
        "append would change a read-only session; append to the session that it was made from; or change a copy()",
        "items[3].id: missing",
        "missing",
        "a.jsonl:7: not JSON",
    ]
    assert [str(error) for error in ERRORS] == messages


@pytest.mark.parametrize(
    "kind", [(DuplicateItemError, ValueError), (UnknownItemError, KeyError), (ReadOnlyError, TypeError), (FormatError, ValueError)]
)
def test_errors_are_also_builtin_error_types(kind: tuple[type, type]) -> None:
    assert issubclass(*kind)


class Unshowable:
    def __repr__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, "None"),
        (True, "True"),
        (-5, "-5"),
        (math.nan, "nan"),
        ("a\n", r"'a\n'"),
        ("\ud800", r"'\ud800'"),
        ("x y " * 15, repr("x y " * 15)),
        ("x y " * 16, "a text of 64 characters that begins with 'x y '"),
        (10**5_000, "an integer of 16610 bits"),
        (deep(100_000), "a value of type list"),
        (Unshowable(), "a value of type Unshowable"),
    ],
    ids=range(11),
)
def test_any_value_can_be_shown_in_a_message(value: object, expected: str) -> None:
    assert short(value) == expected


@pytest.mark.parametrize("item", ONE_OF_EACH, ids=lambda item: item.type)
@pytest.mark.parametrize("extra", [{}, {"a": [1]}])
def test_a_copy_with_other_values_equals_the_checked_copy(item: Item, extra: dict[str, Any]) -> None:
    """`dataclasses.replace` cleans and checks every field again. Here the new values must be clean."""
    copied, checked = copy_with(item, extra=extra, pinned=True), dataclasses.replace(item, extra=extra, pinned=True)
    assert type(copied) is type(item)
    assert copied == checked
    assert repr(copied) == repr(checked)
    assert hash(copied) == hash(checked)
    assert pickle.loads(pickle.dumps(copied)) == copied
    assert copied.memo is None
    assert copy_with(item) == item
