"""Merging two logs: by time, each item once, with units and responses intact."""

import asyncio
import dataclasses
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_window.decision.extracts import DigestPart, digest
from session import Compaction, FormatError, FunctionCall, FunctionCallOutput, Message, Reasoning, Session, Usage
from session.items import Item
from session.rewrite import index_log
from session.units import KIND_ORPHAN, grouping
from tests.support.derived import check_derived, ids, pairs, response_of
from tests.support.strategies import sessions


def log(*items: Item) -> Session:
    return Session(items)


def user(when: float, id_: str) -> Message:
    return Message("user", id_, id=id_, created_at=when)


def message_at(when: float, id_: str, **options: Any) -> Message:
    return Message("assistant", id_, id=id_, created_at=when, **options)


def call(when: float, id_: str, call_id: str = "1") -> FunctionCall:
    return FunctionCall("f", "{}", call_id, id=id_, created_at=when)


def output(when: float, id_: str, call_id: str = "1") -> FunctionCallOutput:
    return FunctionCallOutput("f", id_, call_id, id=id_, created_at=when)


def merge(mine: Session, theirs: Session) -> Session:
    merged = asyncio.run(mine.merge(theirs))
    assert merged is mine
    return merged


def run_sub_agent(parent: Session, child: Session, agent_id: str | None = None) -> Session:
    """Append the child's result to the parent."""
    result = asyncio.run(parent.merge_result(child, agent_id=agent_id))
    assert result is parent
    return result


def merged(mine: Session, theirs: Session) -> list[str]:
    return ids(merge(mine.copy(), theirs))


def test_items_are_merged_by_time_and_after_ours_at_equal_times() -> None:
    assert merged(log(user(1, "a"), user(2, "b"), user(4, "c")), log(user(0, "w"), user(2, "x"), user(3, "y"), user(9, "z"))) == [
        *("w", "a", "b", "x", "y", "c", "z")
    ]


def test_a_shared_item_appears_once_and_is_ours() -> None:
    ours = log(user(1, "a"), user(2, "b"))
    theirs = ours.fork()
    ours.pin("a")
    ours.append(user(3, "mine"))
    theirs.append(user(2.5, "theirs"))
    assert merged(ours, theirs) == ["a", "b", "theirs", "mine"]
    assert merge(ours, theirs).items[0].pinned


def test_a_merge_without_new_items_changes_nothing() -> None:
    session = log(user(1, "a"), user(2, "b"))
    before = session.lineage
    for other in (session, session.fork(), session.read_only(), Session()):
        assert merge(session, other).lineage is before


def test_a_merge_that_only_appends_keeps_the_lineage() -> None:
    session = log(user(1, "a"))
    before = session.lineage
    assert ids(merge(session, log(user(1, "b")))) == ["a", "b"]
    assert session.lineage is before
    assert merge(session, log(user(0, "c"))).lineage is not before


def test_a_summary_stays_at_the_place_of_the_items_it_covers() -> None:
    ours = log(
        Message("system", "new", id="system", created_at=90),
        message_at(99, "summary", extra={"summary": True}),
        user(5, "u"),
        message_at(6, "a"),
    )
    assert merged(ours, log(user(1, "x"), user(5.5, "y"))) == ["x", "system", "summary", "u", "y", "a"]
    assert merged(log(user(1, "x"), user(5.5, "y")), ours) == ["x", "system", "summary", "u", "y", "a"]
    compacted = log(Compaction("c", id="compaction", created_at=99), user(5, "u"))
    assert merged(log(user(6, "y")), compacted) == ["compaction", "u", "y"]


def test_nothing_is_merged_between_a_response_and_its_outputs() -> None:
    ours = log(user(0, "u"), Reasoning("r", id="r", created_at=1), call(2, "c"), call(3, "d", "2"), output(6, "o"), output(8, "p", "2"))
    for when in (1, 1.5, 2.5, 4, 7, 8):
        assert merged(ours, log(user(when, "x"))) == ["u", "r", "c", "d", "o", "p", "x"]
        assert merged(log(user(when, "x")), ours)[:-1] in (["u", "x", "r", "c", "d", "o"], ["u", "r", "c", "d", "o", "p"])


