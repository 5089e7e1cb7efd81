"""Messages of LlamaIndex, for `manage`: `ChatMessage`, as its `model_dump` writes it.

https://docs.llamaindex.ai/en/stable/api_reference/prompts/
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from session.items import FunctionCall, FunctionCallOutput, Item, Message, Reasoning
from session.parts import Part, Text
from session.providers.additions import PREAMBLE
from session.providers.mended_items import CARRIED
from session.transcripts.media import bytes_of, media_part
from session.transcripts.values import object_at, objects_at, text_at

from ..integrations.content_parts import blocks_of, visible_blocks
from .block_adapter import BlockAdapter, BlockRun, Kind, arguments_json, plain_json
from .wire_format import ROLES, Json, MessageFormat

_MORE = "additional_kwargs"
_CALL = "tool_call"


def _text_block(text: str) -> Json:
    return {"block_type": "text", "text": text}


class LlamaIndexAdapter(BlockAdapter):
    """Messages of LlamaIndex. A call is a block, or stands among the additional arguments as the provider wrote it, or both."""

    field = "blocks"
    id_field = "additional_kwargs.tool_call_id"
    roles = ("system", "developer", "user", "assistant", "function", "tool", "chatbot", "model")

    def __init__(self) -> None:
        super().__init__(self.user_message(PREAMBLE))

    def content_json(self, message: Json) -> str:
        """Return the message as JSON."""
        return plain_json([message.get("role"), self.blocks(message), text_at(object_at(message, _MORE), "tool_call_id")])

    def blocks(self, message: Json) -> list[Any]:
        """Return the blocks of a message, and those that calls without one would have."""
        blocks = blocks_of(message.get("blocks"))
        return blocks if _has_calls(blocks) else [*blocks, *map(_call_block, _calls(message))]

    def kind(self, block: Any, message: Json) -> Kind:
        """Return the kind of a block."""
        kind = block.get("block_type") if isinstance(block, dict) and message.get("role") == "assistant" else None
        return "call" if kind == _CALL else "thinking" if kind == "thinking" else "text"

    def runs(self, message: Json) -> list[BlockRun]:
        """Return the runs of a message. A tool's message is one result."""
        if message.get("role") in ("tool", "function"):
            return [BlockRun("result", tuple(range(len(self.blocks(message)))))]
        return super().runs(message)

    def item(self, kind: Kind, blocks: list[Any], message: Json, ids: Iterator[str]) -> Item:
        """Return the item of a message's run."""
        match kind:
            case "call":
                (call,) = blocks
                name, arguments = text_at(call, "tool_name") or "tool", arguments_json(call.get("tool_kwargs"))
                return FunctionCall(name, arguments, text_at(call, "tool_call_id"), id=next(ids), created_at=0.0)
            case "result":
                more = object_at(message, _MORE)
                parts = [_part(block) for block in blocks]
                return FunctionCallOutput(text_at(more, "name"), parts, text_at(more, "tool_call_id"), id=next(ids), created_at=0.0)
            case "thinking":
                return Reasoning("\n".join(text_at(block, "content") for block in blocks), id=next(ids), created_at=0.0)
        # LlamaIndex itself leaves out an empty text beside calls.
        extra = {CARRIED: True} if len(blocks) < len(self.blocks(message)) else {}
        role, parts = ROLES.get(text_at(message, "role"), "user"), [_part(block) for block in blocks]
        return Message(role, parts, extra=extra, id=next(ids), created_at=0.0)

    def changed(self, blocks: list[Any], item: Item, form: Item) -> list[Any]:
        """Return the blocks of an item as the view shows it."""
        if isinstance(form, FunctionCall):
            is_text = isinstance(blocks[0].get("tool_kwargs"), str)
            return [{**blocks[0], "tool_kwargs": form.arguments if is_text else json.loads(form.arguments)}]
        if isinstance(item, Message | FunctionCallOutput) and isinstance(form, Message | FunctionCallOutput):
            return visible_blocks(blocks, item, form, _text_block)
        return []

    def partial_copy(self, message: Json, items: Sequence[Item], visible: Sequence[Item | None]) -> Json | None:
        """Return a copy that shows the visible items, with the same calls among the additional arguments."""
        copy = super().partial_copy(message, items, visible)
        if copy is None or not _calls(message):
            return copy
        kept = {text_at(block, "tool_call_id"): block for block in copy["blocks"] if _is_call(block)}
        more = {name: value for name, value in object_at(message, _MORE).items() if name != "tool_calls"}
        calls = [_with_arguments(call, kept[text_at(call, "id")]) for call in _calls(message) if text_at(call, "id") in kept]
        own = copy["blocks"] if _has_calls(blocks_of(message.get("blocks"))) else [each for each in copy["blocks"] if not _is_call(each)]
        return {**copy, "blocks": own, _MORE: {**more, "tool_calls": calls} if calls else more}

    def merge_responses(self, earlier: Json, later: Json) -> Json:
        """Return two responses as one message."""
        calls = [*_calls(earlier), *_calls(later)]
        more = {**object_at(later, _MORE), "tool_calls": calls} if calls else object_at(later, _MORE)
        return {**later, "blocks": [*blocks_of(earlier.get("blocks")), *blocks_of(later.get("blocks"))], _MORE: more}

    def user_message(self, text: str) -> Json:
        """Return a user message with this text."""
        return {"role": "user", _MORE: {}, "blocks": [_text_block(text)]}

    def result_message(self, output: FunctionCallOutput, message: Json) -> Json:  # noqa: ARG002 - the interface
        """Return a tool's message with the output of an interrupted call."""
        return {"role": "tool", _MORE: {"tool_call_id": output.call_id}, "blocks": [_text_block(output.text)]}

    def is_system(self, message: Json) -> bool:
        """True for a system prompt."""
        return message.get("role") in ("system", "developer")


class LlamaIndexFormat(MessageFormat):
    """Messages that a model of LlamaIndex gets."""

    adapter: ClassVar[LlamaIndexAdapter] = LlamaIndexAdapter()


def _calls(message: Json) -> list[Json]:
    """Return the calls among the additional arguments."""
    return objects_at(object_at(message, _MORE), "tool_calls")


def _is_call(block: Any) -> bool:
    return isinstance(block, dict) and block.get("block_type") == _CALL


def _has_calls(blocks: Sequence[Any]) -> bool:
    return any(map(_is_call, blocks))


def _call_block(call: Json) -> Json:
    function = object_at(call, "function") or call
    arguments = function.get("arguments", function.get("input"))
    return {"block_type": _CALL, "tool_call_id": text_at(call, "id"), "tool_name": text_at(function, "name"), "tool_kwargs": arguments}


def _with_arguments(call: Json, block: Json) -> Json:
    """Return a call among the additional arguments with the arguments of its block."""
    name = "arguments" if "arguments" in (object_at(call, "function") or call) else "input"
    changed = {name: block["tool_kwargs"]}
    return {**call, "function": {**object_at(call, "function"), **changed}} if "function" in call else {**call, **changed}


def _part(block: Any) -> Part:
    """Return the part that a block counts as."""
    kind = text_at(block, "block_type") if isinstance(block, dict) else ""
    if kind == "text":
        return Text(text_at(block, "text"))
    if kind == "cache":  # a mark, and no text
        return Text("")
    data = bytes_of(text_at(block, kind, "data")) or text_at(block, "url") if kind in ("image", "document") else None
    part = media_part(data, text_at(block, f"{kind}_mimetype"), [], kind=kind, title=text_at(block, "title")) if data else None
    return part or Text(plain_json(block))
