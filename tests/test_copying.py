"""Copies: what they take, what they leave, and what goes with what is left. And the config in force at a place."""

import copy
import dataclasses
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session import (
    AgentConfigUpdate,
    AgentHandoff,
    FormatError,
    FunctionCall,
    FunctionCallOutput,
    Image,
    Message,
    PositionError,
    Reasoning,
    Session,
    SessionError,
    UnknownItemError,
)
from tests.support.derived import check_derived, ids, response_of
from tests.support.strategies import sessions


def read_file() -> None:
    """A tool, as a function."""


def with_tools() -> Session:
    """Two responses: one with a call of each tool, one with a call of bash alone."""
    return Session(
        [
            Message("user", "go", id="u"),
            Reasoning("both", id="r1"),
            FunctionCall("read_file", "{}", "1", id="c1"),
            FunctionCall("bash", "{}", "2", id="c2"),
            FunctionCallOutput("read_file", "x", "1", id="o1"),
            FunctionCallOutput("bash", "y", "2", id="o2"),
            Reasoning("one", id="r2"),
            Message("assistant", "running", id="t2"),
            FunctionCall("bash", "{}", "3", id="c3"),
            FunctionCallOutput("renamed", "z", "3", id="o3"),
            FunctionCallOutput("bash", "nobody asked", "9", id="orphan"),
            Message("assistant", "done", id="a"),
        ],
        id="s",
        metadata={"k": [1]},
    )


def test_a_plain_copy_has_the_same_items_and_an_id_of_its_own() -> None:
    session = with_tools()
    copy = session.copy()
    assert all(mine is theirs for mine, theirs in zip(session.items, copy.items, strict=True))
    assert copy.id != session.id
    assert copy.metadata == {"k": [1]}
    copy.metadata["k"].append(2)
    assert session.metadata == {"k": [1]}


def test_all_calls_stay_unless_tools_are_named() -> None:
    assert ids(with_tools().copy(tools=None)) == ids(with_tools())


def test_no_tools_leaves_no_calls_no_outputs_and_no_reasoning_that_led_to_them() -> None:
    assert ids(with_tools().copy(tools=[])) == ["u", "t2", "a"]


@pytest.mark.parametrize("tools", [["read_file"], [read_file], (name for name in ["read_file"]), {"read_file": 1}], ids=range(4))
def test_named_tools_keep_their_calls_outputs_and_reasoning(tools: Any) -> None:
    assert ids(with_tools().copy(tools=tools)) == ["u", "r1", "c1", "o1", "t2", "a"]


def test_an_output_goes_with_its_call_whatever_its_own_name_is() -> None:
    assert ids(with_tools().copy(tools=["bash"])) == ["u", "r1", "c2", "o2", "r2", "t2", "c3", "o3", "orphan", "a"]


@pytest.mark.parametrize("tools", ["bash", b"bash", 5, [5], [None], [read_file, ["bash"]]], ids=range(6))
def test_what_is_no_tool_is_refused(tools: Any) -> None:
    for make in (with_tools().copy, with_tools().fork_filtered):
        with pytest.raises(FormatError, match=r"^tools"):
            make(tools=tools)


def one_of_all() -> Session:
    return Session(
        [
            Message("system", "s", id="system"),
            Message("developer", "d", id="developer"),
            AgentConfigUpdate("be brief", id="config"),
            Message("user", " \n", id="blank"),
            Message("user", [], id="nothing"),
            Message("user", Image(url="u"), id="image"),
            AgentHandoff("b", "a", "why", id="handoff"),
            Message("assistant", "x", id="a"),
        ]
    )


@pytest.mark.parametrize(
    ("flag", "gone"),
    [
        ("exclude_system_messages", ["system"]),
        ("exclude_instructions", ["system", "developer"]),
        ("exclude_empty_messages", ["blank", "nothing"]),
        ("exclude_handoffs", ["handoff"]),
        ("exclude_config_updates", ["config"]),
    ],
)
def test_each_exclusion_leaves_out_what_it_names(flag: str, gone: list[str]) -> None:
    session = one_of_all()
    exclusion: Any = {flag: True}
    assert ids(session.copy(**exclusion)) == [id_ for id_ in ids(session) if id_ not in gone]


