"""What Anthropic itself counts for a whole request, asked of its own client. Decides nothing: who asks says what to do with it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from inspect import isawaitable, iscoroutine, iscoroutinefunction
from threading import Lock
from typing import Any, Protocol

from session.errors import SessionError
from session.session import Session

from ..errors import BudgetError
from ..tools import Tool, anthropic_tools
from ..whole import as_whole

TIMEOUT = 5.0
"""Seconds that an answer may take: a count is a help, and must not hold up the call of the model that it is for."""
REMEMBERED = 256
"""Requests whose counts are remembered, each by a hash."""
MOST = 10**9
"""Tokens above which an answer is no count."""
ASYNCHRONOUS = "the client is asynchronous: call aanalyze_session, aprocess_session or atrim_session, or pass an anthropic.Anthropic"


class AnthropicClient(Protocol):
    """An `anthropic.Anthropic` or `anthropic.AsyncAnthropic`, as far as it is used here; importing it takes half a second."""

    @property
    def messages(self) -> Any:
        """What has `count_tokens`."""

    @property
    def with_options(self) -> Callable[..., Any]:
        """Gives the client with other settings."""


@dataclass(frozen=True, slots=True)
class Question:
    """A request to be counted.

    Attributes:
        key: A hash of its content.
        request: What `client.messages.count_tokens` takes.
        problem: Why it cannot be asked; empty where it can.
    """

    key: str
    request: Mapping[str, Any]
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Counted:
    """What came of a question.

    Attributes:
        tokens: The provider's count; None where there is none.
        why: Why there is none; names neither content nor keys.
    """

    tokens: int | None
    why: str = ""


class ProviderCounter:
    """Asks `client.messages.count_tokens`, once for each content, without retries and with a short timeout.

    Whatever the client raises or answers, what comes back is a count or the reason why there is none. Several threads may ask.
    """

    def __init__(self, client: AnthropicClient, model: str, tools: Iterable[Tool] = ()) -> None:
        """
        Args:
            client: An `anthropic.Anthropic` or `anthropic.AsyncAnthropic`.
            model: A Claude model's name.
            tools: The tools that requests will carry.

        Raises:
            BudgetError: It is no such client, or a tool has no JSON form.
        """
        check_client(client)
        self.asynchronous = iscoroutinefunction(client.messages.count_tokens)
        self._client = client
        self._model = model.strip().rpartition("/")[2].removesuffix("[1m]")
        self._tools = anthropic_tools(tools)
        self._counts: dict[str, int] = {}
        self._lock = Lock()

    def question(self, session: Session) -> Question | None:
        """The request that a session or view makes; None where there is nothing to send yet."""
        try:
            messages, system = session.to_anthropic_messages()
            if not messages:
                return None
            request: dict[str, Any] = {"model": self._model, "messages": messages}
            if system:
                request["system"] = system
            if self._tools:
                request["tools"] = self._tools
            key = hashlib.sha256(json.dumps(request, sort_keys=True).encode()).hexdigest()
        except (SessionError, RecursionError, ValueError) as error:  # JSON that is too deep, a number with too many digits
            return Question("", {}, problem=f"the session cannot be written as a request: {type(error).__name__}")
        return Question(key, request)

    def ask(self, question: Question) -> Counted:
        """The count, or why there is none. Waits for the network."""
        if self.asynchronous:
            return Counted(None, ASYNCHRONOUS)
        return self._known(question) or self._judged(question, _attempted(lambda: self._call(question)))

    async def aask(self, question: Question) -> Counted:
        """The same, and the loop goes on meanwhile."""
        import asyncio

        if not self.asynchronous:
            return await asyncio.to_thread(self.ask, question)
        return self._known(question) or self._judged(question, await _awaited(lambda: self._call(question)))

    def _call(self, question: Question) -> Any:
        return self._client.with_options(max_retries=0, timeout=TIMEOUT).messages.count_tokens(**question.request)

    def _known(self, question: Question) -> Counted | None:
        if question.problem:
            return Counted(None, question.problem)
        tokens = self._counts.get(question.key)
        return None if tokens is None else Counted(tokens)

    def _judged(self, question: Question, answer: object) -> Counted:
        if isinstance(answer, Exception):
            status = as_whole(getattr(answer, "status_code", None))
            return Counted(None, type(answer).__name__ + ("" if status is None else f" (HTTP {status})"))
        if iscoroutine(answer):  # a client that does not look asynchronous, and is
            answer.close()
            return Counted(None, ASYNCHRONOUS)
        tokens = as_whole(getattr(answer, "input_tokens", None))
        if tokens is None or not 1 <= tokens <= MOST:
            return Counted(None, "the answer holds no count")
        with self._lock:
            while len(self._counts) >= REMEMBERED:
                del self._counts[next(iter(self._counts))]
            self._counts[question.key] = tokens
        return Counted(tokens)


def check_client(client: object) -> None:
    """Raises BudgetError where this is no client of Anthropic's."""
    messages = getattr(client, "messages", None)
    if isinstance(client, type) or not callable(getattr(messages, "count_tokens", None)) or not hasattr(client, "with_options"):
        raise BudgetError("api_client", type(client), "pass an anthropic.Anthropic() or an anthropic.AsyncAnthropic()")


def _attempted(call: Callable[[], Any]) -> Any:
    """What the call gives, or what it raises."""
    try:
        return call()
    except Exception as error:  # noqa: BLE001 - a client has many ways to fail, its transport more; each becomes a reason that is told
        return error


async def _awaited(call: Callable[[], Awaitable[Any]]) -> Any:
    """What is awaited, or what it raises: a timeout, where an answer that has begun does not end."""
    import asyncio

    try:
        async with asyncio.timeout(2 * TIMEOUT):
            answer = call()
            return await answer if isawaitable(answer) else answer
    except Exception as error:  # noqa: BLE001 - as above
        return error
