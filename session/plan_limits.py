"""What a plan's limits say: how much of each period is used, when it begins anew, and when it is full at this pace.

Codex writes them into its logs, Claude Code passes them to its status line, and answers of both providers have them in their headers.
They are stated, never guessed. Imports next to nothing, since the status line needs it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, tzinfo
from typing import Any, NamedTuple

PERIODS = {"five_hour": 300, "seven_day": 10_080}
"""Minutes of the periods that Claude Code names."""
UNIFIED = "anthropic-ratelimit-unified"
"""How the headers of Anthropic's plans begin."""
CLAIMS = {"5h": "five_hour", "7d": "seven_day"}
"""Periods of Anthropic's headers, and Claude Code's names of them."""
LATEST = 32_503_680_000.0
"""Unix seconds of the year 3000: no later time is one."""
MINUTES_MAX = 366 * 24 * 60
WEEK = 518_400
"""Seconds within which a day of the week says which day it is."""
PERIODS_MAX = 8
"""Periods that are kept, the shortest ones: no plan has so many."""


class LimitPeriod(NamedTuple):
    """One period of a plan, with its length and the used part from 0; above 100 where a plan allows more.

    `resets` is in Unix seconds; None if it is not stated.
    """

    minutes: int
    percent: float
    resets: float | None

    def full_at(self, time: float) -> float | None:
        """Return the Unix seconds at which it is full if it goes on as from its beginning to `time`, when `percent` was stated.

        None if it begins anew before, or is unused.
        """
        if self.percent >= 100:
            return time
        if self.resets is None or self.percent <= 0:
            return None
        passed = time - (self.resets - 60 * self.minutes)
        full = time + passed * (100 - self.percent) / self.percent
        return full if passed > 0 and full < self.resets else None


class PlanLimits(NamedTuple):
    """The limits of a plan as a tool such as `codex` stated them at `time` in Unix seconds, the shortest period first.

    The plan's name is empty if it is not stated.
    """

    tool: str
    time: float
    plan: str
    periods: tuple[LimitPeriod, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the limits as JSON values."""
        return {**self._asdict(), "periods": [period._asdict() for period in self.periods]}


def limits_of(tool: str, stated: object, time: float | None) -> PlanLimits | None:
    """Return the limits in a `rate_limits` object that a tool, Codex or Claude Code, stated at `time` in Unix seconds.

    None if it states none that can be used.
    """
    if not isinstance(stated, Mapping) or time is None or not 0 <= time < LATEST:
        return None
    found = (period for name, value in stated.items() if (period := _period(name, value)) is not None)
    periods = sorted(found, key=lambda period: (period.minutes, period.percent, period.resets or 0))[:PERIODS_MAX]
    plan = stated.get("plan_type")
    return PlanLimits(tool, time, plan[:20] if isinstance(plan, str) else "", tuple(periods)) if periods else None


def stated_in(headers: Mapping[str, str], time: float) -> tuple[str, dict[str, Any]] | None:
    """Return what an answer's headers, by lower-case names, state of a plan: whose it is, and the `rate_limits` object of that time.

    None if they state nothing. Answers to API keys without a plan have no such headers.
    """
    claude = {name: window for claim, name in CLAIMS.items() if (window := _claim(f"{UNIFIED}-{claim}", headers)) is not None}
    if claude:
        return "claude_code", claude
    codex = {name: window for name in ("primary", "secondary") if (window := _window(f"x-codex-{name}", headers, time)) is not None}
    plan = headers.get("x-codex-plan-type")
    return ("codex", codex if plan is None else {**codex, "plan_type": plan}) if codex else None


def _claim(name: str, headers: Mapping[str, str]) -> dict[str, Any] | None:
    used = _float(headers.get(f"{name}-utilization"))
    if headers.get(f"{name}-status") == "rejected":
        used = max(1.0, used or 0)  # that is what full means
    return None if used is None else {"used_percentage": round(100 * used, 3), "resets_at": _float(headers.get(f"{name}-reset"))}


def _window(name: str, headers: Mapping[str, str], time: float) -> dict[str, Any] | None:
    used, minutes = (_float(headers.get(f"{name}-{part}")) for part in ("used-percent", "window-minutes"))
    resets, after = (_float(headers.get(f"{name}-reset-{part}")) for part in ("at", "after-seconds"))
    if not resets and after is not None:
        resets = time + after
    return {"used_percent": used, "window_minutes": minutes, "resets_at": resets} if used is not None and minutes else None


def _float(text: str | None) -> float | None:
    try:
        number = None if text is None else float(text)
    except ValueError:
        return None
    return number if number is not None and 0 <= number <= LATEST else None


def _period(name: object, value: Any) -> LimitPeriod | None:
    if not isinstance(value, Mapping):
        return None
    minutes = _number(value.get("window_minutes", PERIODS.get(name) if isinstance(name, str) else None), MINUTES_MAX)
    percent = _number(value.get("used_percent", value.get("used_percentage")), 1_000)
    resets = _number(value.get("resets_at", value.get("reset_at")), LATEST)
    return None if percent is None or minutes is None or minutes < 1 else LimitPeriod(int(minutes), percent, resets)


def _number(value: object, most: float) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= most else None


def short_length(minutes: int) -> str:
    """Return the length of a period as text, such as `5h` or `7d`."""
    return f"{minutes / 1_440:g}d" if minutes >= 1_440 else f"{minutes / 60:g}h"


def clock(time: float, now: float, zone: tzinfo | None = None) -> str:
    """Return a time in Unix seconds as text: `16:40`, within a week `Sat 16:40`, else with the day. Default zone: the machine's."""
    then, today = datetime.fromtimestamp(time, zone), datetime.fromtimestamp(now, zone)
    if then.date() == today.date():
        return f"{then:%H:%M}"
    return f"{then:%a %H:%M}" if abs(time - now) < WEEK else f"{then:%Y-%m-%d %H:%M}"
