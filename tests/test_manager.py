"""The manager as its users call it: budgets and figures, views and usage, what it refuses."""

from __future__ import annotations

import gc
import json
from collections.abc import Callable
from typing import Any

import pytest

from context_window import (
    BudgetError,
    Compaction,
    ContextWindow,
    ContextWindowError,
    ContextWindowManager,
    CountingError,
    Image,
    MessageCategory,
    Session,
    Shares,
    TokenBudget,
    UnknownModelError,
)
from tests.support.managing import ids, manager, session_of

KEYS = {"total", "budget", "available", "overhead", "SYSTEM", "CONTEXT", "DIALOG", "SYSTEM_OUTPUT"}


# Budgets


def test_the_budget_and_the_shares_of_it() -> None:
    asked = manager(999, shares=Shares(system=0.1, context=0.35, dialog=0.5, system_output=0.05))
    assert asked.total_budget == asked.available_tokens == 999
    assert asked.get_budget("CONTEXT") == TokenBudget(MessageCategory.CONTEXT, 0.35, 349, 0)
    assert [asked.get_budget(category).tokens for category in MessageCategory] == [99, 349, 499, 49]


def test_nothing_known_of_the_model_is_128_000_tokens() -> None:
    assert ContextWindowManager().total_budget == 128_000


def test_usage_is_added_and_reset() -> None:
    asked = manager(1000)
    asked.update_usage("DIALOG", 400)
    asked.update_usage(MessageCategory.DIALOG, 200)
    asked.update_usage("SYSTEM", 7)
    assert asked.get_token_usage() == {
        "total": 607,
        "budget": 1000,
        "available": 393,
        "overhead": 0,
        "SYSTEM": 7,
        "CONTEXT": 0,
        "DIALOG": 600,
        "SYSTEM_OUTPUT": 0,
    }
    assert asked.get_budget("DIALOG").used == 600
    assert asked.get_budget("DIALOG").available == -100
    assert (asked.is_over_budget("DIALOG"), asked.is_over_budget("SYSTEM"), asked.is_over_budget()) == (True, False, False)
    asked.reset_usage("DIALOG")
    assert asked.get_token_usage()["total"] == 7
    asked.reset_usage()
    assert asked.available_tokens == 1000


def test_over_budget_begins_above_it() -> None:
    asked = manager(100)
    asked.update_usage("DIALOG", 100)
    assert not asked.is_over_budget()
    asked.update_usage("DIALOG", 1)
    assert asked.is_over_budget()
    assert asked.available_tokens == -1


def test_after_a_reset_nothing_is_left_of_the_last_session() -> None:
    asked = manager(1000)
    fresh = asked.get_token_usage(), asked.usage()
    asked.process_session(session_of(5))
    asked.reset_usage()
    report = asked.usage()
    assert asked.get_token_usage() == fresh[0]
    assert (report.total, report.items, report.largest, report.tools) == (0, 0, (), ())
    assert str(report) == str(fresh[1])


# Wrong values


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: manager(0), "max_tokens=0: pass a whole number of 1 or more"),
        (lambda: manager(-5), "max_tokens=-5: pass a whole number of 1 or more"),
        (lambda: manager(shares=Shares(system=0.6)), "shares=1.5: the shares sum to more than 1; lower some of them"),
        (lambda: manager(shares=Shares(dialog=-0.1)), "shares.dialog=-0.1: pass a number from 0 to 1"),
        (lambda: manager().update_usage("DIALOG", -1), "tokens=-1: pass a whole number of 0 or more"),
        (lambda: manager().update_usage("DIALOG", 1.5), "tokens=1.5: pass a whole number of 0 or more"),  # type: ignore[arg-type]
        (
            lambda: manager().update_usage("CHAT", 1),
            "category='CHAT': there is no such category; pass one of SYSTEM, CONTEXT, DIALOG, SYSTEM_OUTPUT",
        ),
        (
            lambda: manager().get_budget("dialog"),
            "category=a text of 6 characters that begins with 'dial': there is no such category; pass one of SYSTEM",
        ),
        (lambda: manager().get_budget(None), "category=None: there is no such category"),  # type: ignore[arg-type]
        (lambda: manager().get_budget([]), "category=[]: there is no such category"),  # type: ignore[arg-type]
        (lambda: manager().reset_usage("all"), "category='all': there is no such category"),
        (lambda: manager().is_over_budget("total"), "category=a text of 5 characters that begins with 'tota': there is no such category"),
        (lambda: manager().process_session([{"role": "user"}]), "session=<class 'list'>: pass a Session"),  # type: ignore[arg-type]
        (lambda: manager().trim_session("a text"), "session=<class 'str'>: pass a Session"),  # type: ignore[arg-type]
        (lambda: manager().plan_session(None), "session=<class 'NoneType'>: pass a Session"),  # type: ignore[arg-type]
        (lambda: manager().analyze_session(5), "session=<class 'int'>: pass a Session"),  # type: ignore[arg-type]
        (lambda: manager().usage(5.5), "session=<class 'float'>: pass a Session"),  # type: ignore[arg-type]
        (lambda: manager().get_token_usage({}), "session=<class 'dict'>: pass a Session"),  # type: ignore[arg-type]
        (
            lambda: manager().trim_session(Session(), "newest"),  # type: ignore[arg-type]
            "preserve_recency=a text of 6 characters that begins with 'newe': pass True to take the oldest first, or False",
        ),
        (lambda: ContextWindowManager(ContextWindow()), "model_config="),
    ],
)
def test_wrong_values_say_what_to_pass(call: Callable[[], object], told: str) -> None:
    with pytest.raises(BudgetError) as caught:
        call()
    assert str(caught.value).startswith(told)
    assert isinstance(caught.value, ContextWindowError)
    assert isinstance(caught.value, ValueError)


