"""LangChain's agents and LangGraph's: before every call of the model its messages become those that fit. The state keeps all of them."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from langchain.agents.middleware.types import AgentMiddleware, ModelRequest, ModelResponse
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, ChatMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.utils.function_calling import convert_to_openai_tool

from session.items import FunctionCall, FunctionCallOutput, Item, Message, Reasoning, Role
from session.parts import Text
from session.providers.additions import PREAMBLE
from session.transcripts.values import json_text
from session.usage import Usage

from ..manager import ContextWindowManager
from .contents import blocks_of, content_shown, is_call, part_for, thought_in
from .conversations import REMEMBERED, Conversations

__all__ = ["ContextWindowMiddleware", "pre_model_hook"]


class ContextWindowMiddleware(AgentMiddleware[Any, Any, Any]):
    """Shows the model what fits: middleware for `create_agent`.

        middleware = ContextWindowMiddleware(ContextWindowManager("claude-sonnet-5-5"))
        agent = create_agent(model, tools, middleware=[middleware])

    The agent's state keeps every message. What is left is the state's own message objects; of a message that is shown in part, a copy.
    Where Anthropic says that the prompt is too long, the model is asked once more with less. Put it last, so that it sees what
    others have made of the messages. `recall` is a function that can be given to the agent as a tool.
    """

    def __init__(self, manager: ContextWindowManager, *, remembered: int = REMEMBERED) -> None:
        """
        Args:
            manager: What decides. The system prompt and the tools of a request are counted without its being told.
            remembered: Conversations that are gone on with, those asked about last; others are decided anew, and alike.
        """
        super().__init__()
        self._conversations = Conversations(manager, _LangChainWords(), remembered=remembered)

    def recall(self, id: str) -> str:
        """Gives back content that was taken out of this conversation to save space, by the recall id that its placeholder names.

        Args:
            id: The recall id.
        """
        return self._conversations.recall(id)

    def wrap_model_call(self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]) -> ModelResponse[Any]:
        """The model's answer to the messages that fit.

        Args:
            request: The request as the agent made it; it is not changed.
            handler: What calls the model.

        Raises:
            ContextOverflowError: What must be kept does not fit, and the window is `strict`.
        """
        beside = _beside(request)
        messages = self._conversations.fit(request.messages, **beside)
        try:
            return handler(request.override(messages=messages))
        except Exception as error:  # noqa: BLE001 - raised again where it is not about the prompt's length
            messages = self._conversations.fit(request.messages, **beside, refusal=error)
        return handler(request.override(messages=messages))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        """As `wrap_model_call`, for agents that are awaited.

        Args:
            request: The request as the agent made it; it is not changed.
            handler: What calls the model.

        Raises:
            ContextOverflowError: What must be kept does not fit, and the window is `strict`.
        """
        beside = _beside(request)
        messages = await self._conversations.afit(request.messages, **beside)
        try:
            return await handler(request.override(messages=messages))
        except Exception as error:  # noqa: BLE001 - raised again where it is not about the prompt's length
            messages = await self._conversations.afit(request.messages, **beside, refusal=error)
        return await handler(request.override(messages=messages))


def pre_model_hook(
    manager: ContextWindowManager, *, system: str = "", tools: Sequence[Any] = (), remembered: int = REMEMBERED
) -> RunnableLambda[Any, dict[str, list[AnyMessage]]]:
    """What LangGraph's `create_react_agent(…, pre_model_hook=…)` takes: the model is given what fits, the state keeps every message.

        graph = create_react_agent(model, tools, pre_model_hook=pre_model_hook(manager, tools=tools))

    Args:
        manager: What decides.
        system: The agent's prompt, which the hook is not shown: for what it costs.
        tools: The agent's tools, likewise.
        remembered: Conversations that are gone on with, those asked about last.
    """
    conversations: Conversations[AnyMessage] = Conversations(manager, _LangChainWords(), remembered=remembered)
    definitions = [convert_to_openai_tool(tool) for tool in tools]

    def fit(state: Any) -> dict[str, list[AnyMessage]]:
        return {"llm_input_messages": conversations.fit(_messages(state), system=system, tools=definitions)}

    async def afit(state: Any) -> dict[str, list[AnyMessage]]:
        return {"llm_input_messages": await conversations.afit(_messages(state), system=system, tools=definitions)}

    return RunnableLambda(fit, afit, name="context_window")


def _messages(state: Any) -> list[AnyMessage]:
    return list(state["messages"] if isinstance(state, Mapping) else state.messages)


def _beside(request: ModelRequest[Any]) -> dict[str, Any]:
    system = request.system_message
    tools = [tool if isinstance(tool, dict) else convert_to_openai_tool(tool) for tool in request.tools]
    return {"system": "" if system is None else _text(system), "tools": tools}


def _text(message: BaseMessage) -> str:
    return "\n".join(part.text for part in map(part_for, blocks_of(message.content)) if isinstance(part, Text))


def _block(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


class _LangChainWords:
    """LangChain's messages as items, and copies of them with less."""

    answers_whole = True

    def __init__(self) -> None:
        self._preamble = HumanMessage(PREAMBLE)

    def digest(self, message: AnyMessage) -> bytes:
        try:  # ids are made by chance, and what comes with a response is not sent again
            said = message.model_dump_json(exclude={"artifact", "id", "response_metadata"}, warnings=False)
        except (ValueError, TypeError):  # something in it has no JSON form, or half a surrogate pair
            said = repr(message)
        return hashlib.sha256(said.encode(errors="backslashreplace")).digest()

    def items(self, message: AnyMessage, ids: Iterator[str]) -> list[Item]:
        if isinstance(message, AIMessage):
            return _answer(message, ids)
        parts = [part_for(block) for block in blocks_of(message.content)]
        if isinstance(message, ToolMessage):
            failed = message.status == "error"
            name = message.name or ""
            return [FunctionCallOutput(name, parts, message.tool_call_id, is_error=failed, id=next(ids), created_at=0.0)]
        return [Message(_role(message), parts, id=next(ids), created_at=0.0)]

    def partly(self, message: AnyMessage, items: Sequence[Item], shown: Sequence[Item | None]) -> AnyMessage | None:
        if isinstance(message, AIMessage):
            return _part_of_answer(message, items, shown)
        whole, now = items[0], shown[0]
        if not (isinstance(now, Message | FunctionCallOutput) and isinstance(whole, Message | FunctionCallOutput)):
            return None
        return message.model_copy(update={"content": content_shown(message.content, whole, now, _block)})

    def joined(self, earlier: AnyMessage, later: AnyMessage) -> AnyMessage:
        said = [_block(block) if isinstance(block, str) else block for one in (earlier, later) for block in blocks_of(one.content) if block]
        return later.model_copy(update={"content": said})

    def preamble(self) -> AnyMessage:
        return self._preamble

    def unbound(self, message: AnyMessage) -> AnyMessage:
        return message  # a message is a whole answer: `partly` sees to it

    def is_system(self, message: AnyMessage) -> bool:
        return isinstance(message, SystemMessage)


