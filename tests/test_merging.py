"""Two logs become one: by time, each item once, and nothing that belongs together is parted."""

import asyncio
import dataclasses
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session import (
    Compaction,
    FormatError,
    FunctionCall,
    FunctionCallOutput,
    Message,
    Reasoning,
    Session,
    Usage,
)
from session.excerpts import read
from session.items import Item
from tests.support.derived import check_derived, ids, pairs, response_of
from tests.support.strategies import sessions


def log(*items: Item) -> Session:
    return Session(items)


def user(when: float, id_: str) -> Message:
    return Message("user", id_, id=id_, created_at=when)


def said(when: float, id_: str, **more: Any) -> Message:
    return Message("assistant", id_, id=id_, created_at=when, **more)


def call(when: float, id_: str, call_id: str = "1") -> FunctionCall:
    return FunctionCall("f", "{}", call_id, id=id_, created_at=when)


def output(when: float, id_: str, call_id: str = "1") -> FunctionCallOutput:
    return FunctionCallOutput("f", id_, call_id, id=id_, created_at=when)


def merge(mine: Session, theirs: Session) -> Session:
    merged = asyncio.run(mine.merge(theirs))
    assert merged is mine
    return merged


def taken(parent: Session, child: Session, agent_id: str | None = None) -> Session:
    """The parent with the child's result."""
    result = asyncio.run(parent.merge_result(child, agent_id=agent_id))
    assert result is parent
    return result


def merged(mine: Session, theirs: Session) -> list[str]:
    return ids(merge(mine.copy(), theirs))


def test_items_come_in_by_time_and_at_equal_times_after_ours() -> None:
    assert merged(log(user(1, "a"), user(2, "b"), user(4, "c")), log(user(0, "w"), user(2, "x"), user(3, "y"), user(9, "z"))) == [
        *("w", "a", "b", "x", "y", "c", "z")
    ]


def test_an_item_that_both_hold_comes_once_and_is_ours() -> None:
    ours = log(user(1, "a"), user(2, "b"))
    theirs = ours.fork()
    ours.pin("a")
    ours.append(user(3, "mine"))
    theirs.append(user(2.5, "theirs"))
    assert merged(ours, theirs) == ["a", "b", "theirs", "mine"]
    assert merge(ours, theirs).items[0].pinned


def test_a_merge_that_brings_nothing_new_changes_nothing() -> None:
    session = log(user(1, "a"), user(2, "b"))
    before = session.lineage
    for other in (session, session.fork(), session.read_only(), Session()):
        assert merge(session, other).lineage is before


def test_a_merge_that_only_adds_to_the_end_is_growth() -> None:
    session = log(user(1, "a"))
    before = session.lineage
    assert ids(merge(session, log(user(1, "b")))) == ["a", "b"]
    assert session.lineage is before
    assert merge(session, log(user(0, "c"))).lineage is not before


def test_a_summary_stays_before_what_follows_what_it_stands_for() -> None:
    ours = log(
        Message("system", "new", id="system", created_at=90), said(99, "summary", extra={"summary": True}), user(5, "u"), said(6, "a")
    )
    assert merged(ours, log(user(1, "x"), user(5.5, "y"))) == ["x", "system", "summary", "u", "y", "a"]
    assert merged(log(user(1, "x"), user(5.5, "y")), ours) == ["x", "system", "summary", "u", "y", "a"]
    compacted = log(Compaction("c", id="compaction", created_at=99), user(5, "u"))
    assert merged(log(user(6, "y")), compacted) == ["compaction", "u", "y"]


def test_nothing_comes_between_a_response_and_its_outputs() -> None:
    ours = log(user(0, "u"), Reasoning("r", id="r", created_at=1), call(2, "c"), call(3, "d", "2"), output(6, "o"), output(8, "p", "2"))
    for when in (1, 1.5, 2.5, 4, 7, 8):
        assert merged(ours, log(user(when, "x"))) == ["u", "r", "c", "d", "o", "p", "x"]
        assert merged(log(user(when, "x")), ours)[:-1] in (["u", "x", "r", "c", "d", "o"], ["u", "r", "c", "d", "o", "p"])


