"""Events: when each is emitted, how often, and that none contains content."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from threading import Event as Flag
from threading import Thread
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import event as label
from hypothesis import strategies as st

from context_window import ArgumentError, ContextOverflowError, ContextWindow, ContextWindowManager, Session
from context_window.decision.plan import Reason
from context_window.events.definitions import Event, OverBudget, ThresholdCrossed, Trimmed
from context_window.events.view_changes import ViewChanges, thresholds_at
from tests.support.counting import Letters
from tests.support.strategies import sessions
from tests.support.twin import cost


def make_manager(
    events: list[Event] | None = None, *, listener: Callable[[Event], Any] | None = None, **window: Any
) -> ContextWindowManager:
    on_event = listener if listener is not None else None if events is None else events.append
    return ContextWindowManager(token_counter=Letters(), context_window=ContextWindow(**window), on_event=on_event)


def say(session: Session, tokens: int, role: Any = "user", **given_too: Any) -> None:
    session.add_message(role, "x" * (tokens - 4), **given_too)


def thresholds(events: list[Event]) -> list[float]:
    return [event.threshold for event in events if isinstance(event, ThresholdCrossed)]


# Thresholds


def test_each_threshold_is_emitted_once_while_usage_stays_above_it() -> None:
    events: list[Event] = []
    manager = make_manager(events, max_tokens=1000)
    session = Session()
    crossed = []
    for _ in range(10):
        say(session, 100)
        manager.process_session(session)
        manager.process_session(session)
        crossed.append(thresholds(events))
        events.clear()
    assert crossed == [[], [], [], [], [], [0.5], [], [0.75], [], [0.9]]


def test_thresholds_crossed_together_are_emitted_in_ascending_order() -> None:
    events: list[Event] = []
    manager = make_manager(events, max_tokens=1000, warn_at=(0.9, 0.5, 0.75, 0.5))
    session = Session()
    say(session, 950)
    manager.process_session(session)
    assert thresholds(events) == [0.5, 0.75, 0.9]
    assert [str(event) for event in events] == [
        f"context window at 95% capacity (950/1,000 tokens), above {part}%" for part in (50, 75, 90)
    ]


def test_a_threshold_is_emitted_again_after_usage_was_below_it() -> None:
    events: list[Event] = []
    manager = make_manager(events, max_tokens=1000, target_ratio=0.3, warn_at=(0.75,))
    session = Session()
    counts = []
    for _ in range(30):
        say(session, 50)
        say(session, 50, "assistant")
        before = manager.get_token_usage()["total"]
        manager.process_session(session)
        counts.append((before <= 750 < manager.get_token_usage()["total"], len(thresholds(events))))
        events.clear()
    assert [crossed for crossed, _ in counts] == [bool(number) for _, number in counts]
    assert sum(number for _, number in counts) >= 3


@pytest.mark.parametrize(("threshold", "budget", "exactly"), [(0.29, 100, 29), (0.58, 100, 58), (0.7, 10, 7)])
def test_usage_exactly_at_a_threshold_is_not_above_it(threshold: float, budget: int, exactly: int) -> None:
    """0.29 * 100 is 28.999999999999996 in floats."""
    for tokens in (exactly, exactly + 1):
        trimmed = Trimmed("s", tokens, budget, 0, 0)
        news = list(ViewChanges().events(trimmed, thresholds_at([threshold], budget), has_hidden_more=False))
        assert bool(news) is (tokens > exactly)


# Trims


def test_trimmed_is_emitted_only_when_more_is_hidden() -> None:
    events: list[Event] = []
    manager = make_manager(events, max_tokens=1000)
    session = Session()
    hidden_before: set[str] = set()
    trims = 0
    for _ in range(60):
        say(session, 40)
        say(session, 40, "assistant")
        view = manager.process_session(session)
        manager.process_session(session)
        manager.plan_session(session)
        hidden = {item.id for item in session.items} - {item.id for item in view.items}
        news = [event for event in events if isinstance(event, Trimmed)]
        assert [event.items for event in news] == ([len(hidden)] if hidden - hidden_before else [])
        assert all(event.freed == 40 * event.items for event in news)
        assert all(event.before == event.tokens + event.freed == manager.analyze_session(session)["total_tokens"] for event in news)
        trims += len(news)
        hidden_before = hidden
        events.clear()
    assert 5 < trims < 20


def test_a_planned_trim_is_emitted_when_it_happens() -> None:
    events: list[Event] = []
    manager = make_manager(events, max_tokens=200)
    session = Session()
    for _ in range(6):
        say(session, 50)
    manager.plan_session(session)
    assert events == []
    manager.process_session(session)
    assert [type(event) for event in events].count(Trimmed) == 1


def test_an_edit_in_place_does_not_repeat_events() -> None:
    events: list[Event] = []
    manager = make_manager(events, max_tokens=300)
    session = Session()
    for number in range(20):
        say(session, 50, message_id=f"m{number}")
    manager.process_session(session)
    events.clear()
    session.pin("m19")
    manager.process_session(session)
    assert [event for event in events if isinstance(event, Trimmed)] == []
    say(session, 250)
    manager.process_session(session)
    assert [type(event) for event in events].count(Trimmed) == 1


def test_a_one_shot_trim_emits_only_its_additional_trims() -> None:
    events: list[Event] = []
    manager = make_manager(events, max_tokens=200, warn_at=())
    session = Session()
    for _ in range(6):
        say(session, 50)
    for _ in range(3):
        manager.trim_session(session)
        manager.process_session(session)
    one_shot, folded = events
    assert isinstance(one_shot, Trimmed)
    assert isinstance(folded, Trimmed)
    assert (one_shot.items, one_shot.tokens) == (2, 200)
    assert folded.items > one_shot.items
    say(session, 50)
    manager.trim_session(session)
    assert [str(event) for event in events[2:]] == [
        "context window at 100% capacity (200/200 tokens), trimmed 3 messages: 150 tokens freed"
    ]


def test_two_sessions_are_watched_apart() -> None:
    events: list[Event] = []
    manager = make_manager(events, max_tokens=100, warn_at=(0.5,))
    for name in ("a", "b"):
        session = Session(id=name)
        say(session, 60)
        manager.process_session(session)
    assert [event.session_id for event in events] == ["a", "b"]


# Over the budget


def test_over_budget_is_emitted_for_every_view_that_does_not_fit() -> None:
    events: list[Event] = []
    manager = make_manager(events, max_tokens=100, warn_at=(), clamp_messages=False)
    session = Session(id="s")
    say(session, 130)
    manager.process_session(session)
    manager.process_session(session)
    assert events == [OverBudget("s", 130, 100)] * 2
    assert str(events[0]) == (
        "context window at 130% capacity (130/100 tokens), over budget by 30 tokens: the items that must be kept take 130. "
        "Shorten or unpin some of them, or allow more tokens: the smallest sensible budget is 200 tokens"
    )


def test_over_budget_names_the_overhead() -> None:
    events: list[Event] = []
    tool = {"name": "look", "description": "d" * 90, "input_schema": {"type": "object"}}
    window = ContextWindow(max_tokens=100, warn_at=(), clamp_messages=False)
    manager = ContextWindowManager(token_counter=Letters(), context_window=window, tools=[tool], on_event=events.append)
    session = Session(id="s")
    say(session, 60)
    manager.process_session(session)
    (over,) = events
    assert isinstance(over, OverBudget)
    assert (over.tokens, over.overhead) == (60 + over.overhead, manager.get_token_usage()["overhead"])
    outside = "tools, instructions and other parts of the request outside its items"
    assert f"over budget by {over.tokens - 100} tokens: the overhead is {over.overhead:,} of them ({outside}). Send fewer" in str(over)


def test_strict_tells_before_it_raises() -> None:
    events: list[Event] = []
    session = Session(id="s")
    say(session, 130)
    with pytest.raises(ContextOverflowError):
        make_manager(events, max_tokens=100, warn_at=(), strict=True, clamp_messages=False).process_session(session)
    assert events == [OverBudget("s", 130, 100)]


# Listeners


def test_a_listener_that_fails_costs_nobody_anything(caplog: pytest.LogCaptureFixture) -> None:
    events: list[Event] = []

    def fail(event: Event) -> None:
        events.append(event)
        raise RuntimeError("the secret is tr0ub4dor")

    session = Session()
    for _ in range(6):
        say(session, 50)
    manager = make_manager(listener=fail, max_tokens=200, warn_at=(0.1, 0.2))
    with caplog.at_level(logging.DEBUG):
        view = manager.process_session(session)
    assert len(view.items) < 6
    assert len(events) == 3, "one failure must not keep the others from being told"
    errors = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert len(errors) == len(events)
    assert "a listener failed on Trimmed: RuntimeError at " in errors[0].getMessage()
    assert "test_events.py" in errors[0].getMessage()
    assert "tr0ub4dor" not in caplog.text


def test_a_listener_may_interrupt() -> None:
    def stop(_: Event) -> None:
        raise KeyboardInterrupt

    session = Session()
    say(session, 90)
    with pytest.raises(KeyboardInterrupt):
        make_manager(listener=stop, max_tokens=100).process_session(session)


def test_a_listener_may_ask_the_manager_for_anything() -> None:
    calls: list[tuple[int, int]] = []

    def ask(event: Event) -> None:
        if not isinstance(event, Trimmed):
            return
        usage = manager.get_token_usage()
        assert manager.process_session(session).items == manager.process_session(session).items
        calls.append((event.tokens, usage["total"]))
        assert manager.analyze_session(session)["total_tokens"] == 300
        assert manager.plan_session(session).after == event.tokens
        assert manager.format_token_usage(session)

    manager = make_manager(listener=ask, max_tokens=200, warn_at=())
    session = Session()
    for _ in range(6):
        say(session, 50)
    manager.process_session(session)
    assert calls == [(calls[0][0], calls[0][0])]


def test_a_listener_may_wait_for_a_thread_that_asks_about_its_session() -> None:
    """No lock is held while listeners are called."""
    finished = Flag()

    def answer() -> None:
        manager.process_session(session)
        finished.set()

    def wait(_: Event) -> None:
        other = Thread(target=answer, daemon=True)
        other.start()
        other.join(5)

    manager = make_manager(listener=wait, max_tokens=100, warn_at=(0.5,))
    session = Session()
    say(session, 60)
    manager.process_session(session)
    assert finished.is_set()


async def _async_listener(event: Event) -> None:
    pass


@pytest.mark.parametrize("wrong", [5, "print", _async_listener], ids=["a number", "a text", "a coroutine function"])
def test_invalid_listeners_are_rejected(wrong: Any) -> None:
    with pytest.raises(ArgumentError, match=r"^on_event=.*: pass a plain function that takes an event"):
        ContextWindowManager(on_event=wrong)


# Content


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_content_in_events_and_logs(caplog: pytest.LogCaptureFixture, data: st.DataObject) -> None:
    """No content of any session is in an event, a log record or an overflow error."""
    session = data.draw(sessions(max_steps=12))
    for number, role in enumerate(("system", "user", "assistant")):
        session.add_message(role, f"zebra{number} quagga", f"marked{number}")  # type: ignore[arg-type]
    session.add_function_call("tool", {"path": "zebra"}, "marked")
    session.add_function_output("tool", "quagga zebra " * 20, "marked")
    session.add_context("zebra", source="quagga")
    events: list[Event] = []
    overflows: list[str] = []
    budget = data.draw(st.integers(1, 1 + 2 * sum(map(cost, session.items))))
    manager = make_manager(events, max_tokens=budget, strict=data.draw(st.booleans()))
    caplog.clear()
    with caplog.at_level(logging.DEBUG):
        for call in (manager.process_session, manager.trim_session, manager.analyze_session, manager.plan_session):
            try:
                call(session)
            except ContextOverflowError as error:
                overflows.append(str(error))
    label(f"events: {len(events)}")
    texts = [caplog.text, *overflows, *map(str, events), *map(repr, events)]
    ours = [record for record in caplog.records if record.name.startswith("context_window")]  # Pillow logs the headers that it reads
    assert len(ours) == len(events)
    assert not any(word in text for word in ("zebra", "quagga") for text in texts)


def test_loggers_are_named_after_the_modules(caplog: pytest.LogCaptureFixture) -> None:
    session = Session()
    say(session, 130)
    with caplog.at_level(logging.DEBUG):
        make_manager(max_tokens=100, warn_at=(0.5,), clamp_messages=False).process_session(session)
    assert [(record.name, record.levelname) for record in caplog.records] == [
        ("context_window.events.definitions", "DEBUG"),
        ("context_window.events.definitions", "WARNING"),
    ]


def test_what_a_summary_replaced_is_not_trimmed() -> None:
    """`Compacted` is about these items: `Trimmed` neither follows it nor counts them later, even if they were trimmed before."""

    async def write(_prompt: str) -> str:
        return "They talked."

    session, events = Session(id="s"), list[Event]()
    for number in range(6):
        session.add_message("user", "q" * 300, f"q{number}")
        session.add_message("assistant", "a" * 300, f"a{number}")
    session.add_message("user", "now?", "now")
    window = ContextWindow(max_tokens=3_000, keep_recent_turns=2, target_ratio=0.9, note_removed=False)
    manager = ContextWindowManager(token_counter=Letters(), context_window=window, on_event=events.append)
    manager.process_session(session)
    (first,) = [event for event in events if isinstance(event, Trimmed)]
    assert first.kinds == (("message", 3),)
    asyncio.run(manager.compact(session, write))
    events.clear()
    manager.process_session(session)
    assert not any(isinstance(event, Trimmed) for event in events)
    session.add_message("assistant", "b" * 300, "b0")
    session.add_message("user", "r" * 2_000, "last")
    manager.process_session(session)
    (later,) = [event for event in events if isinstance(event, Trimmed)]
    gone = [decision for decision in manager.plan_session(session).changes if decision.reason is not Reason.COMPACTED]
    assert (later.items, later.freed) == (len(gone), sum(decision.before - decision.after for decision in gone))
    assert later.kinds == (("message", len(gone)),)
