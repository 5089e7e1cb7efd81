"""A switch to another model in the middle of a session: what follows the model, and what stays."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from context_window import ArgumentError, ContextWindow, ContextWindowManager, CountingError, Image, ModelConfig, Session, UnknownModelError
from context_window.events.definitions import Event
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


# Changes with the model


@pytest.mark.parametrize("first", MODELS)
@pytest.mark.parametrize("second", MODELS)
def test_after_a_switch_everything_is_as_if_the_manager_had_been_made_for_the_model(first: str, second: str) -> None:
    """Window, counter, image rule, and the recounted overhead with its tools."""
    session = pictured()
    switched, fresh = (ContextWindowManager(name, tools=[TOOL]) for name in (first, second))
    switched.process_session(session)
    switched.use_model(second)
    assert switched.total_budget == fresh.total_budget
    assert switched.analyze_session(session) == fresh.analyze_session(session)
    assert switched.usage(session) == fresh.usage(session)
    assert switched.get_budget("DIALOG") == fresh.get_budget("DIALOG")
    assert switched._settings.current.limits == fresh._settings.current.limits


@given(st.data())
def test_views_after_switches_are_those_of_a_manager_made_for_the_model(data: st.DataObject) -> None:
    """The same log gives the same view, regardless of earlier models and calls, also if an item was pinned after a switch."""
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
        if data.draw(st.booleans()):
            session.pin(data.draw(st.sampled_from(session.items)).id)
        fresh = ContextWindowManager(configs[name], Letters())
        view = used.process_session(session)
        event(f"trimmed: {view.items != session.items}")
        assert list(view.items) == list(fresh.process_session(session).items)
        assert used.get_token_usage() == fresh.get_token_usage()
        assert used.analyze_session(session) == fresh.analyze_session(session)
    assert [item.id for item in session.items] == [item.id for item in log.items]


def test_a_counter_that_was_passed_stays_with_the_image_rule_of_the_model() -> None:
    manager = ContextWindowManager("claude-sonnet-4-5", len)
    session = pictured(0)
    tokens = []
    for name in ("claude-sonnet-4-5", "gpt-4o", "gemini-2.5-pro"):
        manager.use_model(name)
        assert manager.analyze_session(session)["counter"] == "len"
        tokens.append(manager.analyze_session(session)["total_tokens"] - manager.analyze_session(session)["overhead_tokens"])
    assert len(set(tokens)) == 3


def test_tools_that_came_later_are_counted_by_every_model() -> None:
    manager, fresh = ContextWindowManager("claude-sonnet-4-5"), ContextWindowManager("gpt-5", tools=[TOOL])
    manager.count_tools([TOOL])
    manager.use_model("gpt-5")
    assert manager.analyze_session(session_of(1)) == fresh.analyze_session(session_of(1))


def test_figures_are_recounted_and_tokens_added_by_hand_stay() -> None:
    session = pictured()
    manager, fresh = ContextWindowManager("claude-opus-5-5"), ContextWindowManager("gpt-4o")
    manager.process_session(session)
    fresh.process_session(session)
    for window_manager in (manager, fresh):
        window_manager.update_usage("DIALOG", 777)
        window_manager.reset_usage("CONTEXT")
    manager.use_model("gpt-4o")
    usage = manager.get_token_usage()
    assert usage == fresh.get_token_usage()
    assert usage["total"] == usage["overhead"] + sum(usage[name] for name in ("SYSTEM", "CONTEXT", "DIALOG", "SYSTEM_OUTPUT"))
    assert usage["budget"] == manager.total_budget == usage["total"] + manager.available_tokens
    assert manager.format_token_usage() == fresh.format_token_usage()


# Independent of the model


def test_the_model_in_use_changes_nothing() -> None:
    events: list[Event] = []
    session = session_of(12)
    manager = ContextWindowManager("gpt-5", Letters(), context_window=ContextWindow(2000), on_event=events.append)
    view, settings, usage = manager.process_session(session), manager._settings.current, manager.get_token_usage()
    events.clear()
    manager.use_model("gpt-5")
    assert manager._settings.current is settings
    assert manager.get_token_usage() == usage
    again = manager.process_session(session)
    assert all(item is other for item, other in zip(view.items, again.items, strict=True)), "not even placeholders are made anew"
    assert events == []


def test_another_spelling_of_the_model_changes_its_name_alone() -> None:
    manager = ContextWindowManager("gpt-5")
    before = manager.analyze_session(session_of(3))
    manager.use_model("openai/gpt-5")
    assert manager.analyze_session(session_of(3)) == before
    assert manager.usage().model == "openai/gpt-5"


def test_no_session_is_changed() -> None:
    session = session_of(40)
    before, items = session.to_dict(), list(session.items)
    manager = ContextWindowManager(ModelConfig("gpt-5", 4000))
    for name in (*MODELS, "gpt-5"):
        manager.use_model(name)
        manager.process_session(session)
    assert session.to_dict() == before
    assert all(item is other for item, other in zip(session.items, items, strict=True))


def test_the_limit_of_the_context_window_stays() -> None:
    manager = ContextWindowManager("claude-sonnet-4-5", context_window=ContextWindow(max_tokens=5000))
    for name in MODELS:
        manager.use_model(name)
        assert manager.total_budget == 5000
        assert manager.usage().model == name


def test_a_limit_for_a_named_model_applies_whenever_it_is_in_use() -> None:
    manager = ContextWindowManager(ModelConfig("claude-sonnet-4-5", 5000))
    manager.use_model("gpt-5")
    assert manager.total_budget == ContextWindowManager("gpt-5").total_budget
    manager.use_model("claude-sonnet-4-5")
    assert manager.total_budget == 5000
    manager.use_model(ModelConfig("my-llama", 3000))
    assert manager.total_budget == 3000
    manager.use_model("gpt-5")
    manager.use_model("my-llama")
    assert manager.total_budget == 3000


def test_an_unknown_model_can_be_used_again() -> None:
    manager = ContextWindowManager("my-llama", context_window=ContextWindow(max_tokens=5000))
    before = manager.analyze_session(session_of(3))
    manager.use_model("gpt-4")
    assert manager.usage().model == "gpt-4"
    manager.use_model("my-llama")
    assert manager.analyze_session(session_of(3)) == before


def test_a_limit_without_a_model_name_stays() -> None:
    manager = ContextWindowManager(ModelConfig(max_tokens=6000))
    manager.use_model("gpt-5")
    assert manager.total_budget == 6000
    assert manager.usage().model == "gpt-5"


# Wrong arguments


@pytest.mark.parametrize("limits", [ContextWindow(), ContextWindow(max_tokens=5000)], ids=["the model's window", "a window of one's own"])
@pytest.mark.parametrize("name", ["gtp-5", "", "nonsense", "x" * 100_000, "\ud800"])
def test_an_unknown_model_is_refused_and_nothing_has_changed(name: str, limits: ContextWindow) -> None:
    manager = ContextWindowManager("claude-sonnet-4-5", context_window=limits)
    session = session_of(30)
    view, settings, usage = manager.process_session(session), manager._settings.current, manager.get_token_usage()
    with pytest.raises(UnknownModelError):
        manager.use_model(name)
    assert manager._settings.current is settings
    assert manager.get_token_usage() == usage
    assert ids(manager.process_session(session)) == ids(view)


@pytest.mark.parametrize("wrong", [None, 5, ["gpt-5"], ModelConfig(max_tokens=5), ContextWindow(5), ModelConfig, b"gpt-5"])
def test_an_argument_without_a_model_name_is_rejected(wrong: Any) -> None:
    manager = ContextWindowManager("claude-sonnet-4-5")
    settings = manager._settings.current
    with pytest.raises(ArgumentError):
        manager.use_model(wrong)
    assert manager._settings.current is settings


def test_a_reserve_that_leaves_nothing_of_the_new_window_is_refused() -> None:
    manager = ContextWindowManager("claude-sonnet-4-5", context_window=ContextWindow(output_reserve=100_000))
    with pytest.raises(ArgumentError, match="output_reserve"):
        manager.use_model("gpt-4")
    assert manager.usage().model == "claude-sonnet-4-5"


def test_a_counter_that_fails_on_the_last_view_leaves_the_model_in_use() -> None:
    failing = False

    def count(text: str) -> int:
        return -1 if failing else len(text)

    manager = ContextWindowManager("gpt-5", count)
    manager.process_session(pictured())
    failing = True
    with pytest.raises(CountingError):
        manager.use_model("claude-sonnet-4-5")
    assert manager.usage().model == "gpt-5"
