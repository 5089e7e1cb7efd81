"""The log: appending, edits in place, and snapshots that never change."""

import asyncio
import copy
import dataclasses
import json
import pickle
from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session import (
    DuplicateItemError,
    FormatError,
    FunctionCall,
    FunctionCallOutput,
    Image,
    Message,
    MessageCategory,
    Reasoning,
    Session,
    SessionError,
    Text,
    UnknownItemError,
    Usage,
    render_items,
)
from session.items import ItemBase
from session.removed import Removed
from session.session_log import recorded_total
from tests.session.test_items import ONE_OF_EACH
from tests.support.derived import pairs
from tests.support.strategies import sessions


def log(*ids: str) -> Session:
    """Return a session of user messages with these ids."""
    return Session([Message("user", id_, id=id_, created_at=0.0) for id_ in ids], id="s")


def ids(session: Session) -> list[str]:
    return [item.id for item in session.items]


# Construction


def test_an_empty_session_has_no_items() -> None:
    for session in (Session(), Session.empty(), Session([])):
        assert len(session.items) == 0
        assert (session.messages(), session.turn_count(), session.estimated_tokens()) == ([], 0, 0)
        assert session.get_by_id("a") is None
        assert (session.metadata, session.settled, session.response_breaks) == ({}, 0, frozenset())
        assert len(session.id) == 12
    assert Session().id != Session().id


def test_a_session_copies_the_list_it_is_made_from() -> None:
    messages = [Message("user", "a", id="a"), Message("user", "b", id="b")]
    metadata = {"k": [1]}
    session = Session(iter(messages), id="mine\ud800", metadata=MappingProxyType(metadata))
    messages.clear()
    metadata["k"].append(2)
    assert (session.id, session.metadata, ids(session)) == ("mine\ufffd", {"k": [1]}, ["a", "b"])


@pytest.mark.parametrize(
    ("arguments", "where"),
    [
        ({"items": ["text"]}, "Session.append"),
        ({"items": "text"}, "Session.append"),
        ({"items": [{"type": "message"}]}, "Session.append"),
        ({"items": [ItemBase()]}, "Session.append"),
        ({"id": 5}, "Session.id"),
        ({"metadata": [1]}, "Session.metadata"),
        ({"metadata": []}, "Session.metadata"),
        ({"metadata": {"a": float("nan")}}, "Session.metadata.a"),
    ],
    ids=range(8),
)
def test_an_invalid_constructor_argument_is_named(arguments: dict[str, Any], where: str) -> None:
    with pytest.raises(FormatError) as caught:
        Session(**arguments)
    assert caught.value.where == where


def test_a_subclass_of_an_item_is_refused_since_it_could_not_be_saved() -> None:
    kind: Any = type("Mine", (Message,), {"__slots__": ()})
    with pytest.raises(FormatError, match="Mine"):
        Session([kind("user", "x")])


# Appending


def test_append_returns_the_item() -> None:
    session, item = Session(), Message("user", "a")
    assert session.append(item) is item
    assert session.items[-1] is item
    assert session.get_by_id(item.id) is item
    assert session.position(item.id) == 0


def test_positions_are_in_the_order_of_the_log_and_leave_out_unknown_ids() -> None:
    session = Session([Message("user", "x", id=id_) for id_ in "abc"])
    assert session.positions(("c", "?", "a", "c")) == [0, 2]
    session.insert(Message("user", "y", id="d", created_at=0.0))
    assert session.positions(["a", "d"]) == [0, 1]
    assert session.positions([]) == []


@pytest.mark.parametrize("wrong", [5, 0, Message("user", "x")], ids=["number", "zero", "item"])
def test_a_value_that_is_not_iterable_is_refused_with_advice(wrong: Any) -> None:
    for take in (Session, Session().insert_many, render_items):
        with pytest.raises(FormatError, match=r"expected several items, got .*; pass a list of them, such as `session\.items`"):
            take(wrong)


@pytest.mark.parametrize("wrong", [[], {}, None, 5, b"x"], ids=range(5))
def test_a_value_that_is_not_an_id_finds_no_item(wrong: Any) -> None:
    session = Session([Message("user", "x", id="x")])
    assert (session.get_by_id(wrong), session.position(wrong)) == (None, None)
    with pytest.raises(UnknownItemError, match="no item of the session has the id"):
        session.pin(wrong)


