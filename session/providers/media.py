"""Where the bytes of an image or a document are to come from, once they are wanted on the wire.

Formats are told by their first bytes; pixels are never decoded. What cannot be sent becomes a `Note`: a text in its place.
"""

from __future__ import annotations

import base64
import binascii
import os
import stat
from dataclasses import dataclass, field
from typing import TypeAlias
from urllib.parse import unquote_to_bytes

from session.images import image_size
from session.parts import Document, Image
from session.printable import short_name

MAX_FILE = 32 * 1024 * 1024
"""Bytes. A larger file is in no provider's limits, so it is not read."""

_SIZED = {"image/png", "image/jpeg", "image/gif", "image/webp"}
"""Formats whose header must tell the size in pixels."""

SHOWN = 200
"""Characters of a path or title that a note repeats."""


_HEIF = {
    **dict.fromkeys((b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx"), "image/heic"),
    **dict.fromkeys((b"mif1", b"msf1", b"heif"), "image/heif"),
}
"""By brand of the file's first box: the media type."""


@dataclass(frozen=True, slots=True)
class Inline:
    """Bytes to be sent along; the media type as the bytes tell it, else as it was declared, else None."""

    data: bytes = field(repr=False)
    media_type: str | None

    @property
    def base64(self) -> str:
        """The bytes as base64."""
        return base64.b64encode(self.data).decode("ascii")

    @property
    def text(self) -> str | None:
        """The text of a document that is text: declared as one, or valid UTF-8 all the same; else None."""
        if self.media_type is not None and self.media_type.startswith("text/"):
            return self.data.decode("utf-8", "replace")
        try:
            return self.data.decode("utf-8")
        except UnicodeDecodeError:
            return None


@dataclass(frozen=True, slots=True)
class Link:
    """An address that the provider fetches from."""

    url: str


@dataclass(frozen=True, slots=True)
class Upload:
    """A file that the provider holds."""

    file_id: str


@dataclass(frozen=True, slots=True)
class Note:
    """A text that stands where something cannot be sent."""

    text: str


Source: TypeAlias = Inline | Link | Upload | Note


def image_source(image: Image) -> Source:
    """Where the image comes from; a note where its file is missing or its bytes are none."""
    if image.data is not None:
        return _inline(image.data, image.media_type, "image")
    if image.url is not None:
        return _from_url(image.url, image.media_type, "image")
    if image.file_id is not None:
        return Upload(image.file_id) if image.file_id else Note("[image empty]")
    return _from_file(image.path or "", image.media_type)


def document_source(document: Document) -> Source:
    """Where the document comes from. One that is plain text comes as the bytes of its text."""
    if document.text is not None:
        return Inline(document.text.encode(), "text/plain")
    if document.data is not None:
        return _inline(document.data, document.media_type, "document")
    if document.url is not None:
        return _from_url(document.url, document.media_type, "document")
    return Upload(document.file_id) if document.file_id else Note("[document empty]")


def unknown_format(media_type: str | None) -> Note:
    """What stands for an image that no provider takes."""
    return Note(f"[image of unknown format: {short_name(media_type, SHOWN)}]" if media_type else "[image of unknown format]")


def note(part: Image | Document) -> Note:
    """What stands for a part where only text may stand."""
    if isinstance(part, Document):
        return Note(f"[document not shown: {short_name(part.title, SHOWN)}]" if part.title else "[document not shown]")
    return Note("[image not shown]")


def sniff(data: bytes) -> str | None:
    """The media type that the first bytes tell, or None."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return "image/webp"
    if data[4:8] == b"ftyp" and data[8:12] in _HEIF:
        return _HEIF[data[8:12]]
    return "application/pdf" if data.startswith(b"%PDF-") else None


def _inline(data: bytes, declared: str | None, what: str) -> Source:
    if not data:
        return Note(f"[{what} empty]")
    found = sniff(data)
    if found in _SIZED and image_size(data) is None:  # it breaks off, or is none: a provider would refuse the whole request
        return Note(f"[{what} damaged]")
    # The bytes are believed before the label: providers refuse an image whose label is wrong.
    return Inline(data, found or _plain_type(declared))


def _plain_type(declared: str | None) -> str | None:
    """`image/jpeg` of "image/jpg", `text/plain` of "Text/Plain; charset=utf-8"."""
    if not declared:
        return None
    kind = declared.partition(";")[0].strip().lower()
    return "image/jpeg" if kind == "image/jpg" else kind


def _from_url(url: str, declared: str | None, what: str) -> Source:
    if url[:5].lower() == "data:":
        head, comma, body = url[5:].partition(",")
        try:
            raw = unquote_to_bytes(body)
            data = base64.b64decode(b"".join(raw.split()), validate=True) if head.lower().endswith(";base64") else raw
        except (binascii.Error, ValueError):
            data = b""
        return _inline(data, head or declared, what) if comma else Note(f"[{what} empty]")
    if url[:8].lower() == "https://" or url[:7].lower() == "http://":
        return Link(url)
    return Note(f"[{what} out of reach: {short_name(url, SHOWN)}]")


def _from_file(path: str, declared: str | None) -> Source:
    data = _read(path)
    return Note(f"[image missing: {short_name(path, SHOWN)}]") if data is None else _inline(data, declared, "image")


def _read(path: str) -> bytes | None:
    """The bytes of a regular file within `MAX_FILE`; None for all else: a pipe or a device could block for ever."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except (OSError, ValueError):  # ValueError: a NUL in the path
        return None
    try:
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(file.fileno())
            return file.read() if stat.S_ISREG(status.st_mode) and status.st_size <= MAX_FILE else None
    except OSError:
        return None
