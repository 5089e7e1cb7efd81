"""Parse Anthropic's content blocks into pieces, for `from_anthropic` and for the readers of transcripts.

The parser is lenient: it reports each problem with its place and continues with the remaining data. `from_anthropic` passes `refuse`
as the report, which raises. The readers handle roles, ids and the order of items. They also read tool results, each in its own way.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from session.errors import short
from session.parts import Document, Image, Part, Text
from session.providers.parsing import Report, expect_base64, expect_list, expect_object, expect_text
from session.providers.pieces import Call, Thought

SOURCE_FIELDS = {"base64": "data", "url": "url", "file": "file_id"}
"""The types of a source of bytes, and the field that each one holds."""

_READING = ("message", "fallback_message")
"""Types of iterations in which the model that answers read the conversation."""
_PROMPT = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


def last_prompt(usage: Mapping[str, Any]) -> int:
    """Return the tokens of the last prompt in a usage report, if the model read several for one answer; 0 otherwise.

    The prompts of advisors, which are other models, and of compactions do not count.
    """
    iterations = usage.get("iterations")
    read = [
        each for each in (iterations if isinstance(iterations, list) else ()) if isinstance(each, dict) and each.get("type") in _READING
    ]
    counts = [read[-1].get(name) for name in _PROMPT] if len(read) > 1 else []
    return sum(count for count in counts if type(count) is int and count > 0)


def parse_block(block: Mapping[str, Any], where: str, report: Report) -> Part | Thought | Call | None:
    """Return the piece that a block holds, or None if its type has none."""
    match block.get("type"):
        case "text":
            return Text(expect_text(block.get("text"), f"{where}.text", report))
        case "image":
            return Image(**_source(block, where, report))
        case "document":
            return _document(block, where, report)
        case "thinking":
            text = _optional_text(block, "thinking", where, report) or ""
            return Thought(text, _optional_text(block, "signature", where, report))
        case "redacted_thinking":
            return Thought(data=expect_text(block.get("data"), f"{where}.data", report))
        case "tool_use":
            return parse_call(block, where, report)
    return None


def parse_call(block: Mapping[str, Any], where: str, report: Report) -> Call:
    """Return the call in a `tool_use` block, or in one of the same shape for a tool that runs at the provider."""
    name, call_id = (expect_text(block.get(key), f"{where}.{key}", report) for key in ("name", "id"))
    metadata = {} if block["type"] == "tool_use" else {"type": block["type"]}
    return Call(call_id, name, block.get("input", {}), metadata)


def _document(block: Mapping[str, Any], where: str, report: Report) -> Document:
    title = _optional_text(block, "title", where, report)
    source = expect_object(block.get("source"), f"{where}.source", report)
    if source.get("type") == "text":
        return Document(text=expect_text(source.get("data"), f"{where}.source.data", report), media_type="text/plain", title=title)
    if source.get("type") == "content":
        return Document(text=_content_text(source.get("content"), f"{where}.source.content", report), title=title)
    return Document(**_source(block, where, report), title=title)


def _content_text(content: object, where: str, report: Report) -> str:
    """Return the text of a document that is given as blocks."""
    if isinstance(content, str):
        return content
    texts: list[str] = []
    for place, member in expect_list(content, where, report):
        block = {"type": "text", "text": member} if isinstance(member, str) else expect_object(member, place, report)
        if block.get("type") == "text":
            texts.append(expect_text(block.get("text"), f"{place}.text", report))
    return "\n".join(texts)


def _source(block: Mapping[str, Any], where: str, report: Report) -> dict[str, Any]:
    """Return the arguments of `Image` or `Document` for the source of a block."""
    where = f"{where}.source"
    source = expect_object(block.get("source"), where, report)
    kind = source.get("type")
    if kind not in ("base64", "url", "file"):  # a tuple: the type may be unhashable
        report(f"{where}.type", f"{short(kind)} is no source of {block['type']}s")
        kind = next((name for name, key in SOURCE_FIELDS.items() if source.get(key)), "base64")
    key = SOURCE_FIELDS[kind]
    if kind != "base64":
        return {key: expect_text(source.get(key), f"{where}.{key}", report)}
    data = expect_base64(source.get("data"), f"{where}.data", report)
    return {"data": data, "media_type": expect_text(source.get("media_type"), f"{where}.media_type", report) or None}


def _optional_text(block: Mapping[str, Any], name: str, where: str, report: Report) -> str | None:
    """Return the text of a field, or None if it is missing, null or empty."""
    value = block.get(name)
    return None if value is None else expect_text(value, f"{where}.{name}", report) or None