def test_a_repeated_id_is_refused_and_nothing_changes() -> None:
    session = log("a", "b")
    with pytest.raises(DuplicateItemError) as caught:
        session.append(FunctionCall("f", "{}", "c", id="a"))
    assert caught.value.item_id == "a"
    assert ids(session) == ["a", "b"]
    with pytest.raises(DuplicateItemError):
        log("a", "a")


def test_a_snapshot_never_changes() -> None:
    session = log("a", "b")
    before = session.items
    session.append(Message("user", "", id="c"))
    session.pin("a")
    session.add_message("system", "new", replace=True)
    assert [(item.id, item.pinned) for item in before] == [("a", False), ("b", False)]


def test_add_message_stores_all_its_arguments() -> None:
    session = Session()
    message = session.add_message(
        "assistant",
        ["hi", Image(url="u")],
        "m",
        5.0,
        False,
        "agent",
        category=MessageCategory.CONTEXT,
        pinned=True,
        usage=Usage(1),
        extra={"a": 1},
    )
    assert session.items[0] is message
    assert message == Message(
        "assistant",
        (Text("hi"), Image(url="u")),
        id="m",
        created_at=5.0,
        agent_id="agent",
        category=MessageCategory.CONTEXT,
        pinned=True,
        usage=Usage(1),
        extra={"a": 1},
    )


def test_a_time_of_zero_and_an_empty_extra_are_stored() -> None:
    assert Session().add_message("user", "", created_at=0).created_at == 0.0
    with pytest.raises(FormatError, match=r"^Message.extra: "):
        Session().add_message("user", "", extra=[])  # type: ignore[arg-type]
    with pytest.raises(FormatError, match=r"^FunctionCall.metadata: "):
        Session().add_function_call("f", "{}", metadata=[])  # type: ignore[arg-type]


def test_replace_puts_one_system_message_first_and_removes_the_others() -> None:
    session = log("a")
    session.add_message("system", "old", "s1")
    session.add_message("developer", "kept", "d")
    session.add_message("system", "older", "s2")
    before = session.lineage
    message = session.add_message("system", "new", "s1", replace=True)
    assert ids(session) == ["s1", "a", "d"]
    assert session.items[0] is message
    assert session.lineage is not before
    assert [session.position(id_) for id_ in ("s1", "a", "d", "s2")] == [0, 1, 2, None]


def test_replace_needs_the_system_role_and_an_unused_id() -> None:
    session = log("a")
    with pytest.raises(FormatError, match=r"^add_message.replace: only the system message can be replaced, not role 'user'"):
        session.add_message("user", "x", replace=True)
    with pytest.raises(DuplicateItemError):
        session.add_message("system", "x", "a", replace=True)
    assert ids(session) == ["a"]


def test_a_context_message_begins_no_turn() -> None:
    session = Session()
    message = session.add_context("file", source="a.py", pinned=True)
    assert (message.role, message.category, message.pinned, message.extra) == ("user", MessageCategory.CONTEXT, True, {"source": "a.py"})
    assert session.add_context("file", role="system").extra == {}
    assert session.turn_count() == 0


def test_turn_count_counts_user_messages() -> None:
    session = Session()
    session.add_message("system", "s")
    session.add_message("user", "1")
    session.add_message("assistant", "a")
    session.add_function_call("f", "{}", "c")
    session.add_message("user", "2")
    session.add_message("user", "not mine to say", category=MessageCategory.SYSTEM)
    assert session.turn_count() == 3
    assert [message.text for message in session.messages()] == ["s", "1", "a", "2", "not mine to say"]


def test_handoffs_and_config_updates_are_appended() -> None:
    session = Session()
    handoff = session.add_handoff("b", "a", "why")
    update = session.add_config_update("be brief", (name for name in ("bash", "read")), "b")
    assert list(session.items) == [handoff, update]
    assert (handoff.to_agent, handoff.from_agent, handoff.reason) == ("b", "a", "why")
    assert (update.instructions, update.tools, update.agent_id) == ("be brief", ("bash", "read"), "b")
    assert (session.add_config_update().tools, session.add_config_update(tools=[]).tools) == (None, ())


# Calls and outputs


