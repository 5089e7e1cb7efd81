"""Many conversations at once, and the memory that the gateway keeps for each while it goes on, and once it is forgotten."""

from __future__ import annotations

import asyncio
import gc
import time
import tracemalloc
from collections.abc import Sequence
from dataclasses import dataclass

import httpx

from context_window import ContextWindow
from context_window.gateway.anthropic_messages import AnthropicWire
from context_window.gateway.body_json import object_of
from context_window.gateway.fitted_body import ManagedRequest, fitted_body
from context_window.gateway.windows import Windows

from .conversations import Format
from .servers import Server

IDLE = 4
"""Conversations of which the idle memory is measured: tracing takes its time."""


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
        idle_memory: Bytes of objects that stay in memory when the conversations have been forgotten.
    """

    conversations: int
    requests: int
    failed: int
    seconds: float
    json: int
    memory: int | None
    idle_memory: int

    @property
    def memory_ratio(self) -> float | None:
        """The memory of a conversation in multiples of its last request."""
        return None if self.memory is None else self.memory / self.json

    @property
    def idle_ratio(self) -> float:
        """The memory of an idle conversation in multiples of its last request."""
        return self.idle_memory / self.json


def crowd(wire: Format, conversations: Sequence[Sequence[bytes]], server: Server, prefix: str, max_tokens: int) -> Crowd:
    """Send the requests of each conversation one after the other, and all conversations at once.

    Args:
        wire: The wire format.
        conversations: The requests of each.
        server: Where to send them.
        prefix: What comes before the format's path there.
        max_tokens: Tokens of the window there.
    """
    before = server.memory()
    begun = time.perf_counter()
    failed = asyncio.run(_send_all(server.url + prefix + wire.path, conversations))
    seconds = time.perf_counter() - begun
    after = server.memory()
    memory = None if before is None or after is None else after - before
    size = sum(len(bodies[-1]) for bodies in conversations)
    few = conversations[:IDLE]
    idle = idle_memory(few, max_tokens) * size // sum(len(bodies[-1]) for bodies in few)
    return Crowd(len(conversations), sum(map(len, conversations)), failed, seconds, size, memory, idle)


def idle_memory(conversations: Sequence[Sequence[bytes]], max_tokens: int) -> int:
    """Return the bytes of objects that stay in memory when conversations of Anthropic's format have been forgotten.

    What the process holds would not show it: freed memory stays with it, for the next conversations.

    Args:
        conversations: The requests of each. The first one is made and forgotten before, for what is loaded once.
        max_tokens: Tokens of the window.
    """
    wire = AnthropicWire()
    windows = Windows(ContextWindow(max_tokens=max_tokens, keep_first_message=True), are_frozen=True)

    def fit(bodies: Sequence[bytes]) -> None:
        for body in bodies:
            fields = object_of(body) or {}
            conversation = wire.conversation("/v1/messages", fields)
            assert conversation is not None
            fitted_body(windows, ManagedRequest(wire, conversation, fields, body))

    def forget() -> int:
        windows.forget_idle(0.0)
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        fit(conversations[0])
        before = forget()
        for bodies in conversations:
            fit(bodies)
        return max(0, forget() - before)
    finally:
        tracemalloc.stop()


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
