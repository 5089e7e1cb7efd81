"""Google's generateContent and streamGenerateContent. Calls may have no ids: a response then answers the first call of its name."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from session.items import FunctionCall, FunctionCallOutput, Item, Message, Reasoning
from session.providers.additions import PREAMBLE
from session.providers.google.signatures import DUMMY
from session.transcripts.values import json_text, text_at

from ..integrations.content_parts import part_for, visible_content
from .block_adapter import BlockAdapter, Kind
from .google_recall import GoogleJoinedAnswer
from .wire_format import Json, RequestConversation, WireFormat, objects, text_of, tokens_in, tools_and_options

_PATH = re.compile(r"/v1(?:beta|alpha)?/models/([^/:]+):(?:generateContent|streamGenerateContent)")
_STATUSES = {400: "INVALID_ARGUMENT", 403: "PERMISSION_DENIED", 404: "NOT_FOUND", 413: "INVALID_ARGUMENT"}
CALL = ("functionCall", "function_call")
RESPONSE = ("functionResponse", "function_response")
_SIGNATURE = ("thoughtSignature", "thought_signature")


class GoogleAdapter(BlockAdapter):
    """Contents of Google's API."""

    field = "parts"
    roles = ("user", "model", "function", None)

    def __init__(self) -> None:
        super().__init__({"role": "user", "parts": [{"text": PREAMBLE}]})

    def content_json(self, message: Json) -> str:
        """Return the content as JSON."""
        return json.dumps([message.get("role"), message.get("parts")], sort_keys=True)

    def blocks(self, message: Json) -> list[Any]:
        """Return the parts."""
        return parts_of(message)

    def kind(self, block: Any, message: Json) -> Kind:
        """Return the kind of a part, which only the right role can send."""
        is_model = message.get("role") == "model"
        if is_model and object_in(block, CALL) is not None:
            return "call"
        if is_model and isinstance(block, dict) and block.get("thought") is True:
            return "thinking"
        return "result" if not is_model and object_in(block, RESPONSE) is not None else "text"

    def item(self, kind: Kind, blocks: list[Any], message: Json, ids: Iterator[str]) -> Item:
        """Return the item of a content's run."""
        match kind:
            case "call":
                call = object_in(blocks[0], CALL) or {}
                name, arguments = text_at(call, "name") or "tool", json_text(call.get("args") or {})
                return FunctionCall(name, arguments, text_at(call, "id"), id=next(ids), created_at=0.0)
            case "result":
                response = object_in(blocks[0], RESPONSE) or {}
                content = [part_for(part) for part in (_response_text(response), *_media(response))]
                return FunctionCallOutput(text_at(response, "name"), content, text_at(response, "id"), id=next(ids), created_at=0.0)
            case "thinking":
                return Reasoning("\n".join(text_at(part, "text") for part in blocks), id=next(ids), created_at=0.0)
        role = "assistant" if message.get("role") == "model" else "user"
        return Message(role, [part_for(_unsigned(part)) for part in blocks], id=next(ids), created_at=0.0)  # type: ignore[arg-type]

    def changed(self, blocks: list[Any], item: Item, form: Item) -> list[Any]:
        """Return the parts of an item as the view shows it. A changed call gets the signature for calls that another made."""
        if isinstance(form, FunctionCall):
            return [
                {
                    **_unsigned(blocks[0]),
                    _key(blocks[0], CALL): {**(object_in(blocks[0], CALL) or {}), "args": json.loads(form.arguments)},
                    **_dummy(blocks[0]),
                }
            ]
        if isinstance(form, FunctionCallOutput) and isinstance(item, FunctionCallOutput):
            response = object_in(blocks[0], RESPONSE) or {}
            content = [_response_text(response), *_media(response)]
            visible = visible_content(content, item, form, str)
            texts = [visible] if isinstance(visible, str) else [block for block in visible if isinstance(block, str)]
            media = [] if isinstance(visible, str) else [block for block in visible if not isinstance(block, str)]
            changed = {**response, "response": {"output": "\n".join(texts)}, **({"parts": media} if media else {})}
            if not media:
                changed.pop("parts", None)
            return [{**blocks[0], _key(blocks[0], RESPONSE): changed}]
        if isinstance(form, Message) and isinstance(item, Message):
            visible = visible_content([_unsigned(part) for part in blocks], item, form, lambda text: {"text": text})
            return [{"text": visible}] if isinstance(visible, str) else list(visible)
        return []

    def user_message(self, text: str) -> Json:
        """Return a user's content with this text."""
        return {"role": "user", "parts": [{"text": text}]}

    def result_message(self, output: FunctionCallOutput, message: Json) -> Json:
        """Return a user's content with the output of an interrupted call. It has an id if the call has one."""
        calls = [call for part in parts_of(message) if (call := object_in(part, CALL)) is not None]
        id = {"id": output.call_id} if any(call.get("id") == output.call_id for call in calls) else {}
        response = {**id, "name": output.name, "response": {"error": output.text}}
        return {"role": "user", "parts": [{"functionResponse": response}]}

    def is_system(self, message: Json) -> bool:  # noqa: ARG002 - the interface
        """Return False: the system prompt stands outside the contents."""
        return False


