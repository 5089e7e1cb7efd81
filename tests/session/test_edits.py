"""Insertions, truncations and cleanup."""

import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session import (
    AgentConfigUpdate,
    AgentHandoff,
    Compaction,
    DuplicateItemError,
    FormatError,
    FunctionCall,
    FunctionCallOutput,
    Message,
    MessageCategory,
    Reasoning,
    Session,
)
from session.estimate import estimate_item
from session.items import Item
from session.rewrite import index_log
from tests.support.derived import check_derived, ids, response_of
from tests.support.strategies import sessions
from tests.support.twin import answers, is_summary, is_system, responses, unit_of


def at(when: float, id_: str) -> Message:
    return Message("user", id_, id=id_, created_at=when)


def log(**times: float) -> Session:
    return Session([at(when, id_) for id_, when in times.items()])


# Inserting


def test_an_item_is_inserted_by_time_after_equal_ones() -> None:
    session = log(a=1, b=2, c=2, d=3)
    item = at(2, "x")
    assert session.insert(item) is item
    assert ids(session) == ["a", "b", "c", "x", "d"]
    session.insert(at(0, "first"))
    session.insert(at(9, "last"))
    assert ids(session) == ["first", "a", "b", "c", "x", "d", "last"]
    assert session.position("x") == 4


def test_in_an_unordered_log_an_item_goes_after_the_last_one_that_is_not_younger() -> None:
    session = log(replaced=100, a=1, b=2)
    session.insert(at(1.5, "x"))
    assert ids(session) == ["replaced", "a", "x", "b"]


def test_an_insertion_at_the_end_is_growth_and_any_other_is_an_edit() -> None:
    session = log(a=1)
    before = session.lineage
    session.insert(at(1, "b"))
    assert session.lineage is before
    session.insert_many([])
    assert session.lineage is before
    session.insert(at(0, "c"))
    assert session.lineage is not before


@pytest.mark.parametrize("new", [[at(1, "x"), at(1, "a")], [at(1, "x"), at(2, "x")]], ids=["taken", "twice"])
def test_an_id_in_use_leaves_the_log_unchanged(new: list[Item]) -> None:
    session = log(a=1, b=2)
    before = session.lineage, ids(session)
    with pytest.raises(DuplicateItemError):
        session.insert_many(new)
    assert (session.lineage, ids(session)) == before


@pytest.mark.parametrize("wrong", ["text", None, {}], ids=range(3))
def test_a_value_that_is_not_an_item_leaves_the_log_unchanged(wrong: Any) -> None:
    session = log(a=1)
    for insert in (session.insert, lambda item: session.insert_many(iter([at(0, "x"), item]))):
        with pytest.raises(FormatError, match=r"^Session\.insert"):
            insert(wrong)
    assert ids(session) == ["a"]


def test_an_insertion_before_settled_items_is_settled() -> None:
    session = log(a=1, b=2)
    session.restore_seams(frozenset({"b"}), 2)
    session.insert(at(1, "x"))
    assert (ids(session), session.settled, session.response_breaks) == (["a", "x", "b"], 3, frozenset("b"))


def test_many_insertions_are_fast() -> None:
    session = Session(at(float(number), f"a{number}") for number in range(8_000))
    begun = time.process_time()
    session.insert_many([at(float(number) + 0.5, f"b{number}") for number in range(8_000)])
    assert time.process_time() - begun < 2  # single insertions would copy the list 8,000 times
    assert [item.created_at for item in session.items] == sorted(item.created_at for item in session.items)


def test_insertions_in_order_of_time_cost_what_appending_costs() -> None:
    session = Session()
    begun = time.process_time()
    for number in range(5_000):
        session.insert(at(float(number), f"a{number}"))
    assert time.process_time() - begun < 1
    assert len(session.items) == 5_000


