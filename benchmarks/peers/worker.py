"""Times libraries on conversations. Reads a task per line of standard input, and answers each with a line on standard output.

    {"peer": "langchain", "budget": 100000, "messages": [...], "appends": [[...], ...], "limit": 20}
    -> {"cold": 0.4, "live": [0.1, ...], "views": [[...], ...]}

A task has a conversation in OpenAI's format and what is appended to it, step by step. The answer has the seconds of processor time from
the library's own messages to the messages that it would send: of the whole conversation, never seen before, and after each step. The views
are those messages in OpenAI's format. Conversions are not timed. A process ends with the status `LATE` if a task takes more than its
limit, in seconds of processor time. `{"versions": [...]}` answers with the versions of packages.

It runs in an environment with the libraries (`env.sh`) and needs nothing of this project but for this library's own rows.
"""

from __future__ import annotations

import asyncio
import gc
import json
import math
import os
import sys
import time
import warnings
from collections.abc import Callable, Coroutine, Iterator, Sequence
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from threading import Thread
from typing import Any, Protocol, TypeAlias

Messages: TypeAlias = list[dict[str, Any]]
LATE = 75
"""The status of a process that has taken too long."""
STEPS_PART = 0.2
"""Part of a task's limit after which no step begins."""
MODEL = "gpt-4o"
TARGET = 0.65
"""Part of the budget that a trim leaves, where a library leaves that to its user: this library's default."""


class Peer(Protocol):
    """A library at work on one conversation."""

    def read(self, messages: Messages) -> list[Any]:
        """Return messages in the library's own form. They follow those that were read before."""

    def view(self, new: list[Any]) -> Sequence[Any]:
        """Append messages to the conversation, and return what a request would send."""

    def write(self, view: Sequence[Any]) -> Messages:
        """Return a view in OpenAI's format."""


class ContextWindow:
    """This library: a session and its manager."""

    def __init__(self, budget: int, *, has_extracts: bool = False) -> None:
        from context_window import ContextWindow, ContextWindowManager, Session
        from context_window.strategies import Extract, PriorityTrim

        window = ContextWindow(max_tokens=budget, strategy=Extract() if has_extracts else PriorityTrim())
        self._manager = ContextWindowManager(MODEL, context_window=window)
        self._session = Session()
        self._messages: Messages = []

    def read(self, messages: Messages) -> list[Any]:
        from context_window import Session

        self._messages += messages  # all of them are read, so that their ids differ
        return list(Session.from_openai(self._messages).items[len(self._session.items) :])

    def view(self, new: list[Any]) -> Any:
        for item in new:
            self._session.append(item)
        return self._manager.process_session(self._session)

    def write(self, view: Any) -> Messages:
        return list(view.to_openai_messages())


class LangChain:
    """`trim_messages` of langchain-core, with the options of its documentation's example."""

    def __init__(self, budget: int, *, is_exact: bool = False) -> None:
        from langchain_core.messages import trim_messages

        counter: Any = self._tokens if is_exact else "approximate"
        self._options: dict[str, Any] = {"max_tokens": budget, "token_counter": counter, "strategy": "last"}
        self._options |= {"start_on": "human", "include_system": True}
        self._trim: Callable[..., list[Any]] = trim_messages
        self._messages: list[Any] = []

    def read(self, messages: Messages) -> list[Any]:
        from langchain_core.messages import convert_to_messages

        return list(convert_to_messages(messages))

    def view(self, new: list[Any]) -> list[Any]:
        self._messages += new
        return self._trim(self._messages, **self._options)

    def write(self, view: Sequence[Any]) -> Messages:
        from langchain_core.messages import convert_to_openai_messages

        return list(convert_to_openai_messages(view))

    @staticmethod
    def _tokens(messages: list[Any]) -> int:
        """Count as its documentation does for OpenAI's models: three tokens a message, and what it says."""
        calls = (call for message in messages for call in getattr(message, "tool_calls", ()))
        said = sum(3 + count(message.content) for message in messages)
        return said + sum(count(call["name"]) + count(json.dumps(call["args"])) for call in calls)


