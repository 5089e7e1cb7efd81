"""Blocks of five hours, as plans count them: one begins with the hour of the first request after the one before is over."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, tzinfo

from session.transcripts.reported_requests import Request

HOUR = 3_600
LENGTH = 5 * HOUR


def block_names(requests: Sequence[Request], zone: tzinfo | None, unknown: str) -> list[str]:
    """Return the name of each request's block: when it began, and the tool, since each tool has a plan of its own.

    Args:
        requests: The requests, in any order.
        zone: The time zone of the names. Default: the machine's.
        unknown: The name of requests without a time.
    """
    names = [unknown] * len(requests)
    starts: dict[str, float] = {}
    for index in sorted(range(len(requests)), key=lambda index: requests[index].time or 0):
        request = requests[index]
        if request.time is None:
            continue
        if request.time >= starts.get(request.tool, float("-inf")) + LENGTH:
            starts[request.tool] = request.time // HOUR * HOUR
        try:
            names[index] = f"{datetime.fromtimestamp(starts[request.tool], zone):%Y-%m-%d %H:%M} {request.tool}"
        except (OverflowError, ValueError, OSError):
            continue
    return names
