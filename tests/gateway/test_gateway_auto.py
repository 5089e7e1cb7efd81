"""Without a budget, the gateway chooses the window: by prices, and for nothing after a pause in which the provider's cache forgets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from context_window import ContextWindow
from context_window.gateway.anthropic_messages import AnthropicWire
from context_window.gateway.shared_refusals import SharedRefusals
from context_window.gateway.windows import Windows
from tests.gateway.test_gateway_properties import Step, WireCase, in_every_format, steps
from tests.gateway.test_gateway_shared_views import Provider, accepted, growing

Json = dict[str, Any]
WIRE = AnthropicWire()
MODEL_WINDOW = 10**6
KEPT = 2_000


class Clock:
    """A clock that stands still until it is set."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock by which pauses are measured, and a trim that keeps little, so that short conversations are trimmed."""
    clock = Clock()
    monkeypatch.setattr("context_window.integrations.pauses.time", clock)
    monkeypatch.setattr("context_window.settings.budget.KEPT", KEPT)
    return clock


def view(windows: Windows, turns: int, ttl: str | None = None) -> list[Json]:
    """Return the messages that go to the provider."""
    body = growing(turns, "a")
    if ttl is not None:
        last = body["messages"][-1]
        last["content"] = [{"type": "text", "text": last["content"], "cache_control": {"type": "ephemeral", "ttl": ttl}}]
    conversation = WIRE.conversation("/v1/messages", body)
    assert conversation is not None
    return windows.fit(WIRE, conversation) or body["messages"]


def first_trim(clock: Clock, **limits: Any) -> int:
    """Return the number of turns at which the conversation is trimmed for the first time."""
    windows = Windows(ContextWindow(**limits))
    for turns in range(1, 200):
        clock.now += 1
        if len(view(windows, turns)) < 2 * turns - 1:
            return turns
    raise AssertionError("nothing was trimmed")


def test_a_window_is_chosen_far_below_the_models(clock: Clock) -> None:
    """No budget is set, and the model's window is a million: the conversation is trimmed as soon as that costs less, and not before."""
    turns = first_trim(clock)
    tokens = len(json.dumps(growing(turns)["messages"])) // 4
    assert 2 * KEPT < tokens < MODEL_WINDOW / 20
    assert turns < first_trim(clock, max_tokens=2 * tokens)


def test_after_a_pause_the_view_is_trimmed_and_later_requests_extend_it(clock: Clock) -> None:
    """Five minutes of the cache are over: what fits the window is trimmed in this request, and stays so in the next ones."""
    turns = first_trim(clock) - 1
    windows = Windows(ContextWindow())
    assert len(view(windows, turns - 1)) == 2 * turns - 3
    clock.now += 299
    assert len(view(windows, turns)) == 2 * turns - 1
    clock.now += 301
    trimmed = view(windows, turns + 1)
    assert len(trimmed) < 2 * turns
    assert json.dumps(trimmed).count("words") < json.dumps(growing(turns + 1)).count("words") / 1.3
    clock.now += 1
    assert view(windows, turns + 2)[: len(trimmed)] == trimmed


def test_a_mark_of_an_hour_makes_a_pause_of_an_hour(clock: Clock) -> None:
    """The client's marks say how long the cache remembers."""
    turns = first_trim(clock) - 2
    for ttl, pause, is_trimmed in (("1h", 3_599, False), ("1h", 3_601, True), ("5m", 301, True), ("5m", 299, False)):
        windows = Windows(ContextWindow())
        view(windows, turns, ttl)
        clock.now += pause
        assert (len(view(windows, turns + 1, ttl)) < 2 * turns) == is_trimmed


def test_another_worker_and_a_new_one_know_of_the_pause(clock: Clock, tmp_path: Path) -> None:
    """Equal requests and an equal store give equal views: the place of such a trim is kept like a refused prompt."""
    turns = first_trim(clock) - 1
    refusals = SharedRefusals(str(tmp_path / "r.db"), wait_seconds=60.0)
    first = Windows(ContextWindow(), refusals)
    view(first, turns - 1)
    clock.now += 301
    trimmed = view(first, turns)
    assert len(trimmed) < 2 * turns - 1
    later = view(first, turns + 1)
    assert later[: len(trimmed)] == trimmed
    for other in (Windows(ContextWindow(), refusals), Windows(ContextWindow(), SharedRefusals(str(tmp_path / "r.db"), wait_seconds=60.0))):
        assert view(other, turns + 1) == later
    assert len(view(Windows(ContextWindow()), turns)) == 2 * turns - 1  # it knows of no pause
    refusals.close()


def test_a_set_window_knows_of_no_pause(clock: Clock) -> None:
    """With a budget, nothing is trimmed before it is reached."""
    turns = first_trim(clock, max_tokens=6_000) - 1
    windows = Windows(ContextWindow(max_tokens=6_000))
    view(windows, turns - 1)
    clock.now += 10_000
    assert len(view(windows, turns)) == 2 * turns - 1


@pytest.mark.no_cover
@in_every_format
@settings(max_examples=max(1, settings().max_examples // 8), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    conversation=steps,
    kept=st.integers(20, 400),
    limit=st.integers(300, 2_500),
    pauses=st.lists(st.sampled_from((1, 1, 301, 4_000)), min_size=14, max_size=14),
)
def test_chosen_windows_are_the_same_in_every_worker(
    case: WireCase, conversation: list[Step], kept: int, limit: int, pauses: list[int], clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Views are valid, whatever the pauses and refusals; one that is made anew from what is kept is the same."""
    monkeypatch.setattr("context_window.settings.budget.KEPT", kept)
    provider = Provider(limit, says_figures=True)
    window, clock.now = ContextWindow(), 0.0
    remembering, forgetting = Windows(window), Windows(window)
    for length, pause in zip(range(1, len(conversation) + 1), pauses, strict=False):
        clock.now += pause
        body = case.body_of(conversation[:length])
        sent = accepted(remembering, case, body, provider)
        assert sent == accepted(forgetting, case, body, Provider(limit, says_figures=True))
        assert case.validate(sent) == []
        forgetting.forget_idle(0.0)
        event(f"shortened: {sent != body}, after a pause: {pause > 300}")
