"""Who writes summaries: the protocol, and one that asks a Claude model. What they are asked lives in `summary.py`."""

from __future__ import annotations

import math
from collections.abc import Awaitable
from inspect import isawaitable
from typing import Any, Protocol

from .errors import FormatError, SummaryError, short
from .excerpts import whole_number

COMPLETE = frozenset({"end_turn", "stop_sequence"})
"""Stop reasons after which the text is all that the model had to say."""


class Summarizer(Protocol):
    """Whoever writes summaries: `async (prompt: str) -> str`. A plain async function is one."""

    def __call__(self, prompt: str, /) -> Awaitable[str]:
        """The summary that the prompt asks for."""


class AnthropicSummarizer:
    """A `Summarizer` that asks a Claude model.

        await session.summarize(AnthropicSummarizer(AsyncAnthropic(), "claude-haiku-4-5"))

    Attributes:
        model: The model that is asked.
        max_tokens: Tokens a summary may have; one that is cut off there is an error.
        timeout: Seconds the answer may take, retries of the client included.
    """

    def __init__(self, client: Any, model: str, *, max_tokens: int = 4_096, timeout: float = 60.0) -> None:
        """
        Args:
            client: An `anthropic.AsyncAnthropic`, or an `anthropic.Anthropic`, which then works in a thread.
            model: A model's name.
            max_tokens: As the attribute.
            timeout: As the attribute.

        Raises:
            FormatError: A value makes no sense.
        """
        if not callable(getattr(getattr(client, "messages", None), "create", None)):
            raise FormatError("AnthropicSummarizer.client", f"{short(client)}; pass an anthropic.AsyncAnthropic or anthropic.Anthropic")
        if not isinstance(model, str) or not model.strip():
            raise FormatError("AnthropicSummarizer.model", f"{short(model)} is no model's name")
        if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 < timeout < math.inf:
            raise FormatError("AnthropicSummarizer.timeout", f"{short(timeout)}; pass a number of seconds above 0")
        self.model = model
        self.max_tokens = whole_number(max_tokens, "AnthropicSummarizer.max_tokens", 1)
        self.timeout = float(timeout)
        self._client = client

    async def __call__(self, prompt: str, /) -> str:
        """The model's answer.

        Raises:
            SummaryError: None came in time, it is cut off, refused, or holds no text.
        """
        import asyncio

        try:
            async with asyncio.timeout(self.timeout):
                answer = await self._asked(prompt)
        except TimeoutError as error:
            raise SummaryError(f"{short(self.model)} has not answered within {self.timeout:g} seconds") from error
        reason = getattr(answer, "stop_reason", None)
        if reason not in COMPLETE:
            cut_off = "; pass a larger max_tokens" if reason == "max_tokens" else ""
            raise SummaryError(f"{short(self.model)} stopped with {short(reason)}{cut_off}")
        blocks = getattr(answer, "content", None) or ()
        text = "".join(block.text for block in blocks if getattr(block, "type", None) == "text")
        if not text.strip():
            raise SummaryError(f"{short(self.model)} answered without a text")
        return text

    async def _asked(self, prompt: str) -> Any:
        import asyncio

        messages = [{"role": "user", "content": prompt}]

        def ask() -> Any:
            return self._client.messages.create(model=self.model, max_tokens=self.max_tokens, messages=messages, timeout=self.timeout)

        # What tells the clients apart is what they return. In the thread the asynchronous one only makes the coroutine.
        answer = await asyncio.to_thread(ask)
        return await answer if isawaitable(answer) else answer
