"""The strategies that have names, one by one, in a manager. On every small log there is: `test_strategies_small_logs.py`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from context_window import (
    Chain,
    Choice,
    ContextOverflowError,
    ContextWindow,
    ContextWindowManager,
    DropOldest,
    MeasuredUnit,
    Message,
    NeverTrim,
    PriorityTrim,
    Reason,
    Session,
    SlidingWindow,
    Strategy,
    StrategyBudget,
    Summarize,
)
from context_window.strategies import advisers_of, is_final, parts_of, summarize_of
from session.parts import Image
from tests.support.managing import ids, make_manager, session_of

LARGE = 10**6


def test_a_window_slides_at_each_call_though_there_is_room() -> None:
    session = session_of(6)
    view = make_manager(LARGE, strategy=SlidingWindow(4)).process_session(session)
    calls = session.items[-3:-1]
    assert list(view.items) == [session.items[0], *session.items[-5:]]
    assert [call.type for call in calls] == ["function_call", "function_call_output"]


@pytest.mark.parametrize("strategy", [SlidingWindow(4), SlidingWindow(4) | DropOldest()], ids=["alone", "in a chain"])
def test_a_window_waits_for_the_trigger_if_there_is_one(strategy: Strategy) -> None:
    """With `ContextWindow(trigger_ratio=…)` below 1, the window moves only when the view exceeds that part of the budget."""
    session = session_of(6)
    total = make_manager(LARGE).plan_session(session).after
    waiting = make_manager(2 * total, strategy=strategy, trigger_ratio=0.5)
    assert waiting.process_session(session).items == session.items
    sliding = make_manager(2 * total - 2, strategy=strategy, trigger_ratio=0.5, target_ratio=0.5)
    assert {entry.reason for entry in sliding.plan_session(session).changes} == {Reason.OUT_OF_WINDOW}
    assert list(sliding.process_session(session).items) == [session.items[0], *session.items[-5:]]
    at_once = make_manager(2 * total, strategy=strategy)
    assert len(at_once.process_session(session).items) == 6


def test_a_waiting_window_moves_for_the_number_of_items_too() -> None:
    session = session_of(6)
    keeper = make_manager(LARGE, strategy=SlidingWindow(4), trigger_ratio=0.5, max_context_items=len(session.items) - 1)
    assert Reason.OUT_OF_WINDOW in {entry.reason for entry in keeper.plan_session(session).changes}


def test_what_has_left_a_window_stays_away_and_the_plan_says_why() -> None:
    keeper = make_manager(LARGE, strategy=SlidingWindow(5))
    session, gone = session_of(1), set[str]()
    for number in range(1, 9):
        session.add_message("user", "more", f"u{number}")
        session.add_message("assistant", "yes", f"a{number}")
        plan = keeper.plan_session(session)
        now = {entry.item_id for entry in plan.changes}
        assert gone <= now
        assert {entry.reason for entry in plan.changes} <= {Reason.OUT_OF_WINDOW}
        gone = now
    assert len(gone) == 15
    assert ids(keeper.process_session(session)) == ["sys", "a6", "u7", "a7", "u8", "a8"]


def test_a_window_that_slides_in_steps_changes_the_prompt_only_then() -> None:
    """A step of 1 rewrites the provider's cache at every call; one of 10 at every tenth unit."""
    changes: dict[int, int] = {}
    for step in (1, 10):
        keeper = make_manager(LARGE, strategy=SlidingWindow(20, step=step))
        session, before, changes[step] = Session(id="s"), list[str](), 0
        for number in range(60):
            session.add_message("user", "q", f"u{number}")
            now = ids(keeper.process_session(session))
            assert len(now) <= 20
            changes[step] += now[: len(before)] != before
            before = now
            session.add_message("assistant", "a", f"a{number}")
    assert changes == {1: 50, 10: 10}


def test_a_summary_stays_though_somebody_has_made_it_a_system_message_that_need_not() -> None:
    session = Session([Message("system", "so far", id="sum", extra={"summary": True}), *session_of(6).items])
    session.add_message("user", "well?", "last")
    view = make_manager(1, strategy=DropOldest(keep_system=False)).trim_session(session)
    assert ids(view) == ["sum", "a5", "last"]


def test_summarising_strategies_trim_by_priority_until_somebody_summarises() -> None:
    session = session_of(6)
    plain, summarising = make_manager(1500), make_manager(1500, strategy=Summarize(keep_recent=4))
    assert summarising.plan_session(session) == plain.plan_session(session)


