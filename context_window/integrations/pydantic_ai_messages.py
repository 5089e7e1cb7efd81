"""`PydanticAdapter`: reads and copies Pydantic AI's messages."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ModelRequest, SystemPromptPart, ToolReturnPart, UserPromptPart

from session.items import FunctionCall, FunctionCallOutput, Item, Message, MessageCategory, Reasoning, Role
from session.parts import Document, Image, Part, Text
from session.providers.additions import PREAMBLE
from session.providers.mended_items import CARRIED
from session.transcripts.values import json_text

from .content_parts import part_for, visible_content
from .message_adapter import MessageAdapter
from .pydantic_ai_summary import reported_usage


class PydanticAdapter(MessageAdapter[ModelMessage]):
    """Pydantic AI's messages. Each part of a message becomes one item."""

    def __init__(self) -> None:
        super().__init__(ModelRequest([UserPromptPart(PREAMBLE)]))

    def content_json(self, message: ModelMessage) -> str:
        """Return the message's content as JSON, without what differs from run to run."""
        # The parts alone: other fields are filled in when the message is sent.
        times = {0: {"parts": {"__all__": {"timestamp"}}}}
        try:
            return ModelMessagesTypeAdapter.dump_json([message], include={0: {"kind", "parts"}}, exclude=times, warnings=False).decode()
        except (ValueError, TypeError):  # an object without a JSON form, or a lone surrogate
            return repr(message.parts)

    def items(self, message: ModelMessage, ids: Iterator[str]) -> list[Item]:
        """Return the items of a message."""
        items = [_item(part, message, next(ids)) for part in message.parts]
        if not items:
            role: Role = "user" if isinstance(message, ModelRequest) else "assistant"
            return [Message(role, (), extra={CARRIED: True}, id=next(ids), created_at=0.0)]  # it may have instructions
        if isinstance(message, ModelRequest):
            return items
        extra = {} if message.model_name is None else {"model": message.model_name}  # usage is in this model's tokens
        return [replace(items[0], usage=reported_usage(message), extra={**items[0].extra, **extra}), *items[1:]]

    def partial_copy(self, message: ModelMessage, items: Sequence[Item], visible: Sequence[Item | None]) -> ModelMessage | None:
        """Return a copy that shows the visible items, or None if nothing is left."""
        lost_reasoning = any(isinstance(item, Reasoning) and form is None for item, form in zip(items, visible, strict=True))
        parts: list[Any] = []
        for part, item, form in zip(message.parts, items, visible, strict=True):
            if form is not None:
                visible_part = part if form is item else _visible_part(part, item, form)
                parts.append(_without_id(visible_part) if lost_reasoning else visible_part)
        if not parts:
            return None
        return replace(message, parts=parts)  # type: ignore[arg-type]  # of the same types as before

    def merge_responses(self, earlier: ModelMessage, later: ModelMessage) -> ModelMessage:
        """Return two responses as one message."""
        return replace(later, parts=[*earlier.parts, *later.parts])  # type: ignore[arg-type]  # both are responses

    def user_message(self, text: str) -> ModelMessage:
        """Return a user message with this text."""
        return ModelRequest([UserPromptPart(text)])

    def result_message(self, output: FunctionCallOutput, message: ModelMessage) -> ModelMessage:  # noqa: ARG002 - the interface
        """Return a message with the output of an interrupted call."""
        return ModelRequest([ToolReturnPart(output.name, output.text, output.call_id, outcome="failed")])

    def is_system(self, message: ModelMessage) -> bool:
        """True for a system prompt."""
        return isinstance(message, ModelRequest) and any(isinstance(part, SystemPromptPart) for part in message.parts)


def _item(part: Any, message: ModelMessage, id: str) -> Item:
    """Convert a part. The framework's bookkeeping (tools found, capabilities loaded, summaries) becomes items that are never taken."""
    bookkeeping = MessageCategory.SYSTEM
    match part.part_kind:
        case "system-prompt":
            return Message("system", part.content, id=id, created_at=0.0)
        case "user-prompt":
            return Message("user", [_part(element) for element in _contents(part.content)], id=id, created_at=0.0)
        case "tool-return":
            is_error, content = part.outcome in ("failed", "retried"), [_part(element) for element in _returned_contents(part)]
            pinned = part.tool_kind is not None
            return FunctionCallOutput(part.tool_name, content, part.tool_call_id, is_error=is_error, pinned=pinned, id=id, created_at=0.0)
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
            return Reasoning(_json(part), pinned=part.tool_kind is not None, extra={CARRIED: True}, id=id, created_at=0.0)
        case "file":
            return Message("assistant", _part(part.content), id=id, created_at=0.0)
        case "speech":
            return Message(part.speaker, part.transcript or "", id=id, created_at=0.0)
        case "compaction":
            role = "user" if isinstance(message, ModelRequest) else "assistant"
            return Message(role, part.content or _json(part), category=bookkeeping, id=id, created_at=0.0)  # type: ignore[arg-type]
    return Message("system", _json(part), category=bookkeeping, id=id, created_at=0.0)


def _contents(content: Any) -> list[Any]:
    return [content] if isinstance(content, str) else list(content)


def _returned_contents(part: Any) -> list[Any]:
    """Return a tool's return value as the model sees it: texts and media."""
    contents: list[Any] = part.content_items(mode="str", wrap_if_error=False)
    return contents


def _part(content: Any) -> Part:
    """Return the part of an item that a piece of content counts as."""
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
    return Text(text if isinstance(text, str) else "")  # a cache mark has no text


def _visible_part(part: Any, item: Item, form: Item) -> Any:
    """Return a copy of a part whose item a view shows in another form."""
    if isinstance(item, Message) and isinstance(form, Message):
        if part.part_kind == "user-prompt":
            content = part.content if isinstance(part.content, str) else _contents(part.content)
            return replace(part, content=visible_content(content, item, form, str))
        return replace(part, content=form.text)
    if isinstance(item, FunctionCallOutput) and isinstance(form, FunctionCallOutput):
        content = _returned_contents(part) if part.part_kind == "tool-return" else form.text
        return replace(part, content=visible_content(content, item, form, str) if isinstance(content, list) else content)
    if isinstance(form, FunctionCall):
        return replace(part, args=form.arguments if isinstance(part.args, str) else json.loads(form.arguments))
    return part


def _without_id(part: Any) -> Any:
    """Return the part without the id that ties it to reasoning: a provider that has stored both refuses one without the other."""
    return replace(part, id=None) if part.part_kind in ("text", "tool-call") and part.id is not None else part


def _json(part: Any) -> str:
    import dataclasses

    try:
        return json_text({name: value for name, value in dataclasses.asdict(part).items() if value is not None})
    except TypeError:  # a time, or an application's own object
        return repr(part)
