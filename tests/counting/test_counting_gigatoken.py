"""`GigatokenCounter` counts what `TiktokenCounter` counts. What all counters keep is in contracts/."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from benchmarks.sessions import conversation
from context_window import ArgumentError, ContextWindow, ContextWindowManager, GigatokenCounter, TiktokenCounter
from context_window.counting import gigatoken_counter
from context_window.counting.images import claude_high_tokens
from session import Session

has_gigatoken = pytest.mark.skipif(not gigatoken_counter.has_gigatoken(), reason="gigatoken is not installed (the extra `fast`)")

LETTERS = "aAbB1' \n\r\t\x01-=\"\u0301é日Ⱦ\u200d👩\ufe0f\u0730。\u00a0\u3000<|>\u1adb\u1c89\U0001e6d4\U00018d8a\ud800"
"""What tokenizers treat specially, and characters that only newer versions of Unicode know."""


@has_gigatoken
@given(st.text() | st.text(alphabet=LETTERS))
@example("<|endoftext|>")
@example(" " * 300_000)
def test_its_counts_are_those_of_tiktoken(text: str) -> None:
    assert GigatokenCounter().count_text(text) == TiktokenCounter().count_text(text)


@has_gigatoken
def test_threads_count_the_same() -> None:
    texts = [message["content"] for message in conversation(200, seed=17)]
    counter = GigatokenCounter()
    with ThreadPoolExecutor(4) as threads:
        counts = [list(threads.map(counter.count_text, texts)) for _ in range(4)]
    assert counts == [list(map(TiktokenCounter().count_text, texts))] * 4


@has_gigatoken
@pytest.mark.parametrize("model", ["gpt-5", "claude-sonnet-5-5"])
def test_a_models_view_is_the_same(model: str) -> None:
    session = Session.from_openai(conversation(100, seed=17))
    window = ContextWindow(max_tokens=15_000)
    reference = ContextWindowManager(model, context_window=window)
    if type(reference.total_budget) is int and "ctok" in reference.format_token_usage(session):
        pytest.skip("ctok counts for this model")
    manager = ContextWindowManager(model, GigatokenCounter.for_model(model), context_window=window)
    assert manager.process_session(session).items == reference.process_session(session).items
    assert manager.get_token_usage(session) == reference.get_token_usage(session)


@has_gigatoken
def test_counters_with_the_same_values_are_equal_and_no_tiktoken_counters() -> None:
    counter = GigatokenCounter(claude_high_tokens, Fraction("1.46"))
    assert counter == GigatokenCounter(claude_high_tokens, Fraction("1.46")) == pickle.loads(pickle.dumps(counter))
    assert len({counter, GigatokenCounter(), TiktokenCounter(), TiktokenCounter(claude_high_tokens, Fraction("1.46"))}) == 4


@has_gigatoken
def test_a_model_with_another_vocabulary_is_refused() -> None:
    with pytest.raises(ArgumentError, match="leave out the counter"):
        GigatokenCounter.for_model("gemini-2.5-pro")


def test_without_the_package_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gigatoken_counter, "has_gigatoken", lambda: False)
    with pytest.raises(ArgumentError, match="pip install"):
        GigatokenCounter()