def test_responses_of_two_logs_stay_separate() -> None:
    session = merge(log(message_at(1, "a")), log(message_at(2, "b"), message_at(3, "c")))
    assert (ids(session), session.response_breaks) == (["a", "b", "c"], frozenset("b"))


def test_calls_with_the_same_id_keep_their_own_outputs() -> None:
    ours = log(call(1, "c"), user(4, "u"), output(6, "o"))
    theirs = log(call(2, "d"), user(3, "v"), output(5, "p"))
    session = merge(ours, theirs)
    assert pairs(session) == {"c": "o", "d": "p"}


def test_the_first_output_of_a_call_in_flight_is_merged_and_a_second_is_not() -> None:
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


def test_the_rest_of_a_shared_response_is_merged_into_it() -> None:
    ours = log(user(0, "u"), Reasoning("r", id="r", created_at=1))
    theirs = ours.fork()
    theirs.append(message_at(2, "a"))
    session = merge(ours, theirs)
    assert (ids(session), session.response_breaks) == (["u", "r", "a"], frozenset())


def reports(session: Session) -> dict[str, Usage | None]:
    return {item.id: item.usage for item in session.items if isinstance(item, Message) and item.role == "assistant"}


def test_usage_of_another_prompt_is_removed() -> None:
    """Otherwise it would report too few tokens for this log's prompt."""
    ours = log(user(0, "u"), message_at(1, "a", usage=Usage(9)), user(2, "v"), message_at(3, "b", usage=Usage(90)))
    theirs = ours.fork_brief("search", "find", "child")
    theirs.append(message_at(5e9, "found", usage=Usage(7)))
    merge(ours, theirs)
    assert reports(ours) == {"a": Usage(9), "b": Usage(90), "found": None}
    lineage = ours.lineage
    assert merge(ours, theirs).lineage is lineage


def test_usage_of_the_same_prompt_is_kept() -> None:
    ours = log(user(0, "u"), message_at(1, "a", usage=Usage(9)))
    theirs = ours.fork()
    theirs.append(user(2, "v"))
    theirs.append(message_at(3, "b", usage=Usage(90)))
    theirs.append(user(5, "w"))
    theirs.append(message_at(6, "c", usage=Usage(900)))
    for mine in (Session(), ours.copy()):
        assert reports(merge(mine, theirs)) == reports(theirs)
    ours.append(user(4, "mine"))  # from here on, the other log's prompts differ
    assert (ids(merge(ours, theirs)), reports(ours)) == (["u", "a", "v", "b", "mine", "w", "c"], reports(theirs) | {"c": None})


def test_usage_from_before_the_other_log_lost_items_is_removed() -> None:
    theirs = log(user(0, "u"), message_at(1, "a", usage=Usage(9)), user(2, "v"))
    theirs.truncate(max_items=2)
    theirs.append(message_at(3, "b", usage=Usage(5)))
    assert reports(merge(Session(), theirs)) == {"a": None, "b": Usage(5)}


@pytest.mark.parametrize("other", [None, [], {"items": []}], ids=range(3))
def test_a_value_that_is_not_a_session_is_refused(other: Any) -> None:
    session = log(user(1, "a"))
    with pytest.raises(FormatError, match=r"^merge\.other"):
        asyncio.run(session.merge(other))
    with pytest.raises(FormatError, match=r"^merge_result\.other"):
        asyncio.run(session.merge_result(other))
    assert ids(session) == ["a"]


def test_merging_long_logs_is_fast() -> None:
    ours, theirs = (Session(user(number + half, f"{number}{half}") for number in range(6_000)) for half in (0.0, 0.5))
    begun = time.process_time()
    merge(ours, theirs)
    assert time.process_time() - begun < 2
    assert [item.created_at for item in ours.items] == [number / 2 for number in range(12_000)]


def renamed(session: Session, prefix: str, later: float) -> Session:
    """Return the same log with other ids and times."""
    items = [dataclasses.replace(item, id=prefix + item.id, created_at=item.created_at + later) for item in session.items]
    copied = Session(items)
    copied.restore_seams(frozenset(prefix + item_id for item_id in session.response_breaks), 0)
    return copied


def in_order(session: Session, of: Session) -> bool:
    positions = [session.position(item.id) for item in of.items]
    known_positions = [position for position in positions if position is not None]
    return known_positions == sorted(known_positions)


