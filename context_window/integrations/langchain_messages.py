"""`LangChainAdapter`: reads and copies LangChain's messages. Needs `langchain-core` alone."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, ChatMessage, HumanMessage, SystemMessage, ToolMessage

from session.items import FunctionCall, FunctionCallOutput, Item, Message, Reasoning, Role
from session.parts import Text
from session.providers.additions import PREAMBLE
from session.providers.mended_items import CARRIED
from session.transcripts.values import json_text
from session.usage import Usage

from .content_parts import blocks_of, is_call, part_for, thought_in, visible_content
from .message_adapter import MessageAdapter, usage_from_totals


def text_of(message: BaseMessage) -> str:
    return "\n".join(part.text for part in map(part_for, blocks_of(message.content)) if isinstance(part, Text))


def _block(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


class LangChainAdapter(MessageAdapter[AnyMessage]):
    """LangChain's messages. One can hold reasoning, text and calls, and becomes several items."""

    def __init__(self) -> None:
        super().__init__(HumanMessage(PREAMBLE))

    def content_json(self, message: AnyMessage) -> str:
        """Return the message's content as JSON, without what differs from run to run."""
        # Ids are random, and artifacts and response metadata are not sent to the model.
        return message.model_dump_json(exclude={"artifact", "id", "response_metadata"}, warnings=False)

    def items(self, message: AnyMessage, ids: Iterator[str]) -> list[Item]:
        """Return the items of a message."""
        if isinstance(message, AIMessage):
            return _response_items(message, ids)
        parts = [part_for(block) for block in blocks_of(message.content)]
        if isinstance(message, ToolMessage):
            is_error = message.status == "error"
            name = message.name or ""
            return [FunctionCallOutput(name, parts, message.tool_call_id, is_error=is_error, id=next(ids), created_at=0.0)]
        return [Message(_role(message), parts, id=next(ids), created_at=0.0)]

    def partial_copy(self, message: AnyMessage, items: Sequence[Item], visible: Sequence[Item | None]) -> AnyMessage | None:
        """Return a copy that shows the visible items, or None if nothing is left."""
        if isinstance(message, AIMessage):
            return _partial_response(message, items, visible)
        item, form = items[0], visible[0]
        if not (isinstance(form, Message | FunctionCallOutput) and isinstance(item, Message | FunctionCallOutput)):
            return None
        return message.model_copy(update={"content": visible_content(message.content, item, form, _block)})

    def merge_responses(self, earlier: AnyMessage, later: AnyMessage) -> AnyMessage:
        """Return two responses as one message."""
        blocks = [block for message in (earlier, later) for block in blocks_of(message.content) if block]
        return later.model_copy(update={"content": [_block(block) if isinstance(block, str) else block for block in blocks]})

    def user_message(self, text: str) -> AnyMessage:
        """Return a user message with this text."""
        return HumanMessage(text)

    def result_message(self, output: FunctionCallOutput, message: AnyMessage) -> AnyMessage:  # noqa: ARG002 - the interface
        """Return a message with the output of an interrupted call."""
        return ToolMessage(output.text, tool_call_id=output.call_id, name=output.name, status="error")

    def is_system(self, message: AnyMessage) -> bool:
        """True for a system prompt."""
        return isinstance(message, SystemMessage)


def _role(message: AnyMessage) -> Role:
    """Return the message's role. A custom role counts as the user."""
    if isinstance(message, SystemMessage):
        return "system"
    role = message.role if isinstance(message, ChatMessage) else "user"
    return "system" if role in ("system", "developer") else "assistant" if role == "assistant" else "user"


def _response_items(message: AIMessage, ids: Iterator[str]) -> list[Item]:
    """Return a response's reasoning, text and calls."""
    blocks = blocks_of(message.content)
    thoughts = [thought for block in blocks if (thought := thought_in(block)) is not None]
    parts = [part_for(block) for block in blocks if not _is_thought_or_call(block)]
    calls = [*message.tool_calls, *message.invalid_tool_calls]
    call_ids = {call["id"] for call in calls}
    server_blocks = [block for block in blocks if is_call(block) and _call_id(block) not in call_ids]
    items: list[Item] = []
    if thoughts or server_blocks:
        text = "\n".join([*(thought.text or thought.data or "" for thought in thoughts), *map(json_text, server_blocks)])
        items.append(Reasoning(text, extra={CARRIED: True} if server_blocks else {}, id=next(ids), created_at=0.0))
    if any(not isinstance(part, Text) or part.text.strip() for part in parts) or not (items or calls):
        items.append(Message("assistant", parts, id=next(ids), created_at=0.0))
    for call in calls:
        arguments = call["args"] if isinstance(call["args"], str) else json_text(call["args"] or {})
        items.append(FunctionCall(call["name"] or "tool", arguments, call["id"] or next(ids), id=next(ids), created_at=0.0))
    model = message.response_metadata.get("model_name") or message.response_metadata.get("model")
    extra = {"model": model} if isinstance(model, str) else {}  # usage is in this model's tokens
    return [replace(items[0], usage=usage_of(message), extra={**items[0].extra, **extra}), *items[1:]]


