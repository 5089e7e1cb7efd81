"""Many conversations at once, and the memory that the gateway keeps for each."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass

import httpx

from .conversations import Format
from .servers import Server


@dataclass(frozen=True, slots=True)
class Crowd:
    """Conversations that were sent at the same time.

    Attributes:
        conversations: Their number.
        requests: Requests of all.
        failed: Requests that were not answered with 200.
        seconds: The time of all.
        json: Bytes of the last requests of all.
        memory: Bytes by which the server's memory has grown; None where the system does not say.
    """

    conversations: int
    requests: int
    failed: int
    seconds: float
    json: int
    memory: int | None

    @property
    def memory_ratio(self) -> float | None:
        """The memory of a conversation in multiples of its last request."""
        return None if self.memory is None else self.memory / self.json


def crowd(wire: Format, conversations: Sequence[Sequence[bytes]], server: Server, prefix: str) -> Crowd:
    """Send the requests of each conversation one after the other, and all conversations at once.

    Args:
        wire: The wire format.
        conversations: The requests of each.
        server: Where to send them.
        prefix: What comes before the format's path there.
    """
    before = server.memory()
    begun = time.perf_counter()
    failed = asyncio.run(_send_all(server.url + prefix + wire.path, conversations))
    seconds = time.perf_counter() - begun
    after = server.memory()
    memory = None if before is None or after is None else after - before
    size = sum(len(bodies[-1]) for bodies in conversations)
    return Crowd(len(conversations), sum(map(len, conversations)), failed, seconds, size, memory)


async def _send_all(url: str, conversations: Sequence[Sequence[bytes]]) -> int:
    """Return how many requests failed."""
    limits = httpx.Limits(max_connections=len(conversations))
    async with httpx.AsyncClient(timeout=600, trust_env=False, limits=limits) as client:
        return sum(await asyncio.gather(*(_send(client, url, bodies) for bodies in conversations)))


async def _send(client: httpx.AsyncClient, url: str, bodies: Sequence[bytes]) -> int:
    failed = 0
    for body in bodies:
        try:
            answer = await client.post(url, content=body, headers={"content-type": "application/json"})
        except httpx.TransportError:
            failed += 1
        else:
            failed += answer.status_code != httpx.codes.OK
    return failed