@given(sessions(max_steps=8), st.lists(st.integers(-1, 30), max_size=8))
def test_insert_many_gives_the_same_log_as_single_insertions(session: Session, times: list[int]) -> None:
    new: list[Item] = [at(float(when), f"new{number}") for number, when in enumerate(times)]
    one_by_one = session.fork()
    for item in new:
        one_by_one.insert(item)
    origin = session.copy()
    assert session.insert_many(iter(new)) == new
    assert ids(session) == ids(one_by_one)
    assert [id_ for id_ in ids(session) if not id_.startswith("new")] == ids(origin)
    for position, item in enumerate(session.items):
        if item in new:
            assert all(later.created_at > item.created_at for later in session.items[position + 1 :] if later not in new)
    check_derived(session)


def test_nothing_is_inserted_into_a_response() -> None:
    """Otherwise its first calls would no longer wait for their outputs, and a signed response would be sent in two halves."""
    session = Session([at(0, "u"), Reasoning("r", "sig", id="r", created_at=1)])
    session.append(FunctionCall("f", "{}", "1", id="c", created_at=2))
    session.append(FunctionCall("f", "{}", "2", id="d", created_at=4))
    for when in (1, 2, 3):
        steered = session.fork()
        steered.insert(at(when, "x"))
        assert (ids(steered), steered.lineage is session.lineage) == (["u", "r", "c", "d", "x"], False)
        assert [steered.items[position].id for position in index_log(steered).in_flight()] == ["c", "d"]
    session.append(FunctionCallOutput("f", "", "1", id="o", created_at=5))
    session.insert_many([at(0.5, "w"), at(3, "x"), at(5, "y"), at(1, "v")])
    assert ids(session) == ["u", "w", "r", "c", "d", "v", "x", "o", "y"]


def test_an_item_can_be_inserted_between_two_responses() -> None:
    session = Session(
        Message("assistant", "", id=id_, created_at=when, agent_id=id_[0]) for when, id_ in enumerate(["a1", "a2", "b1", "b2"])
    )
    session.restore_seams(frozenset({"a2"}), 0)
    for when, between in ((0, ["a1", "x", "a2", "b1", "b2"]), (1, ["a1", "a2", "x", "b1", "b2"]), (2, ["a1", "a2", "b1", "b2", "x"])):
        single = session.copy()
        single.insert(at(when, "x"))
        assert ids(single) == between


NEW: list[Callable[[str, float], Item]] = [
    lambda id_, when: at(when, id_),
    lambda id_, when: Message("assistant", id_, id=id_, created_at=when),
    lambda id_, when: Message("assistant", id_, id=id_, created_at=when, agent_id="b"),
    lambda id_, when: Reasoning(id_, "sig", id=id_, created_at=when),
    lambda id_, when: FunctionCall("f", "{}", id_, id=id_, created_at=when),
]


@given(sessions(max_steps=8), st.lists(st.tuples(st.integers(-1, 30), st.sampled_from(NEW)), max_size=8))
def test_insert_many_equals_inserting_the_oldest_first_and_splits_no_response(
    session: Session, insertions: list[tuple[int, Callable[[str, float], Item]]]
) -> None:
    new = [make(f"new{number}", float(when)) for number, (when, make) in enumerate(sorted(insertions, key=lambda first: first[0]))]
    origin, one_by_one = session.copy(), session.fork()
    for item in new:
        one_by_one.insert(item)
    session.insert_many(new)
    assert (ids(session), session.response_breaks) == (ids(one_by_one), one_by_one.response_breaks)
    before, after = response_of(origin), response_of(session)
    assert all((before[first] == before[second]) <= (after[first] == after[second]) for first in before for second in before)


def test_replacing_a_system_message_keeps_responses_separate() -> None:
    session = Session([Message("assistant", "1", id="1"), Message("system", "x"), Message("assistant", "2", id="2")])
    session.add_message("system", "new", "s", replace=True)
    assert (ids(session), session.response_breaks) == (["s", "1", "2"], frozenset("2"))


@given(sessions(max_steps=10))
def test_replacing_the_system_message_changes_only_system_messages(session: Session) -> None:
    origin = session.copy()
    session.add_message("system", "new", "s", created_at=0, replace=True)
    check_derived(session, origin)
    other_ids = [item.id for item in origin.items if not (isinstance(item, Message) and item.role == "system")]
    assert ids(session) == ["s", *other_ids]


