"""Summarizers: the protocol, one that calls a Claude model, and one for any model of a loop. The prompts live in `summary.py`."""

from __future__ import annotations

import math
from collections.abc import Awaitable
from inspect import isawaitable
from typing import Any, Protocol, Self

from .errors import FormatError, SummaryError, short
from .rewrite import checked_count

MODEL_TIMEOUT = 120.0
"""Seconds that a loop's model may take for a summary if it has no `timeout`. It may think before it writes."""
INCOMPLETE = frozenset({"max_tokens", "model_context_window_exceeded", "pause_turn", "refusal"})
"""Stop reasons of a loop's model after which the text is not a whole summary."""
COMPLETE = frozenset({"end_turn", "stop_sequence"})
"""Stop reasons after which the text is complete."""


class Summarizer(Protocol):
    """A function that writes summaries: `async (prompt: str) -> str`."""

    def __call__(self, prompt: str, /) -> Awaitable[str]:
        """Return the summary that the prompt requests."""


class SummaryText(str):
    """A summary with the usage that the provider reported for writing it.

    Attributes:
        usage: The report, as the client or the model gave it; None if there is none.
    """

    __slots__ = ("usage",)

    def __new__(cls, text: str, usage: object = None) -> Self:
        """Return the text with a report."""
        summary = super().__new__(cls, text)
        summary.usage = usage
        return summary

    usage: object


class Summarizing(Protocol):
    """A loop's model, as far as summaries need it: `context_window.Model` has this method."""

    async def answer(self, view: Any, tools: Any, *, allow_tools: bool, on_text: Any = None) -> Any:
        """Ask the model and return its answer, with `text` and `stop`."""


class AnthropicSummarizer:
    """A `Summarizer` that calls a Claude model.

        await session.summarize(AnthropicSummarizer(AsyncAnthropic(), "claude-haiku-4-5"))

    Attributes:
        model: The model's name.
        max_tokens: Tokens that a summary may have; a longer one is cut off, which is an error.
        timeout: Seconds that the response may take, including the client's retries.
    """

    def __init__(self, client: Any, model: str, *, max_tokens: int = 4_096, timeout: float = 60.0) -> None:
        """
        Args:
            client: An `anthropic.AsyncAnthropic`, or an `anthropic.Anthropic`, which is called in a thread.
            model: A model's name.
            max_tokens: As the attribute.
            timeout: As the attribute.

        Raises:
            FormatError: An argument has the wrong type or is out of range.
        """
        if not callable(getattr(getattr(client, "messages", None), "create", None)):
            raise FormatError("AnthropicSummarizer.client", f"{short(client)}; pass an anthropic.AsyncAnthropic or anthropic.Anthropic")
        if not isinstance(model, str) or not model.strip():
            raise FormatError("AnthropicSummarizer.model", f"{short(model)} is not a model's name")
        if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 < timeout < math.inf:
            raise FormatError("AnthropicSummarizer.timeout", f"{short(timeout)}; pass a number of seconds above 0")
        self.model = model
        self.max_tokens = checked_count(max_tokens, "AnthropicSummarizer.max_tokens", 1)
        self.timeout = float(timeout)
        self._client = client

    async def __call__(self, prompt: str, /) -> str:
        """Return the model's summary.

        Raises:
            SummaryError: The response did not come in time, is cut off, was refused, or has no text.
        """
        import asyncio

        try:
            async with asyncio.timeout(self.timeout):
                response = await self._request(prompt)
        except TimeoutError as error:
            raise SummaryError(f"{short(self.model)} did not answer within {self.timeout:g} seconds") from error
        reason, usage = getattr(response, "stop_reason", None), getattr(response, "usage", None)
        if reason not in COMPLETE:
            advice = "; pass a larger max_tokens" if reason == "max_tokens" else ""
            raise SummaryError(f"{short(self.model)} stopped with {short(reason)}{advice}", usage)
        blocks = getattr(response, "content", None) or ()
        text = "".join(block.text for block in blocks if getattr(block, "type", None) == "text")
        if not text.strip():
            raise SummaryError(f"{short(self.model)} answered without a text", usage)
        return SummaryText(text, usage)

    async def _request(self, prompt: str) -> Any:
        import asyncio

        messages = [{"role": "user", "content": prompt}]

        def create() -> Any:
            return self._client.messages.create(model=self.model, max_tokens=self.max_tokens, messages=messages, timeout=self.timeout)

        # The clients differ in what `create` returns. The asynchronous one only makes its coroutine in the thread.
        response = await asyncio.to_thread(create)
        return await response if isawaitable(response) else response


class ModelSummarizer:
    """A `Summarizer` that asks a loop's model: any object with the method `answer` of `context_window.Model`.

    `window` are the tokens that a prompt may have, None if the model states none; `timeout` the seconds that an answer may take: the
    model's, or 120.
    """

    def __init__(self, model: Any) -> None:
        self.asked_model = model
        self.window: object = getattr(model, "window", None)
        timeout = getattr(model, "timeout", None)
        self.timeout: object = MODEL_TIMEOUT if timeout is None else timeout

    async def __call__(self, prompt: str, /) -> str:
        """Return the model's summary, a `SummaryText`, asked for without tools. Raises SummaryError if it is cut off or was refused."""
        from .session import Session

        session = Session()
        session.add_message("user", prompt)
        answer = self.asked_model.answer(session, (), allow_tools=False)
        if isawaitable(answer):
            answer = await answer
        return _checked(answer)

    async def sum_up(self, conversation: Any, tools: Any) -> SummaryText | None:
        """Return the model's summary of a session that it knows, whose last message asks for it; None if there is no text.

        The request begins as the last one did, tools included, so the provider reads it from its cache. Raises SummaryError if the answer
        is cut off or was refused.
        """
        answer = self.asked_model.answer(conversation, tools, allow_tools=True)
        if isawaitable(answer):
            answer = await answer
        return None if getattr(answer, "calls", None) or not answer.text.strip() else _checked(answer)


def _checked(answer: Any) -> SummaryText:
    """Return a model's answer as a summary. Raises SummaryError if it is cut off or was refused."""
    usage = getattr(answer, "usage", None)
    if answer.stop in INCOMPLETE:
        raise SummaryError(f"the model stopped with {short(answer.stop)}", usage)
    return SummaryText(answer.text, usage)


def as_summarizer(value: Any) -> Summarizer | None:
    """Return the value as a summarizer: itself if it can be called, a `ModelSummarizer` for a loop's model, None for anything else."""
    if isinstance(value, type):
        return None
    if callable(value):
        summarizer: Summarizer = value
        return summarizer
    return ModelSummarizer(value) if callable(getattr(value, "answer", None)) else None
