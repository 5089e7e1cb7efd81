"""Events after a switch of models: newly hidden items, thresholds, and a client that is not used."""

from __future__ import annotations

from dataclasses import replace

from context_window import ContextWindow, ContextWindowManager, Image, ModelConfig, Reason, Session, ThresholdCrossed, Trimmed
from context_window.decision.edits import Edit, shows_less
from context_window.decision.plan import Cut
from context_window.events.definitions import CounterFellBack, Event
from context_window.settings.resolved import NOT_CLAUDE
from tests.support.counting import Letters
from tests.support.managing import ids, session_of
from tests.support.stubs import AnthropicStub
from tests.support.stubs.clients import anthropic_client


def told_of(events: list[Event]) -> list[str]:
    return [type(event).__name__ for event in events]


def test_a_smaller_window_trims_at_the_next_call_with_an_event() -> None:
    events: list[Event] = []
    manager = ContextWindowManager(ModelConfig("claude-opus-5-5", 8000), Letters(), on_event=events.append)
    session = session_of(12)
    assert manager.process_session(session).items == session.items
    events.clear()
    manager.use_model(ModelConfig("gpt-5", 3000))
    assert events == [], "nothing has happened yet"
    view = manager.process_session(session)
    assert len(view.items) < len(session.items)
    assert isinstance(events[0], Trimmed)
    assert events[0].budget == 3000
    assert told_of(events[1:]) == ["ThresholdCrossed"] * len(events[1:])
    events.clear()
    manager.process_session(session)
    assert events == []


def test_a_larger_window_restores_items_without_an_event() -> None:
    events: list[Event] = []
    manager = ContextWindowManager(ModelConfig("gpt-5", 3000), Letters(), on_event=events.append)
    session = session_of(12)
    manager.process_session(session)
    manager.use_model(ModelConfig("claude-opus-5-5", 8000))
    events.clear()
    assert manager.process_session(session).items == session.items
    assert told_of(events) == []
    manager.use_model("gpt-5")
    manager.process_session(session)
    assert told_of(events)[:1] == ["Trimmed"]


def test_newly_hidden_items_are_reported_even_if_fewer_are_hidden_than_before() -> None:
    """The image costs so much on Claude that its output is cleared; on GPT the oldest messages were dropped instead."""
    events: list[Event] = []
    window = ContextWindow(target_ratio=0.9, warn_at=())
    manager = ContextWindowManager(ModelConfig("gpt-4o", 4000), len, context_window=window, on_event=events.append)
    session = Session()
    session.add_function_call("look", {}, "c")
    session.add_function_output("look", [Image(url="u", width=1600, height=1200, detail="low")], "c")
    for number in range(6):
        session.add_message("user", "q" * 600, f"u{number}")
        session.add_message("assistant", "a" * 100, f"a{number}")
    session.add_message("user", "?")
    view = manager.process_session(session)
    assert [event.kinds for event in events if isinstance(event, Trimmed)] == [(("message", 3),)]
    assert "u0" not in ids(view)
    events.clear()
    manager.use_model(ModelConfig("claude-sonnet-4-5", 5000))
    view = manager.process_session(session)
    assert "u0" in ids(view)
    assert [event.kinds for event in events if isinstance(event, Trimmed)] == [(("output", 1),)]


def test_one_edit_shows_less_than_another() -> None:
    dropped, cleared = Edit(0, gone=Reason.OVER_BUDGET), Edit(1, is_cleared=True)
    short, long = (Edit(size, cut=Cut(size, size, size)) for size in (5, 9))
    first, two, other = (Edit(1, images=parts) for parts in ((0,), (0, 1), (1,)))
    rising = (dropped, cleared, short, long, None)
    for index, before in enumerate(rising):
        assert [shows_less(later, before) for later in rising] == [at < index for at in range(len(rising))]
    pairs = [(first, None), (two, first), (first, two), (other, first), (first, first)]
    assert [shows_less(later, before) for later, before in pairs] == [True, True, False, True, False]


def test_where_nothing_more_is_out_other_tokens_are_no_trim() -> None:
    """The other counter counts the hidden items half as high again, which is not a new trim."""

    class Doubled(Letters):
        def count_text(self, text: str) -> int:
            return 2 * len(text)

    events: list[Event] = []
    session = session_of(12)
    session.add_message("user", "q" * 300)
    manager = ContextWindowManager("gpt-5", Letters(), context_window=ContextWindow(10**6, 8, warn_at=()), on_event=events.append)
    manager.process_session(session)
    manager.trim_session(session)
    assert told_of(events) == ["Trimmed", "Trimmed"]
    manager._settings._source = replace(manager._settings._source, token_counter=Doubled())
    manager.use_model("gpt-4o")
    manager.trim_session(session)
    manager.process_session(session)
    assert told_of(events) == ["Trimmed", "Trimmed"]
    assert (
        manager.analyze_session(session)["total_tokens"]
        > 1.5 * ContextWindowManager("gpt-5", Letters()).analyze_session(session)["total_tokens"]
    )


def test_thresholds_are_those_of_the_new_window() -> None:
    events: list[Event] = []
    manager = ContextWindowManager(ModelConfig("gpt-5", 10_000), Letters(), on_event=events.append)
    session = Session()
    session.add_message("user", "x" * 800)
    manager.process_session(session)
    assert events == []
    manager.use_model(ModelConfig("gpt-4o", 1000))
    manager.process_session(session)
    assert [event.threshold for event in events if isinstance(event, ThresholdCrossed)] == [0.5, 0.75]
    manager.use_model("gpt-5")
    manager.process_session(session)
    manager.use_model("gpt-4o")
    manager.process_session(session)
    assert len(events) == 4, "usage was below them in between"


def test_an_anthropic_client_is_not_used_for_other_models_and_an_event_says_so() -> None:
    events: list[Event] = []
    session = session_of(1)
    session.add_message("user", "And now?")
    with AnthropicStub() as stub, anthropic_client(stub) as client:
        manager = ContextWindowManager("claude-sonnet-4-5", None, client, on_event=events.append)
        assert manager.analyze_session(session)["provider_tokens"]
        manager.use_model("gpt-5")
        assert manager.analyze_session(session)["provider_tokens"] is None
        manager.analyze_session(session)
        assert [event.why for event in events if isinstance(event, CounterFellBack)] == [NOT_CLAUDE]
        assert len(stub.requests) == 1
        manager.use_model("claude-haiku-4-5")
        assert manager.analyze_session(session)["provider_tokens"]
        assert stub.requests[-1]["model"] == "claude-haiku-4-5"
    assert len(events) == 1
