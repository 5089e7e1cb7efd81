"""The provider's own token count of a whole request. Decides nothing: callers decide what to do with it.

The calls of each provider's client are in `count_clients.py`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from inspect import isawaitable, iscoroutine
from threading import Lock
from typing import Any

from session.errors import SessionError
from session.session import Session

from ..tools import Tool
from ..validation import as_whole
from .count_clients import ApiClient, count_client

TIMEOUT = 5.0
"""Seconds to wait for a count. It is only a help and must not delay the call of the model."""
REMEMBERED = 256
"""Requests whose counts are remembered, each by a hash."""
HIGHEST = 10**9
"""Tokens above which a result cannot be a count."""
ASYNC_CLIENT = "the client is asynchronous: call aanalyze_session, aprocess_session or atrim_session, or pass a synchronous one"


@dataclass(frozen=True, slots=True)
class CountRequest:
    """A request to be counted: a hash of its content, the arguments of the client's count call, and why it cannot be sent, if so."""

    key: str
    request: Mapping[str, Any]
    problem: str = ""


@dataclass(frozen=True, slots=True)
class ProviderCount:
    """The provider's count of a request, or why there is none, without content or keys."""

    tokens: int | None
    problem: str = ""


class ProviderCounter:
    """Calls the client's count endpoint, once per content, without retries and with a short timeout.

    Whatever the client raises or returns, the result is a count or the reason why there is none. Thread-safe.
    """

    def __init__(self, client: ApiClient, model: str, tools: Iterable[Tool] = ()) -> None:
        """Raises ArgumentError if `client` is not one of Anthropic's, OpenAI's or Google's, or a tool has no JSON form."""
        self._client = count_client(client, tools)
        self.is_async = self._client.is_async
        self.family = self._client.family
        self._model = model.strip().rpartition("/")[2].removesuffix("[1m]")
        self._counts: dict[str, int] = {}
        self._lock = Lock()

    def count_request(self, session: Session) -> CountRequest | None:
        """Return the request that a session or view makes, or None if there is nothing to send yet."""
        try:
            request = self._client.request(session, self._model)
            if request is None:
                return None
            key = hashlib.sha256(json.dumps(request, sort_keys=True, default=repr).encode()).hexdigest()
        except (SessionError, RecursionError, ValueError) as error:  # JSON that is too deep, a number with too many digits
            return CountRequest("", {}, problem=f"the session cannot be written as a request: {type(error).__name__}")
        return CountRequest(key, request)

    def count(self, request: CountRequest) -> ProviderCount:
        """Return the provider's count of the request. Blocks on the network."""
        if self.is_async:
            return ProviderCount(None, ASYNC_CLIENT)
        return self._remembered(request) or self._result(request, _call_or_error(lambda: self._send(request)))

    async def acount(self, request: CountRequest) -> ProviderCount:
        """Return the provider's count of the request without blocking the event loop."""
        import asyncio

        if not self.is_async:
            return await asyncio.to_thread(self.count, request)
        return self._remembered(request) or self._result(request, await _await_or_error(lambda: self._send(request)))

    def _send(self, request: CountRequest) -> Any:
        return self._client.send(request.request, TIMEOUT)

    def _remembered(self, request: CountRequest) -> ProviderCount | None:
        if request.problem:
            return ProviderCount(None, request.problem)
        tokens = self._counts.get(request.key)
        return None if tokens is None else ProviderCount(tokens)

    def _result(self, request: CountRequest, response: object) -> ProviderCount:
        if isinstance(response, Exception):
            status = as_whole(getattr(response, "status_code", None)) or as_whole(getattr(response, "code", None))
            return ProviderCount(None, type(response).__name__ + ("" if status is None else f" (HTTP {status})"))
        if iscoroutine(response):  # an async client that does not look like one
            response.close()
            return ProviderCount(None, ASYNC_CLIENT)
        tokens = as_whole(getattr(response, self._client.field, None))
        if tokens is None or not 1 <= tokens <= HIGHEST:
            return ProviderCount(None, "the response holds no count")
        with self._lock:
            while len(self._counts) >= REMEMBERED:
                del self._counts[next(iter(self._counts))]
            self._counts[request.key] = tokens
        return ProviderCount(tokens)


def _call_or_error(call: Callable[[], Any]) -> Any:
    """Return the result of the call, or the exception that it raises."""
    try:
        return call()
    except Exception as error:  # noqa: BLE001 - a client and its transport fail in many ways; each becomes a reported reason
        return error


async def _await_or_error(call: Callable[[], Awaitable[Any]]) -> Any:
    """Return the awaited result, or the exception that it raises. A response that starts but never ends times out."""
    import asyncio

    try:
        async with asyncio.timeout(2 * TIMEOUT):
            response = call()
            return await response if isawaitable(response) else response
    except Exception as error:  # noqa: BLE001 - as in `_call_or_error`
        return error