def test_an_unknown_model_needs_max_tokens() -> None:
    with pytest.raises(UnknownModelError, match=r"is not known.*Pass ContextWindow\(max_tokens=…\)"):
        ContextWindowManager("frontier-9000")
    assert ContextWindowManager("frontier-9000", context_window=ContextWindow(max_tokens=500)).total_budget == 500


def test_what_was_refused_has_changed_nothing() -> None:
    asked = manager()
    asked.update_usage("DIALOG", 5)
    for call in (lambda: asked.update_usage("DIALOG", -1), lambda: asked.reset_usage("x"), lambda: asked.process_session(None)):  # type: ignore[arg-type]
        with pytest.raises(BudgetError):
            call()
    assert asked.get_token_usage()["DIALOG"] == 5


@pytest.mark.parametrize("answer", [-1, 1.0, None, True, "5"])
def test_a_counter_that_does_not_count_is_an_error(answer: Any) -> None:
    asked = ContextWindowManager(token_counter=lambda text: answer if text == "hello" else 1, context_window=ContextWindow(max_tokens=100))
    session = Session()
    session.add_message("user", "hello")
    for call in (asked.process_session, asked.trim_session, asked.plan_session, asked.analyze_session, asked.get_token_usage):
        with pytest.raises(CountingError):
            call(session)


# Views


def test_a_session_that_fits_is_its_own_view() -> None:
    asked = manager(10_000)
    session = session_of(5)
    assert asked.process_session(session) is session
    assert asked.trim_session(session) is session
    assert asked.trim_session(session, preserve_recency=False) is session


def test_an_empty_session() -> None:
    asked = manager(1)
    empty = Session()
    assert asked.process_session(empty) is empty
    assert asked.trim_session(empty) is empty
    assert len(asked.plan_session(empty)) == 0
    stats = asked.analyze_session(empty)
    assert (stats["total_tokens"], stats["item_count"], stats["message_count"], stats["over_budget"]) == (0, 0, 0, False)
    assert asked.usage(empty).total == 0
    assert asked.format_token_usage()


def test_trim_session_trims_exactly_to_the_budget_and_process_session_further() -> None:
    session = session_of(10, size=40)
    asked = manager(600, target_ratio=0.5)
    asked.trim_session(session)
    one_shot = asked.get_token_usage()["total"]
    asked.process_session(session)
    assert 500 < one_shot <= 600
    assert asked.get_token_usage()["total"] < one_shot


def test_preserve_recency_decides_from_which_end_units_go() -> None:
    session = Session()
    for number in range(6):
        session.add_message("user", "q" * 16, f"u{number}", 0.0)
        session.add_message("assistant", "a" * 16, f"a{number}", 0.0)
    asked = manager(120)
    assert ids(asked.trim_session(session)) == ["u3", "a3", "u4", "a4", "u5", "a5"]
    # The last question and the answer to it are what the model is about to read: they stay whichever end goes first.
    assert ids(asked.trim_session(session, preserve_recency=False)) == ["u0", "a0", "u1", "a1", "u5", "a5"]
    assert ids(asked.trim_session(session, True)) == ids(asked.trim_session(session))


def test_newest_first_clears_the_newest_outputs() -> None:
    session = session_of(4)
    asked = manager(1000)
    oldest_first, newest_first = asked.trim_session(session), asked.trim_session(session, preserve_recency=False)
    outputs = [item.id for item in session.items if item.type == "function_call_output"]
    whole = {view: [name for name in outputs if view.get_by_id(name) is session.get_by_id(name)] for view in (oldest_first, newest_first)}
    assert whole[oldest_first] == outputs[-1:]
    assert whole[newest_first] == outputs[:1]