def test_call_arguments_are_a_json_text_or_a_mapping() -> None:
    session = Session()
    assert session.add_function_call("f", '{"broken').arguments == '{"broken'
    assert json.loads(session.add_function_call("f", {"a": ["é", 1.5, None]}).arguments) == {"a": ["é", 1.5, None]}
    assert session.add_function_call("f", MappingProxyType({})).arguments == "{}"


@pytest.mark.parametrize("arguments", [None, ["a"], 5, b"{}", {"a": {1}}, {"a": 10**5_000}, {"a": float("nan")}], ids=range(7))
def test_other_types_of_call_arguments_are_refused(arguments: Any) -> None:
    session = Session()
    with pytest.raises(FormatError, match=r"^FunctionCall.arguments"):
        session.add_function_call("f", arguments)
    assert len(session.items) == 0


def test_add_function_call_makes_an_id_and_stores_its_arguments() -> None:
    session = Session()
    assert session.add_function_call("f", "{}").call_id.startswith("call_")
    assert session.add_function_call("f", "{}", "").call_id.startswith("call_")
    call = session.add_function_call("f", "{}", "c", "agent", {"thought": "x"})
    assert (call.call_id, call.agent_id, call.metadata) == ("c", "agent", {"thought": "x"})


def test_the_same_call_twice_is_recorded_once() -> None:
    session = Session()
    call = session.add_function_call("f", {"a": 1}, "c")
    assert session.add_function_call("f", '{"a": 1}', "c") is call
    session.add_function_output("f", "out", "c")
    assert session.add_function_call("f", '{"a": 1}', "c") is call
    assert len(session.items) == 2


@pytest.mark.parametrize("arguments", ['{"b":[1],"a":1}', '\n{ "a": 1, "b": [1] }', {"b": [1], "a": 1}], ids=range(3))
def test_a_call_repeated_with_other_json_spelling_is_recorded_once(arguments: Any) -> None:
    session = Session()
    call = session.add_function_call("f", {"a": 1, "b": [1]}, "c")
    assert session.add_function_call("f", arguments, "c") is call


@pytest.mark.parametrize(
    "arguments", ['{"a": true}', '{"a": 1.0}', '{"a": "1"}', '{"a": 1', "", "[" * 100_000, f'{{"a": {"1" * 5_000}}}'], ids=range(7)
)
def test_a_call_with_other_json_is_a_new_call(arguments: str) -> None:
    session = Session()
    session.add_function_call("f", {"a": 1}, "c")
    with pytest.raises(DuplicateItemError, match="still waits for its output"):
        session.add_function_call("f", arguments, "c")


def test_a_new_call_with_the_id_of_an_unanswered_call_is_refused() -> None:
    session = Session()
    session.add_function_call("f", "{}", "c\ud800")
    with pytest.raises(DuplicateItemError, match="call 'c\ufffd' to 'f' still waits for its output") as caught:
        session.add_function_call("g", "{}", "c\ud801")
    assert caught.value.item_id == "c\ufffd"
    session.add_function_output("f", "out", "c\ufffd")
    assert session.add_function_call("g", "{}", "c\ufffd").name == "g"


def test_the_same_output_twice_is_recorded_once_and_another_is_refused() -> None:
    session = Session()
    session.add_function_call("f", "{}", "c")
    output = session.add_function_output("f", "out", "c", True, "agent")
    assert (output.text, output.is_error, output.agent_id) == ("out", True, "agent")
    assert session.add_function_output("f", ["out"], "c", True) is output
    for other, failed in (("out", False), ("other", True)):
        with pytest.raises(DuplicateItemError, match="call 'c' already has another output"):
            session.add_function_output("f", other, "c", failed)
    assert len(session.items) == 2


def test_a_reused_call_id_gets_an_output_again() -> None:
    session = Session()
    for name, answer in (("f", "1"), ("g", "2")):
        session.add_function_call(name, "{}", "c")
        session.add_function_output(name, answer, "c")
    assert len(session.items) == 4


def nested() -> Session:
    """Only a merge can cause this: a waiting call, and one of another log with the same call id that has an output."""
    session = Session([FunctionCall("f", "{}", "c", id="mine"), FunctionCall("f", '{"x":1}', "c", id="theirs")])
    session.append(FunctionCallOutput("f", "first", "c", id="first"))
    return session


