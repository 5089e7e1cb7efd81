"""Anthropic's SDK: send a session's view as a request, and send a smaller one if the API refuses it.

The manager makes the requests (`requests/anthropic_request.py`), and `requests/client_errors.py` reads the API's errors.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from inspect import isawaitable
from typing import TYPE_CHECKING, Any

from session.session import Session
from session.summarizers import AnthropicSummarizer

from ..errors import ArgumentError, ClientError
from ..loop.background_loop import run_blocking
from ..loop.retries import RefusalRetries
from ..manager import ContextWindowManager
from ..model_errors import PartRefusedError, PromptTooLongError
from ..requests.client_errors import model_error
from ..threads import in_thread
from ..tools import Tool
from ..validation import as_whole

if TYPE_CHECKING:
    from anthropic import Anthropic, AsyncAnthropic
    from anthropic.types import Message

__all__ = ["acreate", "create", "cut_short"]

WINDOW_FULL = "model_context_window_exceeded"
"""Stop reason of an answer that was cut off because prompt and answer filled the context window."""


def create(
    manager: ContextWindowManager,
    client: Anthropic,
    session: Session,
    *,
    model: str,
    max_tokens: int,
    tools: Iterable[Tool] = (),
    **request_fields: Any,
) -> Message:
    """Send `manager.anthropic_request(…)` with `client.messages.create` and return the model's answer.

        answer = create(manager, client, session, model="claude-sonnet-5-5", max_tokens=8_000, tools=[read_file])

    If the log has outgrown its limits, the same model first writes a summary of its older part (`manager.compact_if_due`), unless the
    window has another summariser or `compaction=False`.

    If the API says that the prompt is too long, or the answer was cut off by the window (`model_context_window_exceeded`), the session's
    budget is lowered (`manager.accept_refusal`: to the API's figures, or to half if it gives none) and a smaller request is sent, once.
    An answer that is cut off again, or whose prompt cannot become smaller, is returned as it is. If the API refuses an image or a
    document, `accept_refusal` puts a note in its place from then on, and the request is sent again, once. All other errors of the client
    are raised unchanged.

    Args:
        manager: The manager that makes the view.
        client: An `anthropic.Anthropic`.
        session: The log. Append the answer yourself; only a summary may be appended here.
        model: The model's name, as the API takes it.
        max_tokens: Tokens that the answer may have, as `anthropic_request` takes them.
        tools: Functions, or definitions in any provider's form.
        request_fields: Other fields of the request, except `stream`: see `client.messages.stream(**manager.anthropic_request(…))`.

    Raises:
        PromptTooLongError: The prompt was too long twice, or nothing could be taken out of it. It has the API's figures.
        PartRefusedError: The API refused an image or a document, and another one in the request without it.
        ContextOverflowError: The protected items alone exceed the budget, and the window is `strict`.
        ArgumentError: An argument is invalid, or the session has no message yet.
    """
    _check(manager, client)
    arguments = _request_arguments(request_fields, model=model, max_tokens=max_tokens, tools=tools)
    run_blocking(manager.compact_if_due(session, AnthropicSummarizer(client, model)))
    with _CreateRetries(manager, session) as retries:
        while True:
            request = manager.anthropic_request(session, **arguments)
            try:
                answer: Message = client.messages.create(**request)
            except Exception as error:  # noqa: BLE001 - raised again unless a retry may help
                retries.handle_error(error)
            else:
                if isawaitable(answer):
                    getattr(answer, "close", lambda: None)()  # a coroutine that nobody awaits causes a warning
                    raise ClientError("client", type(client), "pass an anthropic.Anthropic(), or await acreate(…) with this one")
                if retries.accept_answer(answer, request["max_tokens"]):
                    return answer


async def acreate(
    manager: ContextWindowManager,
    client: AsyncAnthropic,
    session: Session,
    *,
    model: str,
    max_tokens: int,
    tools: Iterable[Tool] = (),
    **request_fields: Any,
) -> Message:
    """Do what `create` does for an asynchronous client, an `anthropic.AsyncAnthropic`: arguments and errors are the same.

    Counting runs in a thread.
    """
    _check(manager, client)
    arguments = _request_arguments(request_fields, model=model, max_tokens=max_tokens, tools=tools)
    await manager.compact_if_due(session, AnthropicSummarizer(client, model))
    with _CreateRetries(manager, session) as retries:
        while True:
            request = await manager.aanthropic_request(session, **arguments)
            try:
                response = client.messages.create(**request)
                answer: Message | None = await response if isawaitable(response) else None
            except Exception as error:  # noqa: BLE001 - raised again unless a retry may help
                await in_thread(partial(retries.handle_error, error))
            else:
                if answer is None:
                    raise ClientError("client", type(client), "pass an anthropic.AsyncAnthropic(), or call create(…) with this one")
                if await in_thread(partial(retries.accept_answer, answer, request["max_tokens"])):
                    return answer


def cut_short(answer: Message | Mapping[str, Any], max_tokens: int) -> PromptTooLongError | None:
    """Return the refusal to pass to `manager.accept_refusal` if the answer was cut off by the context window; else None.

    Args:
        answer: The model's message.
        max_tokens: The request's `max_tokens`.
    """
    if _field(answer, "stop_reason") != WINDOW_FULL:
        return None
    usage = _field(answer, "usage")
    input_counts = [as_whole(_field(usage, f"{kind}input_tokens")) or 0 for kind in ("", "cache_read_", "cache_creation_")]
    output_tokens = as_whole(_field(usage, "output_tokens")) or 0
    reason, prompt_tokens = "the answer ended with the window", sum(input_counts)
    if prompt_tokens < 1:
        return PromptTooLongError(reason, 200, WINDOW_FULL)
    limit = max(0, prompt_tokens + output_tokens - max_tokens)
    return PromptTooLongError(reason, 200, WINDOW_FULL, tokens=prompt_tokens, limit=limit)


class _CreateRetries(RefusalRetries):
    """The retries of one request, for exceptions and answers of the client."""

    def handle_error(self, error: Exception) -> None:
        """Adapt the session's views to a refusal, so that the request can be sent again.

        Raises:
            PromptTooLongError: The prompt was too long, and a retry would not help.
            PartRefusedError: A part was refused, and a retry would not help.
            Exception: `error` itself, if it is not a refusal.
        """
        refusal = model_error(error)
        if not isinstance(refusal, PromptTooLongError | PartRefusedError):
            raise error
        if not self.accept(refusal):
            raise refusal from error

    def accept_answer(self, answer: Message, max_tokens: int) -> bool:
        """Return True if this answer is final. Otherwise it was cut off, and the next request leaves more room."""
        refusal = cut_short(answer, max_tokens)
        return refusal is None or not self.accept(refusal)


def _check(manager: object, client: object) -> None:
    if not isinstance(manager, ContextWindowManager):
        raise ArgumentError("manager", type(manager), "pass a ContextWindowManager")
    if isinstance(client, type) or not callable(getattr(getattr(client, "messages", None), "create", None)):
        raise ClientError("client", type(client), "pass an anthropic.Anthropic() to create, an anthropic.AsyncAnthropic() to acreate")


def _request_arguments(request_fields: Mapping[str, Any], **arguments: Any) -> dict[str, Any]:
    """Return the arguments of `anthropic_request`, with the tools as a list that each attempt can read again."""
    if request_fields.get("stream"):
        raise ArgumentError(
            "stream", request_fields["stream"], "leave it out; client.messages.stream(**manager.anthropic_request(…)) streams"
        )
    tools = arguments["tools"]
    if isinstance(tools, Iterable) and not isinstance(tools, str | Mapping):  # the manager rejects anything else
        arguments["tools"] = list(tools)
    return {**arguments, **request_fields}


def _field(value: object, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
