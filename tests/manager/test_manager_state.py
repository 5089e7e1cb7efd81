"""The state of a manager between calls: edits, failed calls, and the memory it takes."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from typing import Any
from weakref import ref

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_window import ContextOverflowError, ContextWindow, ContextWindowManager, Session
from tests.support.counting import Letters
from tests.support.managing import ids, make_manager, session_of
from tests.support.strategies import sessions
from tests.support.twin import cost

# Edits


def edits(session: Session, fresh: Any) -> list[Callable[[], object]]:
    return [
        lambda: session.pin("u1"),
        lambda: session.unpin("u1"),
        lambda: session.pin("a3"),
        lambda: session.add_message("system", "you are terse " * 5, f"sys{next(fresh)}", 0.0, replace=True),
        lambda: session.add_message("user", "q" * 100, f"more{next(fresh)}", 0.0),
        lambda: session.add_message("assistant", "a" * 100, f"more{next(fresh)}", 0.0),
    ]


@given(st.lists(st.integers(0, 5), max_size=12))
def test_a_session_edited_between_calls_is_replayed(steps: list[int]) -> None:
    session = session_of(8)
    fresh = count()
    manager = make_manager(1500)
    manager.process_session(session)
    for step in steps:
        edits(session, fresh)[step]()
        view, cold = manager.process_session(session), make_manager(1500)
        assert list(view.items) == list(cold.process_session(session).items)
        assert manager.get_token_usage() == cold.get_token_usage()
        assert manager.analyze_session(session) == cold.analyze_session(session)


def test_a_view_used_as_the_log_is_a_session_like_any_other() -> None:
    session = session_of(12)
    manager = make_manager(1500)
    view = Session.from_view(manager.process_session(session))
    for number in range(20):
        view.add_message("user", "q" * 80, f"later{number}", 0.0)
        view.add_message("assistant", "a" * 80, f"answer{number}", 0.0)
        assert list(manager.process_session(view).items) == list(make_manager(1500).process_session(view).items)
    assert len(session.items) == 49
    assert list(manager.process_session(session).items) == list(make_manager(1500).process_session(session).items)


# Failed calls


def test_strict_raises_with_figures_and_culprits_and_later_calls_work() -> None:
    manager = make_manager(300, strict=True, clamp_messages=False)
    session = Session()
    session.add_message("system", "s" * 96, "sys", 0.0)
    session.add_message("user", "q" * 296, "big", 0.0)
    for call in (manager.process_session, manager.trim_session, manager.process_session):
        with pytest.raises(ContextOverflowError) as caught:
            call(session)
        assert (caught.value.needed, caught.value.budget) == (400, 300)
        assert [(culprit.item_id, culprit.tokens) for culprit in caught.value.culprits] == [("big", 300), ("sys", 100)]
        assert "100 more than the budget of 300" in str(caught.value)
        assert manager.get_token_usage()["total"] == 400
        assert manager.is_over_budget()
    assert manager.plan_session(session).over_budget
    session.add_message("assistant", "a", "answer", 0.0)
    session.add_message("user", "q", "small", 0.0)
    assert ids(manager.process_session(session)) == ["sys", "answer", "small"]


def test_strict_with_nothing_but_overhead() -> None:
    tools = [{"name": "read", "description": "d" * 500}]
    manager = ContextWindowManager(token_counter=Letters(), context_window=ContextWindow(max_tokens=100, strict=True), tools=tools)
    with pytest.raises(ContextOverflowError, match=r"Largest: overhead \(532 tokens: "):
        manager.process_session(Session())


def test_figures_fit_together_when_the_session_grows_while_it_is_counted() -> None:
    """Another thread could append during the count; here the counter itself appends, so that it happens every time."""
    session = session_of(3)

    def counter(text: str) -> int:
        if text.startswith("o") and len(session.items) < 40:
            session.add_message("assistant", "x" * 30)
        return len(text)

    manager = ContextWindowManager(token_counter=counter, context_window=ContextWindow(max_tokens=10_000))
    assert len(manager.process_session(session)) == 13
    report = manager.usage()
    assert len(session.items) > report.items == 13
    assert (
        report.total == manager.get_token_usage()["total"] == sum(item.tokens for item in manager.usage(Session(session.items[:13])).rows)
    )
    manager.process_session(session)
    assert list(manager.process_session(session).items) == list(session.items)


class Flaky(Letters):
    """A counter of letters that fails at the calls a test names."""

    name = "flaky"

    def __init__(self) -> None:
        super().__init__()
        self.left: int | None = None

    def count_text(self, text: str) -> int:
        if self.left is not None:
            if self.left == 0:
                raise OSError("the counter is down")
            self.left -= 1
        return super().count_text(text)


@given(st.data())
def test_a_counter_that_fails_at_any_moment_leaves_nothing_half_done(data: st.DataObject) -> None:
    """Once the counter works again, the next call returns the view of a cold start, even after an interrupted trim."""
    log = data.draw(sessions(max_steps=14))
    budget = 1 + data.draw(st.integers(0, 120)) * sum(map(cost, log.items)) // 100
    counter = Flaky()
    manager = ContextWindowManager(token_counter=counter, context_window=ContextWindow(max_tokens=budget))
    log = Session(id="s")
    log.restore_seams(log.response_breaks, 0)
    for item in log.items:
        log.append(item)
        if data.draw(st.integers(0, 2)) == 0:
            counter.left = data.draw(st.integers(0, 12))
            with suppress(OSError):
                manager.process_session(log)
            counter.left = None
            if data.draw(st.booleans()):
                manager.process_session(log)
    again = ContextWindowManager(token_counter=Flaky(), context_window=ContextWindow(max_tokens=budget))
    assert list(manager.process_session(log).items) == list(again.process_session(log).items)
    assert manager.get_token_usage() == again.get_token_usage()
    assert manager.analyze_session(log) == again.analyze_session(log)


# Memory


@pytest.mark.parametrize("budget", [1500, 100_000], ids=["trimmed", "whole"])
def test_the_state_of_a_deleted_session_is_freed_at_once(budget: int) -> None:
    manager = make_manager(budget)
    session = session_of(12)
    manager.process_session(session)
    manager.trim_session(session)
    manager.analyze_session(session)
    usage = manager.usage()
    gone = ref(session)
    gc.disable()  # the state of a long session takes megabytes, so freeing it must not depend on the garbage collector
    try:
        del session
        assert gone() is None
        assert len(manager._sessions._states) == 0
    finally:
        gc.enable()
    assert manager.usage() == usage, "what it held is known until another is asked about"


def test_many_sessions_leave_nothing_behind() -> None:
    manager = make_manager(1500)
    for _ in range(30):
        manager.process_session(session_of(12))
        manager.format_token_usage()
    gc.collect()
    assert len(manager._sessions._states) == 0


@pytest.mark.no_cover  # memory is measured
@pytest.mark.parametrize(("budget", "least_trims"), [(10**9, 0), (20_000, 8)], ids=["whole", "trimmed often"])
def test_the_state_of_an_item_takes_at_most_300_bytes(budget: int, least_trims: int) -> None:
    trims: list[object] = []
    manager = ContextWindowManager(
        token_counter=Letters(),
        context_window=ContextWindow(max_tokens=budget, warn_at=()),
        on_event=trims.append,
    )
    tracemalloc.start()
    try:
        session = Session()
        for number in range(10_000):
            session.add_message("user" if number % 2 else "assistant", "x" * 16, f"m{number}", 0.0)
            if number % 500 == 0:
                manager.process_session(session)
        manager.process_session(session)
        manager.reset_usage()
        before = tracemalloc.get_traced_memory()[0]
        manager._sessions._states.clear()
        freed_bytes = before - tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert len(trims) >= least_trims
    assert 50 < freed_bytes / 10_000 < 300  # each item that a trim took has an edit, and the last call's events keep a copy
