"""`RecallingAnswer`: an answer to a request that has the recall tool. The gateway answers the calls of that tool itself.

The steps of a round are in `joined_answer.py`. This file sends the requests, reads the answers and writes to the client.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from functools import partial

import httpx
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from ..threads import in_thread
from .body_json import body_bytes, object_of
from .events import StreamEvent, StreamEventReader
from .joined_answer import LARGEST_ANSWER, AnswerCall, Result
from .ledger import GatewayLedger
from .relay import Headers, OpenAnswer, send_pieces, sent
from .windows import UNFIT, Windows
from .wire_format import Json, RequestConversation, WireFormat

ROUNDS = 8
"""Most requests that follow the first one. Then the client gets what there is."""
_LEFT_OUT = (b"content-length", b"content-encoding")
USED_UP = "[Not recalled: no more content can be recalled in this answer. Go on without it.]"
TOO_LARGE = "the upstream's answer is too large to be joined with what was recalled"
MOST_RECALLS = 32
"""Recalls in one answer: each takes at least its part of the room, since to find nothing takes as long as to find something."""
_CUT = "\n[… {:,} more characters, which do not fit]"


class Recalls:
    """Answers the recalls in one answer of the upstream's. The results together have a bounded size."""

    def __init__(self, windows: Windows, wire: WireFormat, conversation: RequestConversation, ledger: GatewayLedger) -> None:
        """
        Args:
            windows: Finds the content.
            wire: The conversation's wire format.
            conversation: The conversation of the request.
            ledger: Where recalls are counted.
        """
        self._windows, self.wire, self._conversation, self._ledger = windows, wire, conversation, ledger
        self._room: int | None = None  # characters left
        self._least = 0

    async def results(self, calls: Sequence[AnswerCall]) -> list[Result]:
        """Return the result of each call."""
        return await in_thread(lambda: [self._result(call) for call in calls])

    def _result(self, call: AnswerCall) -> Result:
        if self._room is None:
            self._room = self._windows.room(self.wire, self._conversation)
            self._least = -(-self._room // MOST_RECALLS)
        if self._room <= 0:
            return USED_UP, True
        try:
            text, is_error = self._windows.recalled(self.wire, self._conversation, call.arguments)
        except UNFIT:
            self._room -= self._least
            return "[Not recalled: the conversation cannot be read.]", True
        self._ledger.recalls += 1
        room, self._room = self._room, self._room - max(len(text), self._least)
        return text if len(text) <= room else text[:room] + _CUT.format(len(text) - room), is_error


class RecallingAnswer(Response):
    """An answer whose recalls are answered and hidden. If the client leaves, the upstream's connection is closed."""

    def __init__(
        self,
        first: OpenAnswer,
        body: bytes,
        recalls: Recalls,
        *,
        ask: Callable[[bytes], Awaitable[OpenAnswer]],
        failure: Callable[[str], Json],
    ) -> None:
        """
        Args:
            first: The upstream's answer.
            body: The request that it answers.
            recalls: Answers the calls.
            ask: Sends another request. Raises `httpx.TransportError`.
            failure: Returns an error in the client's form.
        """
        self._answer, self._body, self._recalls = first, body, recalls
        self._joined = recalls.wire.joined_answer()
        self._ask, self._failure = ask, failure
        self.background = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - the interface of ASGI
        """Send the answer."""
        is_stream = self._header(b"content-type").startswith(b"text/event-stream")
        await sent(receive, partial(self._stream if is_stream else self._whole, send), self._close)

    async def _close(self) -> None:
        await self._answer.close()  # that of the last round

    def _header(self, name: bytes) -> bytes:
        return dict(self._answer.headers).get(name, b"")

    async def _stream(self, send: Send) -> None:
        await send_pieces(send, self._answer.status, _own_length(self._answer.headers), self._pieces())

    async def _pieces(self) -> AsyncIterator[bytes]:
        """Yield the bytes of the client's stream."""
        for number in range(ROUNDS + 1):
            reader = StreamEventReader()
            async for piece in self._answer.pieces():
                if raw := b"".join(event.raw for event in self._read(reader.events(piece))):
                    yield raw
                if self._joined.is_too_large and self._joined.is_changed:
                    yield self._joined.error_event(self._failure(TOO_LARGE)).raw
                    return
            for event in self._read(reader.end()):
                yield event.raw
            await in_thread(self._joined.finish_round)
            if not (calls := self._joined.recalls) or number == ROUNDS:
                break
            if (error := await self._next_error(calls)) is not None:
                yield self._joined.error_event(error).raw
                return
        for event in self._joined.end():
            yield event.raw

    def _read(self, events: Iterable[StreamEvent]) -> Iterator[StreamEvent]:
        for event in events:
            yield from self._joined.read(event)

    async def _whole(self, send: Send) -> None:
        """Send an answer that is not streamed. The upstream's error in a later round is the client's answer."""
        try:
            content = await self._whole_answer()
            status, headers = self._answer.status, self._answer.headers
        except httpx.TransportError as error:
            failure = self._failure(f"the gateway cannot reach the upstream: {type(error).__name__}")
            status, headers, content = 502, [(b"content-type", b"application/json")], json.dumps(failure).encode()
        length = [] if content is None else [(b"content-length", str(len(content)).encode())]
        pieces = self._answer.pieces() if content is None else _alone(content)
        await send_pieces(send, status, [*_own_length(headers), *length], pieces)

    async def _whole_answer(self) -> bytes | None:
        """Return the body of the client's answer; None if it is that of the upstream, which is too large to be kept."""
        room = LARGEST_ANSWER
        for number in range(ROUNDS + 1):
            content = await self._answer.body(room)
            if content is None:
                return None
            room -= len(content)
            answer = await in_thread(partial(object_of, content)) if self._answer.status == 200 else None
            if answer is None:
                break
            await in_thread(partial(self._joined.add, answer))
            if self._joined.has_failed:
                break
            try:
                if not (calls := self._joined.recalls) or number == ROUNDS:
                    return json.dumps(self._joined.whole_answer()).encode() if self._joined.is_changed else content
                await self._next(calls)
            except RecursionError:  # nested so deeply that it can only be passed on
                break
        return content

    async def _next(self, calls: Sequence[AnswerCall]) -> None:
        """Begin another round."""
        body = self._joined.next_round(object_of(self._body) or {}, await self._recalls.results(calls))
        self._body = body_bytes(body, self._recalls.wire.field)
        await self._answer.close()
        self._answer = await self._ask(self._body)

    async def _next_error(self, calls: Sequence[AnswerCall]) -> Json | None:
        """Begin another round of a stream. Return the upstream's error if it refuses that."""
        try:
            await self._next(calls)
        except httpx.TransportError as error:
            return self._failure(f"the gateway cannot reach the upstream: {type(error).__name__}")
        except RecursionError:
            return self._failure("the upstream's answer is nested so deeply that it cannot be sent back with what it recalls")
        if self._answer.status == 200:
            return None
        error_body = await self._answer.error_body()
        return error_body if isinstance(error_body, dict) else self._failure(f"the upstream answered with status {self._answer.status}")


async def _alone(content: bytes) -> AsyncIterator[bytes]:
    yield content


def _own_length(headers: Headers) -> Headers:
    return [(name, value) for name, value in headers if name not in _LEFT_OUT]
