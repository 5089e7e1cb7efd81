"""The public methods of the manager: budgets, views, usage, and wrong arguments."""

from __future__ import annotations

import copy
import gc
import json
import pickle
from collections.abc import Callable
from threading import Lock
from types import SimpleNamespace
from typing import Any

import pytest

from context_window import (
    ArgumentError,
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
from tests.support.managing import ids, make_manager, session_of

KEYS = {"total", "budget", "available", "overhead", "SYSTEM", "CONTEXT", "DIALOG", "SYSTEM_OUTPUT"}


# Budgets


def test_the_budget_and_the_shares_of_it() -> None:
    manager = make_manager(999, shares=Shares(system=0.1, context=0.35, dialog=0.5, system_output=0.05))
    assert manager.total_budget == manager.available_tokens == 999
    assert manager.get_budget("CONTEXT") == TokenBudget(MessageCategory.CONTEXT, 0.35, 349, 0)
    assert [manager.get_budget(category).tokens for category in MessageCategory] == [99, 349, 499, 49]


def test_the_budget_without_a_model_is_128_000_tokens() -> None:
    assert ContextWindowManager().total_budget == 128_000


def test_usage_is_added_and_reset() -> None:
    manager = make_manager(1000)
    manager.update_usage("DIALOG", 400)
    manager.update_usage(MessageCategory.DIALOG, 200)
    manager.update_usage("SYSTEM", 7)
    assert manager.get_token_usage() == {
        "total": 607,
        "budget": 1000,
        "available": 393,
        "overhead": 0,
        "SYSTEM": 7,
        "CONTEXT": 0,
        "DIALOG": 600,
        "SYSTEM_OUTPUT": 0,
    }
    assert manager.get_budget("DIALOG").used == 600
    assert manager.get_budget("DIALOG").available == -100
    assert (manager.is_over_budget("DIALOG"), manager.is_over_budget("SYSTEM"), manager.is_over_budget()) == (True, False, False)
    manager.reset_usage("DIALOG")
    assert manager.get_token_usage()["total"] == 7
    manager.reset_usage()
    assert manager.available_tokens == 1000


def test_a_total_equal_to_the_budget_is_not_over_it() -> None:
    manager = make_manager(100)
    manager.update_usage("DIALOG", 100)
    assert not manager.is_over_budget()
    manager.update_usage("DIALOG", 1)
    assert manager.is_over_budget()
    assert manager.available_tokens == -1


def test_after_a_reset_nothing_is_left_of_the_last_session() -> None:
    manager = make_manager(1000)
    fresh = manager.get_token_usage(), manager.usage()
    manager.process_session(session_of(5))
    manager.reset_usage()
    report = manager.usage()
    assert manager.get_token_usage() == fresh[0]
    assert (report.total, report.items, report.largest, report.tools) == (0, 0, (), ())
    assert str(report) == str(fresh[1])


# Wrong values


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: make_manager(0), "max_tokens=0: pass a whole number of 1 or more"),
        (lambda: make_manager(-5), "max_tokens=-5: pass a whole number of 1 or more"),
        (lambda: make_manager(shares=Shares(system=0.6)), "shares=1.5: the shares sum to more than 1; lower some of them"),
        (lambda: make_manager(shares=Shares(dialog=-0.1)), "shares.dialog=-0.1: pass a number from 0 to 1"),
        (lambda: make_manager().update_usage("DIALOG", -1), "tokens=-1: pass a whole number of 0 or more"),
        (lambda: make_manager().update_usage("DIALOG", 1.5), "tokens=1.5: pass a whole number of 0 or more"),  # type: ignore[arg-type]
        (
            lambda: make_manager().update_usage("CHAT", 1),
            "category='CHAT': there is no such category; pass one of SYSTEM, CONTEXT, DIALOG, SYSTEM_OUTPUT",
        ),
        (
            lambda: make_manager().get_budget("dialog"),
            "category=a text of 6 characters that begins with 'dial': there is no such category; pass one of SYSTEM",
        ),
        (lambda: make_manager().get_budget(None), "category=None: there is no such category"),  # type: ignore[arg-type]
        (lambda: make_manager().get_budget([]), "category=[]: there is no such category"),  # type: ignore[arg-type]
        (lambda: make_manager().reset_usage("all"), "category='all': there is no such category"),
        (
            lambda: make_manager().is_over_budget("total"),
            "category=a text of 5 characters that begins with 'tota': there is no such category",
        ),
        (lambda: make_manager().process_session([{"role": "user"}]), "session=<class 'list'>: pass a Session"),  # type: ignore[arg-type]
        (lambda: make_manager().trim_session("a text"), "session=<class 'str'>: pass a Session"),  # type: ignore[arg-type]
        (lambda: make_manager().plan_session(None), "session=<class 'NoneType'>: pass a Session"),  # type: ignore[arg-type]
        (lambda: make_manager().analyze_session(5), "session=<class 'int'>: pass a Session"),  # type: ignore[arg-type]
        (lambda: make_manager().usage(5.5), "session=<class 'float'>: pass a Session"),  # type: ignore[arg-type]
        (lambda: make_manager().get_token_usage({}), "session=<class 'dict'>: pass a Session"),  # type: ignore[arg-type]
        (
            lambda: make_manager().trim_session(Session(), "newest"),  # type: ignore[arg-type]
            "preserve_recency=a text of 6 characters that begins with 'newe': pass True to take the oldest first, or False",
        ),
        (lambda: ContextWindowManager(ContextWindow()), "model_config="),
    ],
)
def test_wrong_values_say_what_to_pass(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        call()
    assert str(caught.value).startswith(message)
    assert isinstance(caught.value, ContextWindowError)
    assert isinstance(caught.value, ValueError)


def test_an_unknown_model_needs_max_tokens() -> None:
    with pytest.raises(UnknownModelError, match=r"is not known.*Pass max_tokens=…"):
        ContextWindowManager("frontier-9000")
    assert ContextWindowManager("frontier-9000", context_window=ContextWindow(max_tokens=500)).total_budget == 500


def test_rejected_arguments_change_nothing() -> None:
    manager = make_manager()
    manager.update_usage("DIALOG", 5)
    for call in (lambda: manager.update_usage("DIALOG", -1), lambda: manager.reset_usage("x"), lambda: manager.process_session(None)):  # type: ignore[arg-type]
        with pytest.raises(ArgumentError):
            call()
    assert manager.get_token_usage()["DIALOG"] == 5


@pytest.mark.parametrize("answer", [-1, 1.0, None, True, "5"])
def test_a_counter_that_does_not_count_is_an_error(answer: Any) -> None:
    manager = ContextWindowManager(
        token_counter=lambda text: answer if text == "hello" else 1, context_window=ContextWindow(max_tokens=100)
    )
    session = Session()
    session.add_message("user", "hello")
    for call in (manager.process_session, manager.trim_session, manager.plan_session, manager.analyze_session, manager.get_token_usage):
        with pytest.raises(CountingError):
            call(session)


# Views


def test_a_session_that_fits_is_its_own_view() -> None:
    manager = make_manager(10_000)
    session = session_of(5)
    assert manager.process_session(session).items == session.items
    assert manager.trim_session(session).items == session.items
    assert manager.trim_session(session, preserve_recency=False).items == session.items


def test_an_empty_session() -> None:
    manager = make_manager(1)
    empty = Session()
    assert manager.process_session(empty).items == empty.items
    assert manager.trim_session(empty).items == empty.items
    assert len(manager.plan_session(empty)) == 0
    stats = manager.analyze_session(empty)
    assert (stats["total_tokens"], stats["item_count"], stats["message_count"], stats["over_budget"]) == (0, 0, 0, False)
    assert manager.usage(empty).total == 0
    assert manager.format_token_usage()


def test_trim_session_trims_exactly_to_the_budget_and_process_session_further() -> None:
    session = session_of(10, size=40)
    manager = make_manager(600, target_ratio=0.5)
    manager.trim_session(session)
    one_shot = manager.get_token_usage()["total"]
    manager.process_session(session)
    assert 500 < one_shot <= 600
    assert manager.get_token_usage()["total"] < one_shot


def test_preserve_recency_decides_from_which_end_units_go() -> None:
    session = Session()
    for number in range(6):
        session.add_message("user", "q" * 16, f"u{number}", 0.0)
        session.add_message("assistant", "a" * 16, f"a{number}", 0.0)
    manager = make_manager(120)
    assert ids(manager.trim_session(session)) == ["u3", "a3", "u4", "a4", "u5", "a5"]
    # The last question and the answer to it are what the model is about to read: they stay whichever end goes first.
    assert ids(manager.trim_session(session, preserve_recency=False)) == ["u0", "a0", "u1", "a1", "u5", "a5"]
    assert ids(manager.trim_session(session, True)) == ids(manager.trim_session(session))


def test_newest_first_clears_the_newest_outputs() -> None:
    session = session_of(4)
    manager = make_manager(1000)
    oldest_first, newest_first = manager.trim_session(session), manager.trim_session(session, preserve_recency=False)
    outputs = [item.id for item in session.items if item.type == "function_call_output"]
    uncut = {view: [name for name in outputs if view.get_by_id(name) is session.get_by_id(name)] for view in (oldest_first, newest_first)}
    assert uncut[oldest_first] == outputs[-1:]
    assert uncut[newest_first] == outputs[:1]


def test_a_trim_leaves_no_trace_in_the_fold() -> None:
    session = session_of(12)
    manager = make_manager(1500)
    manager.trim_session(session)
    manager.trim_session(session, preserve_recency=False)
    manager.plan_session(session)
    manager.plan_session(session, one_shot=True)
    manager.analyze_session(session)
    assert list(manager.process_session(session).items) == list(make_manager(1500).process_session(session).items)


def test_plans_match_the_calls() -> None:
    session = session_of(12)
    manager = make_manager(1500)
    for one_shot, call in ((False, manager.process_session), (True, manager.trim_session)):
        plan, view = manager.plan_session(session, one_shot=one_shot), call(session)
        assert [decision.item_id for decision in plan if decision.action.value != "drop"] == ids(view)
        assert plan.after == manager.get_token_usage()["total"]
        assert manager.get_token_usage() == manager.get_token_usage(view)


# Usage


def test_usage_is_about_the_last_call() -> None:
    session, other = session_of(12), session_of(2)
    manager = make_manager(1500)
    view = manager.process_session(session)
    assert view.items != session.items
    assert manager.usage().items == len(view.items)
    of_view = manager.get_token_usage()
    manager.plan_session(other)
    assert manager.get_token_usage() == of_view, "a plan shows nothing to a model"
    manager.analyze_session(session)
    assert manager.usage().items == len(session.items)
    trimmed = manager.trim_session(session)
    assert manager.usage().items == len(trimmed.items)
    assert manager.usage(other).items == manager.usage().items == len(other.items)
    assert manager.get_token_usage(session) == manager.get_token_usage()
    assert set(manager.get_token_usage()) == KEYS


def test_usage_of_a_session_that_grew_is_about_its_earlier_contents() -> None:
    """All figures of a report are taken at the same moment."""
    session = session_of(2)
    manager = make_manager(10_000)
    manager.process_session(session)
    before = manager.usage()
    session.add_message("user", "q" * 5000)
    assert manager.usage() == before
    assert manager.usage(session).total == before.total + 5004
    manager.process_session(session)
    before = manager.usage()
    session.pin("u0")
    session.add_message("system", "other " * 1000, replace=True)
    assert manager.usage() == before


def test_usage_of_a_view_that_nobody_keeps() -> None:
    session = session_of(12)
    manager = make_manager(1500)
    view = manager.process_session(session)
    report = manager.usage()
    length = len(view.items)
    del view
    gc.collect()
    assert manager.usage() == report
    session.add_message("assistant", "x", "more", 0.0)
    assert manager.usage().items == length


def test_tokens_added_by_hand_are_in_every_figure() -> None:
    manager = make_manager(1000)
    session = session_of(1)
    manager.process_session(session)
    manager.update_usage("CONTEXT", 50)
    usage, report = manager.get_token_usage(), manager.usage()
    assert usage["total"] == report.total == 1000 - manager.available_tokens
    assert usage["CONTEXT"] == 50
    manager.process_session(session)
    assert manager.get_token_usage()["CONTEXT"] == 0


def test_the_formats_show_the_total_and_print_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    manager = make_manager(12_345)
    session = session_of(3)
    plain, rich = manager.format_token_usage(session), manager.format_token_usage_rich()
    assert "12,345" in plain
    assert f"{manager.get_token_usage()['total']:,}" in plain
    assert "\x1b[" in rich
    assert capsys.readouterr() == ("", "")


def test_stats_of_a_session_with_everything() -> None:
    session = session_of(2)
    session.add_context([Image(url="u", width=30, height=10)], source="here")
    session.append(Compaction("what was said", [item.id for item in session.items[1:5]]))
    session.add_message("user", "and?")
    stats = make_manager(10_000).analyze_session(session)
    assert stats["total_tokens"] == sum(stats["per_category"].values()) + stats["overhead_tokens"]
    assert stats["item_count"] == sum(stats["items"].values()) == len(session.items) - 4
    assert stats["message_count"] == len(session.messages())
    assert (stats["image_count"], stats["counter"], stats["budget"]) == (1, "letters", 10_000)
    assert stats["available_tokens"] == 10_000 - stats["total_tokens"]
    assert json.loads(json.dumps(stats)) == stats
    report = make_manager(10_000).usage(session)
    assert (report.compacted_items, report.items) == (4, stats["item_count"])


def test_an_output_without_a_call_is_not_called_compacted() -> None:
    session = session_of(1)
    session.add_function_output("read", "who asked?", "nobody")
    assert make_manager().usage(session).compacted_items == 0


# Copies


class Client:
    """A client with a lock, as the SDKs' have, and the endpoint that counts."""

    def __init__(self) -> None:
        self.lock, self.messages, self.with_options = Lock(), SimpleNamespace(count_tokens=fail), fail


def fail(**_: Any) -> None:
    raise OSError


COPIERS: list[Callable[[ContextWindowManager], ContextWindowManager]] = [
    copy.copy,
    copy.deepcopy,
    lambda manager: pickle.loads(pickle.dumps(manager)),
]


@pytest.mark.parametrize("copied", COPIERS, ids=["copy", "deepcopy", "pickle"])
@pytest.mark.parametrize("client", [None, Client()], ids=["", "client"])
def test_a_copy_has_the_settings_and_has_seen_no_session(copied: Callable[..., ContextWindowManager], client: Any) -> None:
    manager = ContextWindowManager({"model": "gpt-5", "max_tokens": 9_000}, api_client=client, keep_first_message=True, on_event=print)
    manager.use_model("claude-sonnet-4-5")
    manager.count_tools([{"name": "read", "input_schema": {"type": "object"}}])
    session = session_of(40)
    view = manager.process_session(session)
    other = copied(manager)
    assert other.available_tokens == other.total_budget == manager.total_budget > 9_000
    assert other.context_window == manager.context_window
    assert repr(other) == repr(manager)
    assert [item.id for item in other.process_session(session).items] == [item.id for item in view.items]
    assert other.get_token_usage() == manager.get_token_usage()
    other.use_model("gpt-5")
    assert (other.total_budget, manager.total_budget) == (9_000, 168_000), "the limit of the mapping travels; the two are independent"


def test_a_manager_says_what_it_is() -> None:
    manager = ContextWindowManager("gpt-4o", max_tokens=4_000, strict=True)
    assert repr(manager) == "<ContextWindowManager: 'gpt-4o', budget of 4,000 tokens, ContextWindow(max_tokens=4000, strict=True)>"
    assert "no model" in repr(ContextWindowManager())