def test_what_is_never_trimmed_comes_back_whole_and_an_overflow_has_the_figures() -> None:
    session = session_of(6)
    session.add_message("user", ("look", Image(url="u", width=30, height=10), Image(url="v", width=30, height=10)))
    message: list[object] = []
    loose = ContextWindowManager(
        token_counter=len, context_window=ContextWindow(max_tokens=500, strategy=NeverTrim()), on_event=message.append
    )
    assert loose.process_session(session).items == session.items
    assert loose.trim_session(session).items == session.items
    assert any(type(event).__name__ == "OverBudget" for event in message)
    strict = make_manager(2_000, strategy=NeverTrim(), strict=True)
    for call in (strict.process_session, strict.trim_session):
        with pytest.raises(ContextOverflowError) as caught:
            call(session)
        assert caught.value.needed == make_manager(2_000).analyze_session(session)["total_tokens"] > caught.value.budget == 2_000
        assert {culprit.what for culprit in caught.value.culprits} == {"read output"}
    assert make_manager(3_000, strategy=NeverTrim(), strict=True).process_session(session).items == session.items


def test_a_strict_agent_hears_of_the_overflow_at_the_first_call_that_is_too_large() -> None:
    strict = make_manager(1_000, strategy=NeverTrim(), strict=True)
    session = Session(id="s")
    for number in range(100):
        session.add_message("user", "x" * 96, f"u{number}")
        if number < 10:
            assert strict.process_session(session).items == session.items
        else:
            with pytest.raises(ContextOverflowError, match=r"needs 1,100 tokens, 100 more than the budget of 1,000"):
                strict.process_session(session)
            return


def test_a_strategy_is_asked_with_the_view_and_the_limits_of_its_manager() -> None:
    earlier: list[tuple[tuple[MeasuredUnit, ...], StrategyBudget]] = []

    def note(units: Sequence[MeasuredUnit], budget: StrategyBudget) -> list[Choice]:
        assert units[0] is next(iter(units)) is units[-len(units)]
        earlier.append((tuple(units), budget))
        return []

    keeper = make_manager(1000, max_context_items=20, strategy=note)
    session = session_of(6)
    view = keeper.process_session(session)
    assert view.items
    assert earlier
    for units, budget in earlier:
        assert len({unit.head for unit in units}) == len(units)
        assert (budget.budget, budget.trigger, budget.target, budget.items_max) == (1000, 1000, 650, 20)
        assert budget.over
        assert budget.total == sum(unit.tokens for unit in units) + budget.overhead
        assert budget.items == sum(unit.items for unit in units)
        assert budget.excess == (budget.total - 650 if budget.total > 1000 else 0)
        assert hash(budget) == hash(replace(budget))
        assert len({*units, *map(replace, units)}) == len(units), "they are frozen values"


# Their definitions


def test_strategies_compose_from_both_sides_and_chains_are_flat() -> None:
    def mine(_units: object, _budget: object) -> tuple[()]:
        return ()

    chain = SlidingWindow(20) | DropOldest() | mine
    assert chain == Chain(SlidingWindow(20), Chain(DropOldest(), mine))
    assert parts_of(chain) == (SlidingWindow(20), DropOldest(), mine)
    assert parts_of(mine | chain) == (mine, SlidingWindow(20), DropOldest(), mine)
    assert [adviser.name for adviser in advisers_of(chain)] == ["SlidingWindow", "DropOldest", "mine"]
    assert advisers_of(PriorityTrim() | NeverTrim()) == ()


@pytest.mark.parametrize(
    "strategy",
    [PriorityTrim(), SlidingWindow(3, 2), DropOldest(keep_system=False), Summarize(4), NeverTrim(), SlidingWindow(3) | Summarize(2)],
)
def test_strategies_are_frozen_values(strategy: Strategy) -> None:
    assert ContextWindow(strategy=strategy) == ContextWindow(strategy=strategy)
    assert hash(ContextWindow(strategy=strategy)) == hash(ContextWindow(strategy=strategy))
    with pytest.raises((AttributeError, TypeError)):  # which of them, Python 3.11 and 3.12 differ in
        strategy.other = 1  # type: ignore[attr-defined]


def test_the_compaction_finds_who_asks_for_it() -> None:
    assert summarize_of(Summarize(7)) == Summarize(7) == summarize_of(SlidingWindow(9) | Summarize(7))
    assert summarize_of(PriorityTrim()) is None
    assert is_final(Summarize(7) | NeverTrim())
    assert not is_final(Summarize(7))
