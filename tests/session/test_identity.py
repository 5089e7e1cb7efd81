"""Merging logs with numbered ids: items that only share an id are different items, and none is lost."""

import asyncio
import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_window import ContextWindow, ContextWindowManager
from context_window.decision import placeholders
from session import AgentConfigUpdate, Compaction, Document, FunctionCall, FunctionCallOutput, Image, Message, Session, Text, Usage
from session.identity import ORIGINAL_ID, VIEW_CHANGES, VIEW_MARK, VIEW_RECORD, is_same
from session.items import Item
from tests.support.counting import Letters
from tests.support.derived import check_derived, ids, pairs
from tests.support.strategies import sessions


def merge(mine: Session, theirs: Session) -> Session:
    return asyncio.run(mine.merge(theirs))


def texts(session: Session) -> list[str]:
    return [message.text for message in session.messages()]


def messages_of(*texts: str) -> list[dict[str, Any]]:
    return [{"role": "assistant" if index % 2 else "user", "content": text} for index, text in enumerate(texts)]


READERS = [Session.from_anthropic, Session.from_openai, Session.from_openai_responses]


@pytest.mark.parametrize("converter", READERS)
def test_merging_two_conversations_read_from_a_provider_loses_nothing(converter: Any) -> None:
    ours, theirs = converter(messages_of("Mine?", "Yes.", "Sure?")), converter(messages_of("Theirs?", "No.", "Why?"))
    assert ids(ours) == ids(theirs)
    merge(ours, theirs)
    assert sorted(texts(ours)) == sorted(["Mine?", "Yes.", "Sure?", "Theirs?", "No.", "Why?"])
    lineage = ours.lineage
    assert merge(ours, theirs).lineage is lineage, "a second merge brought something new"
    merge(theirs, ours)
    assert sorted(texts(theirs)) == sorted(texts(ours))
    assert merge(ours, theirs).lineage is lineage
    assert len(merge(converter(messages_of("Mine?", "Yes.", "Sure?")), ours).items) == 6, "an item that comes home has its own id again"


def test_merging_two_conversations_read_from_gemini_loses_nothing() -> None:
    ours, theirs = (Session.from_google([{"role": "user", "parts": [{"text": text}]}]) for text in ("Mine?", "Theirs?"))
    assert texts(merge(ours, theirs)) == ["Mine?", "Theirs?"]


def test_merged_forks_share_their_common_items_and_keep_their_own() -> None:
    ours, theirs = (Session.from_anthropic(messages_of("Hi.", "Hello.", last)) for last in ("Mine.", "Theirs."))
    assert texts(merge(ours, theirs)) == ["Hi.", "Hello.", "Mine.", "Theirs."]


def test_calls_that_share_their_ids_keep_their_own_outputs() -> None:
    def log(tool: str) -> Session:
        tool_use = {"type": "tool_use", "id": "call_1", "name": tool, "input": {}}
        answer = {"type": "tool_result", "tool_use_id": "call_1", "content": f"from {tool}"}
        return Session.from_anthropic([{"role": "assistant", "content": [tool_use]}, {"role": "user", "content": [answer]}])

    ours = merge(log("read"), log("write"))
    outputs = {call.name: ours.get_by_id(pairs(ours)[call.id]) for call in ours.items if isinstance(call, FunctionCall)}
    assert {name: output.text for name, output in outputs.items() if isinstance(output, FunctionCallOutput)} == {
        "read": "from read",
        "write": "from write",
    }


def test_a_result_whose_id_is_in_use_gets_another_id() -> None:
    parent, child = Session.from_openai(messages_of("Mine?", "Yes.")), Session.from_openai(messages_of("Theirs?", "No."))
    for _ in range(2):
        asyncio.run(parent.merge_result(child, agent_id="child"))
    assert texts(parent) == ["Mine?", "Yes.", "No."]
    assert (parent.items[-1].agent_id, parent.items[-1].extra) == ("child", {ORIGINAL_ID: "m1"})
    assert parent.response_breaks == frozenset()
    asyncio.run(parent.merge(child))
    assert sorted(texts(parent)) == ["Mine?", "No.", "Theirs?", "Yes."]


def test_a_merged_compaction_refers_to_the_new_ids() -> None:
    ours = Session([Message("user", "Mine.", id="m0", created_at=0)])
    theirs = Session([Message("user", "Theirs.", id="m0", created_at=0), Compaction("So far.", ["m0"], id="m1", created_at=1)])
    merge(ours, theirs)
    compaction = ours.items[-1]
    assert isinstance(compaction, Compaction)
    assert compaction.replaces == (ours.items[1].id,) != ("m0",)
    assert merge(ours, theirs).lineage is ours.lineage
    assert len(ours.items) == 3


def test_a_response_break_survives_a_new_id() -> None:
    ours = Session([Message("user", "Mine.", id="a", created_at=0), Message("assistant", "x", id="b", created_at=9)])
    theirs = Session([Message("assistant", "One.", id="a", created_at=1), Message("assistant", "Two.", id="b", created_at=2)])
    theirs.restore_seams(frozenset("b"), 0)
    merge(ours, theirs)
    assert texts(ours) == ["Mine.", "One.", "Two.", "x"]
    assert ours.response_breaks == {ours.items[2].id, "b"}


