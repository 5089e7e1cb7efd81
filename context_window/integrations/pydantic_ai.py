"""Pydantic AI agents: a capability that reduces the messages of each request to what fits. The agent's history keeps every message."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pydantic_ai import RunContext, exceptions
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
)
from pydantic_ai.models import ModelRequestContext, ModelRequestParameters

from ..manager import ContextWindowManager
from ..model_errors import PromptTooLongError
from ..requests.client_errors import model_error
from .conversation_tracker import REMEMBERED, ConversationTracker
from .pydantic_ai_messages import PydanticAdapter
from .pydantic_ai_summary import summariser_of
from .recall_mixin import RecallMixin

__all__ = ["ContextWindowCapability"]

# Absent from Pydantic AI before 2.64: requests are reduced all the same, and a refused one is not sent again.
_RETRY: type[Exception] | None = getattr(exceptions, "RetryModelRequest", None)
_TOO_LONG: tuple[type[Exception], ...] = tuple(filter(None, [getattr(exceptions, "ModelContextWindowExceededError", None)]))


class ContextWindowCapability(RecallMixin, AbstractCapability[Any]):
    """Shows the model what fits: a capability of an agent.

        agent = Agent("anthropic:claude-sonnet-5-5", capabilities=[ContextWindowCapability(ContextWindowManager("claude-sonnet-5-5"))])

    The history (`result.all_messages()`) keeps every message. The model is sent the history's own message objects, or a copy if a message
    is shown in part. When a trim would be due, the run's model first writes a summary of the older messages, unless
    `compaction=False`. If the provider says that the prompt is too long, a smaller request is sent, once. Give `recall` to the agent as a
    tool. Pass `fit` to `ProcessHistory` if the history itself should be trimmed.
    """

    def __init__(self, manager: ContextWindowManager, *, remembered: int = REMEMBERED) -> None:
        """
        Args:
            manager: The manager that makes the views. Instructions and tools of a request are counted automatically.
            remembered: Conversations to remember, the most recently used ones. Others are replayed from their beginning, with the same
                result.
        """
        self._conversations: ConversationTracker[ModelMessage] = ConversationTracker(manager, PydanticAdapter(), remembered=remembered)
        self._refusals: dict[str | None, Exception] = {}  # by run id, between a failed request and its retry

    async def fit(self, messages: list[ModelMessage]) -> list[ModelMessage]:
        """Return the messages that fit.

        Args:
            messages: The whole conversation.

        Raises:
            ContextOverflowError: The protected items alone exceed the budget, and the window is `strict`.
        """
        return await self._conversations.afit(messages)

    async def before_model_request(
        self,
        ctx: RunContext[Any],  # noqa: ARG002 - its name in the base class
        request_context: ModelRequestContext,
    ) -> ModelRequestContext:
        """Return the request with the messages that fit.

        Args:
            ctx: The run.
            request_context: The agent's request.

        Raises:
            ContextOverflowError: The protected items alone exceed the budget, and the window is `strict`.
        """
        return replace(request_context, messages=await self._fit_request(request_context))

    async def on_model_request_error(
        self,
        ctx: RunContext[Any],
        *,
        request_context: ModelRequestContext,
        error: Exception,
    ) -> ModelResponse:
        """Ask for a retry with a smaller request if the provider says that the prompt is too long.

        Args:
            ctx: The run.
            request_context: The request that failed.
            error: The exception it raised.

        Raises:
            RetryModelRequest: The prompt was too long, for the first time.
            Exception: `error`, if it is not about the prompt's length or the retry failed too.
        """
        if _RETRY is None or request_context.attempt > 1 or _as_prompt_too_long(error) is None:
            raise error
        self._refusals[ctx.run_id] = error  # for `prepare_model_request`, which is called next
        raise _RETRY

    async def prepare_model_request(
        self,
        ctx: RunContext[Any],
        request_context: ModelRequestContext,
    ) -> ModelRequestContext:
        """Return the request; for a retry, with a smaller list of messages.

        Args:
            ctx: The run.
            request_context: The request as `before_model_request` left it.

        Raises:
            ContextOverflowError: The protected items alone exceed the budget, and the window is `strict`.
            Exception: The error of the first attempt, if nothing can be taken out.
        """
        error = self._refusals.pop(ctx.run_id, None)
        if error is None:
            return request_context
        try:
            return replace(request_context, messages=await self._fit_request(request_context, _as_prompt_too_long(error)))
        except PromptTooLongError:
            raise error from error.__cause__

    async def _fit_request(self, request: ModelRequestContext, refusal: Exception | None = None) -> list[ModelMessage]:
        parameters = request.model_request_parameters
        system = "\n\n".join(part.content for part in parameters.instruction_parts or [])
        tools, llm = _tools(parameters), summariser_of(request.model)
        return await self._conversations.afit(list(request.messages), system=system, tools=tools, refusal=refusal, llm=llm)


def _as_prompt_too_long(error: Exception) -> PromptTooLongError | None:
    """Return the refusal that an error reports, with Anthropic's figures if it has any; None if it is about something else."""
    cause = error.__cause__
    refusal = model_error(cause) if cause is not None else None
    if isinstance(refusal, PromptTooLongError):
        return refusal
    return PromptTooLongError("the prompt is too long", 400) if isinstance(error, _TOO_LONG) else None


def _tools(parameters: ModelRequestParameters) -> list[Mapping[str, Any]]:
    return [
        {"name": tool.name, "description": tool.description or "", "input_schema": tool.parameters_json_schema}
        for tool in (*parameters.function_tools, *parameters.output_tools)
    ]
