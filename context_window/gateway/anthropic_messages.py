"""Anthropic's Messages API, with its token count."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from session.items import FunctionCall, FunctionCallOutput, Item, Message, Reasoning
from session.providers.additions import PREAMBLE
from session.providers.anthropic.thinking_order import with_thinking_in_order
from session.transcripts.values import json_text, text_at

from ..integrations.content_parts import blocks_of, part_for, thought_in, visible_blocks, visible_content, with_text_blocks
from .anthropic_recall import AnthropicJoinedAnswer
from .block_adapter import BlockAdapter, Kind, role_of
from .cache_marks import without_mark
from .wire_format import Json, RequestConversation, WireFormat, objects, text_of, tokens_in, tools_and_options

PATHS = ("/v1/messages", "/v1/messages/count_tokens")
_VOLATILE = "x-anthropic-billing-header:"
"""Begins a block of the system prompt in which Claude Code sends figures that differ between requests. It is not part of the prompt."""
_ERROR_TYPES = {
    400: "invalid_request_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
}


def _system_text(system: object) -> str:
    blocks = system if isinstance(system, list) else [system]
    return text_of([block for block in blocks if not text_of([block]).startswith(_VOLATILE)])


class AnthropicAdapter(BlockAdapter):
    """Messages of Anthropic's API. Blocks of tools that run at the provider count as text: they stay together with what the model says."""

    field = "content"
    id_field = "tool_use_id"
    are_ids_unique = True
    roles = ("user", "assistant", "system")

    def __init__(self) -> None:
        super().__init__({"role": "user", "content": PREAMBLE})

    def content_json(self, message: Json) -> str:
        """Return the message as JSON. A text, and a single block of text with or without a cache mark, are equal."""
        return json.dumps([message.get("role"), [without_mark(block) for block in self.blocks(message)]], sort_keys=True)

    def blocks(self, message: Json) -> list[Any]:
        """Return the blocks of a message. A text is a block, too."""
        return with_text_blocks(message.get("content"), _text_block)

    def kind(self, block: Any, message: Json) -> Kind:
        """Return the kind of a block, which only the right role can send."""
        kind, role = block.get("type") if isinstance(block, dict) else None, message.get("role")
        if role == "assistant" and kind == "tool_use":
            return "call"
        if role == "assistant" and thought_in(block) is not None:
            return "thinking"
        return "result" if role == "user" and kind == "tool_result" else "text"

    def item(self, kind: Kind, blocks: list[Any], message: Json, ids: Iterator[str]) -> Item:
        """Return the item of a message's run."""
        match kind:
            case "call":
                (call,) = blocks
                arguments = json_text(call.get("input") or {})
                return FunctionCall(text_at(call, "name") or "tool", arguments, text_at(call, "id"), id=next(ids), created_at=0.0)
            case "result":
                (result,) = blocks
                parts = [part_for(block) for block in blocks_of(result.get("content"))]
                is_error = result.get("is_error") is True
                return FunctionCallOutput("", parts, text_at(result, "tool_use_id"), is_error=is_error, id=next(ids), created_at=0.0)
            case "thinking":
                thoughts = [thought for block in blocks if (thought := thought_in(block)) is not None]
                text = "\n".join(thought.text for thought in thoughts if thought.text)
                data = "".join(thought.data or "" for thought in thoughts)
                signature = "".join(thought.signature or "" for thought in thoughts if not thought.text)
                return Reasoning(text, signature or None, data or None, id=next(ids), created_at=0.0)
        return Message(role_of(message), [part_for(without_mark(block)) for block in blocks], id=next(ids), created_at=0.0)

    def changed(self, blocks: list[Any], item: Item, form: Item) -> list[Any]:
        """Return the blocks of an item as the view shows it."""
        if isinstance(form, FunctionCall):
            return [{**without_mark(blocks[0]), "input": json.loads(form.arguments)}]
        if isinstance(form, FunctionCallOutput) and isinstance(item, FunctionCallOutput):
            return [{**without_mark(blocks[0]), "content": visible_content(blocks[0].get("content"), item, form, _text_block)}]
        if isinstance(form, Message) and isinstance(item, Message):
            return visible_blocks(blocks, item, form, _text_block)
        return []

    def user_message(self, text: str) -> Json:
        """Return a user message with this text."""
        return {"role": "user", "content": text}

    def result_message(self, output: FunctionCallOutput, message: Json) -> Json:  # noqa: ARG002 - the interface
        """Return a user message with the output of an interrupted call."""
        result = {"type": "tool_result", "tool_use_id": output.call_id, "content": output.text, "is_error": True}
        return {"role": "user", "content": [result]}

    def is_system(self, message: Json) -> bool:
        """True for a system message among the others."""
        return message.get("role") == "system"


def _text_block(text: str) -> Json:
    return {"type": "text", "text": text}


class AnthropicWire(WireFormat):
    """Requests of `client.messages`."""

    name: ClassVar[str] = "anthropic"
    upstream: ClassVar[str] = "https://api.anthropic.com"
    variables: ClassVar[Mapping[str, str]] = {"ANTHROPIC_BASE_URL": ""}
    adapter: ClassVar[AnthropicAdapter] = AnthropicAdapter()
    joined_answer: ClassVar[type[AnthropicJoinedAnswer]] = AnthropicJoinedAnswer
    field: ClassVar[str] = "messages"

    def conversation(self, path: str, body: Json) -> RequestConversation | None:
        """Return the conversation of a request for an answer, or for a token count."""
        model, messages = body.get("model"), objects(body.get("messages"))
        if path not in PATHS or not isinstance(model, str) or not messages:
            return None
        system, output_tokens = _system_text(body.get("system")), tokens_in(body, "max_tokens")
        return RequestConversation(model, system, messages, *tools_and_options(body), output_tokens)

    def in_order(self, body: Json, messages: Sequence[Json]) -> list[Json]:
        """Return the messages with roles that alternate, and thinking where the request's setting wants it."""
        return with_thinking_in_order(self.adapter.alternating(messages), body.get("thinking"))

    def error(self, status: int, message: str) -> Json:
        """Return an error in Anthropic's form."""
        return {"type": "error", "error": {"type": _ERROR_TYPES.get(status, "api_error"), "message": message}}