def _call_id(block: Any) -> object:
    return block.get("id") if isinstance(block, dict) else None


def usage_of(message: AIMessage) -> Usage | None:
    """Return the reported usage, or None."""
    usage = message.usage_metadata
    if not usage:
        return None
    details: Mapping[str, Any] = usage.get("input_token_details") or {}
    cache_read, cache_write = details.get("cache_read") or 0, details.get("cache_creation") or 0
    return usage_from_totals(usage.get("input_tokens", 0), cache_read, cache_write, usage.get("output_tokens", 0))


def _partial_response(message: AIMessage, items: Sequence[Item], visible: Sequence[Item | None]) -> AIMessage | None:
    """Return the response with its dropped text, reasoning or calls removed, and with the text and arguments that the view shows."""
    visible_types = {type(item) for item in visible if item is not None}
    is_reduced = any(type(item) not in visible_types for item in items)
    text = next((item for item in visible if isinstance(item, Message)), None)
    has_calls = FunctionCall in visible_types
    if text is None and not has_calls:
        return None
    content = _partial_content(message, items, text, visible_types)
    if has_calls:
        return message.model_copy(update=_with_visible_calls(message, content, items, visible))
    # A provider's own form of the calls and the reasoning goes too: one without the other would be refused.
    removed: dict[str, Any] = {"tool_calls": [], "invalid_tool_calls": [], "additional_kwargs": {}} if is_reduced else {}
    return message.model_copy(update={"content": content, **removed})


def _with_visible_calls(message: AIMessage, content: Any, items: Sequence[Item], visible: Sequence[Item | None]) -> dict[str, Any]:
    """Return the fields of a response whose calls have the arguments that the view shows. `content` is what the view shows of it."""
    calls: list[Any] = [*message.tool_calls, *message.invalid_tool_calls]
    forms = [(item, form) for item, form in zip(items, visible, strict=True) if isinstance(item, FunctionCall)]
    changed = {index: form for index, (item, form) in enumerate(forms) if isinstance(form, FunctionCall) and form is not item}
    if not changed:
        return {"content": content}
    blocks = {calls[index]["id"]: form.arguments for index, form in changed.items()}
    for index, form in changed.items():
        arguments = form.arguments
        calls[index] = {**calls[index], "args": arguments if isinstance(calls[index]["args"], str) else json.loads(arguments)}
    return {
        "content": [_with_arguments(block, blocks) for block in content] if isinstance(content, list) else content,
        "tool_calls": calls[: len(message.tool_calls)],
        "invalid_tool_calls": calls[len(message.tool_calls) :],
    }


def _with_arguments(block: Any, arguments: Mapping[Any, str]) -> Any:
    """Return the block with the arguments of its call, by call id; any other block unchanged."""
    if not is_call(block) or _call_id(block) not in arguments:
        return block
    return {**block, **{name: json.loads(arguments[_call_id(block)]) for name in ("input", "args") if name in block}}


def _partial_content(message: AIMessage, items: Sequence[Item], text: Message | None, visible_types: set[type]) -> Any:
    """Return the content of a response that is shown in part. `text` is None if the view does not show it."""
    full_text = next((item for item in items if isinstance(item, Message)), None)
    is_rewritten = full_text is not None and text is not full_text
    if isinstance(message.content, str):
        if full_text is None or not is_rewritten:
            return message.content
        return "" if text is None else visible_content(message.content, full_text, text, _block)
    content: list[Any] = list(message.content)
    if full_text is not None and text is not None and is_rewritten:
        text_blocks = [block for block in content if not _is_thought_or_call(block)]
        rewritten = blocks_of(visible_content(text_blocks, full_text, text, _block))
        content = [*rewritten, *(block for block in content if _is_thought_or_call(block))]
    call_ids = {call["id"] for call in (*message.tool_calls, *message.invalid_tool_calls)}

    def is_visible(block: Any) -> bool:
        if not _is_thought_or_call(block):
            return text is not None or full_text is None
        return (FunctionCall if _call_id(block) in call_ids else Reasoning) in visible_types

    blocks = [block for block in content if is_visible(block)]
    if any(isinstance(item, Reasoning) for item in items) and Reasoning not in visible_types:
        # Without its reasoning, a text block with an id is refused.
        return [{name: value for name, value in block.items() if name != "id"} if isinstance(block, dict) else block for block in blocks]
    return blocks


def _is_thought_or_call(block: Any) -> bool:
    """True if a block is reasoning, a call, or the result of a server-side tool, and so no text of the message."""
    return thought_in(block) is not None or is_call(block)
