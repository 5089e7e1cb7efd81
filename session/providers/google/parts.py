"""Images, documents and texts as Gemini's parts. What Gemini does not take becomes a note: a text in its place."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

from session.images import MAX_SIDE
from session.parts import Document, Image, Part
from session.printable import short_name
from session.providers.media import SHOWN, Inline, Link, Note, Source, Upload, document_source, image_source, note, unknown_format
from session.providers.shrinking import within

WirePart: TypeAlias = dict[str, Any]

IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"})
"""What Gemini takes as images."""
RESPONSE_TYPES = frozenset({"image/png", "image/jpeg", "image/webp", "application/pdf"})
"""What it takes inside a function response (multimodal function responses, Gemini 3 and later)."""
IMAGE_ENCODED = 7 * 1024 * 1024
"""Characters of an image's base64: what Google's cloud takes inline. A larger image is made smaller."""
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
"""By suffix of an address: the media type. Python's own table is another one on every machine."""
FILES = "https://generativelanguage.googleapis.com/v1beta/"
"""What makes the address of an uploaded file of its name, "files/…"."""


def text_part(text: str) -> WirePart:
    """A part of text."""
    return {"text": text}


def plain_text(part: Part) -> str:
    """What is said of a part where only text may stand."""
    return note(part).text if isinstance(part, Image) or part.text is None else part.text


def plain(parts: Iterable[Part]) -> Iterator[WirePart]:
    """Parts of text, for where Gemini takes nothing else; blank ones are left out."""
    for part in parts:
        text = plain_text(part)
        if text.strip():
            yield text_part(text)


def rich(parts: Iterable[Part]) -> Iterator[WirePart]:
    """Parts for where Gemini takes images and documents too; blank texts are left out."""
    for part in parts:
        if isinstance(part, Image | Document):
            if isinstance(part, Image) or part.text is None or part.text.strip():
                yield medium(part)
        elif part.text.strip():
            yield text_part(part.text)


def medium(part: Image | Document) -> WirePart:
    """The image or document as `inline_data` or `file_data`; a note where Gemini cannot take it."""
    source = _image(part) if isinstance(part, Image) else _document(part)
    if isinstance(source, Note):
        return text_part(source.text)
    if isinstance(source, Inline):
        return {"inline_data": {"mime_type": source.media_type, "data": source.base64}}
    return _file(source.url if isinstance(source, Link) else FILES + source.file_id, part.media_type)


def response_media(part: Image | Document) -> WirePart | str:
    """The image or document for inside a function response; a text where it is one, or cannot stand there, such as an address."""
    wire = medium(part)
    if "inline_data" in wire:
        if wire["inline_data"]["mime_type"] == "text/plain":
            return base64.b64decode(wire["inline_data"]["data"]).decode()
        return wire if wire["inline_data"]["mime_type"] in RESPONSE_TYPES else note(part).text
    what = "image" if isinstance(part, Image) else "document"
    return str(wire["text"]) if "text" in wire else f"[{what} at {short_name(wire['file_data']['file_uri'], SHOWN)}]"


def _image(image: Image) -> Source:
    source = _in_storage(image.url) or image_source(image)
    if isinstance(source, Inline):
        if source.media_type not in IMAGE_TYPES:
            return unknown_format(source.media_type)
        return within(source, side=MAX_SIDE, encoded=IMAGE_ENCODED)
    return _reachable(source, "image")


def _document(document: Document) -> Source:
    source = _in_storage(document.url) or document_source(document)
    if not isinstance(source, Inline):
        return _reachable(source, "document")
    kind = source.media_type or ""
    if kind == "application/pdf" or kind.startswith(("audio/", "video/")):
        return source
    text = source.text  # it goes as UTF-8; what is declared as a text may be in any encoding
    return note(document) if text is None or not text.strip() else Inline(text.encode(), "text/plain")


def _in_storage(url: str | None) -> Link | None:
    """An address in Google's cloud storage, which only Gemini can fetch from."""
    return Link(url) if url is not None and url[:5].lower() == "gs://" else None


def _reachable(source: Source, what: str) -> Source:
    """The source; a note for a file that another provider holds."""
    if isinstance(source, Upload) and not source.file_id.startswith("files/"):
        return Note(f"[{what} out of reach: {short_name(source.file_id, SHOWN)}]")
    return source


def _file(uri: str, declared: str | None) -> WirePart:
    """`file_data`, with its media type where it was declared or the address ends in a suffix that tells it."""
    kind = declared or SUFFIXES.get(uri.partition("?")[0].rpartition(".")[2].lower())
    return {"file_data": {"file_uri": uri, **({"mime_type": kind} if kind else {})}}