def parts_of(content: Json) -> list[Any]:
    """Return the parts of a content."""
    parts = content.get("parts")
    return parts if isinstance(parts, list) else [] if parts is None else [parts]


def object_in(part: Any, names: Sequence[str]) -> Json | None:
    """Return the object under one of these names; None if there is none."""
    return next((part[name] for name in names if isinstance(part.get(name), dict)), None) if isinstance(part, dict) else None


def _key(part: Json, names: Sequence[str]) -> str:
    return next(name for name in names if isinstance(part.get(name), dict))


def _unsigned(part: Any) -> Any:
    return {name: value for name, value in part.items() if name not in _SIGNATURE} if isinstance(part, dict) else part


def _dummy(part: Json) -> Json:
    return {name: DUMMY for name in _SIGNATURE if name in part}


def _response_text(response: Json) -> str:
    content = response.get("response")
    return json_text(content) if isinstance(content, dict | list) else text_at(response, "response")


def _media(response: Json) -> list[Any]:
    parts = response.get("parts")
    return parts if isinstance(parts, list) else []


class GoogleWire(WireFormat):
    """Requests of `client.models.generate_content`."""

    name: ClassVar[str] = "google"
    upstream: ClassVar[str] = "https://generativelanguage.googleapis.com"
    variables: ClassVar[Mapping[str, str]] = {"GOOGLE_GEMINI_BASE_URL": ""}
    adapter: ClassVar[GoogleAdapter] = GoogleAdapter()
    joined_answer: ClassVar[type[GoogleJoinedAnswer]] = GoogleJoinedAnswer
    field: ClassVar[str] = "contents"

    def conversation(self, path: str, body: Json) -> RequestConversation | None:
        """Return the conversation of a request for an answer. One that a cached content precedes is not managed."""
        match, contents = _PATH.fullmatch(path), objects(body.get("contents"))
        if match is None or not contents or body.get("cachedContent") or body.get("cached_content"):
            return None
        system = body.get("systemInstruction") or body.get("system_instruction")
        config = body.get("generationConfig") or body.get("generation_config")
        prompt = text_of(system.get("parts")) if isinstance(system, dict) else ""
        output_tokens = tokens_in(config, "maxOutputTokens", "max_output_tokens") if isinstance(config, dict) else None
        return RequestConversation(match[1], prompt, contents, *tools_and_options(body), output_tokens)

    def in_order(self, body: Json, messages: Sequence[Json]) -> list[Json]:  # noqa: ARG002 - the interface
        """Return the contents with roles that alternate."""
        return self.adapter.alternating(messages)

    def error(self, status: int, message: str) -> Json:
        """Return an error in Google's form."""
        return {"error": {"code": status, "message": message, "status": _STATUSES.get(status, "INTERNAL")}}
