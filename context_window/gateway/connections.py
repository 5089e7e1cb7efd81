"""`BoundedConnection`: a client's connection that is closed if no whole request head comes in time."""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS = 30.0
"""Seconds in which the head of a request must arrive, from its first byte or from the connection's begin."""
MOST_CONNECTIONS = 2_000
"""Connections at once; further ones are answered with status 503."""


class BoundedConnection(H11Protocol):
    """A connection. A request's body has its own limit of time, and an answer has none."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request."""
        super().connection_made(transport)
        self._deadline = self.loop.call_later(HEAD_SECONDS, transport.close)

    def data_received(self, data: bytes) -> None:
        """Take bytes. The wait ends with the head of a request."""
        super().data_received(data)
        is_answering = self.cycle is not None and not self.cycle.response_complete
        if self._deadline is not None and is_answering:
            self._deadline.cancel()
            self._deadline = None
        elif self._deadline is None and not is_answering:
            self._deadline = self.loop.call_later(HEAD_SECONDS, self.transport.close)

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        if self._deadline is not None:
            self._deadline.cancel()
        super().connection_lost(exc)
