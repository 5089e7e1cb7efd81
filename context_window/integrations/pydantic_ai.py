"""Pydantic AI's agents: before every request its messages become those that fit. The agent's history keeps all of them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import ModelContextWindowExceededError, RetryModelRequest
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ModelRequest, ModelResponse, SystemPromptPart, UserPromptPart
from pydantic_ai.models import ModelRequestContext, ModelRequestParameters

from session.items import FunctionCall, FunctionCallOutput, Item, Message, MessageCategory, Reasoning
from session.parts import Document, Image, Part, Text
from session.providers.additions import PREAMBLE
from session.transcripts.values import json_text
from session.usage import Usage

from ..manager import ContextWindowManager
from ..model_errors import PromptTooLongError
from ..refusals import model_error
from .contents import content_shown, part_for
from .conversations import REMEMBERED, Conversations

__all__ = ["ContextWindowCapability"]


class ContextWindowCapability(AbstractCapability[Any]):
    """Shows the model what fits: a capability of an agent.

        agent = Agent("anthropic:claude-sonnet-5-5", capabilities=[ContextWindowCapability(ContextWindowManager("claude-sonnet-5-5"))])

    The history (`result.all_messages()`) keeps every message. What is sent are the history's own message objects; of a message that
    is shown in part, a copy. Where the provider says that the prompt is too long, the model is asked once more with less. `recall` is
    a function that can be given to the agent as a tool; `fit` is what `ProcessHistory` takes, for who wants the history itself trimmed.
    """

    def __init__(self, manager: ContextWindowManager, *, remembered: int = REMEMBERED) -> None:
        """
        Args:
            manager: What decides. Instructions and tools of a request are counted without its being told.
            remembered: Conversations that are gone on with, those asked about last; others are decided anew, and alike.
        """
        self._conversations: Conversations[ModelMessage] = Conversations(manager, _PydanticWords(), remembered=remembered)
        self._refused: dict[str | None, Exception] = {}

    def recall(self, id: str) -> str:
        """Gives back content that was taken out of this conversation to save space, by the recall id that its placeholder names.

        Args:
            id: The recall id.
        """
        return self._conversations.recall(id)

    async def fit(self, messages: list[ModelMessage]) -> list[ModelMessage]:
        """The messages that fit.

        Args:
            messages: All that were said.

        Raises:
            ContextOverflowError: What must be kept does not fit, and the window is `strict`.
        """
        return await self._conversations.afit(messages)

    async def before_model_request(
        self,
        ctx: RunContext[Any],  # noqa: ARG002 - its name in the base class
        request_context: ModelRequestContext,
    ) -> ModelRequestContext:
        """The request with the messages that fit.

        Args:
            ctx: The run.
            request_context: The request as the agent made it.

        Raises:
            ContextOverflowError: What must be kept does not fit, and the window is `strict`.
        """
        return replace(request_context, messages=await self._fitted(request_context))

    async def on_model_request_error(
        self,
        ctx: RunContext[Any],
        *,
        request_context: ModelRequestContext,
        error: Exception,
    ) -> ModelResponse:
        """Asks for a second attempt, with less, where Anthropic says that the prompt is too long.

        Args:
            ctx: The run.
            request_context: The request that failed.
            error: What came of it.

        Raises:
            RetryModelRequest: There may be less.
            Exception: The error, where it is another one, or the second.
        """
        if request_context.attempt > 1 or _about_length(error) is None:
            raise error
        self._refused[ctx.run_id] = error  # which messages were refused, the next hook is told
        raise RetryModelRequest

    async def prepare_model_request(
        self,
        ctx: RunContext[Any],
        request_context: ModelRequestContext,
    ) -> ModelRequestContext:
        """The request of a second attempt, with the messages that fit by now.

        Args:
            ctx: The run.
            request_context: The request as `before_model_request` left it.

        Raises:
            ContextOverflowError: What must be kept does not fit, and the window is `strict`.
            Exception: What the first attempt raised, where nothing can be taken.
        """
        error = self._refused.pop(ctx.run_id, None)
        if error is None:
            return request_context
        try:
            return replace(request_context, messages=await self._fitted(request_context, _about_length(error)))
        except PromptTooLongError:
            raise error from error.__cause__

    async def _fitted(self, request: ModelRequestContext, refusal: Exception | None = None) -> list[ModelMessage]:
        parameters = request.model_request_parameters
        system = "\n\n".join(part.content for part in parameters.instruction_parts or [])
        return await self._conversations.afit(list(request.messages), system=system, tools=_tools(parameters), refusal=refusal)


def _about_length(error: Exception) -> PromptTooLongError | None:
    """What the error says of the prompt's length: with figures where it is Anthropic's."""
    cause = error.__cause__
    told = model_error(cause) if cause is not None else None
    if isinstance(told, PromptTooLongError):
        return told
    return PromptTooLongError("the prompt is too long", 400) if isinstance(error, ModelContextWindowExceededError) else None


def _tools(parameters: ModelRequestParameters) -> list[Mapping[str, Any]]:
    return [
        {"name": tool.name, "description": tool.description or "", "input_schema": tool.parameters_json_schema}
        for tool in (*parameters.function_tools, *parameters.output_tools)
    ]


class _PydanticWords:
    """Pydantic AI's messages as items, one a part, and copies of them with fewer parts."""

    answers_whole = True

    def __init__(self) -> None:
        self._preamble = ModelRequest([UserPromptPart(PREAMBLE)])

    def digest(self, message: ModelMessage) -> bytes:
        try:  # the parts alone: what else a message has is filled in when it is sent
            times = {0: {"parts": {"__all__": {"timestamp"}}}}
            said = ModelMessagesTypeAdapter.dump_json([message], include={0: {"kind", "parts"}}, exclude=times, warnings=False)
        except (ValueError, TypeError):  # something in it has no JSON form, or half a surrogate pair
            said = repr(message.parts).encode(errors="backslashreplace")
        return hashlib.sha256(said).digest()

    def items(self, message: ModelMessage, ids: Iterator[str]) -> list[Item]:
        items = [_item(part, message, next(ids)) for part in message.parts]
        if not items:
            return [Message("user" if isinstance(message, ModelRequest) else "assistant", (), id=next(ids), created_at=0.0)]
        if isinstance(message, ModelRequest):
            return items
        told = {} if message.model_name is None else {"model": message.model_name}  # whose tokens the usage is in
        return [replace(items[0], usage=_usage(message), extra=told), *items[1:]]

    def partly(self, message: ModelMessage, items: Sequence[Item], shown: Sequence[Item | None]) -> ModelMessage | None:
        thoughtless = any(isinstance(item, Reasoning) and now is None for item, now in zip(items, shown, strict=True))
        parts: list[Any] = []
        for part, item, now in zip(message.parts, items, shown, strict=True):
            if now is not None:
                kept = part if now is item else _part_shown(part, item, now)
                parts.append(_unbound(kept) if thoughtless else kept)
        if not parts:
            return None
        return replace(message, parts=parts)  # type: ignore[arg-type]  # of the same kinds as before

    def joined(self, earlier: ModelMessage, later: ModelMessage) -> ModelMessage:
        return replace(later, parts=[*earlier.parts, *later.parts])  # type: ignore[arg-type]  # both are the model's

    def preamble(self) -> ModelMessage:
        return self._preamble

    def unbound(self, message: ModelMessage) -> ModelMessage:
        return message  # a message is a whole answer: `partly` sees to it

    def is_system(self, message: ModelMessage) -> bool:
        return isinstance(message, ModelRequest) and all(isinstance(part, SystemPromptPart) for part in message.parts)


