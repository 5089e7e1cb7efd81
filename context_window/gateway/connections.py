"""`BoundedConnection`: a client's connection that is closed if no whole request head comes, or nothing of an answer is taken, in time."""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS = 30.0
"""Seconds in which the head of a request must arrive, from its first byte or from the connection's begin."""
STALL_SECONDS = 600.0
"""Seconds after which a client is given up that has not taken what was last written to it."""
MOST_CONNECTIONS = 2_000
"""Connections at once; further ones are answered with status 503."""


class BoundedConnection(H11Protocol):
    """A connection. A request's body has its own limit of time, and an answer has none as long as the client takes it.

    It is read while a request is answered, or nobody would see the client leave. A next request that comes meanwhile is not taken: the
    connection is closed after the answer, so that the client sends it again.
    """

    _deadline: asyncio.TimerHandle | None = None
    _stall: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request."""
        super().connection_made(transport)
        transport.set_write_buffer_limits(0)  # writing pauses, and `_stall` begins, with the first byte that the client does not take
        self._deadline = self.loop.call_later(HEAD_SECONDS, transport.close)

    def data_received(self, data: bytes) -> None:
        """Take bytes. The wait ends with the head of a request."""
        if self._is_answering() and not self.cycle.more_body:
            self.cycle.keep_alive = False
            return
        super().data_received(data)
        if self._is_answering():
            _cancel(self._deadline)
            self._deadline = None
        elif self._deadline is None:
            self._deadline = self.loop.call_later(HEAD_SECONDS, self.transport.close)

    def pause_writing(self) -> None:
        """Begin to wait for the client to take what is written."""
        super().pause_writing()
        self._stall = self.loop.call_later(STALL_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """End that wait."""
        _cancel(self._stall)
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        _cancel(self._deadline)
        _cancel(self._stall)
        super().connection_lost(exc)

    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
