"""Reads an image's dimensions from its header. It decodes nothing: in four formats the two numbers are at known offsets.

The format is recognized by the first bytes, whatever the label says. Truncated, mislabelled and hostile files cost a limited number of
small reads, and give None if their header is not credible.

Offsets are from the PNG specification (third edition, 5 and 11.3.3.4), ITU-T T.81 annex B for JPEG, the GIF89a
specification (18), RFC 9649 for WebP, and TIFF 6.0 (section 2) for the orientation in EXIF data.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from io import BytesIO
from typing import IO, TypeAlias

MAX_SIDE = 100_000
"""Pixels. A header that states more counts as damaged: no provider accepts an image near that size."""

MAX_STEPS = 10_000
"""Chunks, segments and stray bytes that are read. Real headers have a few dozen; a file of nothing else must not hang us."""

MAX_EXIF = 65_536
"""Bytes of EXIF data that are read. The orientation is at its beginning."""

ORIENTATION = 0x0112
ROTATED = (5, 6, 7, 8)
"""The EXIF tag, and its values that swap width and height."""

HEIF_BRANDS = {
    **dict.fromkeys((b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx"), "image/heic"),
    **dict.fromkeys((b"mif1", b"msf1", b"heif"), "image/heif"),
}
"""Media type by the brand of the file's first box. Providers that accept these formats read the size themselves."""

Header: TypeAlias = tuple[int, int, bool]
"""Width and height in pixels as stored, and True if they are shown swapped."""


class _Damaged(Exception):  # noqa: N818 - never seen outside
    """The header ends early or is not valid."""


def image_size(data: bytes) -> tuple[int, int] | None:
    """Return width and height in pixels as shown (EXIF rotation applied), or None if the header is not credible."""
    return _size(BytesIO(data))


def is_image(data: bytes) -> bool:
    """True if the data begins as a PNG, JPEG, GIF or WebP image whose header gives its size, or as a HEIC or HEIF image."""
    return image_size(data) is not None or (data[4:8] == b"ftyp" and data[8:12] in HEIF_BRANDS)


def _size(file: IO[bytes]) -> tuple[int, int] | None:
    start = file.read(12)
    read_header = next((reader for magic, at, reader in _FORMATS if start[at : at + len(magic)] == magic), None)
    if read_header is None:
        return None
    try:
        width, height, swapped = read_header(file)
    except _Damaged:
        return None
    if not (0 < width <= MAX_SIDE and 0 < height <= MAX_SIDE):
        return None
    return (height, width) if swapped else (width, height)


def _png(file: IO[bytes]) -> Header:
    file.seek(8)
    _, name, width, height = struct.unpack(">I4sII", _take(file, 16))
    if name != b"IHDR":
        raise _Damaged
    file.seek(33)
    return width, height, _swapped_in_chunks(file, ">I4s", b"eXIf", last=(b"IDAT", b"IEND"), after=4)


def _gif(file: IO[bytes]) -> Header:
    file.seek(6)
    width, height = struct.unpack("<HH", _take(file, 4))
    return width, height, False


def _jpeg(file: IO[bytes]) -> Header:
    swapped: bool | None = None
    file.seek(2)
    for _ in range(MAX_STEPS):
        if _take(file, 1) != b"\xff":
            continue  # a stray byte between segments: decoders skip it too
        marker = _take(file, 1)[0]
        if marker == 0xFF:  # filler: the marker follows
            file.seek(-1, os.SEEK_CUR)
            continue
        if marker in {0x00, 0x01} or 0xD0 <= marker <= 0xD7:  # no length follows these
            continue
        if marker in {0xD9, 0xDA}:  # the image's end, or its data: there was no frame header
            break
        (length,) = struct.unpack(">H", _take(file, 2))
        if 0xC0 <= marker <= 0xCF and marker not in {0xC4, 0xC8, 0xCC}:
            height, width = struct.unpack(">xHH", _take(file, 5))
            return width, height, bool(swapped)
        if marker == 0xE1 and length <= MAX_EXIF:
            segment = _take(file, max(0, length - 2))
            if swapped is None and segment.startswith(b"Exif\0\0"):
                swapped = _swapped(segment)
        else:
            file.seek(max(0, length - 2), os.SEEK_CUR)
    raise _Damaged


def _webp(file: IO[bytes]) -> Header:
    file.seek(12)
    kind, _ = struct.unpack("<4sI", _take(file, 8))
    if kind == b"VP8 ":
        start, width, height = struct.unpack("<3x3sHH", _take(file, 10))
        if start == b"\x9d\x01\x2a":
            return width & 0x3FFF, height & 0x3FFF, False
    elif kind == b"VP8L":
        start, bits = struct.unpack("<cI", _take(file, 5))
        if start == b"\x2f":
            return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1, False
    elif kind == b"VP8X":
        flags, sides = struct.unpack("<B3x6s", _take(file, 10))
        width, height = (int.from_bytes(side, "little") + 1 for side in (sides[:3], sides[3:]))
        return width, height, bool(flags & 0x08) and _swapped_in_chunks(file, "<4sI", b"EXIF", last=(), after=0)
    raise _Damaged


_FORMATS: tuple[tuple[bytes, int, Callable[[IO[bytes]], Header]], ...] = (
    (b"\x89PNG\r\n\x1a\n", 0, _png),
    (b"\xff\xd8\xff", 0, _jpeg),
    (b"GIF87a", 0, _gif),
    (b"GIF89a", 0, _gif),
    (b"WEBP", 8, _webp),
)
"""First bytes, their offset, and the header reader of each format that model providers accept."""


def _swapped_in_chunks(file: IO[bytes], form: str, wanted: bytes, last: tuple[bytes, ...], after: int) -> bool:
    """True if a chunk of EXIF data from here on swaps the sides. False if the file ends before one.

    Args:
        file: At the beginning of a chunk.
        form: `struct` format of a chunk's name and length, in the order of the file format.
        wanted: Name of the EXIF chunk.
        last: Chunks that it cannot follow.
        after: Bytes after a chunk's content. If 0, chunks of odd length are padded with one byte.
    """
    try:
        for _ in range(MAX_STEPS):
            first, second = struct.unpack(form, _take(file, 8))
            name, length = (first, second) if isinstance(first, bytes) else (second, first)
            if name == wanted:
                return _swapped(file.read(min(length, MAX_EXIF)))
            if name in last:
                break
            file.seek(length + (after or length % 2), os.SEEK_CUR)
    except _Damaged:
        pass
    return False


def _swapped(exif: bytes) -> bool:
    """True if the orientation in EXIF data swaps the sides."""
    tiff = exif.removeprefix(b"Exif\0\0")
    order = {b"II*\0": "<", b"MM\0*": ">"}.get(tiff[:4])
    if order is None:
        return False
    try:
        (start,) = struct.unpack_from(f"{order}I", tiff, 4)
        (entries,) = struct.unpack_from(f"{order}H", tiff, start)
        for entry in range(entries):
            tag, value = struct.unpack_from(f"{order}H6xH", tiff, start + 2 + 12 * entry)
            if tag == ORIENTATION:
                return value in ROTATED
    except struct.error:
        pass
    return False


def _take(file: IO[bytes], count: int) -> bytes:
    data = file.read(count)
    if len(data) < count:
        raise _Damaged
    return data