def _item(part: Any, message: ModelMessage, id: str) -> Item:
    """The item that a part is. What the framework keeps its books with (tools found, capabilities loaded, summaries) is never taken."""
    books = MessageCategory.SYSTEM
    match part.part_kind:
        case "system-prompt":
            return Message("system", part.content, id=id, created_at=0.0)
        case "user-prompt":
            return Message("user", [_part(one) for one in _contents(part.content)], id=id, created_at=0.0)
        case "tool-return":
            failed, content = part.outcome in ("failed", "retried"), [_part(one) for one in _returned(part)]
            pinned = part.tool_kind is not None
            return FunctionCallOutput(part.tool_name, content, part.tool_call_id, is_error=failed, pinned=pinned, id=id, created_at=0.0)
        case "retry-prompt" if part.tool_name is not None:
            return FunctionCallOutput(part.tool_name, part.model_response(), part.tool_call_id, is_error=True, id=id, created_at=0.0)
        case "retry-prompt" | "retry-feedback":
            return Message("user", part.model_response(), id=id, created_at=0.0)
        case "text":
            return Message("assistant", part.content, id=id, created_at=0.0)
        case "thinking":
            return Reasoning(part.content or "", signature=part.signature, id=id, created_at=0.0)
        case "tool-call":
            pinned = part.tool_kind is not None
            return FunctionCall(part.tool_name, part.args_as_json_str(), part.tool_call_id, pinned=pinned, id=id, created_at=0.0)
        case "builtin-tool-call" | "builtin-tool-return":
            return Reasoning(_json(part), pinned=part.tool_kind is not None, id=id, created_at=0.0)
        case "file":
            return Message("assistant", _part(part.content), id=id, created_at=0.0)
        case "speech":
            return Message(part.speaker, part.transcript or "", id=id, created_at=0.0)
        case "compaction":
            role = "user" if isinstance(message, ModelRequest) else "assistant"
            return Message(role, part.content or _json(part), category=books, id=id, created_at=0.0)  # type: ignore[arg-type]
    return Message("system", _json(part), category=books, id=id, created_at=0.0)


