"""Anthropic's SDK: the call of the model with a session's view, and another one where the API refuses the first.

The requests are made by the manager (`requesting.py`), what the API says is read in `refusals.py`; here requests are sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from inspect import isawaitable
from typing import TYPE_CHECKING, Any

from session.session import Session

from ..attempts import Attempts
from ..errors import BudgetError
from ..manager import ContextWindowManager
from ..model_errors import PartRefusedError, PromptTooLongError
from ..refusals import model_error
from ..threads import in_thread
from ..tools import Tool
from ..whole import as_whole

if TYPE_CHECKING:
    from anthropic import Anthropic, AsyncAnthropic
    from anthropic.types import Message

__all__ = ["acreate", "create", "cut_short"]

STOPPED = "model_context_window_exceeded"
"""The stop reason of an answer that ended where the window did."""


def create(
    manager: ContextWindowManager,
    client: Anthropic,
    session: Session,
    *,
    model: str,
    max_tokens: int,
    tools: Iterable[Tool] = (),
    **more: Any,
) -> Message:
    """The model's answer to the session: what `client.messages.create` gives for `manager.anthropic_request(…)`.

        answer = create(manager, client, session, model="claude-sonnet-5-5", max_tokens=8_000, tools=[read_file])

    Where the API says that the prompt is too long, or the answer ends with the window (`model_context_window_exceeded`), the session's
    budget is lowered (`manager.accept_refusal`: by the API's figures, without any to half) and the model is asked once more, with less.
    An answer that is cut short again, or whose prompt cannot be smaller, is given as it is. Where the API refuses an image or a document,
    a note stands in its place from then on (likewise `accept_refusal`), and the model is asked once more. Other errors of the client stay
    as they are.

    Args:
        manager: What decides the view.
        client: An `anthropic.Anthropic`.
        session: The log; it is not changed. What was answered is the caller's to add.
        model: The model's name, as the API takes it.
        max_tokens: Tokens that the answer may have, as `anthropic_request` takes them.
        tools: Functions, or definitions in any provider's form.
        more: Whatever else the API takes, but `stream`: see `client.messages.stream(**manager.anthropic_request(…))`.

    Raises:
        PromptTooLongError: The prompt was too long twice, or nothing of it could be taken. It has the API's figures.
        PartRefusedError: The API refused an image or a document, and another one in the request without it.
        ContextOverflowError: What must be kept does not fit, and the window is `strict`.
        BudgetError: An argument makes no sense, or nothing has been said yet.
    """
    _check(manager, client)
    asked = _checked(more, model=model, max_tokens=max_tokens, tools=tools)
    with _Attempts(manager, session) as attempts:
        while True:
            request = manager.anthropic_request(session, **asked)
            try:
                answer: Message = client.messages.create(**request)
            except Exception as error:  # noqa: BLE001 - raised again unless another attempt may help
                attempts.refused(error)
            else:
                if isawaitable(answer):
                    getattr(answer, "close", lambda: None)()  # a coroutine that nobody awaits is warned about
                    raise BudgetError("client", type(client), "pass an anthropic.Anthropic(), or await acreate(…) with this one")
                if attempts.settled(answer, request["max_tokens"]):
                    return answer


async def acreate(
    manager: ContextWindowManager,
    client: AsyncAnthropic,
    session: Session,
    *,
    model: str,
    max_tokens: int,
    tools: Iterable[Tool] = (),
    **more: Any,
) -> Message:
    """As `create`, with an asynchronous client; what is counted is counted in a thread.

    Args:
        manager: What decides the view.
        client: An `anthropic.AsyncAnthropic`.
        session: The log; it is not changed. What was answered is the caller's to add.
        model: The model's name, as the API takes it.
        max_tokens: Tokens that the answer may have, as `anthropic_request` takes them.
        tools: Functions, or definitions in any provider's form.
        more: Whatever else the API takes, but `stream`.

    Raises:
        PromptTooLongError: The prompt was too long twice, or nothing of it could be taken. It has the API's figures.
        PartRefusedError: The API refused an image or a document, and another one in the request without it.
        ContextOverflowError: What must be kept does not fit, and the window is `strict`.
        BudgetError: An argument makes no sense, or nothing has been said yet.
    """
    _check(manager, client)
    asked = _checked(more, model=model, max_tokens=max_tokens, tools=tools)
    with _Attempts(manager, session) as attempts:
        while True:
            request = await manager.aanthropic_request(session, **asked)
            try:
                asking = client.messages.create(**request)
                answer: Message | None = await asking if isawaitable(asking) else None
            except Exception as error:  # noqa: BLE001 - raised again unless another attempt may help
                await in_thread(partial(attempts.refused, error))
            else:
                if answer is None:
                    raise BudgetError("client", type(client), "pass an anthropic.AsyncAnthropic(), or call create(…) with this one")
                if await in_thread(partial(attempts.settled, answer, request["max_tokens"])):
                    return answer


def cut_short(answer: Message | Mapping[str, Any], max_tokens: int) -> PromptTooLongError | None:
    """What an answer says of its prompt's length where it ended with the window, as `manager.accept_refusal` takes it; else None.

    Args:
        answer: The message.
        max_tokens: Tokens that it was allowed.
    """
    if _member(answer, "stop_reason") != STOPPED:
        return None
    usage = _member(answer, "usage")
    read = [as_whole(_member(usage, f"{kind}input_tokens")) or 0 for kind in ("", "cache_read_", "cache_creation_")]
    written = as_whole(_member(usage, "output_tokens")) or 0
    reason, prompt = "the answer ended with the window", sum(read)
    if prompt < 1:
        return PromptTooLongError(reason, 200, STOPPED)
    return PromptTooLongError(reason, 200, STOPPED, tokens=prompt, limit=max(0, prompt + written - max_tokens))


class _Attempts(Attempts):
    """The attempts at one request of the client."""

    def refused(self, error: Exception) -> None:
        """Prepare another attempt.

        Raises:
            PromptTooLongError: Another attempt would not help.
            PartRefusedError: Likewise.
            Exception: The error itself, if it is another one.
        """
        refusal = model_error(error)
        if not isinstance(refusal, PromptTooLongError | PartRefusedError):
            raise error
        if not self.gives_way(refusal):
            raise refusal from error

    def settled(self, answer: Message, max_tokens: int) -> bool:
        """Whether this is the answer; else room was made for another."""
        short = cut_short(answer, max_tokens)
        return short is None or not self.gives_way(short)


def _check(manager: object, client: object) -> None:
    if not isinstance(manager, ContextWindowManager):
        raise BudgetError("manager", type(manager), "pass a ContextWindowManager")
    if isinstance(client, type) or not callable(getattr(getattr(client, "messages", None), "create", None)):
        raise BudgetError("client", type(client), "pass an anthropic.Anthropic() to create, an anthropic.AsyncAnthropic() to acreate")


def _checked(more: Mapping[str, Any], **asked: Any) -> dict[str, Any]:
    if more.get("stream"):
        raise BudgetError("stream", more["stream"], "leave it out; client.messages.stream(**manager.anthropic_request(…)) streams")
    tools = asked["tools"]
    if isinstance(tools, Iterable) and not isinstance(tools, str | Mapping):  # what is no list of tools, the manager refuses
        asked["tools"] = list(tools)  # each attempt reads them
    return {**asked, **more}


def _member(value: object, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
