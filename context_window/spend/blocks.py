"""Blocks of five hours, as plans count them: one begins with the hour of the first request after the one before is over."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import tzinfo

from session.transcripts.reported_requests import Request

from .names import local_time

HOUR = 3_600
LENGTH = 5 * HOUR


def block_starts(requests: Sequence[Request]) -> list[float | None]:
    """Return when each request's block began, in Unix seconds; None for requests without a time. Each tool has blocks, as it has a plan.

    Args:
        requests: The requests, in any order.
    """
    begun: list[float | None] = [None] * len(requests)
    starts: dict[str, float] = {}
    for index in sorted(range(len(requests)), key=lambda index: requests[index].time or 0):
        request = requests[index]
        if request.time is None:
            continue
        if request.time >= starts.get(request.tool, float("-inf")) + LENGTH:
            starts[request.tool] = request.time // HOUR * HOUR
        begun[index] = starts[request.tool]
    return begun


def block_names(requests: Sequence[Request], zone: tzinfo | None, unknown: str) -> list[str]:
    """Return the name of each request's block: when it began, and the tool.

    Args:
        requests: The requests, in any order.
        zone: The time zone of the names. Default: the machine's.
        unknown: The name of requests without a time.
    """
    names = [unknown] * len(requests)
    for index, start in enumerate(block_starts(requests)):
        if (time := local_time(start, zone)) is not None:
            names[index] = f"{time:%Y-%m-%d %H:%M} {requests[index].tool}"
    return names
