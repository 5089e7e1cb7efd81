"""What a server sees in an image: its true format and its sides, from the header; and whether it can read a file to its end. Written for
the stubs alone."""

from __future__ import annotations

import base64
import binascii
import re
import struct
import warnings
from functools import lru_cache
from io import BytesIO
from typing import NamedTuple

import PIL.Image
import PIL.ImageSequence


class Picture(NamedTuple):
    """An image's media type and sides in pixels."""

    media_type: str
    width: int
    height: int


def decoded(text: object) -> bytes | None:
    """The bytes, or None where the text is no base64."""
    if not isinstance(text, str):
        return None
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None


def look(data: bytes) -> Picture | None:
    """The picture; None without one."""
    try:
        return _png(data) or _gif(data) or _jpeg(data) or _webp(data)
    except (struct.error, IndexError):
        return None


@lru_cache(maxsize=200)
def is_readable(data: bytes) -> bool:
    """Whether every frame of the image can be shown."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with PIL.Image.open(BytesIO(data)) as picture:
                picture.verify()
            with PIL.Image.open(BytesIO(data)) as picture:
                for frame in PIL.ImageSequence.Iterator(picture):
                    frame.load()
        except Exception:  # noqa: BLE001 - a server refuses what fails in any way
            return False
    return True


def is_pdf(data: bytes) -> bool:
    """Whether it begins and ends as a PDF does."""
    return b"%PDF-" in data[:1024] and re.search(rb"startxref\s+\d+\s+%%EOF", data[-1024:]) is not None


def _png(data: bytes) -> Picture | None:
    if not (data.startswith(b"\x89PNG\r\n\x1a\n") and data[12:16] == b"IHDR"):
        return None
    return Picture("image/png", *struct.unpack(">II", data[16:24]))


def _gif(data: bytes) -> Picture | None:
    return Picture("image/gif", *struct.unpack("<HH", data[6:10])) if data[:6] in (b"GIF87a", b"GIF89a") else None


def _jpeg(data: bytes) -> Picture | None:
    if not data.startswith(b"\xff\xd8\xff"):
        return None
    at = 2
    while at + 9 <= len(data) and data[at] == 0xFF:
        marker = data[at + 1]
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):  # a frame; the three are tables
            height, width = struct.unpack(">HH", data[at + 5 : at + 9])
            return Picture("image/jpeg", width, height)
        at += 2 + struct.unpack(">H", data[at + 2 : at + 4])[0]
    return None


def _webp(data: bytes) -> Picture | None:
    if data[:4] != b"RIFF" or data[8:12] != b"WEBP":
        return None
    kind = data[12:16]
    if kind == b"VP8X":
        return Picture("image/webp", 1 + int.from_bytes(data[24:27], "little"), 1 + int.from_bytes(data[27:30], "little"))
    if kind == b"VP8L":
        packed = int.from_bytes(data[21:25], "little")
        return Picture("image/webp", 1 + (packed & 0x3FFF), 1 + (packed >> 14 & 0x3FFF))
    width, height = struct.unpack("<HH", data[26:30])
    return Picture("image/webp", width & 0x3FFF, height & 0x3FFF) if kind == b"VP8 " else None
