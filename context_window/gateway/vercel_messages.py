"""Messages of Vercel's AI SDK, for `manage`: its `ModelMessage`, as `convertToModelMessages` writes it, and version 4's `CoreMessage`.

https://ai-sdk.dev/docs/reference/ai-sdk-core/model-message
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from session.items import FunctionCall, FunctionCallOutput, Item, Message, Reasoning
from session.parts import Part
from session.providers.additions import PREAMBLE
from session.transcripts.media import bytes_of, media_part
from session.transcripts.values import object_at, text_at

from ..integrations.content_parts import blocks_of, visible_blocks, with_text_blocks
from .block_adapter import BlockAdapter, Kind, arguments_json, plain_json, plain_part, role_of
from .wire_format import Json, MessageFormat

_OPTIONS = "providerOptions", "experimental_providerMetadata"
_DENIED = "execution-denied"


class VercelAdapter(BlockAdapter):
    """Messages of the AI SDK. Calls that the provider runs, and their results, count as text: they stay with what the model says."""

    field = "content"
    id_field = "toolCallId"
    roles = ("system", "user", "assistant", "tool")

    def __init__(self) -> None:
        super().__init__(self.user_message(PREAMBLE))

    def content_json(self, message: Json) -> str:
        """Return the message as JSON, without options, in which clients move cache marks."""
        return plain_json([message.get("role"), [_without_options(block) for block in self.blocks(message)]])

    def blocks(self, message: Json) -> list[Any]:
        """Return the parts of a message. A text is a part, too."""
        return with_text_blocks(message.get("content"), _text_block)

    def kind(self, block: Any, message: Json) -> Kind:
        """Return the kind of a part, which only the right role can send."""
        kind, role = block.get("type") if isinstance(block, dict) else None, message.get("role")
        if role == "assistant" and kind == "tool-call" and not block.get("providerExecuted"):
            return "call"
        if role == "assistant" and kind == "reasoning":
            return "thinking"
        return "result" if role == "tool" and kind == "tool-result" else "text"

    def item(self, kind: Kind, blocks: list[Any], message: Json, ids: Iterator[str]) -> Item:
        """Return the item of a message's run."""
        match kind:
            case "call":
                (call,) = blocks
                arguments = arguments_json(call.get(_input(call)))
                return FunctionCall(
                    text_at(call, "toolName") or "tool", arguments, text_at(call, "toolCallId"), id=next(ids), created_at=0.0
                )
            case "result":
                (result,) = blocks
                form = text_at(object_at(result, "output"), "type")
                is_error = result.get("isError") is True or form.startswith("error") or form == _DENIED
                parts, call_id = [_part(part) for part in _output(result)], text_at(result, "toolCallId")
                return FunctionCallOutput(text_at(result, "toolName"), parts, call_id, is_error=is_error, id=next(ids), created_at=0.0)
            case "thinking":
                return Reasoning("\n".join(text_at(block, "text") for block in blocks), id=next(ids), created_at=0.0)
        return Message(role_of(message), [_part(_without_options(block)) for block in blocks], id=next(ids), created_at=0.0)

    def changed(self, blocks: list[Any], item: Item, form: Item) -> list[Any]:
        """Return the parts of an item as the view shows it."""
        if isinstance(form, FunctionCall):
            return [{**blocks[0], _input(blocks[0]): json.loads(form.arguments)}]
        if isinstance(form, FunctionCallOutput) and isinstance(item, FunctionCallOutput):
            return [_with_output(blocks[0], visible_blocks(_output(blocks[0]), item, form, _text_block))]
        if isinstance(form, Message) and isinstance(item, Message):
            return visible_blocks(blocks, item, form, _text_block)
        return []

    def user_message(self, text: str) -> Json:
        """Return a user message with this text."""
        return {"role": "user", "content": text}

    def result_message(self, output: FunctionCallOutput, message: Json) -> Json:  # noqa: ARG002 - the interface
        """Return a tool's message with the output of an interrupted call."""
        value = {"type": "error-text", "value": output.text}
        result = {"type": "tool-result", "toolCallId": output.call_id, "toolName": output.name, "output": value}
        return {"role": "tool", "content": [result]}

    def is_system(self, message: Json) -> bool:
        """True for a system prompt."""
        return message.get("role") == "system"


class VercelFormat(MessageFormat):
    """Messages of `generateText` and `streamText`."""

    adapter: ClassVar[VercelAdapter] = VercelAdapter()


def _text_block(text: str) -> Json:
    return {"type": "text", "text": text}


def _without_options(block: Any) -> Any:
    return {name: value for name, value in block.items() if name not in _OPTIONS} if isinstance(block, dict) else block


def _input(call: Json) -> str:
    return "args" if "args" in call and "input" not in call else "input"


def _output(result: Json) -> list[Any]:
    """Return the parts of a result: its content's, or one of text."""
    if "output" not in result:  # version 4
        return [_as_text(result.get("result"))]
    output = object_at(result, "output")
    if text_at(output, "type") == "content":
        return blocks_of(output.get("value"))
    return [_as_text(output.get("reason") if output.get("type") == _DENIED else output.get("value"))]


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else plain_json(value)


def _with_output(result: Json, blocks: Sequence[Any]) -> Json:
    text = "\n".join(block["text"] for block in blocks if text_at(block, "type") == "text")
    if "output" not in result:
        return {**result, "result": text}
    output = object_at(result, "output")
    kind = text_at(output, "type")
    if kind == "content":
        return {**result, "output": {**output, "value": blocks}}
    return {**result, "output": {"type": "error-text" if kind.startswith("error") or kind == _DENIED else "text", "value": text}}


def _part(block: Any) -> Part:
    """Return the part that a part of a message or of a result counts as."""
    if not isinstance(block, dict) or block.get("type") == "text":
        return plain_part(block)
    kind = text_at(block, "type")
    data = next((block[name] for name in ("image", "data", "url") if block.get(name)), None)
    if isinstance(data, dict):  # version 6: a file's data says what it is
        data = data.get("data") or data.get("url")
    if data is not None and kind.startswith(("image", "file", "media")):
        is_link = isinstance(data, str) and data.startswith(("data:", "http:", "https:"))
        content = data if is_link or isinstance(data, bytes) else bytes_of(data)
        media_type = text_at(block, "mediaType", "mimeType")
        part = media_part(content, media_type, [], kind="image" if kind.startswith("image") else "", title=text_at(block, "filename"))
        if part is not None:
            return part
    return plain_part(block)
