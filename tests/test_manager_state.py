"""What a manager keeps between calls: through edits, through what goes wrong, and for how long."""

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

from context_window import (
    ContextOverflowError,
    ContextWindow,
    ContextWindowManager,
    Session,
)
from tests.support.counting import Letters
from tests.support.managing import ids, manager, session_of
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
def test_a_session_edited_between_calls_is_folded_anew(steps: list[int]) -> None:
    session = session_of(8)
    fresh = count()
    asked = manager(1500)
    asked.process_session(session)
    for step in steps:
        edits(session, fresh)[step]()
        view, cold = asked.process_session(session), manager(1500)
        assert list(view.items) == list(cold.process_session(session).items)
        assert asked.get_token_usage() == cold.get_token_usage()
        assert asked.analyze_session(session) == cold.analyze_session(session)


def test_a_view_used_as_the_log_is_a_session_like_any_other() -> None:
    session = session_of(12)
    asked = manager(1500)
    view = asked.process_session(session)
    for number in range(20):
        view.add_message("user", "q" * 80, f"later{number}", 0.0)
        view.add_message("assistant", "a" * 80, f"answer{number}", 0.0)
        assert list(asked.process_session(view).items) == list(manager(1500).process_session(view).items)
    assert len(session.items) == 49
    assert list(asked.process_session(session).items) == list(manager(1500).process_session(session).items)


# What goes wrong and leaves nothing behind


def test_strict_raises_with_the_numbers_and_the_culprits_and_goes_on_afterwards() -> None:
    asked = manager(300, strict=True)
    session = Session()
    session.add_message("system", "s" * 96, "sys", 0.0)
    session.add_message("user", "q" * 296, "big", 0.0)
    for call in (asked.process_session, asked.trim_session, asked.process_session):
        with pytest.raises(ContextOverflowError) as caught:
            call(session)
        assert (caught.value.needed, caught.value.budget) == (400, 300)
        assert [(one.item_id, one.tokens) for one in caught.value.culprits] == [("big", 300), ("sys", 100)]
        assert "100 more than the budget of 300" in str(caught.value)
        assert asked.get_token_usage()["total"] == 400
        assert asked.is_over_budget()
    assert asked.plan_session(session).over_budget
    session.add_message("assistant", "a", "answer", 0.0)
    session.add_message("user", "q", "small", 0.0)
    assert ids(asked.process_session(session)) == ["sys", "answer", "small"]


def test_strict_with_nothing_but_overhead() -> None:
    tools = [{"name": "read", "description": "d" * 500}]
    asked = ContextWindowManager(token_counter=Letters(), context_window=ContextWindow(max_tokens=100, strict=True), tools=tools)
    with pytest.raises(ContextOverflowError, match=r"Largest: overhead \(532 tokens: "):
        asked.process_session(Session())


def test_figures_fit_together_when_the_session_grows_while_it_is_counted() -> None:
    """As it does where another thread appends: the counter here does it, so that it happens every time."""
    session = session_of(3)

    def counter(text: str) -> int:
        if text.startswith("o") and len(session.items) < 40:
            session.add_message("assistant", "x" * 30)
        return len(text)

    asked = ContextWindowManager(token_counter=counter, context_window=ContextWindow(max_tokens=10_000))
    assert asked.process_session(session) is session
    report = asked.usage()
    assert len(session.items) > report.items == 13
    assert report.total == asked.get_token_usage()["total"] == sum(item.tokens for item in asked.usage(Session(session.items[:13])).rows)
    asked.process_session(session)
    assert list(asked.process_session(session).items) == list(session.items)


class Flaky(Letters):
    """Letters, but down at the calls that a test names."""

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
    """The next call, with the counter healthy again, gives the same view as from cold: also where a trim broke off."""
    whole = data.draw(sessions(max_steps=14))
    budget = 1 + data.draw(st.integers(0, 120)) * sum(map(cost, whole.items)) // 100
    counter = Flaky()
    asked = ContextWindowManager(token_counter=counter, context_window=ContextWindow(max_tokens=budget))
    log = Session(id="s")
    log.restore_seams(whole.response_breaks, 0)
    for item in whole.items:
        log.append(item)
        if data.draw(st.integers(0, 2)) == 0:
            counter.left = data.draw(st.integers(0, 12))
            with suppress(OSError):
                asked.process_session(log)
            counter.left = None
            if data.draw(st.booleans()):
                asked.process_session(log)
    again = ContextWindowManager(token_counter=Flaky(), context_window=ContextWindow(max_tokens=budget))
    assert list(asked.process_session(log).items) == list(again.process_session(log).items)
    assert asked.get_token_usage() == again.get_token_usage()
    assert asked.analyze_session(log) == again.analyze_session(log)


# What is kept


@pytest.mark.parametrize("budget", [1500, 100_000], ids=["trimmed", "whole"])
def test_a_session_that_is_gone_is_forgotten_at_once(budget: int) -> None:
    asked = manager(budget)
    session = session_of(12)
    asked.process_session(session)
    asked.trim_session(session)
    asked.analyze_session(session)
    usage = asked.usage()
    gone = ref(session)
    gc.disable()  # nothing may have to wait for it: what is kept of a long session is megabytes
    try:
        del session
        assert gone() is None
        assert len(asked._states) == 0
    finally:
        gc.enable()
    assert asked.usage() == usage, "what it held is known until another is asked about"


def test_many_sessions_leave_nothing_behind() -> None:
    asked = manager(1500)
    for _ in range(30):
        asked.process_session(session_of(12))
        asked.format_token_usage()
    gc.collect()
    assert len(asked._states) == 0


@pytest.mark.no_cover  # what is measured is memory
@pytest.mark.parametrize(("budget", "least_trims"), [(10**9, 0), (20_000, 8)], ids=["whole", "trimmed often"])
def test_what_is_kept_of_an_item_is_at_most_200_bytes(budget: int, least_trims: int) -> None:
    trims: list[object] = []
    asked = ContextWindowManager(
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
                asked.process_session(session)
        asked.process_session(session)
        asked.reset_usage()
        before = tracemalloc.get_traced_memory()[0]
        asked._states.clear()
        kept = before - tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert len(trims) >= least_trims
    assert 50 < kept / 10_000 < 200