def test_structural_items_and_those_of_no_agent_stay_under_an_agent_filter() -> None:
    session = Session(
        [
            Message("system", "s", id="s"),
            Message("user", "u", id="u"),
            Message("assistant", "a's", id="a", agent_id="a"),
            AgentHandoff("b", "a", "why", agent_id="a", id="h"),
            AgentConfigUpdate("b now", agent_id="b", id="cfg"),
            Reasoning("r", agent_id="b", id="rb"),
            FunctionCall("f", "{}", "1", agent_id="b", id="cb"),
            FunctionCall("f", "{}", "2", agent_id="a", id="ca"),
            FunctionCallOutput("f", "", "1", id="ob"),
            FunctionCallOutput("f", "", "2", id="oa"),
            FunctionCallOutput("f", "", "1", agent_id="a", id="foreign orphan"),
        ]
    )
    assert ids(session.copy(filter_agent_id="b")) == ["s", "u", "h", "cfg", "rb", "cb", "ob"]
    assert ids(session.copy(filter_agent_id="a")) == ["s", "u", "a", "h", "cfg", "ca", "oa", "foreign orphan"]
    assert ids(session.copy(filter_agent_id="nobody")) == ["s", "u", "h", "cfg"]


def test_answers_that_an_exclusion_brings_together_stay_two() -> None:
    session = Session([Message("assistant", "1", id="1"), Message("system", "x", id="x"), Message("assistant", "2", id="2")])
    copy = session.copy(exclude_system_messages=True)
    assert (ids(copy), copy.response_breaks) == (["1", "2"], frozenset("2"))
    assert copy.copy().response_breaks == {"2"}


def test_a_copy_of_a_view_is_as_settled_as_the_view_while_nothing_is_left_out() -> None:
    origin = Session([Message("system", "s", id="s"), Message("user", "u", id="u")])
    view = Session.showing(origin, list(origin.items), breaks=frozenset(), settled=2)
    assert (view.copy().settled, view.fork().settled, view.copy(exclude_system_messages=True).settled) == (2, 2, 0)
    assert view.copy().origin is None


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda session: pickle.loads(pickle.dumps(session))])
def test_what_python_copies_of_a_view_is_a_session_of_its_own(again: Callable[[Session], Session]) -> None:
    origin = Session([Message("system", "s", id="s"), Message("user", "u", id="u"), Message("user", "v", id="v")])
    view = Session.showing(origin, list(origin.items)[:2], breaks=frozenset(), settled=2, settled_tokens=7)
    copied = again(view)
    assert copied.origin is None
    assert (ids(copied), copied.settled, copied.settled_tokens) == (["s", "u"], 2, 7)
    copied.append(Message("user", "w", id="w"))
    assert (ids(view), ids(origin)) == (["s", "u"], ["s", "u", "v"])


FLAGS = ("exclude_system_messages", "exclude_instructions", "exclude_empty_messages", "exclude_handoffs", "exclude_config_updates")


@given(
    sessions(),
    st.sets(st.sampled_from(FLAGS)),
    st.sampled_from([None, [], ["tool"], ["other"]]),
    st.sampled_from([None, None, "b", "nobody"]),
)
def test_a_copy_keeps_pairs_and_what_stands_apart(session: Session, flags: set[str], tools: list[str] | None, agent: str | None) -> None:
    before = session.to_dict()
    options: dict[str, Any] = dict.fromkeys(flags, True)
    copy = session.copy(tools=tools, filter_agent_id=agent, **options)
    check_derived(copy, session)
    assert session.to_dict() == before
    kept = {item.id for item in copy.items}
    for item in copy.items:
        assert session.get_by_id(item.id) is item
        assert agent is None or item.agent_id in (None, agent) or isinstance(item, AgentHandoff | AgentConfigUpdate | FunctionCallOutput)
    then = response_of(session)
    calls = [item for item in session.items if isinstance(item, FunctionCall)]
    for item in session.items:
        if isinstance(item, Reasoning) and item.id in kept:
            beside = [call.id for call in calls if then[call.id] == then[item.id]]
            assert not beside or kept & set(beside), "reasoning without the calls it led to"
    if not flags and tools is None and agent is None:
        assert list(copy.items) == list(session.items)
        assert copy.response_breaks == session.response_breaks


