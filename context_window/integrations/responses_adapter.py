"""`ResponsesAdapter`: items of OpenAI's Responses API, as JSON objects. Needs no package of OpenAI's."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from session.items import FunctionCall, FunctionCallOutput, Item, Message, MessageCategory, Reasoning, Role
from session.parts import Part
from session.providers.additions import PREAMBLE
from session.providers.mended_items import CARRIED
from session.sanitize import clean_json
from session.transcripts.values import json_text

from .content_parts import blocks_of, part_for, visible_content
from .message_adapter import MessageAdapter

Json = dict[str, Any]

_LINKED_TYPES = (None, "message", "function_call", "custom_tool_call")
"""Types of items that the API refuses if they have an id and the reasoning they came with is missing (docs/provider-rules.md, R2)."""


class ResponsesAdapter(MessageAdapter[Json]):
    """Items of the Responses API. Each becomes one item of the session."""

    is_message_whole_response = False
    id_field = "call_id"
    are_ids_unique = True
    roles = ("user", "assistant", "system", "developer", None)

    def __init__(self) -> None:
        super().__init__({"role": "user", "content": PREAMBLE})

    def content_json(self, message: Json) -> str:
        """Return the item as JSON."""
        return json.dumps(message, sort_keys=True, default=repr)

    def items(self, message: Json, ids: Iterator[str]) -> list[Item]:
        """Return the session's item for one of the API's."""
        return [_item(message, next(ids))]

    def partial_copy(self, message: Json, items: Sequence[Item], visible: Sequence[Item | None]) -> Json | None:
        """Return a copy that shows the visible item, or None if nothing is left."""
        item, form = items[0], visible[0]
        if isinstance(form, FunctionCall):
            return {**message, "arguments" if message.get("type") == "function_call" else "input": form.arguments}
        field = "content" if isinstance(item, Message) else "output"
        if not (isinstance(form, Message | FunctionCallOutput) and isinstance(item, Message | FunctionCallOutput)):
            return None
        content: Any = message.get(field)
        return {**message, field: visible_content(content, item, form, _block)}

    def without_reasoning_links(self, message: Json) -> Json:
        """Return the item without its id, which the API would refuse without the reasoning it came with."""
        if message.get("id") is None or message.get("type") not in _LINKED_TYPES:
            return message
        return {name: value for name, value in message.items() if name != "id"}

    def user_message(self, text: str) -> Json:
        """Return a user message with this text."""
        return {"role": "user", "content": text}

    def result_message(self, output: FunctionCallOutput, message: Json) -> Json | None:
        """Return an item with the output of an interrupted call; None for a call of OpenAI's own tools, whose outputs have other forms."""
        kind = message.get("type")
        is_function = kind in ("function_call", "custom_tool_call")
        return {"type": f"{kind}_output", "call_id": output.call_id, "output": output.text} if is_function else None

    def is_system(self, message: Json) -> bool:
        """True for a system prompt."""
        return message.get("role") in ("system", "developer")


def _block(text: str) -> dict[str, str]:
    return {"type": "input_text", "text": text}


def _item(fields: Mapping[str, Any], id: str) -> Item:
    """Convert one item of the API. Types that the provider uses for its own bookkeeping become items that are never dropped."""
    kind = str(fields.get("type") or ("message" if "role" in fields else ""))
    match kind:
        case "message":
            return Message(_role(fields), _parts(fields.get("content")), id=id, created_at=0.0)
        case "function_call" | "custom_tool_call":
            arguments = fields.get("arguments" if kind == "function_call" else "input")
            name, text = str(fields.get("name", "tool")), str(arguments or "")
            return FunctionCall(name, text, str(fields.get("call_id", "")), id=id, created_at=0.0)
        case "function_call_output" | "custom_tool_call_output":
            return FunctionCallOutput("", _parts(fields.get("output")), str(fields.get("call_id", "")), id=id, created_at=0.0)
        case "reasoning":
            return Reasoning(_reasoning_text(fields), data=_text(fields.get("encrypted_content")), id=id, created_at=0.0)
    text = json_text(clean_json(dict(fields), "input"))
    if isinstance(call_id := fields.get("call_id"), str) and kind.endswith("_output"):  # of a computer or a shell, for example
        return FunctionCallOutput(kind, text, call_id, pinned=True, id=id, created_at=0.0)
    if isinstance(call_id, str):
        return FunctionCall(kind, text, call_id, pinned=True, id=id, created_at=0.0)
    if kind.endswith("_call"):  # run by the provider itself: dropped together with the response it belongs to
        return Reasoning(text, extra={CARRIED: True}, id=id, created_at=0.0)
    return Message("system", text, category=MessageCategory.SYSTEM, id=id, created_at=0.0)


def _role(fields: Mapping[str, Any]) -> Role:
    roles: dict[str, Role] = {"system": "system", "developer": "developer", "assistant": "assistant"}
    return roles.get(str(fields.get("role")), "user")


def _parts(content: object) -> list[Part]:
    return [part_for(block) for block in blocks_of(content)]


def _reasoning_text(fields: Mapping[str, Any]) -> str:
    blocks = [*blocks_of(fields.get("summary")), *blocks_of(fields.get("content"))]
    return "\n".join(block["text"] for block in blocks if isinstance(block, dict) and isinstance(block.get("text"), str))


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