@given(sessions(max_steps=14), sessions(max_steps=14), st.sampled_from([0.5, -3.5, 7.5, 100.5]))
def test_a_merge_keeps_order_pairs_and_responses(ours: Session, other: Session, later: float) -> None:
    theirs = renamed(other, "b", later)
    mine = ours.copy()
    merge(mine, theirs)
    assert sorted(ids(mine)) == sorted([*ids(ours), *ids(theirs)])
    assert in_order(mine, ours)
    assert in_order(mine, theirs)
    merged = response_of(mine)
    for origin in (ours, theirs):
        then, paired = response_of(origin), pairs(origin)
        for first in then:
            assert all((merged[first] == merged[second]) == (then[first] == then[second]) for second in then), "answers parted or merged"
        assert {call: answer for call, answer in pairs(mine).items() if call in paired} == paired
    again = merge(merge(mine.copy(), theirs), ours)
    assert (list(again.items), again.response_breaks) == (list(mine.items), mine.response_breaks)
    assert Session.from_dict(mine.to_dict()).to_dict() == mine.to_dict()


@given(sessions(max_steps=14), sessions(max_steps=14), st.sampled_from([0.5, -3.5, 7.5, 100.5]))
def test_merging_is_symmetric_if_no_times_are_equal(ours: Session, other: Session, later: float) -> None:
    theirs = renamed(other, "b", later)
    mine, yours = ours.copy(), theirs.copy()
    assert ids(merge(mine, theirs)) == ids(merge(yours, ours))
    assert mine.response_breaks == yours.response_breaks


@given(sessions(max_steps=14), st.lists(st.booleans(), max_size=60), st.data())
def test_two_forks_can_be_merged_back(origin: Session, sides: list[bool], data: st.DataObject) -> None:
    """Whatever the forks gained or lost since: no id occurs twice, no call loses its output, and a common order is kept."""
    at = data.draw(st.integers(0, len(origin.items)))
    head = Session.showing(origin, list(origin.items[:at]), breaks=origin.response_breaks, settled=0).copy()
    forks = head.fork(), head.fork()
    for fork, prefix in zip(forks, "ab", strict=True):
        for index, item in enumerate(origin.items[at:]):
            if index >= len(sides) or sides[index] == (prefix == "a"):
                fork.append(dataclasses.replace(item, id=prefix + item.id))
    ours, theirs = forks
    before, foreign = ours.copy(), theirs.to_dict()
    merge(ours, theirs)
    assert theirs.to_dict() == foreign
    assert in_order(ours, before)
    assert in_order(ours, theirs)
    our_ids = set(ids(ours))
    left_out = [item for item in theirs.items if item.id not in our_ids]
    assert all(isinstance(item, FunctionCallOutput) for item in left_out)
    assert {call: answer for call, answer in pairs(ours).items() if call in pairs(before)} == pairs(before)
    lineage = ours.lineage
    assert merge(ours, theirs).lineage is lineage


# Results


def test_merge_result_appends_the_last_assistant_message_once() -> None:
    parent = log(user(1, "u"))
    child = parent.fork_brief("be brief", "go", "child")
    child.append(message_at(2, "first"))
    child.append(message_at(3, "result", usage=Usage(5), agent_id="child"))
    child.append(message_at(4, " "))
    child.append(message_at(5, "summary", extra={"summary": True}))
    child.append(user(6, "thanks"))
    run_sub_agent(parent, child)
    run_sub_agent(parent, child)
    run_sub_agent(parent, child, "other")
    assert ids(parent) == ["u", "result"]
    result = parent.items[-1]
    assert isinstance(result, Message)
    assert (result.role, result.text, result.agent_id, result.usage) == ("assistant", "result", "child", None)


def test_a_result_can_be_assigned_to_an_agent_and_is_a_separate_response() -> None:
    parent = log(message_at(1, "mine", agent_id="a"))
    run_sub_agent(parent, log(message_at(2, "result")), "a")
    assert (ids(parent), parent.items[1].agent_id, parent.response_breaks) == (["mine", "result"], "a", frozenset({"result"}))
    run_sub_agent(parent, log(message_at(2, "other")))
    assert parent.response_breaks == {"result"}
    assert run_sub_agent(Session(), log(message_at(2, "other"))).response_breaks == frozenset()


