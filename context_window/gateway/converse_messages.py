"""Messages of Amazon Bedrock's Converse API, for `manage`. The gateway does not serve the API: its requests are signed.

https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ContentBlock.html
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from session.items import FunctionCall, FunctionCallOutput, Item, Message, Reasoning
from session.parts import Part
from session.providers.additions import PREAMBLE
from session.transcripts.values import object_at, text_at

from ..integrations.content_parts import blocks_of, thought_in, visible_content
from .block_adapter import BlockAdapter, BlockRun, Kind, arguments_json, plain_json, plain_part
from .wire_format import Json, MessageFormat

CACHE_POINT = "cachePoint"


def _text_block(text: str) -> Json:
    return {"text": text}


class ConverseAdapter(BlockAdapter):
    """Messages of Converse. Bytes are base64 or, as in boto3, bytes. A cache point belongs to the block before it."""

    field = "content"
    id_field = "toolUseId"
    roles = ("user", "assistant")

    def __init__(self) -> None:
        super().__init__(self.user_message(PREAMBLE))

    def content_json(self, message: Json) -> str:
        """Return the message as JSON, without cache points, which clients move."""
        return plain_json([message.get("role"), [block for block in self.blocks(message) if not _is_cache_point(block)]])

    def blocks(self, message: Json) -> list[Any]:
        """Return the blocks of a message."""
        return blocks_of(message.get("content"))

    def runs(self, message: Json) -> list[BlockRun]:
        """Return the runs of a message, each with the cache points that follow its blocks."""
        blocks = self.blocks(message)
        owner, owners = -1, {}
        for index, block in enumerate(blocks):
            owner = owner if _is_cache_point(block) else index
            owners[index] = owner
        marks = {index for index in owners if owners[index] != index}
        kept = super().runs({**message, self.field: [block for index, block in enumerate(blocks) if index not in marks]})
        places = [index for index in owners if index not in marks]
        runs = [(run.kind, {places[index] for index in run.indices}) for run in kept]
        return [BlockRun(kind, tuple(index for index in owners if owners[index] in own)) for kind, own in runs]

    def kind(self, block: Any, message: Json) -> Kind:
        """Return the kind of a block, which only the right role can send."""
        if not isinstance(block, dict):
            return "text"
        if message.get("role") == "assistant":
            return "call" if "toolUse" in block else "thinking" if "reasoningContent" in block else "text"
        return "result" if "toolResult" in block else "text"

    def item(self, kind: Kind, blocks: list[Any], message: Json, ids: Iterator[str]) -> Item:
        """Return the item of a message's run."""
        blocks = _content(blocks)
        match kind:
            case "call":
                call = object_at(blocks[0], "toolUse")
                arguments = arguments_json(call.get("input"))
                return FunctionCall(text_at(call, "name") or "tool", arguments, text_at(call, "toolUseId"), id=next(ids), created_at=0.0)
            case "result":
                result = object_at(blocks[0], "toolResult")
                parts, is_error = _parts(result.get("content")), result.get("status") == "error"
                return FunctionCallOutput("", parts, text_at(result, "toolUseId"), is_error=is_error, id=next(ids), created_at=0.0)
            case "thinking":
                thoughts = [thought for block in blocks if (thought := thought_in(json.loads(plain_json(block)))) is not None]
                text = "\n".join(thought.text for thought in thoughts if thought.text)
                data = "".join(thought.data or "" for thought in thoughts)
                return Reasoning(text, None, data or None, id=next(ids), created_at=0.0)
        role = "assistant" if message.get("role") == "assistant" else "user"
        return Message(role, _parts(blocks), id=next(ids), created_at=0.0)  # type: ignore[arg-type]

    def changed(self, blocks: list[Any], item: Item, form: Item) -> list[Any]:
        """Return the blocks of an item as the view shows it, with its cache points."""
        content, marks = _content(blocks), [block for block in blocks if _is_cache_point(block)]
        if isinstance(form, FunctionCall):
            return [{"toolUse": {**content[0]["toolUse"], "input": json.loads(form.arguments)}}, *marks]
        if isinstance(form, FunctionCallOutput) and isinstance(item, FunctionCallOutput):
            result = content[0]["toolResult"]
            return [{"toolResult": {**result, "content": _visible(_content(result.get("content")), item, form)}}, *marks]
        if isinstance(form, Message) and isinstance(item, Message):
            return [*_visible(content, item, form), *marks]
        return []

    def user_message(self, text: str) -> Json:
        """Return a user message with this text."""
        return {"role": "user", "content": [_text_block(text)]}

    def result_message(self, output: FunctionCallOutput, message: Json) -> Json:  # noqa: ARG002 - the interface
        """Return a user message with the output of an interrupted call."""
        result = {"toolUseId": output.call_id, "content": [_text_block(output.text)], "status": "error"}
        return {"role": "user", "content": [{"toolResult": result}]}

    def is_system(self, message: Json) -> bool:  # noqa: ARG002 - the interface
        """Return False: the system prompt stands outside the messages."""
        return False


class ConverseFormat(MessageFormat):
    """Messages of `client.converse`."""

    adapter: ClassVar[ConverseAdapter] = ConverseAdapter()

    def in_order(self, body: Json, messages: Sequence[Json]) -> list[Json]:  # noqa: ARG002 - the interface
        """Return the messages with roles that alternate."""
        return self.adapter.alternating(messages)


def _is_cache_point(block: Any) -> bool:
    return isinstance(block, dict) and CACHE_POINT in block


def _content(blocks: object) -> list[Any]:
    return [block for block in blocks_of(blocks) if not _is_cache_point(block)]


def _parts(blocks: object) -> list[Part]:
    return [plain_part(block) for block in _content(blocks)]


def _visible(blocks: list[Any], item: Message | FunctionCallOutput, form: Message | FunctionCallOutput) -> list[Any]:
    visible = visible_content(blocks, item, form, _text_block)
    return [_text_block(visible)] if isinstance(visible, str) else list(visible)
