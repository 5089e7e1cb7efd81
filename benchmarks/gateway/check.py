"""What must hold on any machine, however busy: counts and ratios, no times."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .cost import Cost
from .crowd import Crowd
from .latency import Latency

MEMORY = 3.0
"""Most memory of an idle conversation, in multiples of its JSON."""
BREAKS = 1 / 3
"""Largest part of a session's requests that may break the cached prefix."""


def broken_promises(latencies: Sequence[Latency], crowds: Sequence[Crowd], costs: Sequence[Cost]) -> list[str]:
    """Return a sentence for each promise that is broken; none if all is well."""
    return [*_of_latencies(latencies), *_of_crowds(crowds), *_of_costs(costs)]


def _of_latencies(latencies: Sequence[Latency]) -> Iterator[str]:
    for each in latencies:
        at = f"{each.name}, {'trimmed' if each.trimmed else 'untrimmed'}:"
        if each.refused:
            yield f"{at} {each.refused} requests were refused"
        if each.changed and not each.trimmed:
            yield f"{at} {each.changed} requests that fit were changed"
        if each.trimmed and each.sent >= each.size:
            yield f"{at} nothing was taken out of {each.size:,} bytes"


def _of_crowds(crowds: Sequence[Crowd]) -> Iterator[str]:
    for each in crowds:
        if each.failed:
            yield f"{each.conversations} conversations at once: {each.failed} of {each.requests} requests failed"
        if each.idle_ratio > MEMORY:
            yield f"{each.conversations} idle conversations: {each.idle_ratio:.1f} times their JSON in memory, more than {MEMORY}"


def _of_costs(costs: Sequence[Cost]) -> Iterator[str]:
    for each in costs:
        if each.extra_writes:
            yield f"{each.name}: {len(each.extra_writes)} requests wrote more to the cache than without the gateway, and were no trims"
        if len(each.breaks) > BREAKS * len(each.managed):
            yield f"{each.name}: {len(each.breaks)} of {len(each.managed)} requests broke the cached prefix"
