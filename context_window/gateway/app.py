"""`gateway_app`: the gateway as an ASGI application."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from functools import partial
from urllib.parse import urlsplit

import httpx
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from session.errors import SessionError

from ..errors import ContextWindowError
from ..model_errors import PromptTooLongError
from ..requests.client_errors import answered_error
from ..settings.context_window import ContextWindow
from ..threads import in_thread
from .ledger import Ledger
from .relay import RelayedAnswer, answer_to, request_headers
from .upstreams import Upstream, upstreams
from .windows import Windows
from .wire_format import Conversation, Json, WireFormat, object_of

LARGEST_BODY = 64 * 1024 * 1024
"""Default of the most bytes that a request may have: twice what Anthropic accepts."""
METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"]
LOCAL_NAMES = frozenset({"127.0.0.1", "localhost", "::1"})
"""Names under which this machine reaches itself."""
TOO_LONG_STATUSES = (400, 413)
"""Statuses of an answer that can say that the prompt is too long."""
_UNFIT = (SessionError, ContextWindowError, ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""What can be raised while a conversation is fitted: errors of ours, and faults of ours that a hostile request found."""
UNKNOWN_ADDRESS = "addresses here begin with the provider's name: {names}. Set the client's base URL to http://HOST:PORT/NAME"


def gateway_app(
    window: ContextWindow,
    *,
    urls: Mapping[str, str] | None = None,
    ledger: Ledger | None = None,
    hosts: Collection[str] = LOCAL_NAMES,
    largest_body: int = LARGEST_BODY,
    strict: bool = False,
    transport: httpx.AsyncBaseTransport | None = None,
) -> Starlette:
    """Return the gateway as an application for an ASGI server.

    Args:
        window: The limits and the policy of every conversation. Without a strategy, they are trimmed with `Extract()`.
        urls: Other addresses of the upstreams than the providers' own, by name.
        ledger: Where requests are counted.
        hosts: Names by which clients may reach the gateway. Others are refused, so that no browser page can get here by a name of its own.
        largest_body: Most bytes that a request may have.
        strict: True to refuse a request that cannot be fitted. False to send it unchanged.
        transport: How upstreams are reached; by default over the network.

    Raises:
        BudgetError: An upstream is unknown, or its address is none.
    """
    gateway = _Gateway(window, upstreams(urls or {}), ledger or Ledger(), frozenset(hosts), largest_body, strict=strict)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=64)
        timeout = httpx.Timeout(None, connect=30)  # clients have their own patience
        async with httpx.AsyncClient(transport=transport, timeout=timeout, limits=limits, trust_env=transport is None) as client:
            gateway.client = client
            yield

    return Starlette(routes=[Route("/{path:path}", gateway.handle, methods=METHODS)], lifespan=lifespan)