# A live model that reports its own calls


def test_calls_and_outputs_reported_twice_by_a_live_model_are_recorded_once() -> None:
    session = Session()
    call = session.append(FunctionCall("f", '{"a": 1}', "c"))
    assert session.add_function_call("f", '{"a": 1}', "c") is call
    output = session.append(FunctionCallOutput("f", "out", "c"))
    assert session.add_function_output("f", "out", "c") is output
    assert list(session.items) == [call, output]
    session.insert(Message("user", "earlier", created_at=0))
    assert session.add_function_call("f", '{"a": 1}', "c") is call
    session.truncate(max_items=0)
    assert session.fork().add_function_call("f", '{"a": 2}', "c").arguments == '{"a": 2}'


# Truncating


def full() -> Session:
    return Session(
        [
            Message("system", "s", id="system"),
            Message("user", "1", id="u1"),
            Message("assistant", "a", extra={"summary": True}, id="summary"),
            Compaction("c", id="compaction"),
            AgentHandoff("b", "a", "why", id="handoff"),
            AgentConfigUpdate("x", id="config"),
            Message("user", "held", category=MessageCategory.SYSTEM, id="held"),
            Message("user", "pinned", pinned=True, id="pinned"),
            Reasoning("r", id="r"),
            FunctionCall("f", "{}", "1", id="c1"),
            FunctionCallOutput("f", "x" * 400, "1", id="o1"),
            Message("user", "2", id="u2"),
            Message("assistant", "looking", id="t"),
            FunctionCall("f", "{}", "2", id="c2"),
        ]
    )


STAY = ["system", "summary", "compaction", "handoff", "config", "held", "pinned", "u2", "c2"]


def test_protected_items_survive_any_truncation() -> None:
    assert ids(full().truncate(max_items=0)) == STAY
    assert ids(full().truncate(max_tokens=0)) == STAY


def test_truncation_drops_the_oldest_units_and_no_more_than_needed() -> None:
    assert ids(full().truncate(max_items=13)) == [id_ for id_ in ids(full()) if id_ != "u1"]
    assert ids(full().truncate(max_items=12)) == [id_ for id_ in ids(full()) if id_ not in ("u1", "r", "c1", "o1")]
    assert ids(full().truncate(max_items=10)) == [id_ for id_ in ids(full()) if id_ not in ("u1", "r", "c1", "o1")]
    tokens = full().estimated_tokens()
    assert ids(full().truncate(max_tokens=tokens - 100)) == [id_ for id_ in ids(full()) if id_ not in ("u1", "r", "c1", "o1")]


def test_a_pin_protects_the_whole_unit() -> None:
    session = full()
    session.pin("o1")
    assert set(ids(session.truncate(max_items=0))) == {*STAY, "r", "c1", "o1"}


def test_an_interrupted_call_may_be_dropped_and_a_call_in_flight_stays_with_its_unit() -> None:
    session = Session()
    session.append(FunctionCall("f", "{}", "1", id="interrupted"))
    session.add_message("user", "u", "u")
    for number in ("2", "3"):
        session.append(FunctionCall("f", "{}", number, id=f"c{number}"))
    session.append(FunctionCallOutput("f", "", "3", id="o3"))
    assert ids(session.truncate(max_items=0)) == ["u", "c2", "c3", "o3"]


def test_a_truncation_within_the_limits_changes_nothing() -> None:
    session = full()
    before = session.lineage
    assert session.truncate() is session
    assert session.truncate(max_items=14, max_tokens=session.estimated_tokens()) is session
    assert session.lineage is before
    session.truncate(max_items=0)
    before = session.lineage
    assert session.truncate(max_items=0, max_tokens=0) is session
    assert session.lineage is before
    assert Session().truncate(0, 0).items == ()