def test_another_output_is_refused_only_if_no_call_waits_for_it() -> None:
    session = nested()
    output = session.add_function_output("f", "second", "c")
    assert [item.id for item in session.items] == ["mine", "theirs", "first", output.id]
    assert session.add_function_output("f", "second", "c") is output
    assert session.add_function_output("f", "first", "c") is session.get_by_id("first")
    with pytest.raises(DuplicateItemError, match="call 'c' already has another output"):
        session.add_function_output("f", "third", "c")


def test_an_output_equal_to_an_earlier_one_answers_the_waiting_call() -> None:
    session = nested()
    assert session.add_function_output("f", "first", "c") is not session.get_by_id("first")
    assert pairs(session)["mine"] == session.items[-1].id


def test_every_unanswered_call_is_recognized() -> None:
    session = nested()
    for arguments, owner in (("{}", "mine"), ('{"x":1}', "theirs")):
        assert session.add_function_call("f", arguments, "c") is session.get_by_id(owner)
    with pytest.raises(DuplicateItemError, match="call 'c' to 'f' still waits for its output"):
        session.add_function_call("f", '{"x":2}', "c")
    session.add_function_output("f", "second", "c")
    assert session.add_function_call("f", '{"x":2}', "c").arguments == '{"x":2}'
    assert session.add_function_output("f", "second", "c") is session.items[-1]


def test_an_output_without_a_call_is_recorded_once_too() -> None:
    session = Session()
    output = session.add_function_output("f", "out", "c")
    assert session.add_function_output("f", "out", "c") is output
    with pytest.raises(DuplicateItemError):
        session.add_function_output("f", "other", "c")
    session.add_function_call("f", "{}", "c")
    assert session.add_function_output("f", "other", "c").text == "other"
    assert len(session.items) == 3


def test_calls_are_recognized_however_they_were_added() -> None:
    call, output = FunctionCall("f", "{}", "c"), FunctionCallOutput("f", "out", "c")
    session = Session([call, output])
    assert session.add_function_call("f", "{}", "c") is call
    assert session.add_function_output("f", "out", "c") is output
    session.append(FunctionCall("g", "{}", "d"))
    session.pin(call.id)
    with pytest.raises(DuplicateItemError):
        session.add_function_call("h", "{}", "d")
    assert session.add_function_call("f", "{}", "c") is session.items[0]


# Edits in place


def test_pin_replaces_the_item_by_a_pinned_twin() -> None:
    session = log("a", "b", "c")
    before, lineage = session.items[1], session.lineage
    pinned = session.pin("b")
    assert pinned == dataclasses.replace(before, pinned=True)
    assert session.items[1] is pinned
    assert session.get_by_id("b") is pinned
    assert session.lineage is not lineage
    lineage = session.lineage
    assert session.pin("b") is pinned
    assert session.lineage is lineage
    assert session.unpin("b") == before
    assert ids(session) == ["a", "b", "c"]


def test_pinning_an_unknown_item_raises_unknown_item_error() -> None:
    session = log("a")
    for edit in (session.pin, session.unpin):
        with pytest.raises(UnknownItemError, match=r"^no item of the session has the id 'b'") as caught:
            edit("b")
        assert caught.value.item_id == "b"
        assert isinstance(caught.value, SessionError)


def test_lineage_stays_while_the_log_only_grows() -> None:
    session = log("a")
    before = session.lineage
    session.append(Message("user", "", id="b"))
    session.add_function_call("f", "{}")
    session.get_by_id("a")
    assert session.lineage is before


# Views


def test_a_view_does_not_see_its_shared_list_grow() -> None:
    origin = log("a")
    visible = list(log("x", "y").items)
    view = Session.showing(origin, visible, breaks=frozenset({"y"}), settled=2)
    visible.append(Message("user", "", id="z"))
    assert (view.id, ids(view), view.response_breaks, view.settled) == ("s", ["x", "y"], frozenset("y"), 2)
    assert view.position("z") is None
    assert view.lineage is visible