class _Gateway:
    """Handles requests."""

    client: httpx.AsyncClient

    def __init__(
        self,
        window: ContextWindow,
        by_name: Mapping[str, Upstream],
        ledger: Ledger,
        hosts: frozenset[str],
        largest_body: int,
        *,
        strict: bool,
    ) -> None:
        self._windows = Windows(window)
        self._upstreams = by_name
        self._ledger = ledger
        self._hosts = hosts
        self._largest_body = largest_body
        self._strict = strict

    async def handle(self, request: Request) -> Response:
        """Answer a request."""
        name, _, _ = request.url.path.lstrip("/").partition("/")
        upstream = self._upstreams.get(name)
        if (problem := self._foreign(request)) is not None:
            return _refused(upstream, 403, problem)
        if upstream is None:
            return _refused(None, 404, UNKNOWN_ADDRESS.format(names=", ".join(self._upstreams)))
        try:
            body = await self._body(request)
        except ClientDisconnect:
            return Response()
        if body is None:
            return _refused(upstream, 413, f"the request has more than {self._largest_body:,} bytes, which is the gateway's limit")
        return await self._answer(request, upstream, body)

    def _foreign(self, request: Request) -> str | None:
        """Return why a request may not come in; None if it may. Browsers send an `Origin` with whatever a page asks for."""
        if _host(request) not in self._hosts:
            return "the request's Host is not one of this gateway's names"
        if "origin" in request.headers or request.headers.get("sec-fetch-site", "none") != "none":
            return "a browser page may not use this gateway"
        return None

    async def _body(self, request: Request) -> bytes | None:
        """Return the request's body; None if it is too large."""
        chunks: list[bytes] = []
        length = 0
        async for chunk in request.stream():
            length += len(chunk)
            if length > self._largest_body:
                return None
            chunks.append(chunk)
        return b"".join(chunks)

    async def _answer(self, request: Request, upstream: Upstream, body: bytes) -> Response:
        path = request.url.path.removeprefix(f"/{upstream.name}")
        fields = object_of(body) if request.method == "POST" and "content-encoding" not in request.headers else None
        wire, conversation = _conversation(upstream, path, fields or {})
        send = partial(self._send, request, upstream, path)
        if fields is None or wire is None or conversation is None:
            return await send(body)
        fit = partial(_fitted_body, self._windows, wire, conversation, fields, body)
        try:
            content = await in_thread(fit)
        except _UNFIT as error:
            self._ledger.add_unmanaged(error)
            return _refused(upstream, 400, f"the gateway cannot fit the conversation: {error}") if self._strict else await send(body)
        self._ledger.add(len(body), len(content), shortened=content is not body)
        return await send(content, fit)

    async def _send(
        self, request: Request, upstream: Upstream, path: str, content: bytes, refit: Callable[[PromptTooLongError], bytes] | None = None
    ) -> Response:
        """Send a request upstream and return the answer.

        Args:
            request: The client's request.
            upstream: Where to send it.
            path: Its path there.
            content: Its body.
            refit: Makes a smaller body after the upstream has refused a prompt as too long. It is sent once.
        """
        url = httpx.URL(upstream.url + path, query=request.url.query.encode() or None)
        headers = request_headers(request.headers.raw)
        try:
            answer = await answer_to(self.client, self.client.build_request(request.method, url, headers=headers, content=content), request)
            if answer is not None and answer.status in TOO_LONG_STATUSES and refit is not None:
                refusal = answered_error(answer.status, await answer.error_body())
                smaller = await _smaller(refit, refusal) if isinstance(refusal, PromptTooLongError) else None
                if smaller is not None:
                    await answer.close()
                    return await self._send(request, upstream, path, smaller)
        except httpx.TransportError as error:
            return _refused(upstream, 502, f"the gateway cannot reach {upstream.name}: {type(error).__name__}")
        return Response() if answer is None else RelayedAnswer(answer)


def _host(request: Request) -> str | None:
    """Return the name under which the client reached the gateway, without the port."""
    try:
        return urlsplit(f"//{request.headers.get('host', '')}").hostname
    except ValueError:
        return None


def _conversation(upstream: Upstream, path: str, fields: Json) -> tuple[WireFormat | None, Conversation | None]:
    """Return the conversation of a request, and the wire format that has read it."""
    for wire in upstream.wires:
        if (conversation := wire.conversation(path, fields)) is not None:
            return wire, conversation
    return None, None


def _fitted_body(
    windows: Windows, wire: WireFormat, conversation: Conversation, fields: Json, body: bytes, refusal: PromptTooLongError | None = None
) -> bytes:
    """Return the body to send: the client's own if the conversation fits."""
    messages = windows.fit(wire, conversation, refusal)
    return body if messages is None else json.dumps(wire.with_messages(fields, messages), separators=(",", ":")).encode()


async def _smaller(refit: Callable[[PromptTooLongError], bytes], refusal: PromptTooLongError) -> bytes | None:
    """Return a smaller body; None if nothing can be taken out, so that the client gets the upstream's own answer."""
    try:
        return await in_thread(partial(refit, refusal))
    except _UNFIT:
        return None


def _refused(upstream: Upstream | None, status: int, message: str) -> Response:
    """Return an error of the gateway's own, in the form of the client's API."""
    return JSONResponse({"error": {"message": message}} if upstream is None else upstream.wires[0].error(status, message), status)
