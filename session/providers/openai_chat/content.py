"""Turn the parts of an item into texts, images, files and sounds within the limits of both OpenAI APIs.

Each API's `write.py` turns these into its own JSON, and tool calls too. The limits are those of the published API definition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from session.items import parts_of_item
from session.parts import Detail, Document, Image, Part
from session.printable import short_name
from session.providers.media import Inline, Link, Note, document_source, image_source, note, shrunk_to_fit, unknown_format
from session.session import Session

UNSAFE = r"[^a-zA-Z0-9_-]"
"""A pattern for the characters that a tool's name may not have. Call ids avoid them too."""
STRING_LENGTH = 10_485_760
"""Maximum characters of one string (O2). A longer text is sent as several parts, so nothing of it is lost."""
IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
IMAGE_SIDE = 100_000
"""Maximum side of an image, in pixels. OpenAI documents none: it scales large images down itself. No `Image` has a longer side."""
IMAGE_ENCODED = STRING_LENGTH - 40
"""Maximum characters of an image's base64: together with the head of its data URL it is one string (O2)."""
FILE_ENCODED = 32 * 1024 * 1024
"""Maximum characters of a file's base64. The limit of strings does not apply to files; they have this limit of their own."""
TITLE_LENGTH = 200
_OFFICE = "application/vnd.openxmlformats-officedocument."
FILE_NAMES = {
    "application/pdf": "document.pdf",
    "application/msword": "document.doc",
    f"{_OFFICE}wordprocessingml.document": "document.docx",
    f"{_OFFICE}presentationml.presentation": "document.pptx",
    f"{_OFFICE}spreadsheetml.sheet": "document.xlsx",
}
"""The media types that are sent as files, each with the name of a document without a title: a file must have a name."""
SOUND_FORMATS = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/mp3": "mp3", "audio/mpeg": "mp3"}
"""The media types that Chat Completions takes as sound, each with its format name."""

TOO_LONG = '{"arguments": "[arguments too long to send]"}'
"""Replaces arguments that exceed the limit of strings: they cannot be sent in parts, and half a JSON text is not JSON."""


@dataclass(frozen=True, slots=True)
class WireText:
    """A text."""

    text: str


@dataclass(frozen=True, slots=True)
class WireImage:
    """An image: a URL (http, or a data URL), or a file that the provider holds."""

    url: str | None = None
    file_id: str | None = None
    detail: Detail | None = None


@dataclass(frozen=True, slots=True)
class WireFile:
    """A document: a data URL with a name, a URL, or a file that the provider holds."""

    data: str | None = None
    url: str | None = None
    file_id: str | None = None
    name: str | None = None
    media_type: str | None = None
    replacement: str = ""
    """The text to send if the API does not take this source or media type."""


@dataclass(frozen=True, slots=True)
class WireSound:
    """A recording, as base64, and its format."""

    data: str
    format: str
    replacement: str = ""
    """The text to send if the API does not take sounds."""


WirePart: TypeAlias = WireText | WireImage | WireFile | WireSound


def wire_parts(parts: Iterable[Part]) -> Iterator[WirePart]:
    """Yield the parts to send where images and files are allowed. A note replaces a part that cannot be sent."""
    for part in parts:
        if isinstance(part, Image):
            yield _image(part)
        elif isinstance(part, Document):
            yield from _document(part)
        else:
            yield from map(WireText, _split(part.text))


def wire_texts(parts: Iterable[Part]) -> Iterator[str]:
    """Yield the texts to send where only text is allowed."""
    for part in parts:
        if isinstance(part, Image):
            yield note(part).text
        elif isinstance(part, Document):
            yield from _split(_with_title(part, part.text)) if part.text is not None else (note(part).text,)
        else:
            yield from _split(part.text)


def arguments_text(arguments: str) -> str:
    """Return the arguments to send: `{}` for a blank text, otherwise what the model wrote. The APIs take any text, even broken JSON."""
    if not arguments.strip():
        return "{}"
    return arguments if len(arguments) <= STRING_LENGTH else TOO_LONG


def media_in(
    contents: Iterable[object], session: Session, block_of: Callable[[WirePart], Mapping[str, Any]]
) -> dict[tuple[int, ...], Image | Document]:
    """Return the images and documents in a request by their places: (message, part of its content), each counted from 0.

    `block_of` returns what the API gets for a part. A part is recognised by that, so of two equal images either may be returned.
    """
    parts = [part for item in session.items for part in parts_of_item(item) if isinstance(part, Image | Document)]
    blocks = [(block, part) for part in parts for block in map(block_of, wire_parts([part])) if "text" not in block]
    places: dict[tuple[int, ...], Image | Document] = {}
    for number, content in enumerate(contents):
        for index, block in enumerate(content if isinstance(content, list) else ()):
            if (medium := next((part for sent_block, part in blocks if sent_block == block), None)) is not None:
                places[number, index] = medium
    return places


def title_of(name: str | None, media_type: str | None) -> str | None:
    """Return the title of a document from its file name; None for the name that untitled documents get."""
    return None if name == FILE_NAMES.get(media_type or "") else name


def _split(text: str) -> Iterator[str]:
    if len(text) <= STRING_LENGTH:
        yield text
    else:
        yield from (text[at : at + STRING_LENGTH] for at in range(0, len(text), STRING_LENGTH))


def _image(image: Image) -> WirePart:
    source = image_source(image)
    if isinstance(source, Inline) and source.media_type not in IMAGE_TYPES:
        source = unknown_format(source.media_type)
    if isinstance(source, Inline):
        source = shrunk_to_fit(source, side=IMAGE_SIDE, encoded=IMAGE_ENCODED)
    if isinstance(source, Link) and len(source.url) > STRING_LENGTH:
        source = note(image)
    if isinstance(source, Note):
        return WireText(source.text)
    if isinstance(source, Inline):
        return WireImage(url=f"data:{source.media_type};base64,{source.base64}", detail=image.detail)
    if isinstance(source, Link):
        return WireImage(url=source.url, detail=image.detail)
    return WireImage(file_id=source.file_id, detail=image.detail)


def _document(document: Document) -> Iterator[WirePart]:
    replacement = note(document).text
    source = document_source(document)
    if isinstance(source, Note):
        yield WireText(source.text)
    elif isinstance(source, Link):
        is_short = len(source.url) <= STRING_LENGTH
        yield WireFile(url=source.url, replacement=replacement) if is_short else WireText(replacement)
    elif not isinstance(source, Inline):
        yield WireFile(file_id=source.file_id, replacement=replacement)
    elif source.media_type in SOUND_FORMATS:
        yield WireSound(source.base64, SOUND_FORMATS[source.media_type], replacement)
    elif source.media_type in FILE_NAMES:
        data = f"data:{source.media_type};base64,{source.base64}"
        if len(data) > FILE_ENCODED:
            yield WireText(f"[document too large to send: {len(source.data)} bytes]")
        else:
            title = document.title if document.title and document.title.strip() else FILE_NAMES[source.media_type]
            yield WireFile(data=data, name=title[:TITLE_LENGTH], media_type=source.media_type, replacement=replacement)
    elif (text := source.text) is not None:
        yield from map(WireText, _split(_with_title(document, text)))
    else:
        yield WireText(replacement)


def _with_title(document: Document, text: str) -> str:
    """Return the text of a plain-text document, after a line with its title."""
    return f"[document: {short_name(document.title, TITLE_LENGTH)}]\n{text}" if document.title and document.title.strip() else text
