"""Messages of AutoGen, for `manage`: `LLMMessage`, as its `model_dump` writes it.

https://microsoft.github.io/autogen/stable/reference/python/autogen_core.models.html
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from session.items import FunctionCall, FunctionCallOutput, Item, Message, Reasoning, Role
from session.parts import Part, Text
from session.providers.additions import PREAMBLE
from session.transcripts.media import bytes_of, media_part
from session.transcripts.values import text_at

from ..integrations.content_parts import blocks_of, visible_content
from .block_adapter import BlockAdapter, Kind, plain_json
from .wire_format import Json, MessageFormat

RESULTS = "FunctionExecutionResultMessage"
ANSWER = "AssistantMessage"
_ROLES: dict[str, Role] = {"SystemMessage": "system", ANSWER: "assistant"}
TYPES = frozenset({"SystemMessage", "UserMessage", ANSWER, RESULTS})


class AutoGenAdapter(BlockAdapter):
    """Messages of AutoGen. An answer is a text or calls; a text beside calls is its thought."""

    field = "content"
    id_field = "call_id"

    def __init__(self) -> None:
        super().__init__(self.user_message(PREAMBLE))

    def content_json(self, message: Json) -> str:
        """Return the message as JSON."""
        return plain_json([message.get("type"), self.blocks(message)])

    def blocks(self, message: Json) -> list[Any]:
        """Return the blocks of a message: its thought, and its content."""
        thought = message.get("thought")
        return [*([{"thought": thought}] if thought else []), *blocks_of(message.get("content"))]

    def kind(self, block: Any, message: Json) -> Kind:
        """Return the kind of a block, which only the right type of message can have."""
        if not isinstance(block, dict):
            return "text"
        if message.get("type") == ANSWER:
            return "thinking" if "thought" in block else "call"
        return "result" if message.get("type") == RESULTS else "text"

    def item(self, kind: Kind, blocks: list[Any], message: Json, ids: Iterator[str]) -> Item:
        """Return the item of a message's run."""
        match kind:
            case "call":
                (call,) = blocks
                name, arguments = text_at(call, "name") or "tool", text_at(call, "arguments")
                return FunctionCall(name, arguments, text_at(call, "id"), id=next(ids), created_at=0.0)
            case "result":
                (result,) = blocks
                name, text, is_error = text_at(result, "name"), text_at(result, "content"), result.get("is_error") is True
                return FunctionCallOutput(name, text, text_at(result, "call_id"), is_error=is_error, id=next(ids), created_at=0.0)
            case "thinking":
                return Reasoning(text_at(blocks[0], "thought"), id=next(ids), created_at=0.0)
        return Message(_ROLES.get(text_at(message, "type"), "user"), [_part(block) for block in blocks], id=next(ids), created_at=0.0)

    def changed(self, blocks: list[Any], item: Item, form: Item) -> list[Any]:
        """Return the blocks of an item as the view shows it."""
        if isinstance(form, FunctionCall):
            return [{**blocks[0], "arguments": form.arguments}]
        if isinstance(form, FunctionCallOutput):
            return [{**blocks[0], "content": form.text}]
        if isinstance(form, Message) and isinstance(item, Message):
            return blocks_of(visible_content(blocks, item, form, str))
        return []

    def partial_copy(self, message: Json, items: Sequence[Item], visible: Sequence[Item | None]) -> Json | None:
        """Return a copy that shows the visible items, or None if nothing is left but the thought."""
        copy = super().partial_copy(message, items, visible)
        return None if copy is None else _written(copy, copy["content"])

    def merge_responses(self, earlier: Json, later: Json) -> Json:
        """Return two responses as one message."""
        return _written(later, [*self.blocks(earlier), *self.blocks(later)])

    def user_message(self, text: str) -> Json:
        """Return a user message with this text."""
        return {"type": "UserMessage", "content": text, "source": "user"}

    def result_message(self, output: FunctionCallOutput, message: Json) -> Json:  # noqa: ARG002 - the interface
        """Return a message with the output of an interrupted call."""
        result = {"content": output.text, "name": output.name, "call_id": output.call_id, "is_error": True}
        return {"type": RESULTS, "content": [result]}

    def is_system(self, message: Json) -> bool:
        """True for a system prompt."""
        return message.get("type") == "SystemMessage"


class AutoGenFormat(MessageFormat):
    """Messages of a `ChatCompletionContext`."""

    adapter: ClassVar[AutoGenAdapter] = AutoGenAdapter()


def _written(message: Json, blocks: Sequence[Any]) -> Json:
    """Return the message with these blocks, as its type has them."""
    texts = [block for block in blocks if isinstance(block, str)]
    if message.get("type") != ANSWER:
        is_text = len(texts) == len(blocks) and message.get("type") != RESULTS
        return {**message, "content": "\n".join(texts) if is_text else list(blocks)}
    thoughts = [str(block["thought"]) for block in blocks if isinstance(block, dict) and "thought" in block]
    calls = [block for block in blocks if isinstance(block, dict) and "thought" not in block]
    said = "\n".join([*thoughts, *texts] if calls else thoughts)
    others = {name: value for name, value in message.items() if name != "thought"}
    return {**others, "content": calls or "\n".join(texts), **({"thought": said} if said else {})}


def _part(block: Any) -> Part:
    """Return the part that a block counts as: a text, or an image as base64."""
    if isinstance(block, str):
        return Text(block)
    data = bytes_of(block.get("data")) if isinstance(block, dict) else None
    return (media_part(data, "image/png", []) if data else None) or Text(plain_json(block))
