"""How adapters find a conversation again: by its messages alone, however many there are, in any process and from any thread."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_window import BudgetError, ContextWindowManager, RecallError
from context_window.integrations.conversations import Conversations
from tests.support.agents import manager
from tests.support.counting import Letters
from tests.support.lines import Line, Lines, conversations, talk
from tests.support.managing import manager as bending


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 9)), max_size=5), st.integers(1, 3))
def test_what_is_sent_depends_on_the_messages_alone(asked: list[tuple[str, int]], remembered: int) -> None:
    """However often, in whatever order and of whichever conversations was asked before."""
    warm = conversations(bending(700), remembered=remembered)
    for name, turns in asked:
        messages = talk(name, turns)
        assert warm.fit(messages) == conversations(bending(700)).fit(messages)


@given(st.integers(1, 12), st.booleans())
def test_it_goes_on_from_its_own_list_too_and_knows_what_it_took(turns: int, whole: bool) -> None:
    adapter = conversations(bending(700))
    kept: list[Line] = []
    taken: list[str] = []
    for line in talk("a", turns):
        kept = adapter.fit([*kept, line])
        assert kept[-1] is line or line.who != "user"
        taken += [one.text.partition("recall id ")[2].rstrip("]") for one in kept if "taken out" in one.text]
    assert all(adapter.recall(id).startswith("found ") for id in taken)


def test_only_what_is_new_is_counted() -> None:
    counter = Letters()
    adapter = conversations(ContextWindowManager(token_counter=counter))
    messages = talk("a", 30)
    adapter.fit(messages)
    before = counter.asked
    adapter.fit([*messages, Line("model", "Well."), Line("user", "So?")])
    assert counter.asked - before <= 4


def test_conversations_beyond_those_remembered_are_forgotten_the_oldest_first() -> None:
    adapter = conversations(manager(1_000), remembered=2)
    ids = {}
    for name in "abc":
        kept = adapter.fit(talk(name, 10))
        ids[name] = next(line.text for line in kept if "taken out" in line.text).partition("recall id ")[2].rstrip("]")
    assert adapter.recall(ids["c"]).startswith("found c")
    assert adapter.recall(ids["b"]).startswith("found b")
    with pytest.raises(RecallError, match="no conversation that is remembered has it"):
        adapter.recall(ids["a"])
    assert len(adapter._order) == 2
    assert set(adapter._known.values()) == set(adapter._order)


def test_another_system_prompt_is_another_conversation_and_costs_what_it_costs() -> None:
    adapter, messages = conversations(), talk("a", 6)
    assert len("".join(line.text for line in adapter.fit(messages, system="s" * 500))) + 500 <= 1_000
    assert adapter.fit(messages, system="") == conversations().fit(messages)


def test_threads_that_ask_of_the_same_conversation_get_the_same() -> None:
    adapter, asked = conversations(), [talk("a", turns) for turns in range(12)] * 3
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(adapter.fit, asked))
    assert found == [conversations().fit(messages) for messages in asked]


def test_no_messages_are_no_messages() -> None:
    assert conversations().fit([]) == []


@pytest.mark.parametrize("remembered", [0, "many", None])
def test_what_cannot_be_remembered_is_said(remembered: object) -> None:
    with pytest.raises(BudgetError, match="remembered"):
        Conversations(manager(), Lines(), remembered=remembered)  # type: ignore[arg-type]


def test_a_manager_is_asked_for() -> None:
    with pytest.raises(BudgetError, match="pass a ContextWindowManager"):
        Conversations("claude", Lines())  # type: ignore[arg-type]


def test_no_framework_is_imported_before_its_adapter_is() -> None:
    code = "import sys, context_window, context_window.integrations as _; print(*sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60).stdout.split()
    assert {"agents", "anthropic", "langchain", "langchain_core", "langgraph", "openai", "pydantic_ai"} & set(loaded) == set()
