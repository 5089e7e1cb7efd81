"""The parts of Google's contents and the blocks of Bedrock's messages, as pieces. Neither has a `type`: the field says what it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from session.parts import Part, Text

from . import pieces
from .feeding import UNKNOWN_TOOL
from .media import bytes_of, media_part
from .values import JsonObject, id_at, json_text, list_at, object_at, text_at

if TYPE_CHECKING:
    from .pieces import Piece

_GOOGLE = {
    "functionCall": ("functionCall", "function_call", "toolCall", "tool_call"),
    "functionResponse": ("functionResponse", "function_response", "toolResponse", "tool_response"),
    "inlineData": ("inlineData", "inline_data"),
    "fileData": ("fileData", "file_data"),
    "executableCode": ("executableCode", "executable_code"),
    "codeExecutionResult": ("codeExecutionResult", "code_execution_result"),
}
"""The fields that parts have, in both spellings and with the server's own tools."""
_BEDROCK = ("toolUse", "toolResult", "reasoningContent", "image", "document", "video", "json", "cachePoint")
_NAMES = ("text", *(name for names in _GOOGLE.values() for name in names), *_BEDROCK)


def is_block(value: JsonObject) -> bool:
    """Whether the object can be one of these parts or blocks."""
    return any(name in value for name in _NAMES)


def piece_of(block: JsonObject, notes: list[str]) -> list[Piece]:
    """The pieces that a part or block is."""
    for kind, names in _GOOGLE.items():
        for name in names:
            if isinstance(given := block.get(name), dict):
                return _google(kind, name, given, block, notes)
    if isinstance(text := block.get("text"), str):
        return _text(text, block)
    for name in _BEDROCK:
        if name in block:
            return _bedrock(name, object_at(block, name), block, notes)
    if signature := _signature(block):
        return [pieces.Thought(signature=signature, provider=pieces.GOOGLE)]
    notes.append("left out a block of an unknown kind")
    return []


def _signature(block: JsonObject) -> str:
    return text_at(block, "thoughtSignature", "thought_signature")


def _text(text: str, block: JsonObject) -> list[Piece]:
    signature = _signature(block)
    if block.get("thought") is True:
        return [pieces.Thought(text, signature or None, provider=pieces.GOOGLE)]
    said: list[Piece] = [Text(text)] if text or not signature else []
    return [*said, pieces.Thought(signature=signature, provider=pieces.GOOGLE)] if signature else said


def _google(kind: str, name: str, given: JsonObject, block: JsonObject, notes: list[str]) -> list[Piece]:
    tool = text_at(given, "name", "tool_type", "toolType") or UNKNOWN_TOOL
    own_id = id_at(given, "id") or tool  # Google's ids are optional: without one, a response is for the first call of its name
    metadata = {"thought_signature": signature} if (signature := _signature(block)) else {}
    match kind:
        case "functionCall":
            if not name.startswith("function"):
                metadata["type"] = "server_tool_use"
            return [pieces.Call(own_id, tool, pieces.arguments_text(given.get("args")), metadata)]
        case "functionResponse":
            answer = given.get("response")
            media = tuple(
                piece for part in list_at(given, "parts") if isinstance(part, dict) for piece in _media_only(piece_of(part, notes))
            )
            error = isinstance(answer, dict) and "error" in answer
            return [pieces.Result(own_id, (Text(_answered(answer)), *media), error, "" if tool == UNKNOWN_TOOL else tool)]
        case "executableCode":
            return [pieces.Call("code_execution", "code_execution", json_text(given), {**metadata, "type": "server_tool_use"})]
        case "codeExecutionResult":
            failed = text_at(given, "outcome") not in ("", "OUTCOME_OK")
            return [pieces.Result("code_execution", (Text(text_at(given, "output")),), failed, "code_execution")]
    media_type = text_at(given, "mimeType", "mime_type")
    data: bytes | str | None = text_at(given, "fileUri", "file_uri") if kind == "fileData" else bytes_of(given.get("data"))
    part = media_part(data, media_type, notes, title=text_at(given, "displayName", "display_name"))
    return [] if part is None else [part]


def _media_only(found: list[Piece]) -> list[Part]:
    return [piece for piece in found if not isinstance(piece, pieces.Thought | pieces.Call | pieces.Result)]


def _answered(answer: object) -> str:
    """A function's response as text: the one that a plain value was wrapped in, or the object as JSON."""
    if isinstance(answer, dict) and len(answer) == 1:
        value = next(iter(answer.values()))
        if isinstance(value, str) and next(iter(answer)) in ("output", "result", "error"):
            return value
    return json_text(answer)


def _bedrock(name: str, given: JsonObject, block: JsonObject, notes: list[str]) -> list[Piece]:
    match name:
        case "toolUse":
            metadata = {"type": kind} if (kind := text_at(given, "type")) else {}
            tool = text_at(given, "name") or UNKNOWN_TOOL
            return [pieces.Call(id_at(given, "toolUseId"), tool, pieces.arguments_text(given.get("input")), metadata)]
        case "toolResult":
            parts = pieces.shown_parts(given.get("content"), notes)
            return [pieces.Result(id_at(given, "toolUseId"), parts, given.get("status") == "error")]
        case "reasoningContent":
            told = object_at(given, "reasoningText")
            if told:
                return [pieces.Thought(text_at(told, "text"), text_at(told, "signature") or None)]
            return [pieces.Thought(data=text_at(given, "redactedContent") or None)]
        case "json":
            return [Text(json_text(block.get("json")))]
        case "cachePoint":
            return []
    source = object_at(given, "source")
    data: bytes | str | None = text_at(source, "url") or text_at(object_at(source, "s3Location"), "uri")
    if not data:
        data = source["text"].encode("utf-8", "replace") if isinstance(source.get("text"), str) else bytes_of(source.get("bytes"))  # type: ignore[attr-defined]  # a str, as just asked
    form = text_at(given, "format") or "*"
    media_type = {"image": f"image/{form}", "video": f"video/{form}"}.get(name) or {"txt": "text/plain"}.get(form, f"application/{form}")
    part = media_part(data, media_type, notes, kind="image" if name == "image" else "document", title=text_at(given, "name"))
    return [] if part is None else [part]
