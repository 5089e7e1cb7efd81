"""Parse the content of a message in any provider's style into pieces. Nothing is refused: problems become reasons of the record.

Anthropic's blocks go to the converter's parser. OpenAI's parts and Inspect's are parsed here, Google's parts and Bedrock's blocks in
`block_parser_google.py`. `writer.py` turns the pieces into items.
"""

from __future__ import annotations

from dataclasses import replace

from session.errors import FormatError, short
from session.parts import Document, Part, Text
from session.providers.anthropic.blocks import ran_call, ran_result
from session.providers.anthropic.parse import parse_block, parse_call
from session.providers.pieces import OPENAI, Piece, Result, Thought

from . import block_parser_google
from .call_ids import UNKNOWN_TOOL
from .media import bytes_of, damaged, media_part
from .values import JsonObject, json_text, object_at, text_at


def pieces_of(content: object, reasons: list[str]) -> list[Piece]:
    """Return the pieces of a content: a text, a block, or a list of both.

    Args:
        content: The content as the file has it.
        reasons: Gets a sentence for everything that is left out.
    """
    if content is None:
        return []
    blocks = content if isinstance(content, list) else [content]
    return [piece for block in blocks for piece in piece_of(block, reasons)]


def parts_of(content: object, reasons: list[str]) -> tuple[Part, ...]:
    """Return the parts of a content, without its thoughts, calls and results."""
    return tuple(piece for piece in pieces_of(content, reasons) if isinstance(piece, Part))


def piece_of(block: object, reasons: list[str]) -> list[Piece]:
    """Return the pieces of a block: usually one, none if the model does not see the block."""
    if isinstance(block, str):
        return [Text(block)]
    if not isinstance(block, dict):
        reasons.append(f"left out a block of unknown form: a {type(block).__name__}")
        return []
    kind = block.get("type")
    if not isinstance(kind, str):
        return block_parser_google.piece_of(block, reasons, result_parts)
    if is_result(kind):
        return [_result(block, reasons)]
    piece: Piece | None
    if is_call(kind):
        call = parse_call(block, "", _ignore)
        call_id, name = call.id or text_at(block, "tool_use_id"), call.name or UNKNOWN_TOOL
        piece = replace(call, id=call_id, name=name, metadata={**call.metadata, **ran_call(block)})
    elif kind in ("thinking", "redacted_thinking"):
        piece = parse_block(block, "", _ignore)
    elif kind == "reasoning":  # Inspect's; OpenAI's own is not part of a message
        piece = _inspect_reasoning(block)
    else:
        piece = _part(block, kind, reasons)
    return [] if piece is None else [piece]


def is_call(kind: object) -> bool:
    """True for the type of a block that calls a tool of the client or of the provider."""
    return isinstance(kind, str) and (kind == "tool_use" or kind.endswith("_tool_use"))


def is_result(kind: object) -> bool:
    """True for the type of a block that holds a tool result."""
    return isinstance(kind, str) and (kind == "tool_result" or kind.endswith("_tool_result"))


def result_parts(content: object, reasons: list[str]) -> tuple[Part, ...]:
    """Return the parts of a tool result. Anything that is neither a text nor a block is shown as JSON."""
    if content is None:
        return ()
    if isinstance(content, list) and all(isinstance(block, str) or (isinstance(block, dict) and _is_block(block)) for block in content):
        return parts_of(content, reasons)
    if isinstance(content, dict) and _is_block(content):
        return result_parts([content], reasons)
    return (Text(text_or_json(content)),)


_RESULT_BLOCK_TYPES = frozenset(
    [
        *("text", "input_text", "output_text", "image", "input_image", "image_url", "document", "document_url", "file", "input_file"),
        *("audio", "input_audio", "refusal", "tool_reference", "search_result", "web_search_result", "web_fetch_result"),
    ]
)
"""The types of blocks that a tool result can be made of."""


def _is_block(value: JsonObject) -> bool:
    kind = value.get("type")
    return kind in _RESULT_BLOCK_TYPES if isinstance(kind, str) else block_parser_google.is_block(value)


def text_or_json(value: object) -> str:
    """Return a text unchanged, `{}` for a missing value, anything else as compact JSON."""
    return value if isinstance(value, str) else json_text({} if value is None else value)


