"""Copies and their filters, and the config in force at an item."""

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
    ReadOnlyError,
    Reasoning,
    Session,
    SessionError,
)
from session.session_log import recorded_total
from tests.support.derived import check_derived, ids, response_of
from tests.support.strategies import sessions


def read_file() -> None:
    """A tool passed as a function."""


def with_tools() -> Session:
    """Return two responses: one with a call of each tool, one with a call of bash only."""
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


def test_without_a_tool_filter_all_calls_stay() -> None:
    assert ids(with_tools().copy(tools=None)) == ids(with_tools())


def test_an_empty_tool_filter_drops_calls_outputs_and_their_reasoning() -> None:
    assert ids(with_tools().copy(tools=[])) == ["u", "t2", "a"]


@pytest.mark.parametrize("tools", [["read_file"], [read_file], (name for name in ["read_file"]), {"read_file": 1}], ids=range(4))
def test_a_tool_filter_keeps_calls_outputs_and_reasoning_of_its_tools(tools: Any) -> None:
    assert ids(with_tools().copy(tools=tools)) == ["u", "r1", "c1", "o1", "t2", "a"]


def test_an_output_follows_its_call_whatever_its_own_name_is() -> None:
    assert ids(with_tools().copy(tools=["bash"])) == ["u", "r1", "c2", "o2", "r2", "t2", "c3", "o3", "orphan", "a"]


@pytest.mark.parametrize("tools", ["bash", b"bash", 5, [5], [None], [read_file, ["bash"]]], ids=range(6))
def test_a_value_that_is_not_a_tool_is_refused(tools: Any) -> None:
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
def test_each_exclusion_drops_the_items_it_names(flag: str, gone: list[str]) -> None:
    session = one_of_all()
    exclusion: Any = {flag: True}
    assert ids(session.copy(**exclusion)) == [id_ for id_ in ids(session) if id_ not in gone]


def test_an_agent_filter_keeps_its_items_and_structural_ones() -> None:
    session = Session(
        [
            Message("system", "s", id="s"),
            Message("system", "a's alone", id="sa", agent_id="a"),
            Message("developer", "d", id="d"),
            Message("user", "u", id="u"),
            Message("user", "to b", id="ub", agent_id="b"),
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
    assert ids(session.copy(filter_agent_id="b")) == ["s", "d", "ub", "h", "cfg", "rb", "cb", "ob"]
    assert ids(session.copy(filter_agent_id="a")) == ["s", "sa", "d", "a", "h", "ca", "oa", "foreign orphan"]
    assert ids(session.copy(filter_agent_id="nobody")) == ["s", "d", "h"]


def test_responses_that_an_exclusion_makes_adjacent_stay_separate() -> None:
    session = Session([Message("assistant", "1", id="1"), Message("system", "x", id="x"), Message("assistant", "2", id="2")])
    copy = session.copy(exclude_system_messages=True)
    assert (ids(copy), copy.response_breaks) == (["1", "2"], frozenset("2"))
    assert copy.copy().response_breaks == {"2"}


def test_a_complete_copy_of_a_view_is_as_settled_as_the_view() -> None:
    origin = Session([Message("system", "s", id="s"), Message("user", "u", id="u")])
    view = Session.showing(origin, list(origin.items), breaks=frozenset(), settled=2)
    assert (view.copy().settled, view.fork().settled, view.copy(exclude_system_messages=True).settled) == (2, 2, 0)
    assert view.copy().origin is None
    assert not view.copy().is_view
    assert not view.fork().is_view


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda session: pickle.loads(pickle.dumps(session))])
def test_a_python_copy_of_a_view_is_an_independent_view(again: Callable[[Session], Session]) -> None:
    origin = Session([Message("system", "s", id="s"), Message("user", "u", id="u"), Message("user", "v", id="v")])
    view = Session.showing(origin, list(origin.items)[:2], breaks=frozenset(), settled=2, settled_tokens=7)
    copied = again(view)
    assert copied.origin is None
    assert (ids(copied), copied.settled, recorded_total(copied)) == (["s", "u"], 2, 7)
    with pytest.raises(ReadOnlyError):
        copied.append(Message("user", "w", id="w"))


