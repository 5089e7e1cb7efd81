"""Parse the parts of Google's contents and the blocks of Bedrock's messages into pieces. Neither has a `type`: the field names tell it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from session.parts import Part, Text
from session.providers.pieces import GOOGLE, Call, Piece, Result, Thought

from .call_ids import UNKNOWN_TOOL
from .media import bytes_of, media_part
from .values import JsonObject, id_at, json_text, list_at, object_at, text_at

ResultParts: TypeAlias = Callable[[object, list[str]], tuple[Part, ...]]

_GOOGLE = {
    "functionCall": ("functionCall", "function_call", "toolCall", "tool_call"),
    "functionResponse": ("functionResponse", "function_response", "toolResponse", "tool_response"),
    "inlineData": ("inlineData", "inline_data"),
    "fileData": ("fileData", "file_data"),
    "executableCode": ("executableCode", "executable_code"),
    "codeExecutionResult": ("codeExecutionResult", "code_execution_result"),
}
"""The fields of Google's parts in all their spellings. Tools that the provider runs have names of their own."""
_BEDROCK = ("toolUse", "toolResult", "reasoningContent", "image", "document", "video", "json", "cachePoint")
_NAMES = ("text", *(name for names in _GOOGLE.values() for name in names), *_BEDROCK)


def is_block(value: JsonObject) -> bool:
    """True if the object can be one of these parts or blocks."""
    return any(name in value for name in _NAMES)


def piece_of(block: JsonObject, reasons: list[str], result_parts: ResultParts) -> list[Piece]:
    """Return the pieces of a part or block. `result_parts` reads what a tool result of Bedrock's holds."""
    for kind, names in _GOOGLE.items():
        for name in names:
            if isinstance(value := block.get(name), dict):
                return _google(kind, name, value, block, reasons, result_parts)
    if isinstance(text := block.get("text"), str):
        return _text(text, block)
    for name in _BEDROCK:
        if name in block:
            return _bedrock(name, object_at(block, name), block, reasons, result_parts)
    if signature := _signature(block):
        return [Thought(signature=signature, provider=GOOGLE)]
    reasons.append("left out a block of an unknown kind")
    return []


def _signature(block: JsonObject) -> str:
    return text_at(block, "thoughtSignature", "thought_signature")


def _text(text: str, block: JsonObject) -> list[Piece]:
    signature = _signature(block)
    if block.get("thought") is True:
        return [Thought(text, signature or None, provider=GOOGLE)]
    texts: list[Piece] = [Text(text)] if text or not signature else []
    return [*texts, Thought(signature=signature, provider=GOOGLE)] if signature else texts


def _google(kind: str, name: str, value: JsonObject, block: JsonObject, reasons: list[str], result_parts: ResultParts) -> list[Piece]:
    tool = text_at(value, "name", "tool_type", "toolType") or UNKNOWN_TOOL
    call_id = id_at(value, "id") or tool  # ids are optional: without one, a response answers the first call of its name
    metadata = {"thought_signature": signature} if (signature := _signature(block)) else {}
    match kind:
        case "functionCall":
            if not name.startswith("function"):
                metadata["type"] = "server_tool_use"
            return [Call(call_id, tool, value.get("args"), metadata)]
        case "functionResponse":
            response = value.get("response")
            members = (part for part in list_at(value, "parts") if isinstance(part, dict))
            media = tuple(piece for part in members for piece in _parts_only(piece_of(part, reasons, result_parts)))
            is_error = isinstance(response, dict) and "error" in response
            return [Result(call_id, (Text(_response_text(response)), *media), is_error, "" if tool == UNKNOWN_TOOL else tool)]
        case "executableCode":
            return [Call("code_execution", "code_execution", json_text(value), {**metadata, "type": "server_tool_use"})]
        case "codeExecutionResult":
            is_error = text_at(value, "outcome") not in ("", "OUTCOME_OK")
            return [Result("code_execution", (Text(text_at(value, "output")),), is_error, "code_execution")]
    media_type = text_at(value, "mimeType", "mime_type")
    data: bytes | str | None = text_at(value, "fileUri", "file_uri") if kind == "fileData" else bytes_of(value.get("data"))
    part = media_part(data, media_type, reasons, title=text_at(value, "displayName", "display_name"))
    return [] if part is None else [part]


def _parts_only(google_pieces: list[Piece]) -> list[Part]:
    return [piece for piece in google_pieces if isinstance(piece, Part)]


def _response_text(response: object) -> str:
    """Return a function's response as text: the value that the object wraps, else the object as JSON."""
    if isinstance(response, dict) and len(response) == 1:
        value = next(iter(response.values()))
        if isinstance(value, str) and next(iter(response)) in ("output", "result", "error"):
            return value
    return json_text(response)


def _bedrock(name: str, value: JsonObject, block: JsonObject, reasons: list[str], result_parts: ResultParts) -> list[Piece]:
    match name:
        case "toolUse":
            metadata = {"type": kind} if (kind := text_at(value, "type")) else {}
            tool = text_at(value, "name") or UNKNOWN_TOOL
            return [Call(id_at(value, "toolUseId"), tool, value.get("input"), metadata)]
        case "toolResult":
            parts = result_parts(value.get("content"), reasons)
            return [Result(id_at(value, "toolUseId"), parts, value.get("status") == "error")]
        case "reasoningContent":
            reasoning = object_at(value, "reasoningText")
            if reasoning:
                return [Thought(text_at(reasoning, "text"), text_at(reasoning, "signature") or None)]
            return [Thought(data=text_at(value, "redactedContent") or None)]
        case "json":
            return [Text(json_text(block.get("json")))]
        case "cachePoint":
            return []
    source = object_at(value, "source")
    data: bytes | str | None = text_at(source, "url") or text_at(object_at(source, "s3Location"), "uri")
    if not data:
        data = source["text"].encode("utf-8", "replace") if isinstance(source.get("text"), str) else bytes_of(source.get("bytes"))  # type: ignore[attr-defined]  # checked to be a str
    form = text_at(value, "format") or "*"
    media_type = {"image": f"image/{form}", "video": f"video/{form}"}.get(name) or {"txt": "text/plain"}.get(form, f"application/{form}")
    part = media_part(data, media_type, reasons, kind="image" if name == "image" else "document", title=text_at(value, "name"))
    return [] if part is None else [part]