def _result(block: JsonObject, reasons: list[str]) -> Result:
    content = block.get("content")
    is_object = isinstance(content, dict) and content.get("type") not in ("text", "image", "document")
    is_own = block.get("type") == "tool_result" and not is_object
    parts = result_parts(content, reasons) if is_own else server_result_parts(content, reasons)
    call_id, is_error = text_at(block, "tool_use_id", "id"), block.get("is_error") is True
    return Result(call_id, parts, is_error, text_at(block, "name"), ran_result(block, parts))


def server_result_parts(content: object, reasons: list[str]) -> tuple[Part, ...]:
    """Return the parts of the result of a tool that ran at the provider: of an object its text, or all that anyone can read."""
    if isinstance(content, dict) and content.get("type") not in ("text", "image", "document"):
        return (Text(text_at(content, "text") or json_text(without_secrets(content))),)
    return parts_of(content, reasons)


def without_secrets(value: JsonObject) -> JsonObject:
    """Return the object without the fields that only the provider can decrypt."""
    return {name: member for name, member in value.items() if not name.startswith("encrypted_")}


def _ignore(where: str, problem: str) -> None:
    """Report nothing: a missing field of a call or a thought counts as empty."""


def _inspect_reasoning(block: JsonObject) -> Thought:
    text = text_at(block, "reasoning", "text")
    if block.get("redacted") is True:
        return Thought(text_at(block, "summary"), data=text, provider=OPENAI)
    return Thought(text, text_at(block, "signature") or None)


def _part(block: JsonObject, kind: str, reasons: list[str]) -> Part | None:
    match kind:
        case "text" | "input_text" | "output_text" | "summary_text" | "reasoning_text":
            return Text(text_at(block, "text"))
        case "refusal":
            return Text(text_at(block, "refusal"))
        case "image_url" | "input_image":
            return _linked(block, "image_url", "image", reasons)
        case "image" if isinstance(block.get("image"), str):
            return _linked(block, "image", "image", reasons)
        case "image" | "audio" if isinstance(block.get("data"), str):  # the Model Context Protocol's form
            return media_part(bytes_of(block["data"]), text_at(block, "mimeType") or f"{kind}/*", reasons)
        case "document" if isinstance(block.get("document"), str):
            return _linked(block, "document", "document", reasons)
        case "document_url":
            return _linked(block, "document_url", "document", reasons)
        case "image" | "document":
            return _anthropic_media(block, kind, reasons)
        case "file" | "input_file":
            return _file(object_at(block, "file") or block, reasons)
        case "input_audio" | "audio" | "input_video":
            media = object_at(block, kind) or block
            form = text_at(media, "format") or "*"
            return media_part(bytes_of(media.get("data")), f"{kind.removeprefix('input_')}/{form}", reasons)
        case "container_upload":
            return media_part(None, "", reasons, kind="document", file_id=text_at(block, "file_id"))
        case "tool_reference":
            return Text(text_at(block, "tool_name", "name"))
        case "search_result" | "web_search_result" | "web_fetch_result":
            return Text(json_text({name: value for name, value in block.items() if name != "encrypted_content"}))
        case "tool_addition" | "additional_tools":
            reasons.append("left out tools that are added here; they are among the tools of the request")
            return None
    reasons.append(f"left out a block of unknown type {short(kind)}")
    return None


def _anthropic_media(block: JsonObject, kind: str, reasons: list[str]) -> Part | None:
    try:
        part = parse_block(block, "", _ignore)
    except FormatError as error:
        reasons.append(f"left out the {kind}: {error}")
        return None
    is_text = isinstance(part, Document) and part.text is not None
    is_readable = is_text or any(getattr(part, name) for name in ("data", "url", "file_id"))
    return part if is_readable and isinstance(part, Part) else damaged(kind, reasons)


def _linked(block: JsonObject, name: str, kind: str, reasons: list[str]) -> Part | None:
    """Return an image or document from its URL, which may hold the data itself."""
    link = block.get(name)
    holder = link if isinstance(link, dict) else block
    url = text_at(link, "url") if isinstance(link, dict) else link if isinstance(link, str) else ""
    return media_part(
        url, text_at(block, "mime_type"), reasons, kind=kind, file_id=text_at(block, "file_id"), detail=text_at(holder, "detail")
    )


def _file(file: JsonObject, reasons: list[str]) -> Part | None:
    link = text_at(file, "file_data", "file_url")
    data = link if not link or link.startswith(("data:", "http:", "https:")) else bytes_of(link)
    title = text_at(file, "filename", "name")
    return media_part(data, text_at(file, "mime_type"), reasons, kind="document", file_id=text_at(file, "file_id"), title=title)