def test_answers_of_two_logs_stay_two() -> None:
    session = merge(log(said(1, "a")), log(said(2, "b"), said(3, "c")))
    assert (ids(session), session.response_breaks) == (["a", "b", "c"], frozenset("b"))


def test_call_ids_that_both_use_find_their_own_outputs() -> None:
    ours = log(call(1, "c"), user(4, "u"), output(6, "o"))
    theirs = log(call(2, "d"), user(3, "v"), output(5, "p"))
    session = merge(ours, theirs)
    assert pairs(session) == {"c": "o", "d": "p"}


def test_an_answer_to_a_call_in_flight_comes_with_it_and_a_second_one_does_not() -> None:
    ours = log(user(0, "u"), call(1, "c"))
    theirs = ours.fork()
    theirs.append(output(9, "o"))
    theirs.append(user(10, "v"))
    assert merged(ours, theirs) == ["u", "c", "o", "v"]
    ours.append(user(2, "w"))
    assert merged(ours, theirs) == ["u", "c", "o", "w", "v"]
    ours.append(output(3, "mine"))
    session = merge(ours, theirs)
    assert ids(session) == ["u", "c", "w", "mine", "v"]
    assert pairs(session) == {"c": "mine"}


def test_the_rest_of_a_shared_response_joins_it() -> None:
    ours = log(user(0, "u"), Reasoning("r", id="r", created_at=1))
    theirs = ours.fork()
    theirs.append(said(2, "a"))
    session = merge(ours, theirs)
    assert (ids(session), session.response_breaks) == (["u", "r", "a"], frozenset())


def reports(session: Session) -> dict[str, Usage | None]:
    return {item.id: item.usage for item in session.items if isinstance(item, Message) and item.role == "assistant"}


def test_what_was_reported_of_another_prompt_is_left_behind() -> None:
    """It would count this log's prompt too low."""
    ours = log(user(0, "u"), said(1, "a", usage=Usage(9)), user(2, "v"), said(3, "b", usage=Usage(90)))
    theirs = ours.fork_brief("search", "find", "child")
    theirs.append(said(5e9, "found", usage=Usage(7)))
    merge(ours, theirs)
    assert reports(ours) == {"a": Usage(9), "b": Usage(90), "found": None}
    lineage = ours.lineage
    assert merge(ours, theirs).lineage is lineage


def test_what_was_reported_of_this_very_prompt_comes_along() -> None:
    ours = log(user(0, "u"), said(1, "a", usage=Usage(9)))
    theirs = ours.fork()
    theirs.append(user(2, "v"))
    theirs.append(said(3, "b", usage=Usage(90)))
    theirs.append(user(5, "w"))
    theirs.append(said(6, "c", usage=Usage(900)))
    for mine in (Session(), ours.copy()):
        assert reports(merge(mine, theirs)) == reports(theirs)
    ours.append(user(4, "mine"))  # from here on, theirs is another prompt
    assert (ids(merge(ours, theirs)), reports(ours)) == (["u", "a", "v", "b", "mine", "w", "c"], reports(theirs) | {"c": None})


def test_what_was_reported_before_their_log_lost_items_is_left_behind() -> None:
    theirs = log(user(0, "u"), said(1, "a", usage=Usage(9)), user(2, "v"))
    theirs.truncate(max_items=2)
    theirs.append(said(3, "b", usage=Usage(5)))
    assert reports(merge(Session(), theirs)) == {"a": None, "b": Usage(5)}


@pytest.mark.parametrize("other", [None, [], {"items": []}], ids=range(3))
def test_what_is_no_session_is_refused(other: Any) -> None:
    session = log(user(1, "a"))
    with pytest.raises(FormatError, match=r"^merge\.other"):
        asyncio.run(session.merge(other))
    with pytest.raises(FormatError, match=r"^merge_result\.other"):
        asyncio.run(session.merge_result(other))
    assert ids(session) == ["a"]