class LiteLLM:
    """`trim_messages` of LiteLLM."""

    def __init__(self, budget: int) -> None:
        os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # else it asks the network for prices
        from litellm.utils import trim_messages

        self._trim = trim_messages
        self._budget = budget
        self._messages: Messages = []

    def read(self, messages: Messages) -> list[Any]:
        return messages

    def view(self, new: list[Any]) -> list[Any]:
        self._messages += new
        return list(self._trim(self._messages, model=MODEL, max_tokens=self._budget))

    def write(self, view: Sequence[Any]) -> Messages:
        return list(view)


class LlamaIndex:
    """`Memory` of llama-index-core. System prompts are the agent's, which sends them itself."""

    def __init__(self, budget: int) -> None:
        from llama_index.core.memory import Memory

        self._memory: Any = Memory.from_defaults(token_limit=budget)
        self._system: list[Any] = []

    def read(self, messages: Messages) -> list[Any]:
        from llama_index.core.llms import ChatMessage

        read = []
        for message in messages:
            extra = {key: message[key] for key in ("tool_calls", "tool_call_id") if key in message}
            read.append(ChatMessage(role=message["role"], content=message["content"], additional_kwargs=extra))
        return read

    def view(self, new: list[Any]) -> list[Any]:
        self._system += [message for message in new if message.role == "system"]
        self._memory.put_messages([message for message in new if message.role != "system"])
        return [*self._system, *self._memory.get()]

    def write(self, view: Sequence[Any]) -> Messages:
        return [
            {"role": message.role.value, "content": message.content}
            | {key: value for key, value in message.additional_kwargs.items() if key != "session_id"}
            for message in view
        ]


class Penguin:
    """`ContextWindowManager` of penguin-ai, by itself or in its `ContextEpoch`, through which its agent calls it."""

    def __init__(self, budget: int, *, has_epoch: bool = False) -> None:
        from penguin.system.context_epoch import ContextEpoch
        from penguin.system.context_window import ContextWindowManager
        from penguin.system.state import Session

        self._manager = ContextWindowManager()
        self._manager.max_tokens = budget
        self._session = Session()
        self._epoch = ContextEpoch() if has_epoch else None

    def read(self, messages: Messages) -> list[Any]:
        from penguin.system.state import Message, MessageCategory

        categories = {"system": MessageCategory.SYSTEM, "tool": MessageCategory.SYSTEM_OUTPUT}
        read = []
        for message in messages:
            metadata = {key: message[key] for key in ("tool_calls", "tool_call_id") if key in message}
            category = categories.get(message["role"], MessageCategory.DIALOG)
            read.append(Message(message["role"], message["content"], category, metadata=metadata))
        return read

    def view(self, new: list[Any]) -> list[Any]:
        self._session.messages += new
        if self._epoch is not None:
            return list(self._epoch.select(self._session, self._manager).messages)
        return list(self._manager.process_session(self._session).messages)

    def write(self, view: Sequence[Any]) -> Messages:
        return [{"role": message.role, "content": message.content} | message.metadata for message in view]


