"""Compare what other libraries send of the same conversation: the table in the README.

    pip install litellm llama-index-core && python benchmarks/peers.py

The conversation is a coding session in OpenAI's format: a question, three calls of a tool with one result each, an answer, again and
again. Three counts for each library:

1. Views with a tool call whose result is missing, or the reverse, at 19 budgets from 1,500 to 6,000 tokens. Providers refuse those.
2. Views without the system prompt, at the same budgets.
3. Of 36 successive requests with a budget of 6,000 tokens, those that changed something before the end of the request before. There the
   prompt cache is lost.

A library that is not installed is left out.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from itertools import pairwise
from typing import Any

Messages = list[dict[str, Any]]
Trim = Callable[[Messages], Messages]
"""Returns the messages to send."""

BUDGETS = range(1_500, 6_001, 250)
TURNS = range(4, 41)


def conversation(turns: int) -> Messages:
    """Return a conversation of this many turns, with a new question at the end."""
    messages: Messages = [{"role": "system", "content": "You are a careful coding assistant. " * 5}]
    for turn in range(turns):
        messages.append({"role": "user", "content": f"do {turn} " + "question words " * 12})
        for step in range(3):
            call_id = f"call_{turn}_{step}"
            call = {"id": call_id, "type": "function", "function": {"name": "read", "arguments": '{"a": 1}'}}
            messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
            messages.append({"role": "tool", "tool_call_id": call_id, "content": "output words " * 100})
        messages.append({"role": "assistant", "content": "answer words " * 20})
    return [*messages, {"role": "user", "content": "What next?"}]


def is_orphaned(messages: Messages) -> bool:
    """True if a call has no result in the request, or a result no call."""
    calls = {call["id"] for message in messages for call in message.get("tool_calls") or []}
    results = {message["tool_call_id"] for message in messages if message["role"] == "tool"}
    return calls != results


def context_window(budget: int) -> Trim:
    """Return this library's view; one manager sees all requests, as in use."""
    from context_window import ContextWindow, ContextWindowManager, Session

    manager = ContextWindowManager("gpt-4o", context_window=ContextWindow(max_tokens=budget))
    return lambda messages: manager.process_session(Session.from_openai(messages)).to_openai_messages()


def langchain(budget: int, **options: Any) -> Trim:
    """Return LangChain's `trim_messages`."""
    from langchain_core.messages import convert_to_messages, convert_to_openai_messages, trim_messages
    from langchain_core.messages.utils import count_tokens_approximately

    def trim(messages: Messages) -> Messages:
        trimmed = trim_messages(
            convert_to_messages(messages), max_tokens=budget, token_counter=count_tokens_approximately, include_system=True, **options
        )
        return convert_to_openai_messages(trimmed)  # type: ignore[return-value]

    return trim


def langchain_from_human(budget: int) -> Trim:
    """Return `trim_messages` with the option that its documentation recommends for chats."""
    return langchain(budget, start_on="human")


def litellm(budget: int) -> Trim:
    """Return LiteLLM's `trim_messages`."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # else it asks the network for prices
    from litellm.utils import trim_messages

    return lambda messages: list(trim_messages(messages, model="gpt-4o", max_tokens=budget))


def llama_index(budget: int) -> Trim:
    """Return LlamaIndex's `ChatMemoryBuffer`."""
    from llama_index.core.llms import ChatMessage
    from llama_index.core.memory import ChatMemoryBuffer

    def trim(messages: Messages) -> Messages:
        memory = ChatMemoryBuffer.from_defaults(token_limit=budget, tokenizer_fn=lambda text: [0] * (len(text) // 4))
        for message in messages:
            extra = {key: value for key, value in message.items() if key not in {"role", "content"}}
            memory.put(ChatMessage(role=message["role"], content=message["content"], additional_kwargs=extra))
        return [{"role": message.role.value, "content": message.content, **message.additional_kwargs} for message in memory.get()]

    return trim


PEERS: dict[str, Callable[[int], Trim]] = {
    "context-window": context_window,
    "LangChain trim_messages": langchain,
    '… with start_on="human"': langchain_from_human,
    "LiteLLM trim_messages": litellm,
    "LlamaIndex ChatMemoryBuffer": llama_index,
}


def measure(peer: Callable[[int], Trim]) -> tuple[int, int, int]:
    """Return the three counts of the module's docstring."""
    views = [peer(budget)(conversation(20)) for budget in BUDGETS]
    trim = peer(BUDGETS[-1])
    requests = [trim(conversation(turns)) for turns in TURNS]
    changes = sum(later[: len(earlier) - 1] != earlier[:-1] for earlier, later in pairwise(requests))
    return sum(map(is_orphaned, views)), sum(view[0]["role"] != "system" for view in views), changes


def main() -> None:
    warnings.simplefilter("ignore")
    print(f"| | orphaned, of {len(BUDGETS)} | no system prompt, of {len(BUDGETS)} | cache lost, of {len(TURNS) - 1} |\n|---|--:|--:|--:|")
    for name, peer in PEERS.items():
        try:
            counts = measure(peer)
        except ImportError as error:
            print(f"| {name} | not installed: {error.name} | | |")
        else:
            print(f"| {name} | {' | '.join(map(str, counts))} |")


if __name__ == "__main__":
    main()
