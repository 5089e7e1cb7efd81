"""What listeners are told, how often, and that no content is ever in it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from threading import Event as Flag
from threading import Thread
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from context_window import BudgetError, ContextOverflowError, ContextWindow, ContextWindowManager, FunctionCall, MessageCategory, Session
from context_window.events import Event, OverBudget, ThresholdCrossed, Trimmed
from context_window.watch import Watch, marks_at
from tests.support.counting import Letters
from tests.support.strategies import sessions
from tests.support.twin import cost


def manager(told: list[Event] | None = None, *, listener: Callable[[Event], Any] | None = None, **window: Any) -> ContextWindowManager:
    on_event = listener if listener is not None else None if told is None else told.append
    return ContextWindowManager(token_counter=Letters(), context_window=ContextWindow(**window), on_event=on_event)


def say(session: Session, tokens: int, role: Any = "user", **given_too: Any) -> None:
    session.add_message(role, "x" * (tokens - 4), **given_too)


def thresholds(told: list[Event]) -> list[float]:
    return [one.threshold for one in told if isinstance(one, ThresholdCrossed)]


# Thresholds


def test_each_threshold_is_told_once_while_usage_stays_above_it() -> None:
    told: list[Event] = []
    asked = manager(told, max_tokens=1000)
    session = Session()
    crossed = []
    for _ in range(10):
        say(session, 100)
        asked.process_session(session)
        asked.process_session(session)
        crossed.append(thresholds(told))
        told.clear()
    assert crossed == [[], [], [], [], [], [0.5], [], [0.75], [], [0.9]]


def test_all_thresholds_crossed_at_once_are_told_from_the_lowest_up_and_each_once() -> None:
    told: list[Event] = []
    asked = manager(told, max_tokens=1000, warn_at=(0.9, 0.5, 0.75, 0.5))
    session = Session()
    say(session, 950)
    asked.process_session(session)
    assert thresholds(told) == [0.5, 0.75, 0.9]
    assert [str(one) for one in told] == [f"context window at 95% capacity (950/1,000 tokens), above {part}%" for part in (50, 75, 90)]


def test_a_threshold_is_told_again_after_usage_was_below_it() -> None:
    told: list[Event] = []
    asked = manager(told, max_tokens=1000, target_ratio=0.3, warn_at=(0.75,))
    session = Session()
    counts = []
    for _ in range(30):
        say(session, 50)
        say(session, 50, "assistant")
        before = asked.get_token_usage()["total"]
        asked.process_session(session)
        counts.append((before <= 750 < asked.get_token_usage()["total"], len(thresholds(told))))
        told.clear()
    assert [crossed for crossed, _ in counts] == [bool(number) for _, number in counts]
    assert sum(number for _, number in counts) >= 3


@pytest.mark.parametrize(("threshold", "budget", "exactly"), [(0.29, 100, 29), (0.58, 100, 58), (0.7, 10, 7)])
def test_usage_exactly_at_a_threshold_is_not_above_it(threshold: float, budget: int, exactly: int) -> None:
    """0.29 * 100 is 28.999999999999996 in floats."""
    for tokens in (exactly, exactly + 1):
        now = Trimmed("s", tokens, budget, 0, 0)
        news = list(Watch().news(now, marks_at([threshold], budget), lost=False))
        assert bool(news) is (tokens > exactly)


# Trims


def test_trimmed_is_told_when_something_new_is_out_and_only_then() -> None:
    told: list[Event] = []
    asked = manager(told, max_tokens=1000)
    session = Session()
    out: set[str] = set()
    trims = 0
    for _ in range(60):
        say(session, 40)
        say(session, 40, "assistant")
        view = asked.process_session(session)
        asked.process_session(session)
        asked.plan_session(session)
        now = {item.id for item in session.items} - {item.id for item in view.items}
        news = [one for one in told if isinstance(one, Trimmed)]
        assert [one.items for one in news] == ([len(now)] if now - out else [])
        assert all(one.freed == 40 * one.items for one in news)
        trims += len(news)
        out = now
        told.clear()
    assert 5 < trims < 20


def test_a_trim_that_a_plan_foresaw_is_told_when_it_is_made() -> None:
    told: list[Event] = []
    asked = manager(told, max_tokens=200)
    session = Session()
    for _ in range(6):
        say(session, 50)
    asked.plan_session(session)
    assert told == []
    asked.process_session(session)
    assert [type(one) for one in told].count(Trimmed) == 1


def test_what_is_newly_out_is_told_even_where_more_has_come_back() -> None:
    """A late answer brings its calls back in the same step in which something else goes."""
    told: list[Event] = []
    asked = manager(told, max_tokens=1000, target_ratio=0.8, warn_at=())
    session = Session()
    say(session, 5)
    for name in ("c0", "c1"):
        session.append(FunctionCall("tool", "{}", name, category=MessageCategory.CONTEXT))
    session.add_function_output("tool", "o" * 550, "c0")
    say(session, 5, "assistant")
    say(session, 504, message_id="u1")
    say(session, 5, "assistant")
    asked.process_session(session)
    session.add_function_output("tool", "late", "c1")
    say(session, 100)
    assert "u1" not in [item.id for item in asked.process_session(session).items]
    first, second = told
    assert isinstance(first, Trimmed)
    assert isinstance(second, Trimmed)
    assert second.items < first.items
    assert second.freed < first.freed


def test_an_edit_in_place_does_not_tell_again_of_what_was_told() -> None:
    told: list[Event] = []
    asked = manager(told, max_tokens=300)
    session = Session()
    for number in range(20):
        say(session, 50, message_id=f"m{number}")
    asked.process_session(session)
    told.clear()
    session.pin("m19")
    asked.process_session(session)
    assert [one for one in told if isinstance(one, Trimmed)] == []
    say(session, 250)
    asked.process_session(session)
    assert [type(one) for one in told].count(Trimmed) == 1


def test_a_one_shot_trim_tells_what_it_took_and_not_again_what_the_last_one_had() -> None:
    told: list[Event] = []
    asked = manager(told, max_tokens=200, warn_at=())
    session = Session()
    for _ in range(6):
        say(session, 50)
    for _ in range(3):
        asked.trim_session(session)
        asked.process_session(session)
    one_shot, folded = told
    assert isinstance(one_shot, Trimmed)
    assert isinstance(folded, Trimmed)
    assert (one_shot.items, one_shot.tokens) == (2, 200)
    assert folded.items > one_shot.items
    say(session, 50)
    asked.trim_session(session)
    assert [str(one) for one in told[2:]] == ["context window at 100% capacity (200/200 tokens), trimmed 3 messages: 150 tokens freed"]


def test_two_sessions_are_watched_apart() -> None:
    told: list[Event] = []
    asked = manager(told, max_tokens=100, warn_at=(0.5,))
    for name in ("a", "b"):
        session = Session(id=name)
        say(session, 60)
        asked.process_session(session)
    assert [one.session_id for one in told] == ["a", "b"]


# Over the budget


def test_over_budget_is_told_of_every_view_that_does_not_fit() -> None:
    told: list[Event] = []
    asked = manager(told, max_tokens=100, warn_at=())
    session = Session(id="s")
    say(session, 130)
    asked.process_session(session)
    asked.process_session(session)
    assert told == [OverBudget("s", 130, 100)] * 2
    assert str(told[0]) == "context window at 130% capacity (130/100 tokens), over budget: what must be kept is 30 tokens too large"


def test_over_budget_names_what_is_in_no_item() -> None:
    told: list[Event] = []
    tool = {"name": "look", "description": "d" * 90, "input_schema": {"type": "object"}}
    window = ContextWindow(max_tokens=100, warn_at=())
    asked = ContextWindowManager(token_counter=Letters(), context_window=window, tools=[tool], on_event=told.append)
    session = Session(id="s")
    say(session, 60)
    asked.process_session(session)
    (over,) = told
    assert isinstance(over, OverBudget)
    assert (over.tokens, over.overhead) == (60 + over.overhead, asked.get_token_usage()["overhead"])
    assert f"(with overhead ({over.overhead:,} tokens: tools, instructions and what else is beside the items))" in str(over)


def test_strict_tells_before_it_raises() -> None:
    told: list[Event] = []
    session = Session(id="s")
    say(session, 130)
    with pytest.raises(ContextOverflowError):
        manager(told, max_tokens=100, warn_at=(), strict=True).process_session(session)
    assert told == [OverBudget("s", 130, 100)]


# Listeners


def test_a_listener_that_fails_costs_nobody_anything(caplog: pytest.LogCaptureFixture) -> None:
    told: list[Event] = []

    def fail(one: Event) -> None:
        told.append(one)
        raise RuntimeError("the secret is tr0ub4dor")

    session = Session()
    for _ in range(6):
        say(session, 50)
    asked = manager(listener=fail, max_tokens=200, warn_at=(0.1, 0.2))
    with caplog.at_level(logging.DEBUG):
        view = asked.process_session(session)
    assert len(view.items) < 6
    assert len(told) == 3, "one failure must not keep the others from being told"
    errors = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert len(errors) == len(told)
    assert "a listener failed on Trimmed: RuntimeError at " in errors[0].getMessage()
    assert "test_events.py" in errors[0].getMessage()
    assert "tr0ub4dor" not in caplog.text


def test_a_listener_may_interrupt() -> None:
    def stop(_: Event) -> None:
        raise KeyboardInterrupt

    session = Session()
    say(session, 90)
    with pytest.raises(KeyboardInterrupt):
        manager(listener=stop, max_tokens=100).process_session(session)


def test_a_listener_may_ask_the_manager_for_anything() -> None:
    seen: list[tuple[int, int]] = []

    def ask(one: Event) -> None:
        if not isinstance(one, Trimmed):
            return
        usage = asked.get_token_usage()
        assert asked.process_session(session).items == asked.process_session(session).items
        seen.append((one.tokens, usage["total"]))
        assert asked.analyze_session(session)["total_tokens"] == 300
        assert asked.plan_session(session).after == one.tokens
        assert asked.format_token_usage(session)

    asked = manager(listener=ask, max_tokens=200, warn_at=())
    session = Session()
    for _ in range(6):
        say(session, 50)
    asked.process_session(session)
    assert seen == [(seen[0][0], seen[0][0])]


def test_a_listener_may_wait_for_a_thread_that_asks_about_its_session() -> None:
    """Nothing is locked while listeners are told."""
    answered = Flag()

    def answer() -> None:
        asked.process_session(session)
        answered.set()

    def wait(_: Event) -> None:
        other = Thread(target=answer, daemon=True)
        other.start()
        other.join(5)

    asked = manager(listener=wait, max_tokens=100, warn_at=(0.5,))
    session = Session()
    say(session, 60)
    asked.process_session(session)
    assert answered.is_set()


async def _async_listener(one: Event) -> None:
    pass


@pytest.mark.parametrize("wrong", [5, "print", _async_listener], ids=["a number", "a text", "a coroutine function"])
def test_what_cannot_be_told_is_refused(wrong: Any) -> None:
    with pytest.raises(BudgetError, match=r"^on_event=.*: pass a plain function that takes an event"):
        ContextWindowManager(on_event=wrong)


# Content


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_content_in_events_and_logs(caplog: pytest.LogCaptureFixture, data: st.DataObject) -> None:
    """Whatever is said in a session, nothing of it is in an event or a log record; nor in what overflows raise."""
    session = data.draw(sessions(max_steps=12))
    for number, role in enumerate(("system", "user", "assistant")):
        session.add_message(role, f"zebra{number} quagga", f"marked{number}")  # type: ignore[arg-type]
    session.add_function_call("tool", {"path": "zebra"}, "marked")
    session.add_function_output("tool", "quagga zebra " * 20, "marked")
    session.add_context("zebra", source="quagga")
    told: list[Event] = []
    overflows: list[str] = []
    budget = data.draw(st.integers(1, 1 + 2 * sum(map(cost, session.items))))
    asked = manager(told, max_tokens=budget, strict=data.draw(st.booleans()))
    caplog.clear()
    with caplog.at_level(logging.DEBUG):
        for call in (asked.process_session, asked.trim_session, asked.analyze_session, asked.plan_session):
            try:
                call(session)
            except ContextOverflowError as error:
                overflows.append(str(error))
    event(f"events: {len(told)}")
    texts = [caplog.text, *overflows, *map(str, told), *map(repr, told)]
    assert len(caplog.records) == len(told)
    assert not any(word in text for word in ("zebra", "quagga") for text in texts)


def test_loggers_are_named_after_the_modules(caplog: pytest.LogCaptureFixture) -> None:
    session = Session()
    say(session, 130)
    with caplog.at_level(logging.DEBUG):
        manager(max_tokens=100, warn_at=(0.5,)).process_session(session)
    assert [(record.name, record.levelname) for record in caplog.records] == [
        ("context_window.events", "DEBUG"),
        ("context_window.events", "WARNING"),
    ]