def test_a_log_that_goes_on_from_a_view_is_independent_of_it() -> None:
    origin = log("a", "b", "c")
    visible = list(origin.items[:2])
    view = Session.showing(
        origin, visible, breaks=frozenset({"b"}), settled=2, settled_tokens=7, removed=Removed(1, "c", "c"), usage_noted_after="b"
    )
    visible.append(Message("user", "", id="z"))
    for session in (Session.from_view(view), Session.from_view(view.read_only())):
        assert (session.id, ids(session), session.origin, session.is_view) == ("s", ["a", "b"], origin, False)
        assert (session.response_breaks, session.settled, recorded_total(session)) == (frozenset("b"), 2, 7)
        assert (session.removed, session.usage_noted_after) == (view.removed, "b")
        session.metadata["k"] = 2
        session.pin("a")
        session.add_message("user", "more")
        assert (len(session), len(view), len(origin), len(visible), session.settled) == (3, 2, 3, 3, 2)
        assert "k" not in view.metadata
        assert not view[0].pinned


def test_a_view_of_a_whole_session_shows_what_it_held() -> None:
    session = log("a", "b")
    session.metadata["k"] = 1
    session.restore_seams(frozenset("b"), 1, 7, frozenset("a"))
    view = Session.view_of(session)
    session.add_message("user", "more")
    session.pin("a")
    assert (view.is_view, view.origin, view.id, view.metadata, ids(view)) == (True, session, "s", {"k": 1}, ["a", "b"])
    assert (view.response_breaks, view.request_ends, view.settled, recorded_total(view)) == (frozenset("b"), frozenset("a"), 1, 7)
    assert not view[0].pinned
    again = Session.view_of(view)
    assert (again.is_view, again.origin, again.items) == (True, session, view.items)
    assert repr(view) == "<view of session s: 2 items>"


def test_a_notebook_shows_the_last_items_escaped() -> None:
    session = Session(Message("user", f"number {number}") for number in range(120))
    call = session.add_function_call("<b>", {"a": "<script>"})
    session.add_function_output("<b>", "x" * 10_000, call.call_id)
    session.append(Reasoning(data="encrypted"))
    for shown in (session, Session.view_of(session), session.read_only()):
        html = shown._repr_html_()
        assert (html.count("<tr>"), "number 22<" in html, "number 23<" in html, "<p>23 earlier items</p>" in html) == (
            101,
            False,
            True,
            True,
        )
        assert "&lt;b&gt;" in html
        assert "<b>" not in html
        assert "<script>" not in html
        assert len(html) < 20_000
    assert "earlier" not in Session()._repr_html_()


def test_what_is_no_session_is_no_view() -> None:
    wrong: Any = []
    with pytest.raises(FormatError, match="is not a session; pass a view"):
        Session.from_view(wrong)


def test_a_session_is_a_sequence_of_its_items_and_true_when_empty() -> None:
    session = log("a", "b", "c")
    for shown in (session, Session.view_of(session), session.read_only()):
        assert (len(shown), list(shown), shown[-1], list(shown[:2])) == (3, list(session.items), session.items[2], list(session.items[:2]))
        with pytest.raises(IndexError):
            shown[3]
    assert session.items[1] in session
    assert Session()
    assert ids(Session(session)) == ids(session)


async def summary(_: str) -> str:
    return "summary"


EDITS: dict[str, Callable[[Session], object]] = {
    "pin": lambda session: session.pin("b"),
    "insert": lambda session: session.insert(Message("user", "", created_at=1.5)),
    "merge": lambda session: asyncio.run(session.merge(Session([Message("user", "", created_at=1.5)]))),
    "replace": lambda session: session.add_message("system", "new", replace=True),
    "truncate": lambda session: session.truncate(max_items=len(session.items) - 1),
    "summarize": lambda session: asyncio.run(session.summarize(summary, keep_recent_turns=1)),
}
"""Edits of a session of user messages. The message with the id "b" survives each of them."""


@pytest.mark.parametrize("settled", [0, 2, 4])
@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_settled_items_stay_settled_after_any_edit(edit: Callable[[Session], object], settled: int) -> None:
    """Otherwise usage of prompts with more items would be applied again."""
    session = Session(Message("user", id_, id=id_, created_at=time, pinned=id_ == "b") for time, id_ in enumerate("abcd", 1))
    session.restore_seams(frozenset(), settled)
    decided = ids(session)[:settled]
    edit(session)
    assert session.settled == max((length for length, id_ in enumerate(ids(session), 1) if id_ in decided), default=0)


