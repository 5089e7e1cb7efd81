"""Relays requests to an upstream, and its answers back as they come."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import TypeVar

import anyio
import anyio.lowlevel
import httpx
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from ..threads import in_thread
from .body_json import value_of
from .decoding import Decoder
from .usage_reader import UsageReader

Headers = list[tuple[bytes, bytes]]
T = TypeVar("T")

_HOP_BY_HOP = frozenset(
    b"connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer transfer-encoding upgrade".split()
)
"""Headers that belong to one connection (RFC 9110, 7.6.1)."""
_OWN = frozenset([b"host", b"content-length", b"expect"])
"""Headers that are not copied, but set here."""
LONGEST_REFUSAL = 100_000
"""Bytes of an error's body that are read to see whether the prompt was too long."""


def forwarded(headers: Iterable[tuple[bytes, bytes]], also_left_out: frozenset[bytes] = frozenset()) -> Headers:
    """Return the headers that are passed on, in their order. Those that `Connection` names belong to the connection, too.

    Args:
        headers: Names and values, as they came.
        also_left_out: More names to leave out, in lower case.
    """
    pairs = [(name.lower(), value) for name, value in headers]
    named = {part.strip().lower() for name, value in pairs if name == b"connection" for part in value.split(b",")}
    left_out = _HOP_BY_HOP | also_left_out | named
    return [(name, value) for name, value in pairs if name not in left_out]


def request_headers(headers: Iterable[tuple[bytes, bytes]], *, is_read: bool = False) -> Headers:
    """Return the headers of a client's request that go upstream.

    Args:
        headers: The request's headers.
        is_read: True if the gateway reads the answer, which then must not be compressed.
    """
    if is_read:
        return [*forwarded(headers, _OWN | {b"accept-encoding"}), (b"accept-encoding", b"identity")]
    return forwarded(headers, _OWN)


def json_of_refusal(body: bytes, encoding: bytes) -> object:
    """Return the value in an error's body; None if it is no JSON, too large, or packed otherwise than once by gzip or deflate.

    Args:
        body: The body as it came.
        encoding: Its content encoding.
    """
    decoder = Decoder(encoding, LONGEST_REFUSAL)
    decoder.add(body)
    return value_of(bytes(decoder.content))


class OpenAnswer:
    """An upstream's answer whose body is still arriving.

    Attributes:
        status: Its HTTP status.
        headers: The headers that are passed on.
    """

    def __init__(self, answer: httpx.Response) -> None:
        """
        Args:
            answer: The answer, with its body still to be read.
        """
        self.status = answer.status_code
        self.headers = forwarded(answer.headers.raw)
        self._answer = answer
        self._rest = answer.aiter_raw()
        self._begun = bytearray()
        self._reader: UsageReader | None = None

    def watch(self, reader: UsageReader | None) -> None:
        """Let a reader see the bytes of the body as they are passed on."""
        self._reader = reader

    @property
    def is_encoded(self) -> bool:
        """True if the body is compressed, so that its bytes cannot be read."""
        return any(name == b"content-encoding" and value.lower() != b"identity" for name, value in self.headers)

    async def error_body(self) -> object:
        """Return the body as JSON if it is a small one; else None. The bytes read here are still passed on.

        Raises:
            httpx.TransportError: The upstream broke the connection.
        """
        content = await self.body(LONGEST_REFUSAL)
        return None if content is None else json_of_refusal(content, dict(self.headers).get(b"content-encoding", b"identity"))

    async def body(self, longest: int) -> bytes | None:
        """Return the body if it has at most `longest` bytes; else None. The bytes read here are still passed on.

        Raises:
            httpx.TransportError: The upstream broke the connection.
        """
        while len(self._begun) <= longest:
            try:
                piece = await anext(self._rest)
            except StopAsyncIteration:
                return bytes(self._begun)
            await self._read(piece)
            self._begun += piece
        return None

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield the bytes of the body as they arrive.

        Raises:
            httpx.TransportError: The upstream broke the connection.
        """
        if self._begun:
            yield bytes(self._begun)
            self._begun.clear()
        async for piece in self._rest:
            await self._read(piece)
            yield piece

    async def _read(self, piece: bytes) -> None:
        """Let the reader see bytes, and others work: thousands of pieces may have come at once.

        A few bytes that are packed can be megabytes, which are read in a thread.
        """
        await anyio.lowlevel.checkpoint()
        if self._reader is not None and self.is_encoded:
            await in_thread(partial(self._reader.read, piece))
        elif self._reader is not None:
            self._reader.read(piece)

    async def close(self) -> None:
        """Close the connection if the body has not been read to its end."""
        await self._answer.aclose()
        reader, self._reader = self._reader, None
        if reader is not None:
            await in_thread(reader.end)


class RelayedAnswer(Response):
    """An upstream's answer, passed on byte for byte while it arrives. The upstream is read no faster than the client reads.

    If the client leaves, the upstream's connection is closed.
    """

    def __init__(self, answer: OpenAnswer) -> None:
        """
        Args:
            answer: The answer.
        """
        self._answer = answer
        self.background = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - the interface of ASGI
        """Send the answer."""
        answer = self._answer
        await sent(receive, partial(send_pieces, send, answer.status, answer.headers, answer.pieces()), answer.close)


async def send_pieces(send: Send, status: int, headers: Headers, pieces: AsyncIterator[bytes]) -> None:
    """Send an answer piece by piece."""
    await send({"type": "http.response.start", "status": status, "headers": headers})
    async for piece in pieces:
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b"", "more_body": False})


async def sent(receive: Receive, work: Callable[[], Awaitable[None]], close: Callable[[], Awaitable[None]]) -> None:
    """Send an answer unless the client leaves, and close the upstream's.

    If the upstream breaks off, the server closes the connection without a last piece, so that the client sees it too.
    """
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(leave_with_client, receive, group.cancel_scope)
            with suppress(httpx.TransportError):
                await work()
            group.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            await close()


async def leave_with_client(receive: Receive, work: anyio.CancelScope) -> None:
    """Cancel the work as soon as the client is gone."""
    while (await receive())["type"] != "http.disconnect":
        pass
    work.cancel()


async def answer_to(client: httpx.AsyncClient, outgoing: httpx.Request, request: Request) -> OpenAnswer:
    """Send a request and return the answer, with its body still to be read.

    Args:
        client: Sends it.
        outgoing: The request to the upstream.
        request: The client's request, which tells when the client leaves.

    Raises:
        httpx.TransportError: The upstream cannot be reached, or broke the connection.
        ClientDisconnect: The client has left meanwhile.
    """
    return OpenAnswer(await unless_left(request, partial(client.send, outgoing, stream=True)))


async def unless_left(request: Request, work: Callable[[], Awaitable[T]]) -> T:
    """Return the result of what waits for an upstream. It is cancelled if the client leaves: an upstream may never end an answer.

    Args:
        request: The client's request, which tells when the client leaves.
        work: What waits.

    Raises:
        httpx.TransportError: The upstream cannot be reached, or broke the connection.
        ClientDisconnect: The client has left meanwhile.
    """
    result: list[T] = []
    error: httpx.TransportError | None = None
    async with anyio.create_task_group() as group:
        group.start_soon(leave_with_client, request.receive, group.cancel_scope)
        try:
            result.append(await work())
        except httpx.TransportError as problem:
            error = problem  # raised outside the group, which would wrap it
        group.cancel_scope.cancel()
    if error is not None:
        raise error
    if not result:
        raise ClientDisconnect
    return result[0]
