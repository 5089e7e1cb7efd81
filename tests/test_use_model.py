"""Another model in the middle of a session: all that goes by the model follows, and nothing else changes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from context_window import (
    BudgetError,
    ContextWindow,
    ContextWindowManager,
    CountingError,
    Image,
    ModelConfig,
    Session,
    UnknownModelError,
)
from context_window.events import Event
from tests.support.counting import Letters
from tests.support.managing import ids, session_of
from tests.support.strategies import sessions
from tests.support.twin import cost

MODELS = ("claude-sonnet-4-5", "claude-opus-5-5", "gpt-5", "gpt-4", "gemini-2.5-pro", "claude-haiku-4-5")
TOOL = {"name": "read", "description": "Reads a file.", "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}}}


def pictured(turns: int = 3) -> Session:
    session = session_of(turns)
    session.add_message("user", ["Look:", Image(url="u", width=1600, height=1200)])
    return session


# What follows


@pytest.mark.parametrize("first", MODELS)
@pytest.mark.parametrize("second", MODELS)
def test_after_a_switch_everything_is_as_if_the_manager_had_been_made_for_the_model(first: str, second: str) -> None:
    """Window, counter, image rule, and the overhead with its tools, counted anew."""
    session = pictured()
    switched, fresh = (ContextWindowManager(name, tools=[TOOL]) for name in (first, second))
    switched.process_session(session)
    switched.use_model(second)
    assert switched.total_budget == fresh.total_budget
    assert switched.analyze_session(session) == fresh.analyze_session(session)
    assert switched.usage(session) == fresh.usage(session)
    assert switched.get_budget("DIALOG") == fresh.get_budget("DIALOG")
    assert switched._settings.limits == fresh._settings.limits


@given(st.data())
def test_views_after_switches_are_those_of_a_manager_made_for_the_model(data: st.DataObject) -> None:
    """One view from the same log: whichever models were in use before, and whatever was asked under them."""
    log = data.draw(sessions(max_steps=14))
    total = sum(map(cost, log.items))
    stops = {len(log.items), *data.draw(st.sets(st.integers(1, max(1, len(log.items))), max_size=4))}
    configs = {name: ModelConfig(name, data.draw(st.integers(1, 1 + total))) for name in ("claude-opus-5-5", "gpt-5", "gemini-2.5-pro")}
    used = ContextWindowManager(configs["gpt-5"], Letters())
    for config in configs.values():
        used.use_model(config)
    session = Session(id=log.id)
    for length, item in enumerate(log.items, 1):
        session.append(item)
        if length not in stops:
            continue
        name = data.draw(st.sampled_from(list(configs)))
        used.use_model(name)
        fresh = ContextWindowManager(configs[name], Letters())
        view = used.process_session(session)
        event(f"trimmed: {view is not session}")
        assert list(view.items) == list(fresh.process_session(session).items)
        assert used.get_token_usage() == fresh.get_token_usage()
        assert used.analyze_session(session) == fresh.analyze_session(session)
    assert list(session.items) == list(log.items)


def test_a_counter_that_was_passed_stays_with_the_image_rule_of_the_model() -> None:
    asked = ContextWindowManager("claude-sonnet-4-5", len)
    session = pictured(0)
    tokens = []
    for name in ("claude-sonnet-4-5", "gpt-4o", "gemini-2.5-pro"):
        asked.use_model(name)
        assert asked.analyze_session(session)["counter"] == "len"
        tokens.append(asked.analyze_session(session)["total_tokens"] - asked.analyze_session(session)["overhead_tokens"])
    assert len(set(tokens)) == 3


def test_tools_that_came_later_are_counted_by_every_model() -> None:
    asked, fresh = ContextWindowManager("claude-sonnet-4-5"), ContextWindowManager("gpt-5", tools=[TOOL])
    asked.count_tools([TOOL])
    asked.use_model("gpt-5")
    assert asked.analyze_session(session_of(1)) == fresh.analyze_session(session_of(1))


def test_the_figures_of_the_last_view_are_counted_anew_and_what_was_added_by_hand_stays() -> None:
    session = pictured()
    asked, fresh = ContextWindowManager("claude-opus-5-5"), ContextWindowManager("gpt-4o")
    asked.process_session(session)
    fresh.process_session(session)
    for one in (asked, fresh):
        one.update_usage("DIALOG", 777)
        one.reset_usage("CONTEXT")
    asked.use_model("gpt-4o")
    usage = asked.get_token_usage()
    assert usage == fresh.get_token_usage()
    assert usage["total"] == usage["overhead"] + sum(usage[name] for name in ("SYSTEM", "CONTEXT", "DIALOG", "SYSTEM_OUTPUT"))
    assert usage["budget"] == asked.total_budget == usage["total"] + asked.available_tokens
    assert asked.format_token_usage() == fresh.format_token_usage()


# What stays


def test_the_model_in_use_changes_nothing() -> None:
    told: list[Event] = []
    session = session_of(12)
    asked = ContextWindowManager("gpt-5", Letters(), context_window=ContextWindow(2000), on_event=told.append)
    view, settings, usage = asked.process_session(session), asked._settings, asked.get_token_usage()
    told.clear()
    asked.use_model("gpt-5")
    assert asked._settings is settings
    assert asked.get_token_usage() == usage
    again = asked.process_session(session)
    assert all(one is other for one, other in zip(view.items, again.items, strict=True)), "not even placeholders are made anew"
    assert told == []


def test_another_spelling_of_the_model_changes_its_name_alone() -> None:
    asked = ContextWindowManager("gpt-5")
    before = asked.analyze_session(session_of(3))
    asked.use_model("openai/gpt-5")
    assert asked.analyze_session(session_of(3)) == before
    assert asked.usage().model == "openai/gpt-5"


def test_no_session_is_changed() -> None:
    session = session_of(40)
    before, items = session.to_dict(), list(session.items)
    asked = ContextWindowManager(ModelConfig("gpt-5", 4000))
    for name in (*MODELS, "gpt-5"):
        asked.use_model(name)
        asked.process_session(session)
    assert session.to_dict() == before
    assert all(one is other for one, other in zip(session.items, items, strict=True))


def test_the_limit_of_the_context_window_stays() -> None:
    asked = ContextWindowManager("claude-sonnet-4-5", context_window=ContextWindow(max_tokens=5000))
    for name in MODELS:
        asked.use_model(name)
        assert asked.total_budget == 5000
        assert asked.usage().model == name


def test_a_limit_given_for_a_model_holds_whenever_that_is_in_use() -> None:
    asked = ContextWindowManager(ModelConfig("claude-sonnet-4-5", 5000))
    asked.use_model("gpt-5")
    assert asked.total_budget == ContextWindowManager("gpt-5").total_budget
    asked.use_model("claude-sonnet-4-5")
    assert asked.total_budget == 5000
    asked.use_model(ModelConfig("my-llama", 3000))
    assert asked.total_budget == 3000
    asked.use_model("gpt-5")
    asked.use_model("my-llama")
    assert asked.total_budget == 3000


def test_a_model_that_nothing_is_known_of_can_be_gone_back_to() -> None:
    asked = ContextWindowManager("my-llama", context_window=ContextWindow(max_tokens=5000))
    before = asked.analyze_session(session_of(3))
    asked.use_model("gpt-4")
    assert asked.usage().model == "gpt-4"
    asked.use_model("my-llama")
    assert asked.analyze_session(session_of(3)) == before


def test_a_limit_given_for_no_model_by_name_stays() -> None:
    asked = ContextWindowManager(ModelConfig(max_tokens=6000))
    asked.use_model("gpt-5")
    assert asked.total_budget == 6000
    assert asked.usage().model == "gpt-5"


# What is refused


@pytest.mark.parametrize("limits", [ContextWindow(), ContextWindow(max_tokens=5000)], ids=["the model's window", "a window of one's own"])
@pytest.mark.parametrize("name", ["gtp-5", "", "nonsense", "x" * 100_000, "\ud800"])
def test_an_unknown_model_is_refused_and_nothing_has_changed(name: str, limits: ContextWindow) -> None:
    asked = ContextWindowManager("claude-sonnet-4-5", context_window=limits)
    session = session_of(30)
    view, settings, usage = asked.process_session(session), asked._settings, asked.get_token_usage()
    with pytest.raises(UnknownModelError):
        asked.use_model(name)
    assert asked._settings is settings
    assert asked.get_token_usage() == usage
    assert ids(asked.process_session(session)) == ids(view)


@pytest.mark.parametrize("wrong", [None, 5, ["gpt-5"], ModelConfig(max_tokens=5), ContextWindow(5), ModelConfig, b"gpt-5"])
def test_what_names_no_model_is_refused(wrong: Any) -> None:
    asked = ContextWindowManager("claude-sonnet-4-5")
    settings = asked._settings
    with pytest.raises(BudgetError):
        asked.use_model(wrong)
    assert asked._settings is settings


def test_a_reserve_that_leaves_nothing_of_the_new_window_is_refused() -> None:
    asked = ContextWindowManager("claude-sonnet-4-5", context_window=ContextWindow(output_reserve=100_000))
    with pytest.raises(BudgetError, match="output_reserve"):
        asked.use_model("gpt-4")
    assert asked.usage().model == "claude-sonnet-4-5"


def test_a_counter_that_fails_on_the_last_view_leaves_the_model_in_use() -> None:
    failing = False

    def count(text: str) -> int:
        return -1 if failing else len(text)

    asked = ContextWindowManager("gpt-5", count)
    asked.process_session(pictured())
    failing = True
    with pytest.raises(CountingError):
        asked.use_model("claude-sonnet-4-5")
    assert asked.usage().model == "gpt-5"
