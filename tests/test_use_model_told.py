"""What listeners are told when the model is another one: of what is newly out, of thresholds, of a client that is not asked."""

from __future__ import annotations

from context_window import (
    Action,
    ContextWindow,
    ContextWindowManager,
    Decision,
    Image,
    MessageCategory,
    ModelConfig,
    Reason,
    Session,
    ThresholdCrossed,
    Trimmed,
)
from context_window.events import CounterFellBack, Event
from context_window.settings import NOT_CLAUDE
from context_window.switching import _shows_less
from context_window.trimming.plan import Cut
from tests.support.counting import Letters
from tests.support.managing import ids, session_of
from tests.support.stubs import AnthropicStub
from tests.support.stubs.clients import anthropic_client


def told_of(events: list[Event]) -> list[str]:
    return [type(one).__name__ for one in events]


def test_a_smaller_window_trims_at_the_next_call_with_an_event() -> None:
    told: list[Event] = []
    asked = ContextWindowManager(ModelConfig("claude-opus-5-5", 8000), Letters(), on_event=told.append)
    session = session_of(12)
    assert asked.process_session(session) is session
    told.clear()
    asked.use_model(ModelConfig("gpt-5", 3000))
    assert told == [], "nothing has happened yet"
    view = asked.process_session(session)
    assert len(view.items) < len(session.items)
    assert isinstance(told[0], Trimmed)
    assert told[0].budget == 3000
    assert told_of(told[1:]) == ["ThresholdCrossed"] * len(told[1:])
    told.clear()
    asked.process_session(session)
    assert told == []


def test_a_larger_window_brings_back_what_was_out_and_tells_of_no_trim() -> None:
    told: list[Event] = []
    asked = ContextWindowManager(ModelConfig("gpt-5", 3000), Letters(), on_event=told.append)
    session = session_of(12)
    asked.process_session(session)
    asked.use_model(ModelConfig("claude-opus-5-5", 8000))
    told.clear()
    assert asked.process_session(session) is session
    assert told_of(told) == []
    asked.use_model("gpt-5")
    asked.process_session(session)
    assert told_of(told)[:1] == ["Trimmed"]


def test_what_is_newly_out_is_told_although_less_is_out_than_under_the_model_before() -> None:
    """Claude charges so much for the image that its output goes, where GPT gave up the oldest messages."""
    told: list[Event] = []
    window = ContextWindow(target_ratio=0.9, warn_at=())
    asked = ContextWindowManager(ModelConfig("gpt-4o", 4000), len, context_window=window, on_event=told.append)
    session = Session()
    session.add_function_call("look", {}, "c")
    session.add_function_output("look", [Image(url="u", width=1600, height=1200, detail="low")], "c")
    for number in range(6):
        session.add_message("user", "q" * 600, f"u{number}")
        session.add_message("assistant", "a" * 100, f"a{number}")
    session.add_message("user", "?")
    view = asked.process_session(session)
    assert [one.kinds for one in told if isinstance(one, Trimmed)] == [(("message", 3),)]
    assert "u0" not in ids(view)
    told.clear()
    asked.use_model(ModelConfig("claude-sonnet-4-5", 5000))
    view = asked.process_session(session)
    assert "u0" in ids(view)
    assert [one.kinds for one in told if isinstance(one, Trimmed)] == [(("output", 1),)]


def decided(action: Action, *, images: tuple[int, ...] = (), cut: Cut | None = None) -> Decision:
    return Decision("i", "read output", MessageCategory.SYSTEM_OUTPUT, action, Reason.OVER_BUDGET, 9, 1, images, cut)


def test_one_decision_shows_less_than_another() -> None:
    whole, dropped, cleared = decided(Action.KEEP), decided(Action.DROP), decided(Action.CLEAR)
    short, long = (decided(Action.TRUNCATE, cut=Cut(size, size, size)) for size in (5, 9))
    one, two, other = (decided(Action.REPLACE_IMAGES, images=places) for places in ((0,), (0, 1), (1,)))
    rising = (dropped, cleared, short, long, whole)
    for place, before in enumerate(rising):
        assert [_shows_less(now, before) for now in rising] == [at < place for at in range(len(rising))]
    assert [_shows_less(now, before) for now, before in [(one, whole), (two, one), (one, two), (other, one), (one, one)]] == [
        *(True, True, False, True, False)
    ]


def test_where_nothing_more_is_out_other_tokens_are_no_trim() -> None:
    """What is out costs half as much again for the other counter, which is no news."""

    class Doubled(Letters):
        def count_text(self, text: str) -> int:
            return 2 * len(text)

    told: list[Event] = []
    session = session_of(12)
    session.add_message("user", "q" * 300)
    asked = ContextWindowManager("gpt-5", Letters(), context_window=ContextWindow(10**6, 8, warn_at=()), on_event=told.append)
    asked.process_session(session)
    asked.trim_session(session)
    assert told_of(told) == ["Trimmed", "Trimmed"]
    asked._given = (Doubled(), *asked._given[1:])
    asked.use_model("gpt-4o")
    asked.trim_session(session)
    asked.process_session(session)
    assert told_of(told) == ["Trimmed", "Trimmed"]
    assert (
        asked.analyze_session(session)["total_tokens"]
        > 1.5 * ContextWindowManager("gpt-5", Letters()).analyze_session(session)["total_tokens"]
    )


def test_thresholds_are_those_of_the_new_window() -> None:
    told: list[Event] = []
    asked = ContextWindowManager(ModelConfig("gpt-5", 10_000), Letters(), on_event=told.append)
    session = Session()
    session.add_message("user", "x" * 800)
    asked.process_session(session)
    assert told == []
    asked.use_model(ModelConfig("gpt-4o", 1000))
    asked.process_session(session)
    assert [one.threshold for one in told if isinstance(one, ThresholdCrossed)] == [0.5, 0.75]
    asked.use_model("gpt-5")
    asked.process_session(session)
    asked.use_model("gpt-4o")
    asked.process_session(session)
    assert len(told) == 4, "usage was below them in between"


def test_a_client_of_anthropics_is_not_asked_about_other_models_and_that_is_told() -> None:
    told: list[Event] = []
    session = session_of(1)
    session.add_message("user", "And now?")
    with AnthropicStub() as stub, anthropic_client(stub) as client:
        asked = ContextWindowManager("claude-sonnet-4-5", None, client, on_event=told.append)
        assert asked.analyze_session(session)["provider_tokens"]
        asked.use_model("gpt-5")
        assert asked.analyze_session(session)["provider_tokens"] is None
        asked.analyze_session(session)
        assert [one.why for one in told if isinstance(one, CounterFellBack)] == [NOT_CLAUDE]
        assert len(stub.requests) == 1
        asked.use_model("claude-haiku-4-5")
        assert asked.analyze_session(session)["provider_tokens"]
        assert stub.requests[-1]["model"] == "claude-haiku-4-5"
    assert len(told) == 1
