"""The content blocks of Anthropic's messages, turned into parts. Roles, ids and order are the business of `lines.py`."""

from __future__ import annotations

from session.errors import FormatError, short
from session.parts import Document, Image, Part, Text

from .media import bytes_of
from .values import JsonObject, json_text, object_at, text_at


def parts_of(content: object, notes: list[str]) -> tuple[Part, ...]:
    """The parts of a content: a text, or a list of blocks.

    Args:
        content: As it stands in the file.
        notes: Gets a sentence for everything that could not be taken over.
    """
    if isinstance(content, str):
        return (Text(content),)
    if isinstance(content, dict):
        content = [content]
    if not isinstance(content, list):
        return ()
    return tuple(part for block in content if (part := part_of(block, notes)) is not None)


def part_of(block: object, notes: list[str]) -> Part | None:
    """The part that a block is; None for blocks that are shown in no such way."""
    if isinstance(block, str):
        return Text(block)
    if not isinstance(block, dict):
        notes.append(f"left out a block that is a {type(block).__name__}")
        return None
    kind = block.get("type")
    match kind:
        case "text":
            return Text(text_at(block, "text"))
        case "image" | "document":
            return _media(block, str(kind), notes)
        case "tool_reference":
            return Text(text_at(block, "tool_name", "name"))
        case "search_result" | "web_search_result" | "web_fetch_result":
            return Text(json_text({name: value for name, value in block.items() if name != "encrypted_content"}))
    notes.append(f"left out a block of unknown type {short(kind)}")
    return None


def _media(block: JsonObject, kind: str, notes: list[str]) -> Part | None:
    source = object_at(block, "source")
    media_type = text_at(source, "media_type") or None
    title = text_at(block, "title") or None
    if kind == "document" and source.get("type") == "text":
        return Document(text=text_at(source, "data"), media_type=media_type, title=title)
    url, file_id, data = text_at(source, "url") or None, text_at(source, "file_id") or None, None
    if url is None and file_id is None:
        data = bytes_of(source.get("data"))
        if data is None:
            notes.append(f"the data of {'an image' if kind == 'image' else 'a document'} is damaged")
            return Text(f"[{kind}: its data is damaged in the transcript]")
    try:
        if kind == "image":
            return Image(data=data, url=url, file_id=file_id, media_type=media_type)
        return Document(data=data, url=url, file_id=file_id, media_type=media_type, title=title)
    except FormatError as error:
        notes.append(f"left out the {kind}: {error}")
        return None


def image_of(data: object, media_type: str, notes: list[str]) -> Part | None:
    """The image with this base64 text."""
    return _media({"source": {"data": data, "media_type": media_type}}, "image", notes)


def media_of(url: str, media_type: str, notes: list[str], *, title: str = "", image: bool = False) -> Part | None:
    """The image or document that a URL names or, as a `data:` URL, holds.

    Args:
        url: Of any kind. One of a local file is left out: it says nothing on another machine.
        media_type: For example `image/png`; may be empty.
        notes: Gets a sentence where it could not be taken over.
        title: Of a document; may be empty.
        image: Whether it is one, whatever its type says.
    """
    source: JsonObject = {"media_type": media_type, "url": url}
    if url.startswith("data:"):
        head, _, data = url.partition(",")
        source = {"media_type": media_type or head[5:].partition(";")[0], "data": data}
    elif not url.startswith(("http://", "https://", "gs://")):
        notes.append("left out a file that the log names and does not hold")
        return None
    found = media_type or text_at(source, "media_type")
    is_image = image or found.startswith("image/")
    return _media({"source": source, "title": title}, "image" if is_image else "document", notes)


def is_call(kind: object) -> bool:
    """Whether a block of this type is a call: the client's `tool_use`, or one that the server runs itself."""
    return isinstance(kind, str) and (kind == "tool_use" or kind.endswith("_tool_use"))


def is_result(kind: object) -> bool:
    """Whether a block of this type answers a call."""
    return isinstance(kind, str) and (kind == "tool_result" or kind.endswith("_tool_result"))
