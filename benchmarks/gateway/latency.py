"""The time of a request through the gateway, beside the same through Starlette and httpx alone."""

from __future__ import annotations

import hashlib
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass

import httpx

from .conversations import Format
from .servers import DIGEST, Server

WARM_UP = 3
"""Requests before the first that is measured."""


@dataclass(frozen=True, slots=True)
class Latency:
    """A conversation sent through both servers.

    Attributes:
        name: The wire format.
        trimmed: True if the window is too small for the conversation.
        size: Bytes of the last request.
        sent: Bytes of it that the gateway sent on.
        reference: Median seconds of a request through the reference.
        added: Median of the seconds that a request took more through the gateway.
        cold: Seconds of the first request through the gateway.
        refused: Requests that were not answered with 200.
        changed: Requests that the gateway did not send on byte for byte.
        requests: Requests in all.
    """

    name: str
    trimmed: bool
    size: int
    sent: int
    reference: float
    added: float
    cold: float
    refused: int
    changed: int
    requests: int


def latency(name: str, wire: Format, bodies: Sequence[bytes], reference: Server, gateway: Server, *, trimmed: bool) -> Latency:
    """Send the bodies of a growing conversation through both servers.

    Args:
        name: The wire format's name.
        wire: The wire format.
        bodies: The requests.
        reference: The proxy without the gateway's work.
        gateway: The gateway.
        trimmed: True if its window is too small for the conversation.
    """
    urls = reference.url + wire.path, gateway.url + wire.prefix + wire.path
    times: list[tuple[float, float]] = []
    refused = changed = sent = 0
    with httpx.Client(timeout=600, trust_env=False) as client:
        for number, body in enumerate(bodies):
            order = (0, 1) if number % 2 else (1, 0)
            seconds = [0.0, 0.0]
            for place in order:
                begun = time.perf_counter()
                answer = client.post(urls[place], content=body, headers={"content-type": "application/json"})
                seconds[place] = time.perf_counter() - begun
                refused += answer.status_code != httpx.codes.OK
                sent = answer.json().get("bytes", 0) if place == 1 else sent
            times.append((seconds[0], seconds[1]))
        for body in bodies[-WARM_UP:]:
            answer = client.post(urls[1], content=body, headers={DIGEST: "yes", "content-type": "application/json"})
            changed += answer.json().get("digest") != hashlib.sha256(body).hexdigest()
    warm = times[WARM_UP:]
    return Latency(
        name,
        trimmed,
        len(bodies[-1]),
        sent,
        statistics.median(plain for plain, _ in warm),
        statistics.median(managed - plain for plain, managed in warm),
        times[0][1],
        refused,
        changed,
        len(bodies),
    )
