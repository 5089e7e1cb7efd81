"""Runs in an environment with other packages (`benchmarks/peers/env.sh`), and answers on standard output for each line on standard input.

    {"open": 0, "peer": "langchain", "window": 8000}    no answer
    {"view": 0, "items": [...]}                         [[3, null], [4, "[cleared]"], [null, "a note"]]
    {"close": 0}                                        no answer
    {"versions": true}                                  {"langchain-core": "1.7.2", ...}

A request has the items that are new in the log. The answer has what the package would send: the position of each item, and its text if the
package changed it. Needs nothing of this project.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import version
from typing import Any, TypeAlias

TARGET = 0.65
"""Part of the window that a trim leaves, where a package leaves that to its user: our default."""

Entry: TypeAlias = dict[str, Any]
"""An item: its `place`, `kind`, `text`, `tokens`; of calls and outputs `name` and `call_id`; of calls `arguments`."""
Shown: TypeAlias = tuple[int | None, str | None]
ANSWERS = frozenset({"assistant", "reasoning", "call"})


class LangChain:
    """`trim_messages` of langchain-core, with the options that its documentation names for chat histories. Keeps no state."""

    def __init__(self, window: int) -> None:
        from langchain_core.messages import trim_messages

        self._trim = trim_messages
        self._window = window
        self._messages: list[Any] = []
        self._places: dict[str, list[int]] = {}  # by a message's id
        self._tokens: dict[str, int] = {}

    def view(self, entries: Iterable[Entry]) -> list[Shown]:
        for group in grouped(entries):
            message = self._message(group)
            self._messages.append(message)
            self._places[message.id] = [entry["place"] for entry in group]
            self._tokens[message.id] = sum(entry["tokens"] for entry in group)
        kept = self._trim(
            self._messages, max_tokens=self._window, token_counter=self._count, strategy="last", start_on="human", include_system=True
        )
        return [(place, None) for message in kept for place in self._places[str(message.id)]]

    def _count(self, messages: Sequence[Any]) -> int:
        return sum(self._tokens[message.id] for message in messages)

    @staticmethod
    def _message(group: Sequence[Entry]) -> Any:
        from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

        first = group[0]
        message_id = str(first["place"])
        text = "\n".join(entry["text"] for entry in group if entry["kind"] in {"assistant", "user", "system", "output"})
        if first["kind"] in ANSWERS:
            calls = [
                {"name": entry["name"], "args": arguments_of(entry), "id": entry["call_id"]} for entry in group if entry["kind"] == "call"
            ]
            return AIMessage(text, tool_calls=calls, id=message_id)
        if first["kind"] == "output":
            return ToolMessage(text, tool_call_id=first["call_id"], id=message_id)
        return (SystemMessage if first["kind"] == "system" else HumanMessage)(text, id=message_id)


class PydanticAI:
    """A package that edits the message history of Pydantic AI. What it edits stays edited.

    System prompts are the agent's instructions, which are sent beside the history: they take their part of the window.
    """

    def __init__(self, window: int) -> None:
        self.room = window
        self._system: list[int] = []
        self._messages: list[Any] = []
        self._parts: dict[int, tuple[Any, int]] = {}  # by `id()`: a part, and its item's position
        self._outputs: dict[str, int] = {}  # by call id: the output's position
        self._tokens: dict[int, int] = {}  # by position
        self._text_tokens: dict[str, int] = {}

    async def edited(self, messages: list[Any]) -> list[Any]:
        """Return the history as the package leaves it before a request, in `room` tokens."""
        raise NotImplementedError

    def view(self, entries: Sequence[Entry]) -> list[Shown]:
        for entry in entries:
            if entry["kind"] == "system":
                self._system.append(entry["place"])
                self.room -= entry["tokens"]
        for group in grouped((entry for entry in entries if entry["kind"] != "system"), join_requests=True):
            self._messages.append(self._message(group))
        self._messages = list(asyncio.run(self.edited(self._messages)))
        return [*((place, None) for place in self._system), *(self._shown(part) for message in self._messages for part in message.parts)]

    def count(self, messages: Sequence[Any]) -> int:
        """Return the tokens of messages."""
        return sum(self._part_tokens(part) for message in messages for part in message.parts)

    def count_text(self, text: str) -> int:
        """Return the tokens of a text."""
        return self._text_tokens.get(text, len(text) // 4)

    def _part_tokens(self, part: Any) -> int:
        known = self._parts.get(id(part))
        return self._tokens[known[1]] if known else self.count_text(str(part.content))

    def _shown(self, part: Any) -> Shown:
        if known := self._parts.get(id(part)):
            return known[1], None
        return self._outputs.get(getattr(part, "tool_call_id", "")), str(part.content)

    def _message(self, group: Sequence[Entry]) -> Any:
        from pydantic_ai.messages import ModelRequest, ModelResponse

        parts = []
        for entry in group:
            part = self._part(entry)
            self._parts[id(part)] = part, entry["place"]
            self._tokens[entry["place"]] = self._text_tokens[entry.get("arguments") or entry["text"]] = entry["tokens"]
            parts.append(part)
        return (ModelResponse if group[0]["kind"] in ANSWERS else ModelRequest)(parts=parts)

    def _part(self, entry: Entry) -> Any:
        from pydantic_ai.messages import TextPart, ThinkingPart, ToolCallPart, ToolReturnPart, UserPromptPart

        match entry["kind"]:
            case "user":
                return UserPromptPart(entry["text"])
            case "assistant":
                return TextPart(entry["text"])
            case "reasoning":
                return ThinkingPart(entry["text"])
            case "call":
                return ToolCallPart(entry["name"], entry["arguments"], tool_call_id=entry["call_id"])
            case _:
                self._outputs[entry["call_id"]] = entry["place"]
                return ToolReturnPart(entry["name"], entry["text"], tool_call_id=entry["call_id"])


class Summarization(PydanticAI):
    """The sliding window of summarization-pydantic-ai, which needs no model."""

    async def edited(self, messages: list[Any]) -> list[Any]:
        from pydantic_ai_summarization import SlidingWindowProcessor

        keep = int(TARGET * self.room)
        process = SlidingWindowProcessor(trigger=("tokens", self.room), keep=("tokens", keep), token_counter=self.count)
        return list(await process(messages))


class Harness(PydanticAI):
    """`SlidingWindowCompaction` of pydantic-ai-harness; with tiers, `TieredCompaction`, which first clears older tool results."""

    def __init__(self, window: int, *, has_tiers: bool = False) -> None:
        super().__init__(window)
        self._has_tiers = has_tiers

    async def edited(self, messages: list[Any]) -> list[Any]:
        if self.count(messages) <= self.room:
            return messages
        from pydantic_ai import RunContext
        from pydantic_ai.models.test import TestModel
        from pydantic_ai.usage import RunUsage
        from pydantic_ai_harness.compaction import ClearToolResults, SlidingWindowCompaction, TieredCompaction

        context = RunContext(deps=None, model=TestModel(), usage=RunUsage())
        keep = int(TARGET * self.room)
        sliding = SlidingWindowCompaction(max_tokens=self.room, keep_tokens=keep, tokenizer=self.count_text)
        if not self._has_tiers:
            return list(await sliding.compact(messages, context))
        clearing = ClearToolResults(max_tokens=self.room, tokenizer=self.count_text)
        tiers = TieredCompaction(tiers=[clearing, sliding], target_tokens=self.room, tokenizer=self.count_text)
        return list(await tiers.compact(messages, context))


def tiered(window: int) -> Harness:
    """Return the package with its tiers."""
    return Harness(window, has_tiers=True)


PEERS: dict[str, Callable[[int], LangChain | PydanticAI]] = {
    "langchain": LangChain,
    "summarization": Summarization,
    "harness": Harness,
    "harness-tiers": tiered,
}


PACKAGES = ("langchain-core", "summarization-pydantic-ai", "pydantic-ai-harness", "pydantic-ai-slim")


def grouped(entries: Iterable[Entry], *, join_requests: bool = False) -> list[list[Entry]]:
    """Return the entries by message: an answer's texts, reasoning and calls together.

    Args:
        entries: The entries.
        join_requests: True to put what comes between two answers into one message, too.
    """
    groups: list[list[Entry]] = []
    for entry in entries:
        is_answer = entry["kind"] in ANSWERS
        if groups and (groups[-1][0]["kind"] in ANSWERS) == is_answer and (is_answer or join_requests):
            groups[-1].append(entry)
        else:
            groups.append([entry])
    return groups


def arguments_of(entry: Entry) -> dict[str, Any]:
    """Return the arguments of a call as an object, whatever the model wrote."""
    try:
        value = json.loads(entry["arguments"])
    except ValueError:
        value = None
    return value if isinstance(value, dict) else {"arguments": entry["arguments"]}


def main() -> None:
    peers: dict[int, LangChain | PydanticAI] = {}
    for line in sys.stdin:
        request = json.loads(line)
        if "open" in request:
            peers[request["open"]] = PEERS[request["peer"]](request["window"])
        elif "close" in request:
            peers.pop(request["close"])
        elif "versions" in request:
            print(json.dumps({name: version(name) for name in PACKAGES}), flush=True)
        else:
            print(json.dumps(peers[request["view"]].view(request["items"])), flush=True)


if __name__ == "__main__":
    main()