def test_long_logs_are_merged_in_a_moment() -> None:
    ours, theirs = (Session(user(number + half, f"{number}{half}") for number in range(6_000)) for half in (0.0, 0.5))
    begun = time.process_time()
    merge(ours, theirs)
    assert time.process_time() - begun < 2
    assert [item.created_at for item in ours.items] == [number / 2 for number in range(12_000)]


def renamed(session: Session, prefix: str, later: float) -> Session:
    """The same log under other ids and at other times."""
    items = [dataclasses.replace(item, id=prefix + item.id, created_at=item.created_at + later) for item in session.items]
    made = Session(items)
    made.restore_seams(frozenset(prefix + item_id for item_id in session.response_breaks), 0)
    return made


def in_order(session: Session, of: Session) -> bool:
    places = [session.position(item.id) for item in of.items]
    known = [place for place in places if place is not None]
    return known == sorted(known)


@given(sessions(max_steps=14), sessions(max_steps=14), st.sampled_from([0.5, -3.5, 7.5, 100.5]))
def test_two_logs_keep_their_order_their_pairs_and_their_answers(ours: Session, other: Session, later: float) -> None:
    theirs = renamed(other, "b", later)
    mine = ours.copy()
    merge(mine, theirs)
    assert sorted(ids(mine)) == sorted([*ids(ours), *ids(theirs)])
    assert in_order(mine, ours)
    assert in_order(mine, theirs)
    now = response_of(mine)
    for origin in (ours, theirs):
        then, paired = response_of(origin), pairs(origin)
        for first in then:
            assert all((now[first] == now[second]) == (then[first] == then[second]) for second in then), "answers parted or merged"
        assert {call: answer for call, answer in pairs(mine).items() if call in paired} == paired
    again = merge(merge(mine.copy(), theirs), ours)
    assert (list(again.items), again.response_breaks) == (list(mine.items), mine.response_breaks)
    assert Session.from_dict(mine.to_dict()).to_dict() == mine.to_dict()


@given(sessions(max_steps=14), sessions(max_steps=14), st.sampled_from([0.5, -3.5, 7.5, 100.5]))
def test_who_merges_whom_makes_no_difference_where_no_times_are_equal(ours: Session, other: Session, later: float) -> None:
    theirs = renamed(other, "b", later)
    mine, yours = ours.copy(), theirs.copy()
    assert ids(merge(mine, theirs)) == ids(merge(yours, ours))
    assert mine.response_breaks == yours.response_breaks


@given(sessions(max_steps=14), st.lists(st.booleans(), max_size=60), st.data())
def test_two_forks_come_together_again(origin: Session, sides: list[bool], data: st.DataObject) -> None:
    """Whatever each has gained or lost since: no id twice, no call without its output, no order that both agree on lost."""
    at = data.draw(st.integers(0, len(origin.items)))
    head = Session.showing(origin, list(origin.items[:at]), breaks=origin.response_breaks, settled=0).copy()
    forks = head.fork(), head.fork()
    for fork, prefix in zip(forks, "ab", strict=True):
        for place, item in enumerate(origin.items[at:]):
            if place >= len(sides) or sides[place] == (prefix == "a"):
                fork.append(dataclasses.replace(item, id=prefix + item.id))
    ours, theirs = forks
    before, foreign = ours.copy(), theirs.to_dict()
    merge(ours, theirs)
    assert theirs.to_dict() == foreign
    assert in_order(ours, before)
    assert in_order(ours, theirs)
    known = set(ids(ours))
    left_out = [item for item in theirs.items if item.id not in known]
    assert all(isinstance(item, FunctionCallOutput) for item in left_out)
    assert {call: answer for call, answer in pairs(ours).items() if call in pairs(before)} == pairs(before)
    lineage = ours.lineage
    assert merge(ours, theirs).lineage is lineage


# Results


