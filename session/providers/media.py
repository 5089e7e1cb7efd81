"""Find the source of an image or a document for sending: bytes, a URL, an uploaded file, or a note. No file is opened, nothing is fetched.
Images are shrunk to the limits of a provider.

The first bytes decide the format. A `Note` is the text that replaces content that cannot be sent. Damaged content becomes a note too: a
provider that cannot decode it would refuse the request, and every later request of the session.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass, field
from functools import lru_cache
from io import BytesIO
from typing import TypeAlias
from urllib.parse import unquote_to_bytes

from session.document_check import document_problem
from session.image_check import MOST_PIXELS, UNKNOWN, image_problem
from session.images import HEIF_BRANDS, image_size
from session.parts import Document, Image
from session.printable import short_name

NAME_LENGTH = 200
"""Maximum characters of a path or title in a note."""


_HEIF_TYPES = frozenset({"image/heic", "image/heif"})
_IMAGES = _HEIF_TYPES | {"image/png", "image/jpeg", "image/gif", "image/webp"}
"""The image types that at least one provider takes."""


@dataclass(frozen=True, slots=True)
class Inline:
    """Bytes in the request. The media type is that of the bytes, else the declared one, else None."""

    data: bytes = field(repr=False)
    media_type: str | None

    @property
    def base64(self) -> str:
        """The bytes as base64."""
        return base64.b64encode(self.data).decode("ascii")

    @property
    def text(self) -> str | None:
        """The text of a document that is declared as text or is valid UTF-8, else None."""
        if self.media_type is not None and self.media_type.startswith("text/"):
            return self.data.decode("utf-8", "replace")
        try:
            return self.data.decode("utf-8")
        except UnicodeDecodeError:
            return None


@dataclass(frozen=True, slots=True)
class Link:
    """A URL that the provider fetches from."""

    url: str


@dataclass(frozen=True, slots=True)
class Upload:
    """A file that the provider holds."""

    file_id: str


@dataclass(frozen=True, slots=True)
class Note:
    """A text that replaces content that cannot be sent."""

    text: str


SMALLER_SIDES = (1568, 768)
"""Long sides to try while a file is still too large, in pixels: the size that providers scale down to, and half of it."""
REMEMBERED_CHECKS = 1_000
_CHECKS: dict[tuple[str, int, int], str] = {}
_STANDARD_ALPHABET = str.maketrans("-_", "+/")

Source: TypeAlias = Inline | Link | Upload | Note
_EMPTY = "empty"


def image_source(image: Image) -> Source:
    """Return the source of an image; a note for damaged bytes and for a bare path. No file is opened."""
    if image.data is not None:
        return _inline(image.data, image.media_type, "image", image)
    if image.url is not None:
        return _from_url(image.url, image.media_type, "image", image)
    if image.file_id is not None:
        return Upload(image.file_id) if image.file_id else Note("[image empty]")
    return Note(f"[image missing: {short_name(image.path or '', NAME_LENGTH)}]")


def document_source(document: Document) -> Source:
    """Return the source of a document; the bytes of its text for plain text."""
    if document.text is not None:
        return Inline(document.text.encode(), "text/plain")
    if document.data is not None:
        return _inline(document.data, document.media_type, "document", document)
    if document.url is not None:
        return _from_url(document.url, document.media_type, "document", document)
    return Upload(document.file_id) if document.file_id else Note("[document empty]")


def unknown_format(media_type: str | None) -> Note:
    """Return the note for an image in a format that no provider takes."""
    return Note(f"[image of unknown format: {short_name(media_type, NAME_LENGTH)}]" if media_type else "[image of unknown format]")


def note(part: Image | Document) -> Note:
    """Return the note for an image or a document where only text is allowed."""
    if isinstance(part, Document):
        return Note(f"[document not shown: {short_name(part.title, NAME_LENGTH)}]" if part.title else "[document not shown]")
    return Note("[image not shown]")


def sniff(data: bytes) -> str | None:
    """Return the media type that the first bytes show, or None."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return "image/webp"
    if data[4:8] == b"ftyp" and data[8:12] in HEIF_BRANDS:
        return HEIF_BRANDS[data[8:12]]
    return "application/pdf" if data.startswith(b"%PDF-") else None


def unusable(part: Image | Document) -> str | None:
    """Return the reason why no provider can decode the bytes of a part, such as "damaged: it ends in the middle".

    Return None if a provider may decode them or if the part holds no bytes. The bytes are checked once; the part keeps the outcome.
    """
    if part.data is None and (part.url is None or not _is_data_url(part.url)):
        return None
    problem = getattr(part, "_problem", None)
    if problem is None:
        problem = _problem_of(part) or ""
        object.__setattr__(part, "_problem", problem)
    return problem or None


