"""Write texts, images and documents as Gemini's parts. A note, which is a text, replaces content that Gemini does not take."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

from session.images import MAX_SIDE
from session.parts import Document, Image, Part
from session.printable import short_name
from session.providers.media import (
    NAME_LENGTH,
    Inline,
    Link,
    Note,
    Source,
    Upload,
    document_source,
    image_source,
    note,
    shrunk_to_fit,
    unknown_format,
)

GooglePart: TypeAlias = dict[str, Any]

IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"})
"""The image types that Gemini takes."""
RESPONSE_TYPES = frozenset({"image/png", "image/jpeg", "image/webp", "application/pdf"})
"""The media types that it takes inside a function response (multimodal function responses, Gemini 3 and later)."""
IMAGE_ENCODED = 7 * 1024 * 1024
"""Maximum characters of an image's base64: the inline limit of Google's cloud. A larger image is shrunk."""
SUFFIXES = {
    "png": "image/png",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "webp": "image/webp",
    "heic": "image/heic",
    "heif": "image/heif",
    "pdf": "application/pdf",
    "txt": "text/plain",
}
"""The media type for each suffix of a URL. Python's own table differs from machine to machine."""
FILES = "https://generativelanguage.googleapis.com/v1beta/"
"""Precedes the name of an uploaded file, "files/…", in its URL."""


def text_part(text: str) -> GooglePart:
    """Return a text part."""
    return {"text": text}


def plain_text(part: Part) -> str:
    """Return the text to send for a part where only text is allowed."""
    return note(part).text if isinstance(part, Image) or part.text is None else part.text


def plain(parts: Iterable[Part]) -> Iterator[GooglePart]:
    """Yield text parts where Gemini takes only text, without blank ones."""
    for part in parts:
        text = plain_text(part)
        if text.strip():
            yield text_part(text)


def google_parts(parts: Iterable[Part]) -> Iterator[GooglePart]:
    """Yield parts where Gemini takes images and documents too, without blank texts."""
    for part in parts:
        if isinstance(part, Image | Document):
            if isinstance(part, Image) or part.text is None or part.text.strip():
                yield medium(part)
        elif part.text.strip():
            yield text_part(part.text)


def medium(part: Image | Document) -> GooglePart:
    """Return an image or a document as `inline_data` or `file_data`, or a note if Gemini cannot take it."""
    source = _image(part) if isinstance(part, Image) else _document(part)
    if isinstance(source, Note):
        return text_part(source.text)
    if isinstance(source, Inline):
        return {"inline_data": {"mime_type": source.media_type, "data": source.base64}}
    return _file(source.url if isinstance(source, Link) else FILES + source.file_id, part.media_type)


def response_media(part: Image | Document) -> GooglePart | str:
    """Return an image or a document for the inside of a function response.

    Plain text is returned as a string, and so is a note for anything that is not allowed there, such as a URL.
    """
    wire = medium(part)
    if "inline_data" in wire:
        if wire["inline_data"]["mime_type"] == "text/plain":
            return base64.b64decode(wire["inline_data"]["data"]).decode()
        return wire if wire["inline_data"]["mime_type"] in RESPONSE_TYPES else note(part).text
    label = "image" if isinstance(part, Image) else "document"
    return str(wire["text"]) if "text" in wire else f"[{label} at {short_name(wire['file_data']['file_uri'], NAME_LENGTH)}]"


def _image(image: Image) -> Source:
    source = _in_storage(image.url) or image_source(image)
    if isinstance(source, Inline):
        if source.media_type not in IMAGE_TYPES:
            return unknown_format(source.media_type)
        return shrunk_to_fit(source, side=MAX_SIDE, encoded=IMAGE_ENCODED)
    return _reachable(source, "image")


def _document(document: Document) -> Source:
    source = _in_storage(document.url) or document_source(document)
    if not isinstance(source, Inline):
        return _reachable(source, "document")
    kind = source.media_type or ""
    if kind == "application/pdf" or kind.startswith(("audio/", "video/")):
        return source
    text = source.text  # sent as UTF-8; a declared text may have any encoding
    return note(document) if text is None or not text.strip() else Inline(text.encode(), "text/plain")


def _in_storage(url: str | None) -> Link | None:
    """Return the link for a URL in Google's cloud storage, which only Gemini can fetch, else None."""
    return Link(url) if url is not None and url[:5].lower() == "gs://" else None


def _reachable(source: Source, label: str) -> Source:
    """Return the source, or a note for a file that another provider holds."""
    if isinstance(source, Upload) and not source.file_id.startswith("files/"):
        return Note(f"[{label} out of reach: {short_name(source.file_id, NAME_LENGTH)}]")
    return source


def _file(uri: str, declared: str | None) -> GooglePart:
    """Return `file_data`, with the media type that was declared or that the suffix of the URL shows."""
    kind = declared or SUFFIXES.get(uri.partition("?")[0].rpartition(".")[2].lower())
    return {"file_data": {"file_uri": uri, **({"mime_type": kind} if kind else {})}}