def _role(message: AnyMessage) -> Role:
    """A message's role; who speaks in a role of their own is heard as the user."""
    if isinstance(message, SystemMessage):
        return "system"
    said = message.role if isinstance(message, ChatMessage) else "user"
    return "system" if said in ("system", "developer") else "assistant" if said == "assistant" else "user"


def _answer(message: AIMessage, ids: Iterator[str]) -> list[Item]:
    """What was thought, what was said, and the calls."""
    blocks = blocks_of(message.content)
    thoughts = [thought for block in blocks if (thought := thought_in(block)) is not None]
    said = [part_for(block) for block in blocks if not _is_bound(block)]
    calls = [*message.tool_calls, *message.invalid_tool_calls]
    asides = [block for block in blocks if is_call(block) and _call_id(block) not in {call["id"] for call in calls}]
    items: list[Item] = []
    if thoughts or asides:
        text = "\n".join([*(thought.text or thought.data or "" for thought in thoughts), *map(json_text, asides)])
        items.append(Reasoning(text, id=next(ids), created_at=0.0))
    if any(not isinstance(part, Text) or part.text.strip() for part in said) or not (items or calls):
        items.append(Message("assistant", said, id=next(ids), created_at=0.0))
    for call in calls:
        arguments = call["args"] if isinstance(call["args"], str) else json_text(call["args"] or {})
        items.append(FunctionCall(call["name"] or "tool", arguments, call["id"] or next(ids), id=next(ids), created_at=0.0))
    model = message.response_metadata.get("model_name") or message.response_metadata.get("model")
    told = {"model": model} if isinstance(model, str) else {}  # whose tokens the usage is in
    return [replace(items[0], usage=_usage(message), extra=told), *items[1:]]


def _call_id(block: Any) -> object:
    return block.get("id") if isinstance(block, dict) else None


def _usage(message: AIMessage) -> Usage | None:
    """What the provider reported; LangChain's input tokens are all of them."""
    told = message.usage_metadata
    if not told or told.get("input_tokens", 0) < 1:
        return None
    details: Mapping[str, Any] = told.get("input_token_details") or {}
    read, written = details.get("cache_read") or 0, details.get("cache_creation") or 0
    return Usage(max(0, told["input_tokens"] - read - written), read, written, max(0, told.get("output_tokens", 0)))


def _part_of_answer(message: AIMessage, items: Sequence[Item], shown: Sequence[Item | None]) -> AIMessage | None:
    """The answer without its text, its thoughts or its calls; with other words where those were replaced."""
    kept = {type(item) for item in shown if item is not None}
    whole = next((item for item in items if isinstance(item, Message)), None)
    text = next((item for item in shown if isinstance(item, Message)), None)
    thought, called = Reasoning in kept, FunctionCall in kept
    without = {type(item) for item in items} - kept
    content: Any = message.content
    if text is None and not called:
        return None
    if isinstance(content, str):
        if whole is not None and text is not whole:
            content = "" if text is None else content_shown(content, whole, text, _block)
    else:
        ours = [block for block in content if not _is_bound(block)]
        if whole is not None and text is not None and text is not whole:
            said = blocks_of(content_shown(ours, whole, text, _block))
            content = [*said, *(block for block in content if _is_bound(block))]
        made_by_call = {call["id"] for call in (*message.tool_calls, *message.invalid_tool_calls)}
        content = [
            # A text that is bound to a thought by its id is refused without it.
            {name: value for name, value in block.items() if name != "id"} if Reasoning in without and isinstance(block, dict) else block
            for block in content
            if (text is not None or whole is None if not _is_bound(block) else called if _call_id(block) in made_by_call else thought)
        ]
    if called:
        return message.model_copy(update={"content": content})
    # What else a provider's answer holds beside its content (its calls in another form, thoughts) goes too: half of it would be refused.
    gone: dict[str, Any] = {"tool_calls": [], "invalid_tool_calls": [], "additional_kwargs": {}} if without else {}
    return message.model_copy(update={"content": content, **gone})


def _is_bound(block: Any) -> bool:
    """Whether a block is a thought, a call, or what a tool at the provider answered: no text of the message's own."""
    return thought_in(block) is not None or is_call(block)
