"""The parts of an item's content: text, image, document. Frozen values, cleaned when they are made."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, final

from .errors import FormatError, short
from .images import MAX_SIDE, image_size
from .sanitize import check, check_choice, check_count, clean_text


@final
@dataclass(frozen=True, slots=True)
class Text:
    """A piece of text."""

    text: str

    def __post_init__(self) -> None:
        if not (type(self.text) is str and self.text.isascii()):  # `clean_text` does the same check; this is the most common value
            clean_text(self, "text")


Detail = Literal["low", "high", "auto", "original"]
DETAILS: tuple[Detail, ...] = ("low", "high", "auto", "original")


class _Checked:
    """A slot on a part for the result of a check of its bytes. Not part of its value: not compared, shown, copied or saved."""

    __slots__ = ("_problem",)

    _problem: str


@final
@dataclass(frozen=True, slots=True)
class Image(_Checked):
    """A picture, from exactly one source.

    Attributes:
        data: The file's bytes (never base64, which is only for sending).
        url: Address from which the provider may fetch it.
        path: A local file. Its bytes are read once, in the constructor, and become `data`. The file is not read, and the image is sent
            as a note, if it is not a regular file, is larger than 32 MiB, or is not a PNG, JPEG, GIF, WebP, HEIC or HEIF image by its
            first bytes. If `data` is given too, `path` only records where the bytes came from and is not opened.
        file_id: The provider's id of an uploaded file.
        media_type: For example `image/png`.
        width: Pixels, at most `MAX_SIDE`. By default read from the header of `data`; None if unknown.
        height: Pixels, as `width`.
        detail: The provider's resolution setting, if one was requested.
        open_path: Pass False to leave the file at `path` unopened: for paths that come from data. It is False in every finished image,
            so that no copy (with `dataclasses.replace`, for example) opens a file. Not part of the value, and never saved.
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
        sources = [name for name in ("data", "url", "path", "file_id") if getattr(self, name) is not None]
        if len(sources) != 1 and sources != ["data", "path"]:
            raise FormatError("Image", f"pass exactly one of data, url, path, file_id; got {', '.join(sources) or 'none'}")
        check_choice(self, "detail", DETAILS, optional=True)
        check(self, "open_path", bool)
        if self.open_path and self.path is not None and self.data is None:
            from .files import read_image

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
        url: Address from which the provider may fetch it.
        file_id: The provider's id of an uploaded file.
        text: The document itself, if it is plain text.
        media_type: For example `application/pdf`.
        title: Its name, shown to the model.
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
"""Type of `content=` and `output=`: one text, one part, or several."""
ProviderContent: TypeAlias = Content | Mapping[str, Any] | Iterable[str | Part | Mapping[str, Any]]
"""The same, also with mappings: parts as Anthropic's, OpenAI's or Google's messages have them; JSON values in a tool's output."""


_PARTS = frozenset({Text, Image, Document})
"""All part types. Subclasses are not allowed, because their fields could not be saved."""


def parts_of(content: object, where: str) -> tuple[Part, ...]:
    """Return the parts given as one text, one part, or several of either. Raises FormatError if a value is neither."""
    if isinstance(content, str):
        return (Text(content),)
    if type(content) in _PARTS:
        return (content,)  # type: ignore[return-value]  # mypy does not narrow by a set
    if isinstance(content, bytes | bytearray | Mapping) or not isinstance(content, Iterable):
        raise FormatError(where, f"{short(content)}; pass a text, or parts (Text, Image, Document)")
    parts = tuple(Text(part) if isinstance(part, str) else part for part in content)
    for index, part in enumerate(parts):
        if type(part) not in _PARTS:
            raise FormatError(f"{where}[{index}]", f"{short(part)}; pass a text, or a part (Text, Image, Document)")
    return parts


def joined_text(parts: tuple[Part, ...]) -> str:
    """Return the texts among the parts, joined by line breaks."""
    return "\n".join(part.text for part in parts if isinstance(part, Text))
