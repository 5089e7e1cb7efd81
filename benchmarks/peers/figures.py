"""Figures of a library on one conversation: times, tokens, and what a provider would refuse."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Protocol

from context_window.counting.vocabulary import o200k
from session.providers import validate_openai_chat

from ..sessions import Messages, conversation

LABELS = {
    "default": "context-window",
    "extract": "context-window, `Extract()`",
    "langchain": "LangChain `trim_messages`, approximate",
    "langchain-exact": "LangChain `trim_messages`, tiktoken",
    "litellm": "LiteLLM `trim_messages`",
    "llama-index": "LlamaIndex `Memory`",
    "penguin": "Penguin `ContextWindowManager`",
    "penguin-epoch": "Penguin `ContextEpoch`",
    "agent-framework": "Agent Framework, approximate",
    "summarization": "summarization-pydantic-ai, approximate",
    "harness": "pydantic-ai-harness, approximate",
    "harness-exact": "pydantic-ai-harness, tiktoken",
}
OURS = ("default", "extract")
SEED = 17
"""Of the growing conversation. Each size has another, so that no text is seen twice."""
SIZES = (1_000, 2_000, 4_000)
"""Messages of the conversations that are timed."""
BUDGET = 100_000
STEPS = 10
"""Short messages after the conversation."""
LIMIT, GROWN_LIMIT = 20.0, 120.0
"""Seconds of processor time."""
REQUESTS = 36
"""Successive requests of the growing conversation, of `GROWN` messages in the end, with a budget of `SMALL_BUDGET` tokens."""
GROWN = 200
SMALL_BUDGET = 10_000
ORPHANS = "O1"
"""The rule of calls and results."""
PER_MESSAGE = 3
"""Tokens that a message has beside its texts."""


class Worker(Protocol):
    """`Process`, or another that does tasks."""

    def ask(self, task: dict[str, Any]) -> dict[str, Any] | None:
        """Return the answer to a task of `worker.py`, or None if it takes too long."""


@dataclass(frozen=True)
class Run:
    """What a library did with a conversation.

    Attributes:
        peer: The library.
        size: Messages of the conversation.
        cold: Seconds for the conversation, never seen before.
        live: Seconds after one more short message, the median.
        tokens: Tokens of the first view; the mean of all for a growing conversation.
        views: Number of views.
        over: Views larger than the budget.
        orphaned: Views with a call without its result, or a result without its call.
        promptless: Views without the system prompt.
        lost: Requests that changed something before the end of the request before.
    """

    peer: str
    size: int
    cold: float
    live: float
    tokens: int
    views: int
    over: int
    orphaned: int
    promptless: int
    lost: int

    def faster(self, other: Run) -> Run:
        """Return these figures with the smaller times of both."""
        return replace(self, cold=min(self.cold, other.cold), live=min(self.live, other.live))


def time_size(worker: Worker, peer: str, size: int, budget: int = BUDGET, steps: int = STEPS) -> Run | None:
    """Time a library on a conversation and on short messages after it, or return None if it takes too long."""
    appends = [
        [{"role": role, "content": f"Step {step} is done."}]
        for step, role in zip(range(steps), ("assistant", "user") * steps, strict=False)
    ]
    worker.ask(
        {"peer": peer, "budget": 2_000, "messages": conversation(40, SEED), "appends": appends[:1], "limit": LIMIT}
    )  # what loads, loads now
    answer = worker.ask({"peer": peer, "budget": budget, "messages": conversation(size, SEED + size), "appends": appends, "limit": LIMIT})
    if answer is None:
        return None
    run = _run(peer, size, budget, answer)
    return replace(run, tokens=tokens(answer["views"][0]))


def grow(worker: Worker, peer: str) -> Run | None:
    """Ask a library for the requests of a growing conversation, or return None if it takes too long."""
    messages = conversation(GROWN, SEED)
    cuts = [place for place, message in enumerate(messages) if message["role"] == "assistant"]
    cuts = [*cuts[1 - REQUESTS :], len(messages)]
    appends = [messages[start:end] for start, end in pairwise(cuts)]
    task = {"peer": peer, "budget": SMALL_BUDGET, "messages": messages[: cuts[0]], "appends": appends, "limit": GROWN_LIMIT}
    answer = worker.ask(task)
    return None if answer is None else _run(peer, GROWN, SMALL_BUDGET, answer)


def _run(peer: str, size: int, budget: int, answer: dict[str, Any]) -> Run:
    views: list[Messages] = answer["views"]
    counts = [tokens(view) for view in views]
    return Run(
        peer,
        size,
        cold=answer["cold"],
        live=statistics.median(answer["live"]),
        tokens=round(statistics.mean(counts)),
        views=len(views),
        over=sum(count > budget for count in counts),
        orphaned=sum(any(violation.rule == ORPHANS for violation in validate_openai_chat(view)) for view in views),
        promptless=sum(view[0]["role"] != "system" for view in views),
        lost=sum(later[: len(earlier) - 1] != earlier[:-1] for earlier, later in pairwise(views)),
    )


def tokens(messages: Messages) -> int:
    """Return the tokens of messages in OpenAI's format, by one counter for all libraries."""
    encode = o200k().encode_ordinary
    return sum(PER_MESSAGE + sum(len(encode(text)) for text in texts(message)) for message in messages)


def texts(message: dict[str, Any]) -> list[str]:
    """Return all texts of a message: its content, and the names and arguments of its calls."""
    content = message.get("content") or ""
    parts = [content] if isinstance(content, str) else [part["text"] for part in content]
    return [*parts, *(call["function"][key] for call in message.get("tool_calls") or () for key in ("name", "arguments"))]


def bare_seconds(size: int, passes: int = 3) -> float:
    """Return the seconds that counting takes alone: all texts of a conversation, encoded one by one."""
    all_texts = [text for message in conversation(size, SEED + size) for text in texts(message)]
    encode = o200k().encode_ordinary
    return min(_seconds(lambda: sum(len(encode(text)) for text in all_texts)) for _ in range(passes))


def _seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start
