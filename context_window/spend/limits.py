"""The limits of plans: those that logs state, and those that our status line and the gateway were told of. And what used them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

from session.plan_limits import LATEST, LimitPeriod, PlanLimits, limits_of
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


class PeriodUse(NamedTuple):
    """What used a part of a period.

    Attributes:
        project: The project.
        begun: Unix seconds of the session's first request; None for the whole project.
        part: Its part of the money.
    """

    project: str
    begun: float | None
    part: float


def most_used_by(limits: PlanLimits, period: LimitPeriod, requests: Iterable[Request]) -> list[PeriodUse]:
    """Return the session that used most of a period, if logs state sessions, and then the project that did; neither if that is not known.

    Args:
        limits: The limits.
        period: One of their periods.
        requests: All requests.
    """
    if period.resets is None:
        return []
    since = period.resets - 60 * period.minutes
    sessions, projects = defaultdict[str, Decimal](Decimal), defaultdict[str, Decimal](Decimal)
    firsts: dict[str, Request] = {}
    for request in requests:
        if request.tool != limits.tool or request.time is None or not 0 <= request.time < LATEST:
            continue
        first = firsts.setdefault(request.session, request)
        if request.time < (first.time or 0):
            firsts[request.session] = request
        if since <= request.time < period.resets:
            cost = cost_of(request) or Decimal(0)
            sessions[request.session] += cost
            projects[request.project or UNKNOWN] += cost
    total = sum(projects.values(), Decimal(0))
    if not total:
        return []
    session = max((name for name in sessions if name), key=lambda name: (sessions[name], name), default=None)
    project = max(projects, key=lambda name: (projects[name], name))
    uses = [PeriodUse(project, None, float(projects[project] / total))]
    if session is not None:
        first = firsts[session]
        uses.insert(0, PeriodUse(first.project or UNKNOWN, first.time, float(sessions[session] / total)))
    return uses