def test_a_fork_without_new_messages_adds_no_result() -> None:
    parent = log(message_at(1, "mine"))
    assert ids(run_sub_agent(parent, parent.fork())) == ["mine"]


def test_a_merge_without_a_result_warns_and_changes_nothing() -> None:
    parent = log(user(1, "u"))
    for child in (Session(), log(user(1, "x")), log(message_at(1, "s", extra={"summary": True})), log(Message("assistant", ""))):
        with pytest.warns(UserWarning, match=r"^merge_result: the other session has no assistant message with content; the session"):
            assert run_sub_agent(parent, child) is parent
    assert ids(parent) == ["u"]


def test_a_result_interrupts_no_call_in_flight() -> None:
    parent = log(user(0, "u"), Reasoning("r", "sig", id="r", created_at=1), call(2, "c"))
    child = parent.fork_brief("search", "find")
    child.append(message_at(3, "result"))
    lineage = parent.lineage
    run_sub_agent(run_sub_agent(parent, child), child)
    assert parent.lineage is lineage
    assert (ids(parent), parent.response_breaks) == (["u", "r", "c", "result"], frozenset())
    assert calls_in_flight(parent) == ["c"]
    parent.add_function_output("f", "done", "1")
    messages, _ = parent.to_anthropic_messages()
    block_types = [block["type"] for message in messages for block in message["content"]]
    assert block_types == ["text", "thinking", "tool_use", "text", "tool_result"]
    run_sub_agent(parent, log(message_at(9, "next")))
    assert ids(parent)[-1] == "next"


def test_a_result_goes_before_the_outputs_of_a_waiting_response() -> None:
    parent = log(user(0, "u"), call(1, "c"), call(2, "d", "2"), output(3, "o"), user(4, "steer"))
    run_sub_agent(parent, log(message_at(5, "result")))
    assert (ids(parent), calls_in_flight(parent)) == (["u", "c", "d", "result", "o", "steer"], ["d"])
    assert pairs(parent) == {"c": "o"}


def test_a_result_of_another_agent_is_a_response_of_its_own() -> None:
    parent = log(user(0, "u"), call(1, "c"))
    assert ids(run_sub_agent(parent, log(message_at(2, "result")), "child")) == ["u", "c", "result"]
    assert response_of(parent) == {"c": "c", "result": "result"}


def calls_in_flight(session: Session) -> list[str]:
    return [session.items[position].id for position in index_log(session).in_flight()]


@given(sessions(max_steps=8), sessions(max_steps=8))
def test_merge_result_changes_nothing_else(ours: Session, other: Session) -> None:
    """It goes to the end of the log, or of the response whose calls are in flight, and these stay in flight."""
    theirs = renamed(other, "b", 0.5)
    theirs.append(message_at(99, "result"))
    before = ours.copy()
    calls = [position for position in index_log(ours).in_flight() if ours.items[position].agent_id is None]
    run_sub_agent(run_sub_agent(ours, theirs), theirs)
    check_derived(ours, before)
    assert [item for item in ours.items if item.id != "result"] == list(before.items)
    if calls:
        assert calls_in_flight(ours) == calls_in_flight(before)
        assert response_of(ours)["result"] == response_of(ours)[before.items[calls[0]].id]
    else:
        assert (ids(ours)[-1], response_of(ours)["result"]) == ("result", "result")


def test_a_call_that_a_digest_shows_lines_of_comes_with_its_output() -> None:
    """A view that gets its log back: the digest has the id of the call, but it is no call."""
    read = FunctionCall("read", '{"path": "a.py"}', "c", id="f")
    whole = log(Message("user", "Read it.", id="m"), read, FunctionCallOutput("read", "x", "c"))
    view = log(whole.items[0], digest([DigestPart(read, (0,))]))
    asyncio.run(view.merge(whole))
    assert KIND_ORPHAN not in grouping(view).kind
    assert [item.type for item in view.items] == ["message", "message", "function_call", "function_call_output"]
    into = Session(whole.items)
    asyncio.run(into.merge(log(whole.items[0], digest([DigestPart(read, (0,))]))))
    assert list(into.items) == list(whole.items)