def test_the_result_is_the_last_thing_the_assistant_said_and_twice_is_once() -> None:
    parent = log(user(1, "u"))
    child = parent.fork_brief("be brief", "go", "child")
    child.append(said(2, "first"))
    child.append(said(3, "result", usage=Usage(5), agent_id="child"))
    child.append(said(4, " "))
    child.append(said(5, "summary", extra={"summary": True}))
    child.append(user(6, "thanks"))
    taken(parent, child)
    taken(parent, child)
    taken(parent, child, "other")
    assert ids(parent) == ["u", "result"]
    result = parent.items[-1]
    assert isinstance(result, Message)
    assert (result.role, result.text, result.agent_id, result.usage) == ("assistant", "result", "child", None)


def test_a_result_can_be_given_to_an_agent_and_stands_apart_from_an_answer() -> None:
    parent = log(said(1, "mine", agent_id="a"))
    taken(parent, log(said(2, "result")), "a")
    assert (ids(parent), parent.items[1].agent_id, parent.response_breaks) == (["mine", "result"], "a", frozenset({"result"}))
    taken(parent, log(said(2, "other")))
    assert parent.response_breaks == {"result"}
    assert taken(Session(), log(said(2, "other"))).response_breaks == frozenset()


def test_a_fork_that_said_nothing_new_has_no_new_result() -> None:
    parent = log(said(1, "mine"))
    assert ids(taken(parent, parent.fork())) == ["mine"]


def test_where_nothing_was_said_there_is_no_result_and_that_is_told() -> None:
    parent = log(user(1, "u"))
    for child in (Session(), log(user(1, "x")), log(said(1, "s", extra={"summary": True})), log(Message("assistant", ""))):
        with pytest.raises(FormatError, match=r"^merge_result\.other: no assistant message"):
            taken(parent, child)
    assert ids(parent) == ["u"]


def test_a_result_interrupts_no_call_that_is_being_run() -> None:
    parent = log(user(0, "u"), Reasoning("r", "sig", id="r", created_at=1), call(2, "c"))
    child = parent.fork_brief("search", "find")
    child.append(said(3, "result"))
    lineage = parent.lineage
    taken(taken(parent, child), child)
    assert parent.lineage is lineage
    assert (ids(parent), parent.response_breaks) == (["u", "r", "c", "result"], frozenset())
    assert waiting(parent) == ["c"]
    parent.add_function_output("f", "done", "1")
    messages, _ = parent.to_anthropic_messages()
    sent = [block["type"] for message in messages for block in message["content"]]
    assert sent == ["text", "thinking", "tool_use", "text", "tool_result"]
    taken(parent, log(said(9, "next")))
    assert ids(parent)[-1] == "next"


def test_a_result_comes_before_outputs_of_the_response_that_still_waits() -> None:
    parent = log(user(0, "u"), call(1, "c"), call(2, "d", "2"), output(3, "o"), user(4, "steer"))
    taken(parent, log(said(5, "result")))
    assert (ids(parent), waiting(parent)) == (["u", "c", "d", "result", "o", "steer"], ["d"])
    assert pairs(parent) == {"c": "o"}


def test_a_result_of_another_agent_is_a_response_of_its_own() -> None:
    parent = log(user(0, "u"), call(1, "c"))
    assert ids(taken(parent, log(said(2, "result")), "child")) == ["u", "c", "result"]
    assert response_of(parent) == {"c": "c", "result": "result"}


def waiting(session: Session) -> list[str]:
    return [session.items[place].id for place in read(session).in_flight()]


@given(sessions(max_steps=8), sessions(max_steps=8))
def test_a_result_leaves_all_else_as_it_was(ours: Session, other: Session) -> None:
    """It stands alone at the end, or at that of the response whose calls are being run: those still are."""
    theirs = renamed(other, "b", 0.5)
    theirs.append(said(99, "result"))
    before = ours.copy()
    calls = [place for place in read(ours).in_flight() if ours.items[place].agent_id is None]
    taken(taken(ours, theirs), theirs)
    check_derived(ours, before)
    assert [item for item in ours.items if item.id != "result"] == list(before.items)
    if calls:
        assert waiting(ours) == waiting(before)
        assert response_of(ours)["result"] == response_of(ours)[before.items[calls[0]].id]
    else:
        assert (ids(ours)[-1], response_of(ours)["result"]) == ("result", "result")