class AgentFramework:
    """`ContextWindowCompactionStrategy` of agent-framework-core. Messages keep its notes between requests."""

    def __init__(self, budget: int) -> None:
        from agent_framework import ContextWindowCompactionStrategy

        self._strategy = ContextWindowCompactionStrategy(max_context_window_tokens=budget, max_output_tokens=0)
        self._messages: list[Any] = []
        self._run = asyncio.new_event_loop().run_until_complete

    def read(self, messages: Messages) -> list[Any]:
        from agent_framework import Content, Message

        read = []
        for message in messages:
            if message["role"] == "tool":
                contents: list[Any] = [Content.from_function_result(message["tool_call_id"], result=message["content"])]
            else:
                contents = [message["content"]] if message["content"] else []
            for call in message.get("tool_calls", ()):
                function = call["function"]
                contents.append(Content.from_function_call(call["id"], function["name"], arguments=function["arguments"]))
            read.append(Message(message["role"], contents))
        return read

    def view(self, new: list[Any]) -> list[Any]:
        from agent_framework import apply_compaction

        self._messages += new
        return list(self._run(apply_compaction(self._messages, strategy=self._strategy)))

    def write(self, view: Sequence[Any]) -> Messages:
        return [entry for message in view for entry in self._entries(message)]

    @staticmethod
    def _entries(message: Any) -> Iterator[dict[str, Any]]:
        results = [content for content in message.contents if content.type == "function_result"]
        for content in results:
            yield {"role": "tool", "tool_call_id": content.call_id, "content": str(content.result)}
        calls = [
            {"id": content.call_id, "type": "function", "function": {"name": content.name, "arguments": content.arguments}}
            for content in message.contents
            if content.type == "function_call"
        ]
        if not results:
            text = "".join(content.text for content in message.contents if content.type == "text")
            yield {"role": str(message.role), "content": text} | ({"tool_calls": calls} if calls else {})


class PydanticAI:
    """A package that edits the message history of Pydantic AI. Its edits stay."""

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self._messages: list[Any] = []
        self._run = asyncio.new_event_loop().run_until_complete

    def edited(self, messages: list[Any]) -> Coroutine[Any, Any, Sequence[Any]]:
        """Return the history as the package leaves it before a request."""
        raise NotImplementedError

    def read(self, messages: Messages) -> list[Any]:
        from pydantic_ai.messages import ModelRequest, ModelResponse

        read: list[Any] = []
        for message in messages:
            parts = list(self._parts(message))
            if message["role"] == "assistant":
                read.append(ModelResponse(parts))
            elif read and isinstance(read[-1], ModelRequest):
                read[-1] = ModelRequest([*read[-1].parts, *parts])
            else:
                read.append(ModelRequest(parts))
        return read

    def view(self, new: list[Any]) -> list[Any]:
        self._messages = list(self._run(self.edited([*self._messages, *new])))
        return self._messages

    def write(self, view: Sequence[Any]) -> Messages:
        return [entry for message in view for entry in self._entries(message)]

    @staticmethod
    def _parts(message: dict[str, Any]) -> Iterator[Any]:
        from pydantic_ai.messages import SystemPromptPart, TextPart, ToolCallPart, ToolReturnPart, UserPromptPart

        text = message["content"]
        match message["role"]:
            case "system":
                yield SystemPromptPart(text)
            case "user":
                yield UserPromptPart(text)
            case "tool":
                yield ToolReturnPart("tool", text, tool_call_id=message["tool_call_id"])
            case _:
                yield TextPart(text)
                for call in message.get("tool_calls", ()):
                    yield ToolCallPart(call["function"]["name"], call["function"]["arguments"], tool_call_id=call["id"])

    @staticmethod
    def _entries(message: Any) -> Iterator[dict[str, Any]]:
        roles = {"system-prompt": "system", "user-prompt": "user", "tool-return": "tool"}
        if message.kind == "request":
            for part in message.parts:
                extra = {"tool_call_id": part.tool_call_id} if part.part_kind == "tool-return" else {}
                yield {"role": roles[part.part_kind], "content": str(part.content)} | extra
            return
        calls = [
            {"id": part.tool_call_id, "type": "function", "function": {"name": part.tool_name, "arguments": part.args_as_json_str()}}
            for part in message.parts
            if part.part_kind == "tool-call"
        ]
        text = "".join(part.content for part in message.parts if part.part_kind == "text")
        yield {"role": "assistant", "content": text} | ({"tool_calls": calls} if calls else {})


class Summarization(PydanticAI):
    """The sliding window of summarization-pydantic-ai, which needs no model. Its documentation keeps the first message, the prompt's."""

    def __init__(self, budget: int) -> None:
        super().__init__(budget)
        from pydantic_ai_summarization import SlidingWindowProcessor

        keep = ("tokens", int(TARGET * budget))
        self.edited = SlidingWindowProcessor(trigger=("tokens", budget), keep=keep, keep_head=("messages", 1))  # type: ignore[method-assign]


