"""What both OpenAI APIs are sent of an item's content: texts, pictures, files and sounds within the limits of both.

Which words an API has for them is in each one's `write.py`, and so are calls. Limits are of the published API definition.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from session.parts import DETAILS, Detail, Document, Image, Part
from session.printable import short_name
from session.providers.media import Inline, Link, Note, document_source, image_source, note, unknown_format
from session.providers.shrinking import within

__all__ = [
    "DETAILS",
    "IMAGE_TYPES",
    "SOUNDS",
    "STRING_LENGTH",
    "UNSAFE",
    "UNTITLED",
    "File",
    "Picture",
    "Piece",
    "Said",
    "Sound",
    "arguments_text",
    "pieces",
    "texts",
    "title_of",
]

UNSAFE = r"[^a-zA-Z0-9_-]"
"""Characters that no name of a tool may have, and that are kept out of call ids too."""
STRING_LENGTH = 10_485_760
"""Characters of one string (O2). A longer text is sent as several parts, so nothing of it is lost."""
IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
IMAGE_SIDE = 100_000
"""Pixels. None is documented: what is large is scaled down by the provider. More than this no `Image` has."""
IMAGE_ENCODED = STRING_LENGTH - 40
"""Characters of an image's base64: with the head of its data URL it is one string (O2)."""
FILE_ENCODED = 32 * 1024 * 1024
"""Characters of a file's base64. Files are exempt from the limit of strings, but not without one of their own."""
TITLE_LENGTH = 200
_OFFICE = "application/vnd.openxmlformats-officedocument."
UNTITLED = {
    "application/pdf": "document.pdf",
    "application/msword": "document.doc",
    f"{_OFFICE}wordprocessingml.document": "document.docx",
    f"{_OFFICE}presentationml.presentation": "document.pptx",
    f"{_OFFICE}spreadsheetml.sheet": "document.xlsx",
}
"""By media type of what is sent as a file: its name where the document has no title, for it needs one."""
SOUNDS = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/mp3": "mp3", "audio/mpeg": "mp3"}
"""By media type: what Chat Completions takes as sound."""

TOO_LONG = '{"arguments": "[arguments too long to send]"}'
"""In place of arguments longer than a string may be: they cannot be sent in parts, and half a JSON text is none."""


@dataclass(frozen=True, slots=True)
class Said:
    """A text."""

    text: str


@dataclass(frozen=True, slots=True)
class Picture:
    """An image, as an address (http, or a data URL) or as a file that the provider holds."""

    url: str | None = None
    file_id: str | None = None
    detail: Detail | None = None


@dataclass(frozen=True, slots=True)
class File:
    """A document: a data URL with a name, an address, or a file that the provider holds."""

    data: str | None = None
    url: str | None = None
    file_id: str | None = None
    name: str | None = None
    media_type: str | None = None
    instead: str = ""
    """The text for where this source, or this type, is not taken."""


@dataclass(frozen=True, slots=True)
class Sound:
    """A recording, as base64, and its format."""

    data: str
    format: str
    instead: str = ""
    """The text for where sounds are not taken."""


Piece: TypeAlias = Said | Picture | File | Sound


def pieces(parts: Iterable[Part]) -> Iterator[Piece]:
    """What is sent of these parts, where images and files may stand. What cannot be sent is a text that says so."""
    for part in parts:
        if isinstance(part, Image):
            yield _picture(part)
        elif isinstance(part, Document):
            yield from _document(part)
        else:
            yield from map(Said, _split(part.text))


def texts(parts: Iterable[Part]) -> Iterator[str]:
    """What is sent of these parts where only text may stand."""
    for part in parts:
        if isinstance(part, Image):
            yield note(part).text
        elif isinstance(part, Document):
            yield from _split(_titled(part, part.text)) if part.text is not None else (note(part).text,)
        else:
            yield from _split(part.text)


def arguments_text(arguments: str) -> str:
    """The arguments as they are sent: as the model wrote them, even where that is no JSON, for the APIs take any text; `{}` for
    a blank one."""
    if not arguments.strip():
        return "{}"
    return arguments if len(arguments) <= STRING_LENGTH else TOO_LONG


def title_of(name: str | None, media_type: str | None) -> str | None:
    """The title of a document that was sent with this name."""
    return None if name == UNTITLED.get(media_type or "") else name


def _split(text: str) -> Iterator[str]:
    if len(text) <= STRING_LENGTH:
        yield text
    else:
        yield from (text[at : at + STRING_LENGTH] for at in range(0, len(text), STRING_LENGTH))


def _picture(image: Image) -> Piece:
    source = image_source(image)
    if isinstance(source, Inline) and source.media_type not in IMAGE_TYPES:
        source = unknown_format(source.media_type)
    if isinstance(source, Inline):
        source = within(source, side=IMAGE_SIDE, encoded=IMAGE_ENCODED)
    if isinstance(source, Link) and len(source.url) > STRING_LENGTH:
        source = note(image)
    if isinstance(source, Note):
        return Said(source.text)
    if isinstance(source, Inline):
        return Picture(url=f"data:{source.media_type};base64,{source.base64}", detail=image.detail)
    if isinstance(source, Link):
        return Picture(url=source.url, detail=image.detail)
    return Picture(file_id=source.file_id, detail=image.detail)


def _document(document: Document) -> Iterator[Piece]:
    instead = note(document).text
    source = document_source(document)
    if isinstance(source, Note):
        yield Said(source.text)
    elif isinstance(source, Link):
        yield File(url=source.url, instead=instead) if len(source.url) <= STRING_LENGTH else Said(instead)
    elif not isinstance(source, Inline):
        yield File(file_id=source.file_id, instead=instead)
    elif source.media_type in SOUNDS:
        yield Sound(source.base64, SOUNDS[source.media_type], instead)
    elif source.media_type in UNTITLED:
        data = f"data:{source.media_type};base64,{source.base64}"
        if len(data) > FILE_ENCODED:
            yield Said(f"[document too large to send: {len(source.data)} bytes]")
        else:
            title = document.title if document.title and document.title.strip() else UNTITLED[source.media_type]
            yield File(data=data, name=title[:TITLE_LENGTH], media_type=source.media_type, instead=instead)
    elif (text := source.text) is not None:
        yield from map(Said, _split(_titled(document, text)))
    else:
        yield Said(instead)


def _titled(document: Document, text: str) -> str:
    """A plain-text document is a text; its title, which the model is to see, stands before it."""
    return f"[document: {short_name(document.title, TITLE_LENGTH)}]\n{text}" if document.title and document.title.strip() else text
