"""`ConversationTracker`: conversations are found by their messages alone, in any process and from any thread."""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_window import ArgumentError, ContextWindowManager, RecallError
from context_window.integrations.conversation_tracker import ConversationTracker
from context_window.integrations.remembered import RememberedConversations
from context_window.integrations.tracked_conversation import TrackedConversation
from session import Session
from session.providers.additions import USAGE_NOTE
from tests.support.agents import manager
from tests.support.counting import Letters
from tests.support.lines import Line, LineAdapter, conversations, talk
from tests.support.managing import make_manager as bending


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 9)), max_size=5), st.integers(1, 3))
def test_the_result_depends_only_on_the_messages(earlier_calls: list[tuple[str, int]], remembered: int) -> None:
    """Earlier calls make no difference, in any number and order."""
    warm = conversations(bending(700), remembered=remembered)
    for name, turns in earlier_calls:
        messages = talk(name, turns)
        assert warm.fit(messages) == conversations(bending(700)).fit(messages)


@given(st.integers(1, 12))
def test_a_trimmed_list_continues_its_conversation(turns: int) -> None:
    adapter = conversations(bending(700))
    messages: list[Line] = []
    recall_ids: list[str] = []
    for line in talk("a", turns):
        messages = adapter.fit([*messages, line])
        assert messages[-1] is line or line.who != "user"
        recall_ids += [message.text.partition("recall id ")[2].rstrip("]") for message in messages if "taken out" in message.text]
    assert all(adapter.recall(id).startswith("found ") for id in recall_ids)


def test_only_new_messages_are_counted() -> None:
    counter = Letters()
    adapter = conversations(ContextWindowManager(token_counter=counter))
    messages = talk("a", 30)
    adapter.fit(messages)
    before = counter.asked
    adapter.fit([*messages, Line("model", "Well."), Line("user", "So?")])
    assert counter.asked - before <= 4


def test_the_oldest_conversations_are_forgotten_first() -> None:
    adapter = conversations(manager(1_000), remembered=2)
    ids = {}
    for name in "abc":
        messages = adapter.fit(talk(name, 10))
        ids[name] = next(line.text for line in messages if "taken out" in line.text).partition("recall id ")[2].rstrip("]")
    assert adapter.recall(ids["c"]).startswith("found c")
    assert adapter.recall(ids["b"]).startswith("found b")
    with pytest.raises(RecallError, match="no conversation that is remembered has it"):
        adapter.recall(ids["a"])
    assert len(adapter._remembered._last_use) == 2


def test_another_system_prompt_is_another_conversation_and_is_counted() -> None:
    adapter, messages = conversations(), talk("a", 6)
    assert len("".join(line.text for line in adapter.fit(messages, system="s" * 500))) + 500 <= 1_000
    assert adapter.fit(messages, system="") == conversations().fit(messages)


def test_threads_with_the_same_conversation_get_the_same_result() -> None:
    adapter, message_lists = conversations(), [talk("a", turns) for turns in range(12)] * 3
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(adapter.fit, message_lists))
    assert results == [conversations().fit(messages) for messages in message_lists]


def test_no_messages_give_no_messages() -> None:
    assert conversations().fit([]) == []


@pytest.mark.parametrize("remembered", [0, "many", None])
def test_an_invalid_number_to_remember_is_an_error(remembered: object) -> None:
    with pytest.raises(ArgumentError, match="remembered"):
        ConversationTracker(manager(), LineAdapter(), remembered=remembered)  # type: ignore[arg-type]


def test_a_tracker_needs_a_manager() -> None:
    with pytest.raises(ArgumentError, match="pass a ContextWindowManager"):
        ConversationTracker("claude", LineAdapter())  # type: ignore[arg-type]


def test_no_framework_is_imported_before_its_adapter_is() -> None:
    code = "import sys, context_window, context_window.integrations as _; print(*sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60).stdout.split()
    assert {"agents", "anthropic", "langchain", "langchain_core", "langgraph", "openai", "pydantic_ai"} & set(loaded) == set()


# The line about usage


def test_the_line_about_usage_stays_in_its_place_until_a_trim() -> None:
    """It is the same message in every request, before the same answer, and a stored list with it continues the conversation"""
    tracker = conversations(manager(4_000, note_usage_at=0.5))
    messages, told = talk("a", 1), 0
    before: list[Line] = []
    for turn in range(60):
        fitted = tracker.fit(messages)
        lines = [index for index, line in enumerate(fitted) if line.text == USAGE_NOTE]
        assert len(lines) <= 1
        told += bool(lines)
        if fitted[0] is messages[0]:
            assert fitted[: len(before)] == before
        if lines and USAGE_NOTE not in str(before):
            assert lines == [len(fitted) - 1]
        before = fitted
        messages = [*messages, Line("model", f"Yes, {turn}. " + "y" * 60), Line("user", f"And {turn}? " + "x" * 60)]
    assert 5 < told < 60
    assert tracker.fit([*before, *messages[-2:]])[: len(before)] == before


def test_a_conversation_that_was_forgotten_leaves_memory() -> None:
    """Nothing that the manager keeps holds a conversation that the tracker has forgotten, even if a part of it was shown last."""
    adapter = conversations(bending(700), remembered=1)
    messages = talk("a", 12)
    assert len(adapter.fit(messages)) < len(messages)
    (tracked,) = adapter._remembered._last_use
    session = weakref.ref(tracked.session)
    del tracked
    adapter.fit(talk("b", 1))
    gc.collect()
    assert session() is None


def test_only_idle_conversations_are_forgotten() -> None:
    now = 100.0
    remembered = RememberedConversations[Line](64, clock=lambda: now)
    old, new = (TrackedConversation[Line](Session(), b"s", keys={(b"s", key)}) for key in (b"1", b"2"))
    remembered.put(old)
    now = 110.0
    remembered.put(new)
    remembered.forget_idle(10.0)
    assert remembered.latest == [new]
    assert remembered.take([b"", b"1"], b"s") == (0, None)
    assert remembered.take([b"", b"2"], b"s") == (1, new)