@pytest.mark.parametrize("limit", [-1, 1.5, True, "5", float("nan")], ids=range(5))
def test_an_invalid_limit_is_named_and_nothing_changes(limit: Any) -> None:
    session = full()
    for name in ("max_items", "max_tokens"):
        with pytest.raises(FormatError, match=rf"^truncate\.{name}"):
            session.truncate(**{name: limit})
    assert ids(session) == ids(full())


def test_truncating_a_long_log_is_fast() -> None:
    def seconds_for(count: int) -> float:
        session = Session(at(float(number), f"a{number}") for number in range(count))
        begun = time.process_time()
        session.truncate(max_items=10)
        assert len(session.items) == 10
        return time.process_time() - begun

    seconds_for(100)
    assert seconds_for(20_000) < 40 * max(seconds_for(2_000), 0.005)  # ten times the work if linear, a hundred times if quadratic


def must_stay(session: Session) -> set[int]:
    """Return the protected positions: the slow twin."""
    items = list(session.items)
    user_positions = [position for position, item in enumerate(items) if isinstance(item, Message) and item.role == "user"]
    last_user = ([position for position in user_positions if items[position].category is not MessageCategory.CONTEXT] or user_positions)[
        -1:
    ]
    last = responses(items, session.response_breaks)[-1:]
    answered_calls = set(answers(items).values())
    open_calls = [
        position for run in last for position in run if isinstance(items[position], FunctionCall) and position not in answered_calls
    ]
    protected = {
        position
        for position, item in enumerate(items)
        if item.pinned
        or item.category is MessageCategory.SYSTEM
        or is_summary(item)
        or is_system(item)
        or isinstance(item, AgentHandoff | AgentConfigUpdate)
        or position in last_user
        or position in open_calls
    }
    units = unit_of(items, session.response_breaks)
    return {position for position in units if protected.intersection(units[position])}


@given(sessions(), st.one_of(st.none(), st.integers(0, 60)), st.one_of(st.none(), st.integers(0, 3_000)))
def test_a_truncation_meets_the_limits_or_leaves_only_protected_items(
    session: Session, max_items: int | None, max_tokens: int | None
) -> None:
    origin = session.copy()
    stay = must_stay(origin)
    assert session.truncate(max_items, max_tokens) is session
    check_derived(session, origin)
    positions = [origin.position(item.id) for item in session.items]
    assert stay <= set(positions)
    assert positions == sorted(position for position in positions if position is not None)

    def over(items: list[Item]) -> bool:
        too_many = max_items is not None and len(items) > max_items
        return too_many or (max_tokens is not None and sum(map(estimate_item, items)) > max_tokens)

    items = list(origin.items)
    units = unit_of(items, origin.response_breaks)
    remaining = {position for position in positions if position is not None}
    assert not over(list(session.items)) or remaining == stay
    gone = sorted({max(units[position]) for position in range(len(items)) if position not in remaining})
    free = sorted({max(units[position]) for position in range(len(items)) if position not in stay})
    assert gone == free[: len(gone)], "not the oldest"
    if gone:  # the last unit was necessary
        assert over([item for position, item in enumerate(items) if position in remaining or max(units[position]) == gone[-1]])
    before = session.lineage
    assert session.truncate(max_items, max_tokens).lineage is before


# Cleanup


def test_cleanup_empties_only_this_session() -> None:
    session = Session([at(1, "a"), at(2, "b")], id="s", metadata={"k": 1})
    session.restore_seams(frozenset("b"), 2)
    session.add_function_call("f", "{}", "c")
    snapshot, fork, view = session.items, session.fork(), Session.showing(session, list(session.items), breaks=frozenset(), settled=3)
    metadata = session.metadata
    session.cleanup()
    assert (len(session.items), session.metadata, session.response_breaks, session.settled) == (0, {}, frozenset(), 0)
    assert session.position("a") is None
    assert session.id == "s"
    assert metadata == {"k": 1}
    assert len(snapshot) == len(fork.items) == len(view.items) == 3
    session.add_message("user", "again", "a")
    session.add_function_call("f", "[]", "c")
    assert len(session.items) == 2