def _contents(content: Any) -> list[Any]:
    return [content] if isinstance(content, str) else list(content)


def _returned(part: Any) -> list[Any]:
    """What the model is shown of what a tool returned: texts and media."""
    shown: list[Any] = part.content_items(mode="str", wrap_if_error=False)
    return shown


def _part(content: Any) -> Part:
    """The one part that a piece of content counts as."""
    if isinstance(content, str):
        return Text(content)
    kind = getattr(content, "kind", "")
    if kind == "image-url":
        return part_for({"type": "image_url", "image_url": {"url": content.url}})
    if kind == "binary":
        if content.media_type.startswith("image/"):
            return Image(content.data, media_type=content.media_type)
        return Document(content.data, media_type=content.media_type)
    if isinstance(url := getattr(content, "url", None), str) and url:
        return Document(url=url)
    if isinstance(file_id := getattr(content, "file_id", None), str) and file_id:
        return Document(file_id=file_id)
    text = getattr(content, "content", None)
    return Text(text if isinstance(text, str) else "")  # a mark for the cache has none


def _part_shown(part: Any, item: Item, now: Item) -> Any:
    """A copy of the part that shows what is shown of its item."""
    if isinstance(item, Message) and isinstance(now, Message):
        if part.part_kind == "user-prompt":
            content = part.content if isinstance(part.content, str) else _contents(part.content)
            return replace(part, content=content_shown(content, item, now, str))
        return replace(part, content=now.text)
    if isinstance(item, FunctionCallOutput) and isinstance(now, FunctionCallOutput):
        content = _returned(part) if part.part_kind == "tool-return" else now.text
        return replace(part, content=content_shown(content, item, now, str) if isinstance(content, list) else content)
    return part


def _unbound(part: Any) -> Any:
    """The part without the id that ties it to a thought: a provider that has stored both refuses one without the other."""
    return replace(part, id=None) if part.part_kind in ("text", "tool-call") and part.id is not None else part


def _usage(message: ModelResponse) -> Usage | None:
    """What the provider reported; Pydantic AI's input tokens are all of them."""
    told = message.usage
    if told.input_tokens < 1:
        return None
    read, written = max(0, told.cache_read_tokens), max(0, told.cache_write_tokens)
    return Usage(max(0, told.input_tokens - read - written), read, written, max(0, told.output_tokens))


def _json(part: Any) -> str:
    import dataclasses

    try:
        return json_text({name: value for name, value in dataclasses.asdict(part).items() if value is not None})
    except TypeError:  # a time, or an object of the application's
        return repr(part)
