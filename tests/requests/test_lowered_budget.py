"""Budgets lowered by a refusal: by how much, and for which views."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import event, example, given
from hypothesis import strategies as st

from context_window import ArgumentError, ContextWindowManager, ModelError, PromptTooLongError, Session
from context_window.requests.anthropic_request import lower_budget
from tests.support.looping import manager

COUNTS = st.integers(1, 10**7)


def log_of_turns(turns: int = 20) -> Session:
    """Return a log of short turns, followed by a question."""
    log = Session()
    for number in range(turns):
        log.add_message("user", f"{number:03}" * 13)
        log.add_message("assistant", f"{number:03}" * 13)
    log.add_message("user", "z")
    return log


def refusal(tokens: int | None = None, limit: int | None = None) -> PromptTooLongError:
    return PromptTooLongError("prompt is too long", 400, tokens=tokens, limit=limit)


# Amounts


@given(sent_tokens=COUNTS, tokens=COUNTS, limit=COUNTS)
@example(sent_tokens=120_000, tokens=256_000, limit=128_000)
@example(sent_tokens=1_000, tokens=10**7, limit=1)
def test_the_lowered_budget_is_between_half_and_all_of_the_refusals_figures(sent_tokens: int, tokens: int, limit: int) -> None:
    lower = lower_budget(sent_tokens, tokens, limit)
    assert lower >= 1
    assert lower < sent_tokens or sent_tokens == 1
    if limit < tokens:
        event("figures")
        in_proportion = sent_tokens * limit // tokens
        assert in_proportion // 2 <= lower <= max(1, in_proportion)
    else:
        assert lower == lower_budget(sent_tokens, None, None)


@given(sent_tokens=COUNTS)
def test_without_figures_it_is_a_little_less_than_half(sent_tokens: int) -> None:
    for figures in ((None, None), (None, 5), (5, None), (5, 0), (5, 5)):
        assert sent_tokens // 2 - sent_tokens // 40 - 1 <= lower_budget(sent_tokens, *figures) <= max(1, sent_tokens // 2)


@given(local=st.integers(1_000, 10**6), above=st.integers(0, 10**6), limit=st.integers(1_000, 10**6))
def test_the_remaining_view_fits_even_if_it_contains_all_undercounted_text(local: int, above: int, limit: int) -> None:
    """If the provider counts up to a third more than we do, the remaining view fits even if all of the difference is in it."""
    tokens = local + min(above, local // 3)
    if limit < tokens and 2 * limit > tokens:
        lower = lower_budget(local, tokens, limit)
        assert lower + (tokens - local) <= limit


def test_an_empty_session_cannot_become_smaller() -> None:
    with pytest.raises(ArgumentError, match="nothing of it was sent"):
        lower_budget(0, 10, 5)


# Views


def test_all_views_of_the_session_use_the_lowered_budget() -> None:
    limits, log = manager(3_000), log_of_turns()
    assert limits.plan_session(log).after > 1_500
    assert limits.accept_refusal(log, refusal(3_000, 2_000))
    lowered = limits.plan_session(log).budget
    assert lowered < 2_000
    plan = limits.plan_session(log, one_shot=True)
    assert (plan.budget, plan.over_budget) == (lowered, False)
    for recency in (True, False):
        limits.trim_session(log, preserve_recency=recency)
        assert limits.get_token_usage()["total"] <= lowered
    assert limits.plan_session(log_of_turns(), one_shot=True).budget == 3_000  # another session


def test_use_model_restores_the_full_budget() -> None:
    limits, log = ContextWindowManager("claude-sonnet-4-5"), log_of_turns()
    full_budget = limits.plan_session(log, one_shot=True).budget
    assert limits.accept_refusal(log, refusal())
    assert limits.plan_session(log, one_shot=True).budget < full_budget
    limits.use_model("claude-haiku-4-5")
    limits.use_model("claude-sonnet-4-5")
    assert limits.plan_session(log, one_shot=True).budget == full_budget


def test_a_refusal_that_removes_nothing_keeps_the_budget() -> None:
    limits, log = manager(3_000), Session()
    log.add_message("user", "all of this must stay")
    assert not limits.accept_refusal(log, refusal(3_000, 2_000))
    assert limits.plan_session(log, one_shot=True).budget == 3_000


# Invalid refusals


@pytest.mark.parametrize("refused", [None, 5, "prompt is too long", ValueError("prompt is too long"), ModelError("busy")])
def test_an_invalid_refusal_is_an_error(refused: Any) -> None:
    with pytest.raises(ArgumentError, match="pass a PromptTooLongError"):
        manager().accept_refusal(log_of_turns(), refused)


@pytest.mark.parametrize("figures", [("9", "8"), (9.5, 8), ([9], [8]), (True, False)])
def test_figures_that_are_not_numbers_are_ignored(figures: tuple[Any, Any]) -> None:
    budgets = []
    for pair in ((None, None), figures):
        limits, log = manager(3_000), log_of_turns()
        assert limits.accept_refusal(log, refusal(*pair))
        budgets.append(limits.plan_session(log).budget)
    assert budgets[0] == budgets[1]
