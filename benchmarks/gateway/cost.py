"""Recorded sessions through the gateway, billed as a provider bills them, and the same sessions without it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import httpx
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from context_window.gateway.serve import address_of, bound_socket, serving
from session import Session
from session.items import Item
from session.units import request_points

from .billing import Bill, Cache
from .conversations import FORMATS, Format, bare, bodies, fixed_tokens
from .servers import in_thread

Json = dict[str, Any]


@dataclass(slots=True)
class Cost:
    """A session with and without the gateway.

    Attributes:
        name: The session.
        max_tokens: The gateway's window; "auto" if it is chosen at each request.
        managed: The bill of each request through the gateway.
        unmanaged: The bill of each request without it.
        breaks: Numbers of the requests through the gateway that changed something of the request before.
    """

    name: str
    max_tokens: int | Literal["auto"]
    managed: list[Bill] = field(default_factory=list)
    unmanaged: list[Bill] = field(default_factory=list)
    breaks: list[int] = field(default_factory=list)

    @property
    def extra_writes(self) -> list[int]:
        """Numbers of the requests that wrote more to the cache than without the gateway, although nothing before had changed."""
        pairs = enumerate(zip(self.managed, self.unmanaged, strict=True))
        return [number for number, (managed, plain) in pairs if managed.written > plain.written and number not in self.breaks]

    @property
    def costs(self) -> tuple[float, float]:
        """The cost of all requests with and without the gateway, in tokens at the plain price."""
        return sum(bill.cost for bill in self.managed), sum(bill.cost for bill in self.unmanaged)


class BillingUpstream:
    """A provider that bills what it is sent."""

    def __init__(self) -> None:
        self._cache = Cache()
        self.bills: list[Bill] = []
        self.sent: list[list[Json]] = []
        self.app = Starlette(routes=[Route("/{path:path}", self._answer, methods=["POST"])])

    async def _answer(self, request: Request) -> Response:
        body = json.loads(await request.body())
        self.bills.append(self._cache.bill(body))
        self.sent.append([bare(message) for message in body.get("messages") or body["input"]])
        return JSONResponse({})


def cost(name: str, tool: str, items: Sequence[Item], max_tokens: int | Literal["auto"]) -> Cost:
    """Replay a session.

    Args:
        name: The session's name.
        tool: The tool that recorded it: `codex` sends Responses, others Anthropic Messages.
        items: The session.
        max_tokens: Tokens of the gateway's window for messages. Tools, system prompt and answer have their room beside them.
            "auto" to let it choose.
    """
    wire = FORMATS["responses" if tool == "codex" else "anthropic"]
    result = Cost(name, max_tokens)
    plain = Cache()
    with (
        _upstream() as (upstream, url),
        in_thread("gateway", url, max_tokens if max_tokens == "auto" else max_tokens + _fixed_tokens(wire)) as gateway,
        httpx.Client(trust_env=False) as client,
    ):
        for body in _requests(wire, items):
            answer = client.post(gateway.url + wire.prefix + wire.path, json=body, timeout=600)
            assert answer.status_code == httpx.codes.OK, answer.text
            result.unmanaged.append(plain.bill(body))
    result.managed = upstream.bills
    result.breaks = [
        number
        for number in range(1, len(upstream.sent))
        if upstream.sent[number][: len(upstream.sent[number - 1])] != upstream.sent[number - 1]
    ]
    return result


def _requests(wire: Format, items: Sequence[Item]) -> Iterator[Json]:
    """Yield the requests of a session. One that begins with the assistant's words has none for them."""
    return (body for body in bodies(wire, items, request_points(Session(items))) if body[wire.field])


def _fixed_tokens(wire: Format) -> int:
    """Return the tokens of a request without messages, and those that are kept free for the answer."""
    body = wire.body(Session())
    return fixed_tokens(wire, body) + int(body.get("max_tokens", 0))


@contextmanager
def _upstream() -> Iterator[tuple[BillingUpstream, str]]:
    upstream = BillingUpstream()
    with bound_socket("127.0.0.1", 0) as listener, serving(upstream.app, listener):
        yield upstream, address_of(listener)
