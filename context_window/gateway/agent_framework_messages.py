"""Messages of Microsoft's Agent Framework, for `manage`: `Message`, as its `to_dict` writes it.

https://learn.microsoft.com/en-us/agent-framework/
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, ClassVar

from session.items import FunctionCall, FunctionCallOutput, Item, Message, Reasoning
from session.parts import Part, Text
from session.providers.additions import PREAMBLE
from session.transcripts.media import media_part
from session.transcripts.values import text_at

from ..integrations.content_parts import visible_blocks, with_text_blocks
from .block_adapter import BlockAdapter, Kind, arguments_json, plain_json
from .wire_format import ROLES, Json, MessageFormat


def _text_block(text: str) -> Json:
    return {"type": "text", "text": text}


class AgentFrameworkAdapter(BlockAdapter):
    """Messages of the Agent Framework. Calls of tools that run at the provider count as text: they stay with what the model says."""

    field = "contents"
    id_field = "call_id"
    roles = ("system", "user", "assistant", "tool")

    def __init__(self) -> None:
        super().__init__(self.user_message(PREAMBLE))

    def content_json(self, message: Json) -> str:
        """Return the message as JSON."""
        return plain_json([message.get("role"), message.get("contents")])

    def blocks(self, message: Json) -> list[Any]:
        """Return the contents of a message."""
        return with_text_blocks(message.get("contents"), _text_block)

    def kind(self, block: Any, message: Json) -> Kind:
        """Return the kind of a content."""
        kind = block.get("type") if isinstance(block, dict) else None
        if message.get("role") == "assistant" and kind == "function_call" and not (block.get("hosted") or block.get("informational_only")):
            return "call"
        return "result" if kind == "function_result" else "thinking" if kind == "text_reasoning" else "text"

    def item(self, kind: Kind, blocks: list[Any], message: Json, ids: Iterator[str]) -> Item:
        """Return the item of a message's run."""
        match kind:
            case "call":
                (call,) = blocks
                name, arguments = text_at(call, "name") or "tool", arguments_json(call.get("arguments"))
                return FunctionCall(name, arguments, text_at(call, "call_id"), id=next(ids), created_at=0.0)
            case "result":
                (result,) = blocks
                parts, is_error = [_part(block) for block in _output(result)], bool(result.get("exception"))
                return FunctionCallOutput("", parts, text_at(result, "call_id"), is_error=is_error, id=next(ids), created_at=0.0)
            case "thinking":
                return Reasoning("\n".join(text_at(block, "text") for block in blocks), id=next(ids), created_at=0.0)
        return Message(ROLES.get(text_at(message, "role"), "user"), [_part(block) for block in blocks], id=next(ids), created_at=0.0)

    def changed(self, blocks: list[Any], item: Item, form: Item) -> list[Any]:
        """Return the contents of an item as the view shows it."""
        if isinstance(form, FunctionCall):
            is_text = isinstance(blocks[0].get("arguments"), str)
            return [{**blocks[0], "arguments": form.arguments if is_text else json.loads(form.arguments)}]
        if isinstance(form, FunctionCallOutput) and isinstance(item, FunctionCallOutput):
            items = visible_blocks(_output(blocks[0]), item, form, _text_block)
            text = "\n".join(text_at(each, "text") for each in items if each.get("type") == "text")
            return [{**blocks[0], "result": text, **({"items": items} if "items" in blocks[0] else {})}]
        if isinstance(form, Message) and isinstance(item, Message):
            return visible_blocks(blocks, item, form, _text_block)
        return []

    def user_message(self, text: str) -> Json:
        """Return a user message with this text."""
        return {"type": "message", "role": "user", "contents": [_text_block(text)]}

    def result_message(self, output: FunctionCallOutput, message: Json) -> Json:  # noqa: ARG002 - the interface
        """Return a tool's message with the output of an interrupted call."""
        return {"type": "message", "role": "tool", "contents": [_result(output)]}

    def is_system(self, message: Json) -> bool:
        """True for a system prompt."""
        return message.get("role") in ("system", "developer")


class AgentFrameworkFormat(MessageFormat):
    """Messages of a chat client."""

    adapter: ClassVar[AgentFrameworkAdapter] = AgentFrameworkAdapter()


def _result(output: FunctionCallOutput) -> Json:
    return {"type": "function_result", "call_id": output.call_id, "result": output.text, "items": [_text_block(output.text)]}


def _output(result: Json) -> list[Any]:
    """Return the contents of a result: its items, or its text."""
    items, value = result.get("items"), result.get("result")
    if isinstance(items, list) and items:
        return items
    return [_text_block(value if isinstance(value, str) else plain_json(value))]


def _part(block: Any) -> Part:
    """Return the part that a content counts as."""
    kind = text_at(block, "type") if isinstance(block, dict) else ""
    if kind == "text":
        return Text(text_at(block, "text"))
    uri = text_at(block, "uri") if kind in ("data", "uri") else ""
    return (media_part(uri, text_at(block, "media_type"), []) if uri else None) or Text(plain_json(block))
