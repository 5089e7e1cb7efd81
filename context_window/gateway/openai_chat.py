"""OpenAI's Chat Completions API, as other providers and local servers speak it too."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from session.items import FunctionCall, FunctionCallOutput, Item, Message
from session.providers.additions import PREAMBLE
from session.providers.mended_items import CARRIED
from session.transcripts.values import objects_at, text_at

from ..integrations.content_parts import blocks_of, part_for, visible_content
from ..integrations.message_adapter import MessageAdapter
from .chat_recall import ChatJoinedAnswer
from .wire_format import ROLES, Json, RequestConversation, WireFormat, objects, tokens_in, tools_and_options

PATH = "/v1/chat/completions"
_INSTEAD_OF_CONTENT = ("refusal", "audio", "function_call")
"""Fields of an answer that may have no content."""


def openai_error(status: int, message: str) -> Json:
    """Return an error in the form that both of OpenAI's APIs use."""
    kind = "invalid_request_error" if status < 500 else "server_error"
    return {"error": {"message": message, "type": kind, "param": None, "code": None}}


class ChatAdapter(MessageAdapter[Json]):
    """Messages of Chat Completions. A response becomes its text and its calls."""

    id_field = "tool_call_id"
    roles = ("system", "developer", "user", "assistant", "tool", "function")

    def __init__(self) -> None:
        super().__init__({"role": "user", "content": PREAMBLE})

    def content_json(self, message: Json) -> str:
        """Return the message as JSON."""
        return json.dumps(message, sort_keys=True)

    def items(self, message: Json, ids: Iterator[str]) -> list[Item]:
        """Return the items of a message."""
        parts = [part_for(block) for block in blocks_of(message.get("content"))]
        if message.get("role") in ("tool", "function"):
            call_id = text_at(message, "tool_call_id" if message.get("tool_call_id") else "name")
            return [FunctionCallOutput("", parts, call_id, id=next(ids), created_at=0.0)]
        calls: list[Item] = [_call(call, ids) for call in objects_at(message, "tool_calls")]
        if calls and not any(getattr(part, "text", "x") for part in parts):
            return calls
        extra = {CARRIED: True} if any(map(message.get, _INSTEAD_OF_CONTENT)) else {}
        return [Message(ROLES.get(text_at(message, "role"), "user"), parts, extra=extra, id=next(ids), created_at=0.0), *calls]

    def partial_copy(self, message: Json, items: Sequence[Item], visible: Sequence[Item | None]) -> Json | None:
        """Return a copy that shows the visible items, or None if nothing is left."""
        copy = dict(message)
        calls: list[Json] = []
        forms = list(zip(items, visible, strict=True))
        for item, form in forms:
            if isinstance(item, Message | FunctionCallOutput):
                if form is None:
                    copy["content"] = None
                elif form is not item and isinstance(form, Message | FunctionCallOutput):
                    copy["content"] = visible_content(message.get("content"), item, form, _text_block)
        call_forms = [(item, form) for item, form in forms if isinstance(item, FunctionCall)]
        for call, (item, form) in zip(objects_at(message, "tool_calls"), call_forms, strict=True):
            if isinstance(form, FunctionCall):
                calls.append(call if form is item else _with_arguments(call, form.arguments))
        if call_forms and calls:
            copy["tool_calls"] = calls
        elif call_forms:
            copy.pop("tool_calls", None)
            if not copy.get("content"):
                return None
        return copy

    def merge_responses(self, earlier: Json, later: Json) -> Json:
        """Return two responses as one message."""
        blocks = [
            _text_block(block) if isinstance(block, str) else block for each in (earlier, later) for block in blocks_of(_content(each))
        ]
        merged = {**later, "content": blocks or None}
        if calls := [*objects_at(earlier, "tool_calls"), *objects_at(later, "tool_calls")]:
            merged["tool_calls"] = calls
        return merged

    def user_message(self, text: str) -> Json:
        """Return a user message with this text."""
        return {"role": "user", "content": text}

    def result_message(self, output: FunctionCallOutput, message: Json) -> Json:  # noqa: ARG002 - the interface
        """Return a tool's message with the output of an interrupted call."""
        return {"role": "tool", "tool_call_id": output.call_id, "content": output.text}

    def is_system(self, message: Json) -> bool:
        """True for a system prompt."""
        return message.get("role") in ("system", "developer")


def _content(message: Json) -> Any:
    return message.get("content") or None


def _call(call: Json, ids: Iterator[str]) -> FunctionCall:
    details = call.get("custom") if call.get("type") == "custom" else call.get("function")
    fields = details if isinstance(details, dict) else {}
    arguments = text_at(fields, "arguments", "input")
    return FunctionCall(text_at(fields, "name") or "tool", arguments, text_at(call, "id"), id=next(ids), created_at=0.0)


def _with_arguments(call: Json, arguments: str) -> Json:
    kind, name = ("custom", "input") if call.get("type") == "custom" else ("function", "arguments")
    return {**call, kind: {**call[kind], name: arguments}}


def _text_block(text: str) -> Json:
    return {"type": "text", "text": text}


class ChatWire(WireFormat):
    """Requests of `client.chat.completions`."""

    name: ClassVar[str] = "openai"
    upstream: ClassVar[str] = "https://api.openai.com"
    variables: ClassVar[Mapping[str, str]] = {"OPENAI_BASE_URL": "/v1", "OPENAI_API_BASE": "/v1"}
    adapter: ClassVar[ChatAdapter] = ChatAdapter()
    joined_answer: ClassVar[type[ChatJoinedAnswer]] = ChatJoinedAnswer
    field: ClassVar[str] = "messages"

    def conversation(self, path: str, body: Json) -> RequestConversation | None:
        """Return the conversation of a request for an answer."""
        model, messages = body.get("model"), objects(body.get("messages"))
        if path != PATH or not isinstance(model, str) or not messages:
            return None
        output_tokens = tokens_in(body, "max_completion_tokens", "max_tokens")
        return RequestConversation(model, "", messages, *tools_and_options(body), output_tokens)

    def error(self, status: int, message: str) -> Json:
        """Return an error in OpenAI's form."""
        return openai_error(status, message)
