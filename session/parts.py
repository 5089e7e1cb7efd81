"""The pieces of an item's content: text, image, document. Frozen values, cleaned at the door."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from .door import check, check_choice, clean_text
from .errors import FormatError
from .images import image_file_size, image_size


@dataclass(frozen=True, slots=True)
class Text:
    """A piece of text."""

    text: str

    def __post_init__(self) -> None:
        clean_text(self, "text")


Detail = Literal["low", "high", "auto", "original"]
DETAILS: tuple[Detail, ...] = ("low", "high", "auto", "original")


@dataclass(frozen=True, slots=True)
class Image:
    """A picture, from exactly one source.

    Attributes:
        data: The file's bytes (never base64: that is the wire's form).
        url: Where the provider may fetch it.
        path: A file of this machine. A source of its own, or beside `data` the place the bytes came from.
        file_id: The id a provider gave an uploaded file.
        media_type: For example `image/png`.
        width: Pixels. Read from the header of `data` or of the file where not given; None where unknown.
        height: Pixels, as `width`.
        detail: The provider's resolution setting, where one was asked for.
    """

    data: bytes | None = field(default=None, repr=False)
    url: str | None = None
    path: str | None = None
    file_id: str | None = None
    media_type: str | None = None
    width: int | None = None
    height: int | None = None
    detail: Detail | None = None

    def __post_init__(self) -> None:
        check(self, "data", bytes, optional=True)
        if isinstance(self.path, os.PathLike):
            object.__setattr__(self, "path", os.fspath(self.path))
        for name in ("url", "path", "file_id", "media_type"):
            clean_text(self, name, optional=True)
        sources = [name for name in ("data", "url", "file_id") if getattr(self, name) is not None]
        if len(sources) > 1 or not (sources or self.path is not None):
            raise FormatError("Image", f"pass exactly one of data, url, path, file_id; got {', '.join(sources) or 'none'}")
        check_choice(self, "detail", DETAILS, optional=True)
        if self.width is None and self.height is None:
            size = image_size(self.data) if self.data is not None else image_file_size(self.path) if not sources and self.path else None
            if size is not None:
                object.__setattr__(self, "width", size[0])
                object.__setattr__(self, "height", size[1])
        for name in ("width", "height"):
            check(self, name, int, optional=True)
            if (pixels := getattr(self, name)) is not None and pixels <= 0:
                raise FormatError(f"Image.{name}", f"{pixels} pixels; pass a positive number")


@dataclass(frozen=True, slots=True)
class Document:
    """A document, from exactly one source.

    Attributes:
        data: The file's bytes.
        url: Where the provider may fetch it.
        file_id: The id a provider gave an uploaded file.
        text: The document itself, where it is plain text.
        media_type: For example `application/pdf`.
        title: The name shown to the model.
    """

    data: bytes | None = field(default=None, repr=False)
    url: str | None = None
    file_id: str | None = None
    text: str | None = None
    media_type: str | None = None
    title: str | None = None

    def __post_init__(self) -> None:
        check(self, "data", bytes, optional=True)
        for name in ("url", "file_id", "text", "media_type", "title"):
            clean_text(self, name, optional=True)
        sources = [name for name in ("data", "url", "file_id", "text") if getattr(self, name) is not None]
        if len(sources) != 1:
            raise FormatError("Document", f"pass exactly one of data, url, file_id, text; got {', '.join(sources) or 'none'}")


Part: TypeAlias = Text | Image | Document
Content: TypeAlias = str | Part | Iterable[str | Part]
"""What `content=` and `output=` take: one text, one part, or several."""


def parts_of(content: object, where: str) -> tuple[Part, ...]:
    """The parts that were meant by one text, one part, or several of either."""
    if isinstance(content, str):
        return (Text(content),)
    if isinstance(content, Text | Image | Document):
        return (content,)
    if isinstance(content, bytes | Mapping) or not isinstance(content, Iterable):
        raise FormatError(where, f"a {type(content).__name__}; pass a text, or parts (Text, Image, Document)")
    parts = tuple(Text(part) if isinstance(part, str) else part for part in content)
    for place, part in enumerate(parts):
        if not isinstance(part, Text | Image | Document):
            raise FormatError(f"{where}[{place}]", f"a {type(part).__name__}; pass a text, or a part (Text, Image, Document)")
    return parts


def joined_text(parts: tuple[Part, ...]) -> str:
    return "\n".join(part.text for part in parts if isinstance(part, Text))