def test_usage_in_a_log_that_lost_items_is_settled() -> None:
    session = Session(Message("assistant", id_, id=id_, created_at=time, usage=Usage(9)) for time, id_ in enumerate("abcd"))
    session.truncate(max_items=3)
    assert session.settled == 3
    session.append(Message("user", "e", id="e", created_at=9))
    session.insert(Message("user", "x", id="x", created_at=8))
    assert (ids(session), session.settled) == (["b", "c", "d", "x", "e"], 3)
    session.truncate(max_items=4)
    assert (ids(session), session.settled) == (["c", "d", "x", "e"], 4)
    session.cleanup()
    assert session.settled == 0


def test_a_view_recognizes_only_the_calls_it_shows() -> None:
    session = Session()
    session.add_function_call("f", "{}", "c")
    visible = list(session.items)
    view = Session.showing(session, visible, breaks=frozenset(), settled=1)
    visible.append(FunctionCallOutput("f", "out", "c"))
    assert Session.from_view(view).add_function_output("f", "other", "c").text == "other"


# Copies

AGAIN: dict[str, Callable[[Session], Session]] = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda session: pickle.loads(pickle.dumps(session)),
}


@pytest.mark.parametrize("again", AGAIN.values(), ids=AGAIN)
def test_a_copy_is_independent(again: Callable[[Session], Session]) -> None:
    session = Session([Message("user", "", id="a")], id="s", metadata={"k": 1})
    session.restore_seams(frozenset({"a"}), 1)
    other = again(session)
    assert (other.id, other.metadata, other.response_breaks, other.settled) == ("s", {"k": 1}, frozenset("a"), 1)
    session.append(Message("user", "", id="b"))
    other.append(Message("user", "", id="c"))
    other.metadata["k"] = 2
    other.pin("a")
    assert (ids(session), ids(other)) == (["a", "b"], ["a", "c"])
    assert (session.position("c"), other.position("b")) == (None, None)
    assert (session.metadata, session.items[0].pinned) == ({"k": 1}, False)
    assert other.lineage is not session.lineage


@pytest.mark.parametrize("again", AGAIN.values(), ids=AGAIN)
def test_a_copy_of_a_view_holds_only_the_items_it_shows(again: Callable[[Session], Session]) -> None:
    visible = list(log("x").items)
    view = Session.showing(log(), visible, breaks=frozenset(), settled=1)
    visible.append(Message("user", "later"))
    assert ids(again(view)) == ["x"]
    assert b"later" not in pickle.dumps(view)


# Any sequence of edits


class Model:
    """The expected session as a plain list: the slow twin of its bookkeeping."""

    def __init__(self, session: Session) -> None:
        self.items = list(session.items)

    def agrees(self, session: Session) -> None:
        assert list(session.items) == self.items
        for position, item in enumerate(self.items):
            assert session.position(item.id) == position
            assert session.get_by_id(item.id) is session.items[position]
        assert session.position("nobody") is None


@given(
    sessions(max_steps=8),
    st.lists(st.tuples(st.sampled_from(["append", "pin", "unpin", "system", "call", "output"]), st.integers(0, 40)), max_size=12),
)
def test_any_sequence_of_edits_matches_a_simple_model(session: Session, edits: list[tuple[str, int]]) -> None:
    model = Model(session)
    snapshot = session.items
    expected = list(snapshot)
    for number, (edit, at) in enumerate(edits):
        if edit == "append":
            model.items.append(session.append(Reasoning("r", id=f"new{number}")))
        elif edit == "system":
            message = session.add_message("system", "s", f"new{number}", replace=True)
            model.items = [message, *(item for item in model.items if not (isinstance(item, Message) and item.role == "system"))]
        elif edit == "call":
            model.items.append(session.add_function_call("f", "{}", f"new{number}"))
        elif edit == "output":
            model.items.append(session.add_function_output("f", "", f"new{number}"))
        elif at < len(model.items):
            twin = getattr(session, edit)(model.items[at].id)
            model.items[at] = dataclasses.replace(model.items[at], pinned=edit == "pin")
            assert twin == model.items[at]
        model.agrees(session)
    assert list(snapshot) == expected
    assert repr(session) == f"<Session s: {len(model.items)} items>"


def test_every_item_class_can_be_in_a_session() -> None:
    session = Session()
    for item in ONE_OF_EACH:
        assert session.append(item) is item
    assert tuple(session.items) == ONE_OF_EACH
