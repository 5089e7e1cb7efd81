"""The limits of plans, a sentence for each period."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, tzinfo

from session.plan_limits import WEEK, LimitPeriod, PlanLimits, clock, short_length
from session.transcripts.reported_requests import Request

from ..spend.limits import most_used_by
from ..spend.names import last_part

OLD = 900
"""Seconds after which the time of a figure is said."""
SESSION_WORTH_NAMING, PROJECT_WORTH_NAMING = 0.25, 0.5
"""Parts of a period from which the session, or else the project, is named that used it."""
NAMES = {"claude_code": "Claude Code", "codex": "Codex"}


def limit_sentences(plans: Iterable[PlanLimits], requests: Sequence[Request], now: float, zone: tzinfo | None = None) -> Iterator[str]:
    """Yield a sentence for each period of each plan.

    Args:
        plans: The limits of each tool.
        requests: All requests, for what used them.
        now: Unix seconds.
        zone: The time zone of the times. Default: the machine's.
    """
    for plan in plans:
        name = NAMES.get(plan.tool, plan.tool) + (f" ({plan.plan})" if plan.plan else "")
        for period in plan.periods:
            if period.resets is not None and now - period.resets > 60 * period.minutes:
                continue  # a whole period has passed since, of which nothing is known
            yield f"{name} {short_length(period.minutes)}: {period.percent:.0f}%{_prospect(plan, period, requests, now, zone)}"


def _prospect(plan: PlanLimits, period: LimitPeriod, requests: Sequence[Request], now: float, zone: tzinfo | None) -> str:
    said = f" at {clock(plan.time, now, zone)}" if now - plan.time > OLD else ""
    if period.resets is None:
        return said
    if period.resets <= now:
        return f"{said}, reset since"
    full, reset = period.full_at(plan.time), clock(period.resets, now, zone)
    text = f"{said}, resets {reset}" if full is None else f"{said}, full {clock(full, now, zone)}, resets {reset}"
    for use in most_used_by(plan, period, requests):
        if use.part >= (PROJECT_WORTH_NAMING if use.begun is None else SESSION_WORTH_NAMING):
            day = "" if use.begun is None else f", {_day(use.begun, now, zone)}'s session"
            return f"{text}; {use.part:.0%} in {last_part(use.project)}{day}"
    return text


def _day(time: float, now: float, zone: tzinfo | None) -> str:
    """Return a day: `today`, within a week `Sat`, else `2026-11-20`."""
    then, today = datetime.fromtimestamp(time, zone), datetime.fromtimestamp(now, zone)
    if then.date() == today.date():
        return "today"
    return f"{then:%a}" if abs(time - now) < WEEK else f"{then:%Y-%m-%d}"
