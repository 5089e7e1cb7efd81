"""A message's content in any provider's style, as pieces: parts, thoughts, calls and results. Anthropic's blocks, OpenAI's parts
and Inspect's are read here, Google's and Bedrock's in `pieces_google.py`. Which item a piece becomes, `writer.py` decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from session.parts import Document, Image, Part, Text

from . import pieces_google
from .blocks import is_call, is_result, part_of, parts_of
from .feeding import UNKNOWN_TOOL
from .media import bytes_of, media_part
from .values import JsonObject, id_at, json_text, object_at, text_at

OPENAI, GOOGLE = "openai", "google"
"""Whose reasoning it is, in `extra["provider"]`. Anthropic's has none."""


@dataclass(frozen=True, slots=True)
class Thought:
    """What the model thought, in the fields of `Reasoning`; `provider` is empty for Anthropic's."""

    text: str = ""
    signature: str | None = None
    data: str | None = None
    provider: str = ""


@dataclass(frozen=True, slots=True)
class Call:
    """A call. `id` is empty where the source has none."""

    id: str
    name: str
    arguments: str
    metadata: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Result:
    """What a tool answered. `call_id` and `name` are empty where the source has none."""

    call_id: str
    parts: tuple[Part, ...]
    is_error: bool = False
    name: str = ""


Piece: TypeAlias = Part | Thought | Call | Result


def pieces_of(content: object, notes: list[str]) -> list[Piece]:
    """The pieces of a content: a text, a block, or a list of both.

    Args:
        content: As it stands in the file.
        notes: Gets a sentence for everything that could not be taken over.
    """
    if content is None:
        return []
    blocks = content if isinstance(content, list) else [content]
    return [piece for block in blocks for piece in piece_of(block, notes)]


def piece_of(block: object, notes: list[str]) -> list[Piece]:
    """The pieces that a block is: mostly one; none for what the model is shown in no such way."""
    if isinstance(block, str):
        return [Text(block)]
    if not isinstance(block, dict):
        notes.append(f"left out a block that is a {type(block).__name__}")
        return []
    kind = block.get("type")
    if not isinstance(kind, str):
        return pieces_google.piece_of(block, notes)
    if kind == "tool_use" or is_call(kind):
        return [_call(block, kind)]
    if is_result(kind):
        return [_result(block, notes)]
    thought = _thought(block, kind)
    if thought is not None:
        return [thought]
    part = _part(block, kind, notes)
    return [] if part is None else [part]


def shown_parts(content: object, notes: list[str]) -> tuple[Part, ...]:
    """The parts of what a tool answered; what is neither text nor block is shown as JSON."""
    if content is None:
        return ()
    if isinstance(content, list) and all(isinstance(block, str) or (isinstance(block, dict) and _is_block(block)) for block in content):
        return tuple(piece for piece in pieces_of(content, notes) if isinstance(piece, Text | Image | Document))
    if isinstance(content, dict) and _is_block(content):
        return shown_parts([content], notes)
    return (Text(content if isinstance(content, str) else json_text(content)),)


_SHOWN = frozenset(
    [
        *("text", "input_text", "output_text", "image", "input_image", "image_url", "document", "document_url", "file", "input_file"),
        *("audio", "input_audio", "refusal", "tool_reference", "search_result", "web_search_result", "web_fetch_result"),
    ]
)
"""The types of blocks that a tool's answer can be made of."""


def _is_block(value: JsonObject) -> bool:
    kind = value.get("type")
    return kind in _SHOWN if isinstance(kind, str) else pieces_google.is_block(value)


def _call(block: JsonObject, kind: str) -> Call:
    metadata = {} if kind == "tool_use" else {"type": kind}
    return Call(id_at(block, "id", "tool_use_id"), text_at(block, "name") or UNKNOWN_TOOL, arguments_text(block.get("input")), metadata)


def arguments_text(given: object) -> str:
    """The arguments of a call as the JSON text that the model wrote."""
    return given if isinstance(given, str) else json_text({} if given is None else given)


def _result(block: JsonObject, notes: list[str]) -> Result:
    content = block.get("content")
    if isinstance(content, dict) and content.get("type") not in ("text", "image", "document"):
        parts: tuple[Part, ...] = (Text(json_text(without_secrets(content))),)
    elif block.get("type") == "tool_result":
        parts = shown_parts(content, notes)
    else:
        parts = parts_of(content, notes)
    return Result(id_at(block, "tool_use_id", "id"), parts, block.get("is_error") is True, text_at(block, "name"))


def without_secrets(value: JsonObject) -> JsonObject:
    """The object without what is encrypted for the provider's own eyes."""
    return {name: member for name, member in value.items() if not name.startswith("encrypted_")}


def _thought(block: JsonObject, kind: str) -> Thought | None:
    if kind == "thinking":
        return Thought(text_at(block, "thinking"), text_at(block, "signature") or None)
    if kind == "redacted_thinking":
        return Thought(data=text_at(block, "data"))
    if kind == "reasoning":  # Inspect's; OpenAI's own stand beside the messages, not in them
        text = text_at(block, "reasoning", "text")
        if block.get("redacted") is True:
            return Thought(text_at(block, "summary"), data=text, provider=OPENAI)
        return Thought(text, text_at(block, "signature") or None)
    return None


def _part(block: JsonObject, kind: str, notes: list[str]) -> Part | None:
    match kind:
        case "input_text" | "output_text" | "summary_text" | "reasoning_text":
            return Text(text_at(block, "text"))
        case "refusal":
            return Text(text_at(block, "refusal"))
        case "image_url" | "input_image":
            return _linked(block, "image_url", "image", notes)
        case "image" if isinstance(block.get("image"), str):
            return _linked(block, "image", "image", notes)
        case "image" | "audio" if isinstance(block.get("data"), str):  # as the Model Context Protocol has them
            return media_part(bytes_of(block["data"]), text_at(block, "mimeType") or f"{kind}/*", notes)
        case "document" if isinstance(block.get("document"), str):
            return _linked(block, "document", "document", notes)
        case "document_url":
            return _linked(block, "document_url", "document", notes)
        case "file" | "input_file":
            return _file(object_at(block, "file") or block, notes)
        case "input_audio" | "audio" | "input_video":
            given = object_at(block, kind) or block
            form = text_at(given, "format") or "*"
            return media_part(bytes_of(given.get("data")), f"{kind.removeprefix('input_')}/{form}", notes)
        case "container_upload":
            return media_part(None, "", notes, kind="document", file_id=text_at(block, "file_id"))
        case "tool_addition" | "additional_tools":
            notes.append("left out tools that are added here; they are among the tools of the request")
            return None
    return part_of(block, notes)


def _linked(block: JsonObject, name: str, kind: str, notes: list[str]) -> Part | None:
    """An image or document by its URL, which may hold the data itself."""
    given = block.get(name)
    holder = given if isinstance(given, dict) else block
    url = text_at(given, "url") if isinstance(given, dict) else given if isinstance(given, str) else ""
    return media_part(
        url, text_at(block, "mime_type"), notes, kind=kind, file_id=text_at(block, "file_id"), detail=text_at(holder, "detail")
    )


def _file(given: JsonObject, notes: list[str]) -> Part | None:
    link = text_at(given, "file_data", "file_url")
    data = link if not link or link.startswith(("data:", "http:", "https:")) else bytes_of(link)
    title = text_at(given, "filename", "name")
    return media_part(data, text_at(given, "mime_type"), notes, kind="document", file_id=text_at(given, "file_id"), title=title)