FLAGS = ("exclude_system_messages", "exclude_instructions", "exclude_empty_messages", "exclude_handoffs", "exclude_config_updates")


@given(
    sessions(),
    st.sets(st.sampled_from(FLAGS)),
    st.sampled_from([None, [], ["tool"], ["other"]]),
    st.sampled_from([None, None, "b", "nobody"]),
)
def test_a_copy_keeps_pairs_together_and_responses_separate(
    session: Session, flags: set[str], tools: list[str] | None, agent: str | None
) -> None:
    before = session.to_dict()
    options: dict[str, Any] = dict.fromkeys(flags, True)
    copy = session.copy(tools=tools, filter_agent_id=agent, **options)
    check_derived(copy, session)
    assert session.to_dict() == before
    copied_ids = {item.id for item in copy.items}
    for item in copy.items:
        assert session.get_by_id(item.id) is item
        is_config = isinstance(item, AgentConfigUpdate) or (isinstance(item, Message) and item.role in ("system", "developer"))
        is_structural = isinstance(item, AgentHandoff) or (is_config and item.agent_id is None)
        assert agent is None or item.agent_id == agent or is_structural or isinstance(item, FunctionCallOutput)
    then = response_of(session)
    calls = [item for item in session.items if isinstance(item, FunctionCall)]
    for item in session.items:
        if isinstance(item, Reasoning) and item.id in copied_ids:
            beside = [call.id for call in calls if then[call.id] == then[item.id]]
            assert not beside or copied_ids & set(beside), "reasoning without the calls it led to"
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
def test_active_config_at_includes_the_item_itself(target: str | int | None, expected: object) -> None:
    assert configured().active_config_at(target) == expected


def test_an_empty_log_has_no_config_in_force() -> None:
    assert Session().active_config_at() == (None, None)


def test_an_unknown_id_means_the_end() -> None:
    assert configured().active_config_at("nobody") == configured().active_config_at() == ("two", ())
    assert Session().active_config_at("nobody") == (None, None)


def test_an_unknown_position_raises_our_own_error() -> None:
    for position in (6, -7, 10**6000):
        with pytest.raises(PositionError, match="the session has 6") as caught:
            configured().active_config_at(position)
        assert isinstance(caught.value, IndexError)
        assert isinstance(caught.value, SessionError)
        assert (caught.value.position, caught.value.length) == (position, 6)
    with pytest.raises(PositionError, match="the session is empty"):
        Session().active_config_at(0)


@pytest.mark.parametrize("target", [True, 1.0, [], b"1"], ids=range(4))
def test_a_target_of_the_wrong_type_is_refused(target: Any) -> None:
    with pytest.raises(FormatError, match=r"^active_config_at\.target"):
        configured().active_config_at(target)


@given(sessions(max_steps=8), st.data())
def test_the_config_at_an_item_is_that_of_the_log_up_to_it(session: Session, data: st.DataObject) -> None:
    items = [dataclasses.replace(item, tools=("t",)) if isinstance(item, AgentConfigUpdate) else item for item in session.items]
    session = Session(items)
    if items:
        position = data.draw(st.integers(0, len(items) - 1))
        config = session.active_config_at(position)
        assert config == Session(items[: position + 1]).active_config_at() == session.active_config_at(items[position].id)
        assert config == session.active_config_at(position - len(items))


@pytest.mark.parametrize("wrong", [5, [], b"a"], ids=range(3))
def test_an_agent_id_of_the_wrong_type_is_refused(wrong: Any) -> None:
    with pytest.raises(FormatError, match=r"^copy\.filter_agent_id: .* is not the id of an agent"):
        with_tools().copy(filter_agent_id=wrong)


def test_an_agent_id_is_compared_in_its_clean_form() -> None:
    session = Session([Message("user", "a", id="a", agent_id="x\ud800"), Message("user", "b", id="b", agent_id="y")])
    assert ids(session.copy(filter_agent_id="x\ud800")) == ["a"]


def test_metadata_that_cannot_be_saved_raises_on_copy() -> None:
    session = with_tools()
    session.metadata["a"] = object()
    for derive in (session.copy, session.fork, session.to_dict):
        with pytest.raises(FormatError, match=r"metadata\.a: .* cannot be saved as JSON"):
            derive()
