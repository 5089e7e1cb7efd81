"""Forks: the items of each kind, and their independence from the origin."""

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
from tests.support.twin import is_replaced

SUMMARY = {"summary": True}


def talk() -> Session:
    """Return a log of four turns. The second has a call, the third a sub-agent's summary."""
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


def test_a_fork_has_all_items_and_records_its_origin() -> None:
    origin = talk()
    fork = origin.fork()
    assert all(mine is theirs for mine, theirs in zip(origin.items, fork.items, strict=True))
    assert fork.id != "origin"
    assert fork.metadata == {"k": [1], "forked_from": "origin"}
    assert fork.fork().metadata["forked_from"] == fork.id
    assert origin.metadata == {"k": [1]}


@given(sessions(max_steps=10), st.sampled_from(["append", "pin", "truncate", "cleanup", "insert", "metadata"]), st.booleans())
def test_a_fork_and_its_origin_are_independent(origin: Session, edit: str, of_fork: bool) -> None:
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
    assert ids(fork) == ["config2", "handoff", "summary", "sub", "u3", "note", "a3", "u4", "c2"]
    assert fork.active_config_at(0) == ("two", ("bash",))
    assert fork.active_config_at() == talk().active_config_at() == ("two\n\nnote", ("bash",))
    assert fork.metadata == {"k": [1], "forked_from": "origin"}


def test_a_filtered_fork_of_all_turns_keeps_everything_but_older_configs() -> None:
    expected = [id_ for id_ in ids(talk()) if id_ != "system" and not id_.startswith("config")]
    expected.insert(0, "config2")
    for turns in (4, 5, 10**9):
        assert ids(talk().fork_filtered(turns)) == expected


def test_a_filtered_fork_keeps_the_calls_of_the_given_tools() -> None:
    assert "c1" in ids(talk().fork_filtered(3))
    assert {"r", "c1", "o1", "c2"}.isdisjoint(ids(talk().fork_filtered(3, tools=["read"])))
    assert {"r", "c1", "o1", "c2"} <= set(ids(talk().fork_filtered(3, tools=["bash"])))


def test_a_config_set_by_one_update_stays_the_same_object() -> None:
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
def test_a_filtered_fork_contains_the_handoff_and_its_reason(make: str) -> None:
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


def test_a_brief_fork_has_new_instructions_and_a_task() -> None:
    fork = talk().fork_brief("You test.", "Test main.py", "tester")
    assert [(item.role, item.text, item.agent_id) for item in fork.items if isinstance(item, Message)] == [
        ("system", "You test.", "tester"),
        ("user", "Test main.py", "tester"),
    ]
    assert len(fork.items) == 2
    assert fork.metadata == {"k": [1], "forked_from": "origin"}
    for nothing in (None, "", " \n"):
        assert [item.type for item in talk().fork_brief("You test.", nothing, "tester").items] == ["message"]


def test_a_brief_fork_takes_turns_without_instructions_and_configs() -> None:
    fork = talk().fork_brief("You test.", "Test main.py", recent_turns=3)
    assert ids(fork)[1:-1] == ["handoff", "u2", "r", "c1", "o1", "sub", "context", "u3", "a3", "u4"]
    assert [item.role for item in (fork.items[0], fork.items[-1]) if isinstance(item, Message)] == ["system", "user"]


@pytest.mark.parametrize(("agent", "has_handoff"), [(None, True), ("b", True), ("a", False)])
def test_a_brief_fork_takes_the_handoff_to_its_agent(agent: str | None, has_handoff: bool) -> None:
    assert ("handoff" in ids(talk().fork_brief("x", agent_id=agent))) == has_handoff


@pytest.mark.parametrize("instructions", ["", " \n\t", None, 5], ids=range(4))
def test_a_brief_fork_without_instructions_is_an_error(instructions: Any) -> None:
    with pytest.raises(FormatError, match=r"^fork_brief\.instructions"):
        talk().fork_brief(instructions)


@pytest.mark.parametrize(("name", "value"), [("recent_turns", -1), ("recent_turns", 1.5), ("recent_turns", False), ("task_brief", 5)])
def test_other_invalid_arguments_of_a_brief_fork_are_named(name: str, value: Any) -> None:
    arguments: Any = {name: value}
    with pytest.raises(FormatError, match=rf"^fork_brief\.{name}"):
        talk().fork_brief("x", **arguments)


@given(sessions(), st.integers(1, 6), st.sampled_from([None, [], ["tool"]]))
def test_a_filtered_fork_keeps_pairs_together_and_responses_separate(origin: Session, turns: int, tools: list[str] | None) -> None:
    before = origin.to_dict()
    fork = origin.fork_filtered(turns, tools)
    check_derived(fork, origin)
    assert origin.to_dict() == before
    assert fork.active_config_at() == origin.active_config_at()
    updates = [item for item in origin.items if isinstance(item, AgentConfigUpdate)]
    has_config = any(item.instructions is not None or item.tools is not None for item in updates)
    assert any(isinstance(item, AgentConfigUpdate) for item in fork.items) == has_config
    in_force = [item for position, item in enumerate(origin.items) if not is_replaced(list(origin.items), position)]
    system = [item for item in in_force if isinstance(item, Message) and item.role in ("system", "developer")]
    assert [item for item in fork.items if isinstance(item, Message) and item.role in ("system", "developer")] == system
    assert fork.turn_count() == min(turns, origin.turn_count())
    summaries = [item.id for item in origin.items if isinstance(item, Compaction) or (isinstance(item, Message) and item.is_summary)]
    assert set(summaries[-1:]) <= set(ids(fork))
    user_messages = [item for item in origin.items if isinstance(item, Message) and item.role == "user"]
    assert user_messages[-1:] == [item for item in fork.items if isinstance(item, Message) and item.role == "user"][-1:]


@given(sessions(), st.integers(0, 4))
def test_a_brief_fork_keeps_pairs_and_ends_at_a_request_point(origin: Session, turns: int) -> None:
    fork = origin.fork_brief("be brief", "do it", "b", recent_turns=turns)
    check_derived(fork, origin)
    assert request_points(fork)[-1] == len(fork.items)
    assert fork.turn_count() == min(turns, origin.turn_count()) + 1
    answered_ids = {item.call_id for item in fork.items if isinstance(item, FunctionCallOutput)}
    assert all(item.call_id in answered_ids for item in fork.items if isinstance(item, FunctionCall))
