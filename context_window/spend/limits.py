"""The limits of plans: those that logs state, and those that our status line and the gateway were told of. And what used them."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path

from session.plan_limits import LimitPeriod, PlanLimits, limits_of
from session.transcripts.reported_requests import Request

from ..kept_limits import kept_limits
from .money import cost_of
from .tables import UNKNOWN


def stated_limits(of_logs: Iterable[PlanLimits], file: Path | None = None) -> list[PlanLimits]:
    """Return the newest limits of each tool.

    Args:
        of_logs: Those that logs state.
        file: What the status line and the gateway have kept. Default: where they do.
    """
    newest: dict[str, PlanLimits] = {}
    kept = (limits_of(tool, value.get("rate_limits"), value["time"]) for tool, value in kept_limits(file).items())
    for limits in (*of_logs, *kept):
        if limits is None:
            continue
        if limits.tool not in newest or newest[limits.tool].time < limits.time:
            newest[limits.tool] = limits
    return [newest[tool] for tool in sorted(newest)]


def most_used_by(limits: PlanLimits, period: LimitPeriod, requests: Iterable[Request]) -> tuple[str, float] | None:
    """Return the project that used most of a period, and its part of the money; None if that is not known.

    Args:
        limits: The limits.
        period: One of their periods.
        requests: All requests.
    """
    if period.resets is None:
        return None
    since = period.resets - 60 * period.minutes
    costs: dict[str, Decimal] = {}
    for request in requests:
        if request.tool == limits.tool and request.time is not None and since <= request.time < period.resets:
            name = request.project or UNKNOWN
            costs[name] = costs.get(name, Decimal(0)) + (cost_of(request) or 0)
    total = sum(costs.values(), Decimal(0))
    if not total:
        return None
    name = max(costs, key=lambda project: (costs[project], project))
    return name, float(costs[name] / total)