def test_a_trim_leaves_no_trace_in_the_fold() -> None:
    session = session_of(12)
    asked = manager(1500)
    asked.trim_session(session)
    asked.trim_session(session, preserve_recency=False)
    asked.plan_session(session)
    asked.plan_session(session, one_shot=True)
    asked.analyze_session(session)
    assert list(asked.process_session(session).items) == list(manager(1500).process_session(session).items)


def test_plans_say_what_the_calls_do() -> None:
    session = session_of(12)
    asked = manager(1500)
    for one_shot, call in ((False, asked.process_session), (True, asked.trim_session)):
        plan, view = asked.plan_session(session, one_shot=one_shot), call(session)
        assert [one.item_id for one in plan if one.action.value != "drop"] == ids(view)
        assert plan.after == asked.get_token_usage()["total"]
        assert asked.get_token_usage() == asked.get_token_usage(view)


# Usage


def test_usage_is_of_the_last_one_analysed_trimmed_or_processed() -> None:
    session, other = session_of(12), session_of(2)
    asked = manager(1500)
    view = asked.process_session(session)
    assert view is not session
    assert asked.usage().items == len(view.items)
    of_view = asked.get_token_usage()
    asked.plan_session(other)
    assert asked.get_token_usage() == of_view, "a plan shows nothing to a model"
    asked.analyze_session(session)
    assert asked.usage().items == len(session.items)
    trimmed = asked.trim_session(session)
    assert asked.usage().items == len(trimmed.items)
    assert asked.usage(other).items == asked.usage().items == len(other.items)
    assert asked.get_token_usage(session) == asked.get_token_usage()
    assert set(asked.get_token_usage()) == KEYS


def test_usage_of_a_session_that_has_grown_since_is_of_what_it_was() -> None:
    """The rows, the items and the largest are of one moment, or they do not fit together."""
    session = session_of(2)
    asked = manager(10_000)
    asked.process_session(session)
    before = asked.usage()
    session.add_message("user", "q" * 5000)
    assert asked.usage() == before
    assert asked.usage(session).total == before.total + 5004
    asked.process_session(session)
    before = asked.usage()
    session.pin("u0")
    session.add_message("system", "other " * 1000, replace=True)
    assert asked.usage() == before


def test_usage_of_a_view_that_nobody_keeps() -> None:
    session = session_of(12)
    asked = manager(1500)
    kept = asked.process_session(session)
    shown = asked.usage()
    length = len(kept.items)
    del kept
    gc.collect()
    assert asked.usage() == shown
    session.add_message("assistant", "x", "more", 0.0)
    assert asked.usage().items == length


def test_tokens_added_by_hand_are_in_every_figure() -> None:
    asked = manager(1000)
    session = session_of(1)
    asked.process_session(session)
    asked.update_usage("CONTEXT", 50)
    usage, report = asked.get_token_usage(), asked.usage()
    assert usage["total"] == report.total == 1000 - asked.available_tokens
    assert usage["CONTEXT"] == 50
    asked.process_session(session)
    assert asked.get_token_usage()["CONTEXT"] == 0


def test_the_formats_show_the_total_and_print_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    asked = manager(12_345)
    session = session_of(3)
    plain, rich = asked.format_token_usage(session), asked.format_token_usage_rich()
    assert "12,345" in plain
    assert f"{asked.get_token_usage()['total']:,}" in plain
    assert "\x1b[" in rich
    assert capsys.readouterr() == ("", "")


def test_stats_of_a_session_with_everything() -> None:
    session = session_of(2)
    session.add_context([Image(url="u", width=30, height=10)], source="here")
    session.append(Compaction("what was said", [item.id for item in session.items[1:5]]))
    session.add_message("user", "and?")
    stats = manager(10_000).analyze_session(session)
    assert stats["total_tokens"] == sum(stats["per_category"].values()) + stats["overhead_tokens"]
    assert stats["item_count"] == sum(stats["items"].values()) == len(session.items) - 4
    assert stats["message_count"] == len(session.messages())
    assert (stats["image_count"], stats["counter"], stats["budget"]) == (1, "letters", 10_000)
    assert stats["available_tokens"] == 10_000 - stats["total_tokens"]
    assert json.loads(json.dumps(stats)) == stats
    report = manager(10_000).usage(session)
    assert (report.compacted_items, report.items) == (4, stats["item_count"])


def test_an_output_without_a_call_is_not_called_compacted() -> None:
    session = session_of(1)
    session.add_function_output("read", "who asked?", "nobody")
    assert manager().usage(session).compacted_items == 0