# The config in force


def configured() -> Session:
    return Session(
        [
            Message("user", "u", id="u"),
            AgentConfigUpdate("one", ["bash"], id="1"),
            Message("user", "v", id="v"),
            AgentConfigUpdate("two", id="2"),
            AgentConfigUpdate(None, [], id="3"),
            AgentConfigUpdate(id="4"),
        ]
    )


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("u", (None, None)),
        (0, (None, None)),
        (-6, (None, None)),
        ("1", ("one", ("bash",))),
        ("v", ("one", ("bash",))),
        (2, ("one", ("bash",))),
        ("2", ("two", ("bash",))),
        (-3, ("two", ("bash",))),
        ("3", ("two", ())),
        (-1, ("two", ())),
        (5, ("two", ())),
        (None, ("two", ())),
    ],
)
def test_the_config_in_force_is_that_after_the_item(target: str | int | None, expected: object) -> None:
    assert configured().active_config_at(target) == expected


def test_at_the_end_of_an_empty_log_nothing_is_in_force() -> None:
    assert Session().active_config_at() == (None, None)


def test_a_place_that_is_not_there_is_an_error_of_ours() -> None:
    with pytest.raises(UnknownItemError):
        configured().active_config_at("nobody")
    for position in (6, -7, 10**6000):
        with pytest.raises(PositionError, match="the session has 6") as caught:
            configured().active_config_at(position)
        assert isinstance(caught.value, IndexError)
        assert isinstance(caught.value, SessionError)
        assert (caught.value.position, caught.value.length) == (position, 6)
    with pytest.raises(PositionError, match="the session is empty"):
        Session().active_config_at(0)


@pytest.mark.parametrize("target", [True, 1.0, [], b"1"], ids=range(4))
def test_what_names_no_place_is_refused(target: Any) -> None:
    with pytest.raises(FormatError, match=r"^active_config_at\.target"):
        configured().active_config_at(target)


@given(sessions(max_steps=8), st.data())
def test_the_config_at_a_place_is_that_of_the_log_that_ends_there(session: Session, data: st.DataObject) -> None:
    items = [dataclasses.replace(item, tools=("t",)) if isinstance(item, AgentConfigUpdate) else item for item in session.items]
    session = Session(items)
    if items:
        place = data.draw(st.integers(0, len(items) - 1))
        found = session.active_config_at(place)
        assert found == Session(items[: place + 1]).active_config_at() == session.active_config_at(items[place].id)
        assert found == session.active_config_at(place - len(items))


@pytest.mark.parametrize("wrong", [5, [], b"a"], ids=range(3))
def test_an_agent_that_is_no_name_is_refused(wrong: Any) -> None:
    with pytest.raises(FormatError, match=r"^copy\.filter_agent_id: .* is no name of an agent"):
        with_tools().copy(filter_agent_id=wrong)


def test_an_agent_is_known_by_the_clean_form_of_its_name() -> None:
    session = Session([Message("user", "a", id="a", agent_id="x\ud800"), Message("user", "b", id="b", agent_id="y")])
    assert ids(session.copy(filter_agent_id="x\ud800")) == ["a"]


def test_metadata_that_cannot_be_saved_is_found_when_it_is_copied() -> None:
    session = with_tools()
    session.metadata["a"] = object()
    for derive in (session.copy, session.fork, session.to_dict):
        with pytest.raises(FormatError, match=r"metadata\.a: .* cannot be saved as JSON"):
            derive()
