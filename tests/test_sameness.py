"""Logs whose ids were made of places come together: what only shares an id is another item, and nothing said is lost."""

import asyncio
import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_window import ContextWindow, ContextWindowManager
from context_window.trimming import originals, placeholders
from session import AgentConfigUpdate, Compaction, Document, FunctionCall, FunctionCallOutput, Image, Message, Session, Text, Usage
from session.items import Item
from session.sameness import ORIGINAL_ID, VIEW_CHANGES, VIEW_MARK, VIEW_NOTE, is_same
from tests.support.counting import Letters
from tests.support.derived import check_derived, ids, pairs
from tests.support.strategies import sessions


def merge(mine: Session, theirs: Session) -> Session:
    return asyncio.run(mine.merge(theirs))


def texts(session: Session) -> list[str]:
    return [message.text for message in session.messages()]


def told(*texts: str) -> list[dict[str, Any]]:
    return [{"role": "assistant" if place % 2 else "user", "content": text} for place, text in enumerate(texts)]


READERS = [Session.from_anthropic, Session.from_openai, Session.from_openai_responses]


@pytest.mark.parametrize("read", READERS)
def test_two_conversations_read_from_a_provider_are_both_whole_once_merged(read: Any) -> None:
    ours, theirs = read(told("Mine?", "Yes.", "Sure?")), read(told("Theirs?", "No.", "Why?"))
    assert ids(ours) == ids(theirs)
    merge(ours, theirs)
    assert sorted(texts(ours)) == sorted(["Mine?", "Yes.", "Sure?", "Theirs?", "No.", "Why?"])
    lineage = ours.lineage
    assert merge(ours, theirs).lineage is lineage, "a second merge brought something new"
    merge(theirs, ours)
    assert sorted(texts(theirs)) == sorted(texts(ours))
    assert merge(ours, theirs).lineage is lineage
    assert len(merge(read(told("Mine?", "Yes.", "Sure?")), ours).items) == 6, "an item that comes home has its own id again"


def test_two_contents_of_gemini_are_both_whole_once_merged() -> None:
    ours, theirs = (Session.from_google([{"role": "user", "parts": [{"text": text}]}]) for text in ("Mine?", "Theirs?"))
    assert texts(merge(ours, theirs)) == ["Mine?", "Theirs?"]


def test_what_two_forks_of_one_conversation_share_comes_once_and_what_each_went_on_with_stays() -> None:
    ours, theirs = (Session.from_anthropic(told("Hi.", "Hello.", last)) for last in ("Mine.", "Theirs."))
    assert texts(merge(ours, theirs)) == ["Hi.", "Hello.", "Mine.", "Theirs."]


def test_calls_that_share_their_ids_keep_their_own_outputs() -> None:
    def log(tool: str) -> Session:
        asked = {"type": "tool_use", "id": "call_1", "name": tool, "input": {}}
        answer = {"type": "tool_result", "tool_use_id": "call_1", "content": f"from {tool}"}
        return Session.from_anthropic([{"role": "assistant", "content": [asked]}, {"role": "user", "content": [answer]}])

    ours = merge(log("read"), log("write"))
    found = {call.name: ours.get_by_id(pairs(ours)[call.id]) for call in ours.items if isinstance(call, FunctionCall)}
    assert {name: output.text for name, output in found.items() if isinstance(output, FunctionCallOutput)} == {
        "read": "from read",
        "write": "from write",
    }


def test_a_result_whose_id_is_taken_is_not_lost() -> None:
    parent, child = Session.from_openai(told("Mine?", "Yes.")), Session.from_openai(told("Theirs?", "No."))
    for _ in range(2):
        asyncio.run(parent.merge_result(child, agent_id="child"))
    assert texts(parent) == ["Mine?", "Yes.", "No."]
    assert (parent.items[-1].agent_id, parent.items[-1].extra) == ("child", {ORIGINAL_ID: "m1"})
    assert parent.response_breaks == frozenset()
    asyncio.run(parent.merge(child))
    assert sorted(texts(parent)) == ["Mine?", "No.", "Theirs?", "Yes."]


def test_a_compaction_names_what_it_replaces_by_the_ids_that_has_here() -> None:
    ours = Session([Message("user", "Mine.", id="m0", created_at=0)])
    theirs = Session([Message("user", "Theirs.", id="m0", created_at=0), Compaction("So far.", ["m0"], id="m1", created_at=1)])
    merge(ours, theirs)
    compaction = ours.items[-1]
    assert isinstance(compaction, Compaction)
    assert compaction.replaces == (ours.items[1].id,) != ("m0",)
    assert merge(ours, theirs).lineage is ours.lineage
    assert len(ours.items) == 3


def test_a_seam_between_two_answers_survives_another_id() -> None:
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
    ("one", "other", "same"),
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
def test_an_item_is_the_same_if_it_says_the_same(one: Item, other: Item, *, same: bool) -> None:
    assert is_same(one, other) is same
    assert is_same(other, one) is same


def test_the_mark_of_views_is_the_one_that_views_have() -> None:
    assert VIEW_MARK == placeholders.MARK
    assert VIEW_NOTE == originals.WAS
    assert VIEW_CHANGES == placeholders.TAKEN


@given(sessions(max_steps=20), st.integers(1, 800))
def test_a_view_and_its_log_merge_to_what_either_holds(log: Session, tokens: int) -> None:
    """Whatever a trim cleared, cut or replaced, it is known again by the log, and the log by it."""
    view = ContextWindowManager(token_counter=Letters(), context_window=ContextWindow(max_tokens=tokens)).process_session(log)
    whole, shown = log.copy(), view.copy()
    lineage = whole.lineage
    assert merge(whole, view).lineage is lineage
    merge(shown, log)
    assert set(ids(shown)) <= set(ids(log))


@given(sessions(max_steps=14), sessions(max_steps=14))
def test_logs_that_use_the_same_ids_for_different_items_lose_nothing(ours: Session, theirs: Session) -> None:
    """Every item of either is there, under its id or another, but for second answers to one call; twice is once."""
    origins = ours.copy(), theirs.to_dict()
    merge(ours, theirs)
    assert theirs.to_dict() == origins[1]
    check_derived(ours, origins[0])
    assert len(set(ids(ours))) == len(ours.items)
    assert [item for item in ours.items if item.id in ids(origins[0])] == list(origins[0].items)
    for item in theirs.items:
        homes = [one for one in ours.items if item.id in (one.id, one.extra.get(ORIGINAL_ID))]
        assert any(is_same(one, item) for one in homes) or isinstance(item, FunctionCallOutput)
    lineage, breaks = ours.lineage, ours.response_breaks
    merge(ours, theirs)
    assert (ours.lineage, ours.response_breaks) == (lineage, breaks)
