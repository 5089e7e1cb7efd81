"""Limits of plans are those that a tool states, whatever else it writes, and their pace is that since the period began."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session.plan_limits import LATEST, PERIODS_MAX, LimitPeriod, PlanLimits, limits_of, stated_in

CODEX = {
    "limit_id": "codex",
    "primary": {"used_percent": 12.0, "window_minutes": 300, "resets_at": 1782494662},
    "secondary": {"used_percent": 17.0, "window_minutes": 10080, "resets_at": 1782708127},
    "credits": None,
    "plan_type": "pro",
}
CLAUDE = {"five_hour": {"used_percentage": 23.5, "resets_at": 1738425600}, "seven_day": {"used_percentage": 41.2, "resets_at": 1738857600}}


def test_both_forms_are_read() -> None:
    periods = LimitPeriod(300, 12.0, 1782494662), LimitPeriod(10_080, 17.0, 1782708127)
    assert limits_of("codex", CODEX, 5.0) == PlanLimits("codex", 5.0, "pro", periods)
    periods = LimitPeriod(300, 23.5, 1738425600), LimitPeriod(10_080, 41.2, 1738857600)
    assert limits_of("claude_code", CLAUDE, 5.0) == PlanLimits("claude_code", 5.0, "", periods)


def test_periods_alike_but_for_their_reset_are_read() -> None:
    """One line of a log that says so stopped the first screen and `spend`."""
    alike = {"used_percent": 5.0, "window_minutes": 300}
    limits = limits_of("codex", {"primary": alike, "secondary": alike | {"resets_at": 1_000}}, 5.0)
    assert limits is not None
    assert limits.periods == (LimitPeriod(300, 5.0, None), LimitPeriod(300, 5.0, 1_000))


def test_a_line_of_a_thousand_periods_is_no_screen_of_a_thousand_lines() -> None:
    limits = limits_of("codex", {str(number): {"used_percent": 5.0, "window_minutes": 300 + number} for number in range(1_000)}, 5.0)
    assert limits is not None
    assert len(limits.periods) == PERIODS_MAX


ANTHROPIC_HEADERS = {
    "anthropic-ratelimit-unified-status": "allowed",
    "anthropic-ratelimit-unified-5h-status": "allowed",
    "anthropic-ratelimit-unified-5h-utilization": "0.05",
    "anthropic-ratelimit-unified-5h-reset": "1790814600",
    "anthropic-ratelimit-unified-7d-status": "allowed_warning",
    "anthropic-ratelimit-unified-7d-utilization": "0.87",
    "anthropic-ratelimit-unified-7d-reset": "1791200000",
}
CODEX_HEADERS = {
    "x-codex-primary-used-percent": "32.5",
    "x-codex-primary-window-minutes": "300",
    "x-codex-primary-reset-at": "1789805447",
    "x-codex-secondary-used-percent": "4",
    "x-codex-secondary-window-minutes": "10080",
    "x-codex-secondary-reset-after-seconds": "60",
    "x-codex-plan-type": "plus",
}


def limits_in(headers: dict[str, str], time: float) -> PlanLimits | None:
    stated = stated_in(headers, time)
    return None if stated is None else limits_of(*stated, time)


def test_headers_of_both_providers_are_read() -> None:
    periods = LimitPeriod(300, 5.0, 1790814600), LimitPeriod(10_080, 87.0, 1791200000)
    assert limits_in(ANTHROPIC_HEADERS, 5.0) == PlanLimits("claude_code", 5.0, "", periods)
    periods = LimitPeriod(300, 32.5, 1789805447), LimitPeriod(10_080, 4.0, 65.0)
    assert limits_in(CODEX_HEADERS, 5.0) == PlanLimits("codex", 5.0, "plus", periods)
    refused = limits_in(ANTHROPIC_HEADERS | {"anthropic-ratelimit-unified-5h-status": "rejected"}, 5.0)
    assert refused is not None
    assert refused.periods[0].percent == 100
    of_a_key = {"anthropic-ratelimit-requests-limit": "50", "x-ratelimit-remaining-tokens": "7", "x-codex-plan-type": "free"}
    assert stated_in(of_a_key, 5.0) is None
    one_period = {"x-codex-secondary-used-percent": "0", "x-codex-secondary-window-minutes": "0"}
    assert stated_in(one_period, 5.0) is None


@given(
    st.dictionaries(
        st.sampled_from([*ANTHROPIC_HEADERS, *CODEX_HEADERS]), st.text(max_size=6) | st.sampled_from(["nan", "-1", "1e999", "9" * 400])
    )
)
def test_any_header_gives_a_figure_that_can_be_kept(headers: dict[str, str]) -> None:
    stated = stated_in(headers, 5.0)
    if stated is not None:
        json.dumps(stated, allow_nan=False)
        limits_of(*stated, 5.0)


VALUES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from([10**400, 0.5])
PERIOD = st.dictionaries(st.sampled_from(["used_percent", "used_percentage", "window_minutes", "resets_at", "reset_at"]), VALUES)


@given(st.dictionaries(st.sampled_from(["primary", "secondary", "five_hour", "plan_type", "x"]), PERIOD | VALUES) | VALUES, VALUES)
def test_anything_else_is_left_out(stated: object, time: object) -> None:
    """never a wrong figure: a period has a length, a part from 0 to 1,000 %, and a time that a clock can show"""
    limits = limits_of("codex", stated, time if isinstance(time, float | int) else None)
    for period in () if limits is None else limits.periods:
        assert period.minutes > 0
        assert 0 <= period.percent <= 1_000
        assert period.resets is None or 0 <= period.resets <= LATEST
    if limits is not None:
        assert limits.periods
        json.dumps(limits.to_dict(), allow_nan=False)


@given(st.integers(1, 400), st.integers(0, 120), st.floats(0.01, 0.999))
def test_the_pace_is_that_since_the_period_began(minutes: int, percent: int, passed: float) -> None:
    """A slow twin goes on minute by minute at the same rate."""
    period = LimitPeriod(minutes, float(percent), 60.0 * minutes)
    now = passed * 60 * minutes
    used, time, rate = float(percent), now, percent / now
    while used < 100 and time < 60 * minutes:
        used, time = used + rate, time + 1
    full = period.full_at(now)
    if full is None:
        assert used < 100 + 2 * rate
    else:
        assert abs(full - time) <= 2
        assert full < 60 * minutes or percent >= 100


@pytest.mark.parametrize("resets", [None, -5.0])
def test_without_a_reset_there_is_no_pace(resets: float | None) -> None:
    assert LimitPeriod(300, 50.0, resets).full_at(1.0) is None