class Harness(PydanticAI):
    """`SlidingWindowCompaction` of pydantic-ai-harness."""

    def __init__(self, budget: int, *, is_exact: bool = False) -> None:
        super().__init__(budget)
        from pydantic_ai import RunContext
        from pydantic_ai.models.test import TestModel
        from pydantic_ai.usage import RunUsage
        from pydantic_ai_harness.compaction import SlidingWindowCompaction

        self._tokenizer = count if is_exact else None
        self._sliding = SlidingWindowCompaction(max_tokens=budget, keep_tokens=int(TARGET * budget), tokenizer=self._tokenizer)
        self._context = RunContext(deps=None, model=TestModel(), usage=RunUsage())

    async def edited(self, messages: list[Any]) -> Sequence[Any]:
        from pydantic_ai_harness.compaction import estimate_token_count

        if estimate_token_count(messages, self._tokenizer) <= self.budget:
            return messages
        return await self._sliding.compact(messages, self._context)


PEERS: dict[str, Callable[[int], Peer]] = {
    "default": ContextWindow,
    "extract": lambda budget: ContextWindow(budget, has_extracts=True),
    "langchain": LangChain,
    "langchain-exact": lambda budget: LangChain(budget, is_exact=True),
    "litellm": LiteLLM,
    "llama-index": LlamaIndex,
    "penguin": Penguin,
    "penguin-epoch": lambda budget: Penguin(budget, has_epoch=True),
    "agent-framework": AgentFramework,
    "summarization": Summarization,
    "harness": Harness,
    "harness-exact": lambda budget: Harness(budget, is_exact=True),
}


def count(text: str) -> int:
    """Return the tokens of a text, for libraries whose user brings a tokenizer."""
    return len(_encoding().encode_ordinary(text))


@cache
def _encoding() -> Any:
    import tiktoken

    return tiktoken.get_encoding("o200k_base")


def measure(peer: str, budget: int, messages: Messages, appends: Sequence[Messages], limit: float) -> dict[str, Any]:
    """Return the seconds and views of a task.

    Args:
        peer: Name of the peer.
        budget: Tokens.
        messages: The conversation.
        appends: Messages of each step after it.
        limit: Seconds of processor time.
    """
    library = PEERS[peer](budget)
    seconds: list[float] = []
    views = []
    gc.collect()
    for new in (messages, *appends):
        if sum(seconds[1:]) > STEPS_PART * limit:
            break
        own = library.read(new)
        start = time.process_time()
        view = library.view(own)
        seconds.append(time.process_time() - start)
        views.append(library.write(view))
    return {"cold": seconds[0], "live": seconds[1:], "views": views}


class _Watch:
    """Ends the process when a task takes too long. A timer of the system would make the clock of processor time coarse."""

    def __init__(self) -> None:
        self._end = math.inf
        Thread(target=self._wait, daemon=True).start()

    def begin(self, limit: float) -> None:
        """Begin a task that may take this many seconds of processor time."""
        self._end = time.process_time() + limit

    def _wait(self) -> None:
        while time.process_time() < self._end:
            time.sleep(1)
        os._exit(LATE)


def main() -> None:
    warnings.simplefilter("ignore")
    if (litellm := find_spec("litellm")) and litellm.origin:  # its package has the vocabularies, so that nothing is downloaded
        os.environ["TIKTOKEN_CACHE_DIR"] = str(Path(litellm.origin).parent / "litellm_core_utils" / "tokenizers")
    answers, sys.stdout = sys.stdout, sys.stderr  # some libraries print
    watch = _Watch()
    for line in sys.stdin:
        task = json.loads(line)
        watch.begin(task.get("limit", 60))
        answer = {name: version(name) for name in task["versions"]} if "versions" in task else measure(**task)
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
