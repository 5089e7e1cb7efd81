"""The limits of plans: those that logs state, and those that our status line was told of. And what used them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path

from session.opening import open_regular
from session.plan_limits import LimitPeriod, PlanLimits, limits_of
from session.transcripts.reported_requests import Request

from ..user_folder import LIMITS_FILE, user_folder
from .money import cost_of
from .tables import UNKNOWN

LARGEST = 1_000_000
"""Bytes of the file that are read."""


def stated_limits(of_logs: Iterable[PlanLimits], file: Path | None = None) -> list[PlanLimits]:
    """Return the newest limits of each tool.

    Args:
        of_logs: Those that logs state.
        file: What the status line has kept. Default: where it does.
    """
    newest: dict[str, PlanLimits] = {}
    for limits in (*of_logs, *_noted(file)):
        if limits.tool not in newest or newest[limits.tool].time < limits.time:
            newest[limits.tool] = limits
    return [newest[tool] for tool in sorted(newest)]


def _noted(file: Path | None) -> list[PlanLimits]:
    try:
        with open_regular(user_folder() / LIMITS_FILE if file is None else file) as opened:
            content = json.loads(opened.read(LARGEST))
    except (OSError, RuntimeError, ValueError, RecursionError):
        return []
    tools = content.items() if isinstance(content, dict) else ()
    noted = ((tool, value) for tool, value in tools if isinstance(value, dict) and isinstance(value.get("time"), int | float))
    limits = (limits_of(tool, value.get("rate_limits"), value["time"]) for tool, value in noted)
    return [each for each in limits if each is not None]


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