BASE = Message("user", "Hi.", id="m0", created_at=1)
PLACEHOLDER = "[f output taken out: 1 characters; recall id o]"
PICTURE = Image(url="https://example.org/a.png", width=10, height=10)


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        (BASE, dataclasses.replace(BASE, pinned=True, usage=Usage(1), agent_id="a", created_at=2), True),
        (BASE, dataclasses.replace(BASE, content=(Text("Ho."),)), False),
        (BASE, dataclasses.replace(BASE, role="assistant"), False),
        (BASE, dataclasses.replace(BASE, extra={"source": "a"}), False),
        (BASE, dataclasses.replace(BASE, extra={ORIGINAL_ID: "x"}), True),
        (BASE, Compaction("Hi.", id="m0"), False),
        (
            Message("user", ["Hi.", PICTURE], id="i"),
            Message("user", ["Hi.", "[image taken out; recall id i#1]"], id="i", extra={VIEW_MARK: "images replaced"}),
            True,
        ),
        (
            Message("user", ["Hi.", PICTURE], id="i"),
            Message("user", ["Ho.", "[image]"], id="i", extra={VIEW_MARK: "images replaced"}),
            False,
        ),
        (Message("user", ["Hi.", PICTURE], id="i"), Message("user", ["Hi.", "[image]"], id="i"), False),
        (FunctionCallOutput("f", "x", "c", id="o"), FunctionCallOutput("f", PLACEHOLDER, "c", id="o", extra={VIEW_MARK: "cleared"}), True),
        (FunctionCallOutput("f", "x", "c", id="o"), FunctionCallOutput("f", "forged", "c", id="o", extra={VIEW_MARK: "cleared"}), False),
        (FunctionCallOutput("f", "x", "c", id="o"), FunctionCallOutput("f", PLACEHOLDER, "c", id="o", extra={VIEW_MARK: "mine"}), False),
        (BASE, dataclasses.replace(BASE, extra={VIEW_MARK: "the caller's own"}), False),
        (FunctionCallOutput("f", "x", "c", id="o"), FunctionCallOutput("f", "[]", "d", id="o", extra={VIEW_MARK: "cleared"}), False),
        (FunctionCallOutput("f", "x", "c", id="o"), FunctionCallOutput("f", "[]", "c", id="o"), False),
        (
            Message("user", ["x", Document(text="plan")], id="o"),
            Message("user", ["x", PLACEHOLDER], id="o", extra={VIEW_MARK: "parts refused"}),
            True,
        ),
        (
            Message("user", ["x", Document(text="plan")], id="o"),
            Message("user", ["y", PLACEHOLDER], id="o", extra={VIEW_MARK: "parts refused"}),
            False,
        ),
        (FunctionCall("f", "{}", "c", id="o"), FunctionCall("f", "{ }", "c", id="o"), False),
        (Compaction("x", ["a"], id="c"), Compaction("x", ["b"], id="c"), True),
        (
            AgentConfigUpdate(None, ["a"], id="u", created_at=1),
            AgentConfigUpdate("Be brief.", ["a"], id="u", created_at=1),
            True,
        ),
        (AgentConfigUpdate("Be long.", id="u", created_at=1), AgentConfigUpdate("Be brief.", id="u", created_at=1), False),
        (AgentConfigUpdate(None, ["a"], id="u", created_at=1), AgentConfigUpdate("Be brief.", id="u", created_at=2), False),
    ],
)
def test_items_with_equal_content_are_the_same(first: Item, second: Item, *, same: bool) -> None:
    assert is_same(first, second) is same
    assert is_same(second, first) is same


def test_the_view_mark_matches_that_of_real_views() -> None:
    assert VIEW_MARK == placeholders.MARK
    assert VIEW_RECORD == placeholders.WAS
    assert VIEW_CHANGES == placeholders.TAKEN


@given(sessions(max_steps=20), st.integers(1, 800))
def test_a_view_and_its_log_merge_without_duplicates(log: Session, tokens: int) -> None:
    """An item that a trim cleared, truncated or replaced is recognized in both directions."""
    view = ContextWindowManager(token_counter=Letters(), context_window=ContextWindow(max_tokens=tokens)).process_session(log)
    merged_log, merged_view = log.copy(), view.copy()
    lineage = merged_log.lineage
    assert merge(merged_log, view).lineage is lineage
    merge(merged_view, log)
    assert set(ids(merged_view)) <= set(ids(log))


@given(sessions(max_steps=14), sessions(max_steps=14))
def test_merging_logs_with_clashing_ids_loses_nothing(ours: Session, theirs: Session) -> None:
    """Every item of both logs is there under its own or a new id, except second outputs of a call. Merging twice changes nothing."""
    origins = ours.copy(), theirs.to_dict()
    merge(ours, theirs)
    assert theirs.to_dict() == origins[1]
    check_derived(ours, origins[0])
    assert len(set(ids(ours))) == len(ours.items)
    assert [item for item in ours.items if item.id in ids(origins[0])] == list(origins[0].items)
    for item in theirs.items:
        homes = [candidate for candidate in ours.items if item.id in (candidate.id, candidate.extra.get(ORIGINAL_ID))]
        assert any(is_same(candidate, item) for candidate in homes) or isinstance(item, FunctionCallOutput)
    lineage, breaks = ours.lineage, ours.response_breaks
    merge(ours, theirs)
    assert (ours.lineage, ours.response_breaks) == (lineage, breaks)
