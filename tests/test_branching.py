"""Forks: what each kind takes along, and that none is tied to its origin."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session import (
    AgentConfigUpdate,
    AgentHandoff,
    Compaction,
    FormatError,
    FunctionCall,
    FunctionCallOutput,
    Message,
    MessageCategory,
    Reasoning,
    Session,
)
from session.units import request_points
from tests.support.derived import check_derived, ids
from tests.support.strategies import sessions

SUMMARY = {"summary": True}


def talk() -> Session:
    """Four turns; the second has a call, the third is summed up by a sub-agent."""
    return Session(
        [
            Message("system", "s", id="system"),
            AgentConfigUpdate("one", ["bash"], id="config1"),
            Message("user", "1", id="u1"),
            AgentHandoff("b", "a", "knows Rust", id="handoff"),
            Message("assistant", "older", extra=SUMMARY, id="older"),
            Message("assistant", "[Conversation Summary]\nx", extra=SUMMARY, id="summary"),
            Message("user", "2", id="u2"),
            Reasoning("r", id="r"),
            FunctionCall("bash", "{}", "1", id="c1"),
            FunctionCallOutput("bash", "x", "1", id="o1"),
            Message("assistant", "[Sub-agent Summary]\ny", extra=SUMMARY, id="sub"),
            AgentConfigUpdate("two", id="config2"),
            Message("user", "file", category=MessageCategory.CONTEXT, id="context"),
            Message("user", "3", id="u3"),
            Message("developer", "note", id="note"),
            Message("assistant", "a3", id="a3"),
            Message("user", "4", id="u4"),
            FunctionCall("bash", "{}", "2", id="c2"),
        ],
        id="origin",
        metadata={"k": [1]},
    )


def test_a_fork_has_everything_and_says_where_it_comes_from() -> None:
    origin = talk()
    fork = origin.fork()
    assert all(mine is theirs for mine, theirs in zip(origin.items, fork.items, strict=True))
    assert fork.id != "origin"
    assert fork.metadata == {"k": [1], "forked_from": "origin"}
    assert fork.fork().metadata["forked_from"] == fork.id
    assert origin.metadata == {"k": [1]}


@given(sessions(max_steps=10), st.sampled_from(["append", "pin", "truncate", "cleanup", "insert", "metadata"]), st.booleans())
def test_a_fork_and_its_origin_go_their_own_ways(origin: Session, edit: str, of_fork: bool) -> None:
    origin.metadata["nested"] = [1]
    fork = origin.fork()
    check_derived(fork, origin)
    assert (list(fork.items), fork.response_breaks) == (list(origin.items), origin.response_breaks)
    edited, other = (fork, origin) if of_fork else (origin, fork)
    before = other.to_dict()
    if edit == "append":
        edited.add_message("user", "more")
    elif edit == "pin" and edited.items:
        edited.pin(edited.items[0].id)
    elif edit == "truncate":
        edited.truncate(max_items=0)
    elif edit == "cleanup":
        edited.cleanup()
    elif edit == "insert":
        edited.insert(Message("user", "first", created_at=-1.0))
    else:
        edited.metadata["nested"].append(2)
    assert other.to_dict() == before


def test_a_filtered_fork_keeps_instructions_config_handoffs_summary_and_the_last_turns() -> None:
    fork = talk().fork_filtered(recent_turns=2)
    assert ids(fork) == ["system", "config2", "handoff", "summary", "sub", "u3", "note", "a3", "u4", "c2"]
    assert fork.active_config_at() == fork.active_config_at(1) == ("two", ("bash",))
    assert fork.metadata == {"k": [1], "forked_from": "origin"}


def test_a_filtered_fork_of_as_many_turns_as_there_are_keeps_all_but_older_configs() -> None:
    expected = [id_ for id_ in ids(talk()) if not id_.startswith("config")]
    expected.insert(1, "config2")
    for turns in (4, 5, 10**9):
        assert ids(talk().fork_filtered(turns)) == expected


def test_a_filtered_fork_keeps_the_calls_of_the_tools_it_is_given() -> None:
    assert "c1" in ids(talk().fork_filtered(3))
    assert {"r", "c1", "o1", "c2"}.isdisjoint(ids(talk().fork_filtered(3, tools=["read"])))
    assert {"r", "c1", "o1", "c2"} <= set(ids(talk().fork_filtered(3, tools=["bash"])))


def test_a_config_that_one_update_holds_stays_the_same_object() -> None:
    session = Session([AgentConfigUpdate("x", ["t"], id="1"), AgentConfigUpdate("y", ["t"], id="2"), Message("user", "u", id="u")])
    assert session.fork_filtered().items[0] is session.items[1]
    assert ids(Session([AgentConfigUpdate(), Message("user", "u", id="u")]).fork_filtered()) == ["u"]


def test_a_compaction_is_a_summary_too() -> None:
    session = Session(
        [Compaction("1", id="1"), Compaction("2", id="2"), Message("user", "", id="u1"), Message("user", "", id="u2")], id="origin"
    )
    assert ids(session.fork_filtered(1)) == ["2", "u2"]


def test_a_call_comes_along_with_an_output_in_the_last_turns() -> None:
    session = Session(
        [
            Message("user", "1", id="u1"),
            Reasoning("r", id="r"),
            FunctionCall("f", "{}", "1", id="c"),
            Message("user", "2", id="u2"),
            FunctionCallOutput("f", "late", "1", id="o"),
        ]
    )
    assert ids(session.fork_filtered(1)) == ["r", "c", "u2", "o"]


@pytest.mark.parametrize("turns", [0, -1, True, 1.0, None, "3"], ids=range(6))
def test_a_filtered_fork_needs_a_turn(turns: Any) -> None:
    with pytest.raises(FormatError, match=r"^fork_filtered\.recent_turns"):
        talk().fork_filtered(turns)


@pytest.mark.parametrize("make", ["copy", "fork", "fork_filtered"])
def test_an_agent_that_is_handed_a_conversation_finds_the_handoff_and_its_reason(make: str) -> None:
    session = Session()
    session.add_message("user", "port this to Rust", agent_id="a")
    session.add_handoff("b", "a", "knows Rust")
    for number in range(9):
        session.add_message("user", str(number), agent_id="b")
        session.add_message("assistant", "ok", agent_id="b")
    handed = session.copy(filter_agent_id="b") if make == "copy" else getattr(session, make)()
    assert [(item.to_agent, item.from_agent, item.reason) for item in handed.items if isinstance(item, AgentHandoff)] == [
        ("b", "a", "knows Rust")
    ]


def test_a_brief_is_new_instructions_and_a_task() -> None:
    fork = talk().fork_brief("You test.", "Test main.py", "tester")
    assert [(item.role, item.text, item.agent_id) for item in fork.items if isinstance(item, Message)] == [
        ("system", "You test.", "tester"),
        ("user", "Test main.py", "tester"),
    ]
    assert len(fork.items) == 2
    assert fork.metadata == {"k": [1], "forked_from": "origin"}
    for nothing in (None, "", " \n"):
        assert [item.type for item in talk().fork_brief("You test.", nothing, "tester").items] == ["message"]


def test_a_brief_takes_turns_along_without_what_would_tell_the_agent_otherwise() -> None:
    fork = talk().fork_brief("You test.", "Test main.py", recent_turns=3)
    assert ids(fork)[1:-1] == ["handoff", "u2", "r", "c1", "o1", "sub", "context", "u3", "a3", "u4"]
    assert [item.role for item in (fork.items[0], fork.items[-1]) if isinstance(item, Message)] == ["system", "user"]


@pytest.mark.parametrize(("agent", "found"), [(None, True), ("b", True), ("a", False)])
def test_a_brief_brings_the_handoff_to_its_agent(agent: str | None, found: bool) -> None:
    assert ("handoff" in ids(talk().fork_brief("x", agent_id=agent))) == found


@pytest.mark.parametrize("instructions", ["", " \n\t", None, 5], ids=range(4))
def test_a_brief_without_instructions_is_an_error(instructions: Any) -> None:
    with pytest.raises(FormatError, match=r"^fork_brief\.instructions"):
        talk().fork_brief(instructions)


@pytest.mark.parametrize(("name", "value"), [("recent_turns", -1), ("recent_turns", 1.5), ("recent_turns", False), ("task_brief", 5)])
def test_what_else_a_brief_cannot_use_is_named(name: str, value: Any) -> None:
    given: Any = {name: value}
    with pytest.raises(FormatError, match=rf"^fork_brief\.{name}"):
        talk().fork_brief("x", **given)


@given(sessions(), st.integers(1, 6), st.sampled_from([None, [], ["tool"]]))
def test_a_filtered_fork_keeps_pairs_and_what_stands_apart(origin: Session, turns: int, tools: list[str] | None) -> None:
    before = origin.to_dict()
    fork = origin.fork_filtered(turns, tools)
    check_derived(fork, origin)
    assert origin.to_dict() == before
    assert fork.active_config_at() == origin.active_config_at()
    assert sum(isinstance(item, AgentConfigUpdate) for item in fork.items) == (origin.active_config_at() != (None, None))
    system = [item for item in origin.items if isinstance(item, Message) and item.role in ("system", "developer")]
    assert [item for item in fork.items if isinstance(item, Message) and item.role in ("system", "developer")] == system
    assert fork.turn_count() == min(turns, origin.turn_count())
    summaries = [item.id for item in origin.items if isinstance(item, Compaction) or (isinstance(item, Message) and item.is_summary)]
    assert set(summaries[-1:]) <= set(ids(fork))
    said = [item for item in origin.items if isinstance(item, Message) and item.role == "user"]
    assert said[-1:] == [item for item in fork.items if isinstance(item, Message) and item.role == "user"][-1:]


@given(sessions(), st.integers(0, 4))
def test_a_brief_keeps_pairs_and_ends_where_the_model_is_called(origin: Session, turns: int) -> None:
    fork = origin.fork_brief("be brief", "do it", "b", recent_turns=turns)
    check_derived(fork, origin)
    assert request_points(fork)[-1] == len(fork.items)
    assert fork.turn_count() == min(turns, origin.turn_count()) + 1
    answered = {item.call_id for item in fork.items if isinstance(item, FunctionCallOutput)}
    assert all(item.call_id in answered for item in fork.items if isinstance(item, FunctionCall))
