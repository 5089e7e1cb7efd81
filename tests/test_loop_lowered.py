"""Budgets that a refusal has lowered: how far, and for which views."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import event, example, given
from hypothesis import strategies as st

from context_window import BudgetError, ContextWindowManager, ModelError, PromptTooLongError, Session
from context_window.requesting import lower_budget
from tests.support.looping import manager

COUNTS = st.integers(1, 10**7)


def talk(turns: int = 20) -> Session:
    """A log of short turns, and a question."""
    log = Session()
    for number in range(turns):
        log.add_message("user", f"{number:03}" * 13)
        log.add_message("assistant", f"{number:03}" * 13)
    log.add_message("user", "z")
    return log


def refusal(tokens: int | None = None, limit: int | None = None) -> PromptTooLongError:
    return PromptTooLongError("prompt is too long", 400, tokens=tokens, limit=limit)


# How far


@given(sent=COUNTS, tokens=COUNTS, limit=COUNTS)
@example(sent=120_000, tokens=256_000, limit=128_000)
@example(sent=1_000, tokens=10**7, limit=1)
def test_the_lowered_budget_is_less_and_between_half_and_all_of_what_the_figures_say(sent: int, tokens: int, limit: int) -> None:
    lower = lower_budget(sent, tokens, limit)
    assert lower >= 1
    assert lower < sent or sent == 1
    if limit < tokens:
        event("figures")
        in_proportion = sent * limit // tokens
        assert in_proportion // 2 <= lower <= max(1, in_proportion)
    else:
        assert lower == lower_budget(sent, None, None)


@given(sent=COUNTS)
def test_without_figures_it_is_a_little_less_than_half(sent: int) -> None:
    for figures in ((None, None), (None, 5), (5, None), (5, 0), (5, 5)):
        assert sent // 2 - sent // 40 - 1 <= lower_budget(sent, *figures) <= max(1, sent // 2)


@given(local=st.integers(1_000, 10**6), above=st.integers(0, 10**6), limit=st.integers(1_000, 10**6))
def test_what_was_counted_short_may_all_lie_in_what_stays(local: int, above: int, limit: int) -> None:
    """Where the provider counts up to a third more than we do, what is left fits even if all of that is in it."""
    tokens = local + min(above, local // 3)
    if limit < tokens and 2 * limit > tokens:
        lower = lower_budget(local, tokens, limit)
        assert lower + (tokens - local) <= limit


def test_of_nothing_there_is_no_less() -> None:
    with pytest.raises(BudgetError, match="nothing of it was sent"):
        lower_budget(0, 10, 5)


# For which views


def test_every_view_of_the_session_goes_by_it_one_shot_trims_too() -> None:
    limits, log = manager(3_000), talk()
    assert limits.plan_session(log).after > 1_500
    assert limits.accept_refusal(log, refusal(3_000, 2_000))
    lowered = limits.plan_session(log).budget
    assert lowered < 2_000
    plan = limits.plan_session(log, one_shot=True)
    assert (plan.budget, plan.over_budget) == (lowered, False)
    for recency in (True, False):
        limits.trim_session(log, preserve_recency=recency)
        assert limits.get_token_usage()["total"] <= lowered
    assert limits.plan_session(talk(), one_shot=True).budget == 3_000  # another session


def test_another_model_ends_it_for_one_shot_trims_too() -> None:
    limits, log = ContextWindowManager("claude-sonnet-4-5"), talk()
    whole = limits.plan_session(log, one_shot=True).budget
    assert limits.accept_refusal(log, refusal())
    assert limits.plan_session(log, one_shot=True).budget < whole
    limits.use_model("claude-haiku-4-5")
    limits.use_model("claude-sonnet-4-5")
    assert limits.plan_session(log, one_shot=True).budget == whole


def test_a_refusal_that_takes_nothing_lowers_nothing() -> None:
    limits, log = manager(3_000), Session()
    log.add_message("user", "all of this must stay")
    assert not limits.accept_refusal(log, refusal(3_000, 2_000))
    assert limits.plan_session(log, one_shot=True).budget == 3_000


# What is none


@pytest.mark.parametrize("refused", [None, 5, "prompt is too long", ValueError("prompt is too long"), ModelError("busy")])
def test_what_is_no_refusal_is_told(refused: Any) -> None:
    with pytest.raises(BudgetError, match="pass a PromptTooLongError"):
        manager().accept_refusal(talk(), refused)


@pytest.mark.parametrize("figures", [("9", "8"), (9.5, 8), ([9], [8]), (True, False)])
def test_figures_that_are_no_numbers_count_as_none(figures: tuple[Any, Any]) -> None:
    budgets = []
    for told in ((None, None), figures):
        limits, log = manager(3_000), talk()
        assert limits.accept_refusal(log, refusal(*told))
        budgets.append(limits.plan_session(log).budget)
    assert budgets[0] == budgets[1]