def base64_problem(encoded: object, media_type: object) -> str | None:
    """Return the outcome of `unusable` for the base64 in a block that is sent back unchanged; None for other values.

    Outcomes are remembered by the hash of the text, which a string computes once: a block has no place for them and may hold megabytes.
    """
    kind = _plain_type(media_type) if isinstance(media_type, str) else None
    if not isinstance(encoded, str) or kind is None:
        return None
    key = (kind, len(encoded), hash(encoded))
    problem = _CHECKS.get(key)
    if problem is None:
        part = Image if kind.startswith("image/") else Document
        problem = unusable(part(url=f"data:{kind};base64,{encoded.translate(_STANDARD_ALPHABET)}{'=' * (-len(encoded) % 4)}")) or ""
        if len(_CHECKS) >= REMEMBERED_CHECKS:
            _CHECKS.clear()
        _CHECKS[key] = problem
    return problem or None


def _problem_of(part: Image | Document) -> str | None:
    data, declared = (part.data, part.media_type) if part.data is not None else _data_of(part.url or "", part.media_type)
    if not data:
        return _EMPTY
    kind = sniff(data) or _plain_type(declared)
    if isinstance(part, Document):
        return document_problem(data, kind)
    is_heif = kind in _HEIF_TYPES and data[4:8] == b"ftyp"  # Pillow cannot decode it
    return None if is_heif else image_problem(data)


def _inline(data: bytes, declared: str | None, label: str, part: Image | Document) -> Source:
    """Return the bytes, or a note if they are damaged. The bytes overrule the declared type: providers refuse a wrong one."""
    if not data:
        return Note(f"[{label} {_EMPTY}]")
    kind = sniff(data) or _plain_type(declared)
    problem = unusable(part)
    if problem is not None and not (problem == UNKNOWN and kind not in _IMAGES):  # an unknown type: the converter names it
        return Note(f"[{label} {problem}]")
    return Inline(data, kind)


def _plain_type(declared: str | None) -> str | None:
    """Return a media type in lower case without parameters: `image/jpeg` for "image/jpg", `text/plain` for "Text/Plain; charset=utf-8"."""
    if not declared:
        return None
    kind = declared.partition(";")[0].strip().lower()
    return "image/jpeg" if kind == "image/jpg" else kind


def _is_data_url(url: str) -> bool:
    return url[:5].lower() == "data:"


def _data_of(url: str, declared: str | None) -> tuple[bytes, str | None]:
    """Return the bytes in a `data:` URL, or no bytes if it is damaged, and their media type."""
    head, _, body = url[5:].partition(",")
    try:
        raw = unquote_to_bytes(body)
        data = base64.b64decode(b"".join(raw.split()), validate=True) if head.lower().endswith(";base64") else raw
    except (binascii.Error, ValueError):
        data = b""
    return data, head or declared


def _from_url(url: str, declared: str | None, label: str, part: Image | Document) -> Source:
    if _is_data_url(url):
        return _inline(*_data_of(url, declared), label, part)
    if url[:8].lower() == "https://" or url[:7].lower() == "http://":
        return Link(url)
    return Note(f"[{label} out of reach: {short_name(url, NAME_LENGTH)}]")


def shrunk_to_fit(image: Inline, *, side: int, encoded: int) -> Inline | Note:
    """Return the image if it keeps the limits, else a smaller image, else a note in its place.

    `side` is the maximum of the longer side in pixels, `encoded` that of the characters of base64.
    """
    size = image_size(image.data)
    if size is None or (max(size) <= side and _fits(image.data, encoded)):
        return image
    too_large = Note(f"[image too large to send: {size[0]}x{size[1]}]")
    if size[0] * size[1] > MOST_PIXELS:
        return too_large
    for longest in (side, *SMALLER_SIDES):
        data = _scaled(image.data, min(longest, side))
        if data is None:
            return Note("[image damaged]")
        if _fits(data, encoded):
            return Inline(data, "image/jpeg" if image.media_type == "image/jpeg" else "image/png")
    return too_large


def _fits(data: bytes, encoded: int) -> bool:
    return (len(data) + 2) // 3 * 4 <= encoded


@lru_cache(maxsize=100)  # the images of one request: shrinking takes a tenth of a second each
def _scaled(data: bytes, longest: int) -> bytes | None:
    """Return the image with a longer side of at most `longest` pixels, as JPEG if it was one, else as PNG; None if it is damaged."""
    from PIL import Image as Picture
    from PIL import ImageOps  # imported late: takes 30 ms, and only images that are too large need it

    out = BytesIO()
    try:
        with Picture.open(BytesIO(data), formats=("PNG", "JPEG", "GIF", "WEBP")) as opened:
            jpeg = opened.format == "JPEG"
            picture = ImageOps.exif_transpose(opened)
            picture.thumbnail((longest, longest))
            picture.save(out, "JPEG" if jpeg else "PNG", **({"quality": 85} if jpeg else {}))
    except Exception:  # noqa: BLE001 - decoders of damaged pixels raise OSError, SyntaxError, struct.error and others
        return None
    return out.getvalue()
