"""The pieces of an item's content: text, image, document. Frozen values, cleaned at the door."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, final

from .door import check, check_choice, check_count, clean_text
from .errors import FormatError, short
from .files import read_image
from .images import MAX_SIDE, image_size


@final
@dataclass(frozen=True, slots=True)
class Text:
    """A piece of text."""

    text: str

    def __post_init__(self) -> None:
        if not (type(self.text) is str and self.text.isascii()):  # as `clean_text`, for the commonest value of all
            clean_text(self, "text")


Detail = Literal["low", "high", "auto", "original"]
DETAILS: tuple[Detail, ...] = ("low", "high", "auto", "original")


class _Checked:
    """Room on a part for what a check of its bytes found. No part of its value: not compared, shown, copied or saved."""

    __slots__ = ("_problem",)

    _problem: str


@final
@dataclass(frozen=True, slots=True)
class Image(_Checked):
    """A picture, from exactly one source.

    Attributes:
        data: The file's bytes (never base64: that is the wire's form).
        url: Where the provider may fetch it.
        path: A file of this machine. Its bytes are read once, here, and become `data`. They are not read, and the image is a mere
            reference, where it is no regular file, has more than 32 MiB, or is no PNG, JPEG, GIF, WebP, HEIC or HEIF image by its
            first bytes; such an image is sent as a note. Beside `data` it is the place the bytes came from, and is not opened.
        file_id: The id a provider gave an uploaded file.
        media_type: For example `image/png`.
        width: Pixels, at most `MAX_SIDE`. Read from the header of `data` where not given; None where unknown.
        height: Pixels, as `width`.
        detail: The provider's resolution setting, where one was asked for.
        open_path: Pass False to leave the file at `path` unopened: for paths that come from data. It is False in every image that
            exists, so that no copy of an image (`dataclasses.replace`, for one) opens a file. No part of the value, and never saved.
    """

    data: bytes | None = field(default=None, repr=False)
    url: str | None = None
    path: str | None = None
    file_id: str | None = None
    media_type: str | None = None
    width: int | None = None
    height: int | None = None
    detail: Detail | None = None
    open_path: bool = field(default=True, kw_only=True, repr=False, compare=False)

    def __post_init__(self) -> None:
        check(self, "data", bytes, optional=True)
        if isinstance(self.path, os.PathLike):
            object.__setattr__(self, "path", os.fspath(self.path))
        for name in ("url", "path", "file_id", "media_type"):
            clean_text(self, name, optional=True)
        given = [name for name in ("data", "url", "path", "file_id") if getattr(self, name) is not None]
        if len(given) != 1 and given != ["data", "path"]:
            raise FormatError("Image", f"pass exactly one of data, url, path, file_id; got {', '.join(given) or 'none'}")
        check_choice(self, "detail", DETAILS, optional=True)
        check(self, "open_path", bool)
        if self.open_path and self.path is not None and self.data is None:
            object.__setattr__(self, "data", read_image(self.path))
        object.__setattr__(self, "open_path", False)
        if self.data is not None and (self.width is None or self.height is None):
            self._measure(self.data)
        check_count(self, "width", 1, MAX_SIDE, "pixels", optional=True)
        check_count(self, "height", 1, MAX_SIDE, "pixels", optional=True)

    def _measure(self, data: bytes) -> None:
        for name, pixels in zip(("width", "height"), image_size(data) or (), strict=False):
            if getattr(self, name) is None:
                object.__setattr__(self, name, pixels)


@final
@dataclass(frozen=True, slots=True)
class Document(_Checked):
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


_PARTS = frozenset({Text, Image, Document})
"""There are no others, and no subclasses: what they add could not be saved."""


def parts_of(content: object, where: str) -> tuple[Part, ...]:
    """The parts that were meant by one text, one part, or several of either.

    Raises:
        FormatError: Something is no text and no part.
    """
    if isinstance(content, str):
        return (Text(content),)
    if type(content) in _PARTS:
        return (content,)  # type: ignore[return-value]  # mypy does not narrow by a set
    if isinstance(content, bytes | bytearray | Mapping) or not isinstance(content, Iterable):
        raise FormatError(where, f"{short(content)}; pass a text, or parts (Text, Image, Document)")
    parts = tuple(Text(part) if isinstance(part, str) else part for part in content)
    for place, part in enumerate(parts):
        if type(part) not in _PARTS:
            raise FormatError(f"{where}[{place}]", f"{short(part)}; pass a text, or a part (Text, Image, Document)")
    return parts


def joined_text(parts: tuple[Part, ...]) -> str:
    """The texts among the parts, one a line."""
    return "\n".join(part.text for part in parts if isinstance(part, Text))
