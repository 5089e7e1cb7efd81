"""Summaries by the model of a Pydantic AI run, and what its responses cost."""

from __future__ import annotations

from pydantic_ai.direct import model_request
from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, UserPromptPart
from pydantic_ai.models import Model

from session.errors import SummaryError
from session.summarizers import Summarizer, SummaryText
from session.usage import Usage

from .message_adapter import usage_from_totals


def reported_usage(response: ModelResponse) -> Usage | None:
    """Return the reported usage of a response, or None."""
    usage = response.usage
    return usage_from_totals(usage.input_tokens, usage.cache_read_tokens, usage.cache_write_tokens, usage.output_tokens)


def summariser_of(model: Model) -> Summarizer:
    """Return a summariser that asks the request's model, without tools."""

    async def summarise(prompt: str) -> str:
        answer = await model_request(model, [ModelRequest([UserPromptPart(prompt)])])
        if answer.finish_reason in ("length", "content_filter"):
            raise SummaryError(f"the model stopped with {answer.finish_reason}", reported_usage(answer))
        return SummaryText("".join(part.content for part in answer.parts if isinstance(part, TextPart)), reported_usage(answer))

    return summarise
