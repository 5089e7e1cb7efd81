"""Finds what is wrong with the bytes of an image, before a provider does.

A provider refuses a request that holds bytes it cannot decode, and refuses every later request of the session too, since each one
sends them again. So bytes are checked to their end before they are sent:

1. The header gives the format and the size. An image of more than `MOST_PIXELS` pixels, or `MOST_WEBP_PIXELS`, is never decoded.
2. The file is walked to its end without decoding: to IEND in PNG, with every checksum, to the end-of-image marker in JPEG, to the
   trailer in GIF, to its stated length in WebP. This finds every cut, even where a program has set Pillow's `LOAD_TRUNCATED_IMAGES`.
3. Pillow decodes the pixels: all of a still image, and of an animation the first frames, up to `MOST_PIXELS` in all.

JPEG without its end marker (ITU-T T.81, B.2.1) and GIF without its trailer (GIF89a, 27) break their specifications. Browsers show
them, stricter decoders refuse them, and no provider promises to take them. They count as damaged: a wrong "no" costs one picture,
a wrong "yes" the session.

The answer depends on the bytes alone, so that the same log always gives the same request. That is why work is bounded by pixels,
scans, frames and steps instead of a clock.
"""

from __future__ import annotations

import logging
import re
import struct
import threading
import zlib
from collections.abc import Callable
from functools import cache
from io import BytesIO
from typing import TYPE_CHECKING

from .images import image_size

if TYPE_CHECKING:
    from PIL.Image import Exif
    from PIL.ImageFile import ImageFile

MOST_PIXELS = 80_000_000
"""Decoded, an image takes up to four bytes a pixel: of what is larger, nothing is decoded."""
MOST_WEBP_PIXELS = 32_000_000
"""libwebp holds several copies of a picture, up to 20 bytes a pixel: no more than the others take for `MOST_PIXELS`."""
MOST_SCANNED = 20 * MOST_PIXELS
"""Pixels of a JPEG times its scans. Progressive files have about ten; each is a pass over all pixels, and a file may hold thousands."""
MOST_FRAMES = 1_000
"""Frames of an animation that are decoded."""
MOST_STEPS = 500_000
"""Chunks, blocks and segments that are walked: 16 of them a kilobyte in a file of the largest size that providers take."""

UNKNOWN = "damaged: its bytes are no image of a format that models take"
HEADER = "damaged: its header cannot be read"
CUT = "damaged: it ends in the middle"
BROKEN = "damaged: its content cannot be decoded"
LONG = "too large to check: it has too many parts"

_MARKER = re.compile(rb"\xff([^\x00\x01\xd0-\xd7\xff])")
"""A JPEG marker that is no restart marker, stuffed byte or filler."""


def image_problem(data: bytes) -> str | None:
    """Return what is wrong with an image's bytes, or None for a sound PNG, JPEG, GIF or WebP image.

    Args:
        data: The whole file. Its format is taken from its first bytes.

    Returns:
        A predicate for a note such as `[image damaged: it ends in the middle]`. It never quotes the bytes.
    """
    name = next((name for name, pattern in _FORMATS.items() if pattern.match(data)), None)
    if name is None:
        return UNKNOWN
    size = image_size(data)
    if size is None:
        return HEADER
    if size[0] * size[1] > (MOST_WEBP_PIXELS if name == "WEBP" else MOST_PIXELS):
        return f"too large to send: {size[0]}x{size[1]}"
    try:
        return _WALKS[name](data) or _decoding_problem(data, name)
    except (struct.error, IndexError):  # a walk ran past the last byte
        return CUT


def heif_problem(data: bytes) -> str | None:
    """Return what is wrong with a HEIC or HEIF file as far as its boxes tell: Pillow cannot decode it.

    Its description and its data must be whole. What follows them is ignored, since phones append data of their own.
    """
    at, missing = 0, {b"meta", b"mdat"}
    try:
        for _ in range(MOST_STEPS):
            length, kind = struct.unpack_from(">I4s", data, at)
            if length == 1:
                (length,) = struct.unpack_from(">Q", data, at + 8)
            missing -= {b"meta" if kind == b"moov" else kind}  # a sequence is described by its movie
            if length == 0:  # to the end of the file
                return HEADER if missing else None
            if length < 8:
                return BROKEN
            at += length
            if at > len(data):
                return CUT
            if not missing:
                return None
    except struct.error:
        return CUT
    return LONG


def _png(data: bytes) -> str | None:
    view, at = memoryview(data), 8
    for _ in range(MOST_STEPS):
        length, kind = struct.unpack_from(">I4s", data, at)
        (checksum,) = struct.unpack_from(">I", data, at + 8 + length)
        if zlib.crc32(view[at + 4 : at + 8 + length]) != checksum:
            return BROKEN
        if kind == b"IEND":
            return None
        at += 12 + length
    return LONG


def _jpeg(data: bytes) -> str | None:
    pixels = scans = 0
    at = 2
    for _ in range(MOST_STEPS):
        marker = _MARKER.search(data, at)  # past the coded data of a scan, and past stray bytes, as decoders do
        if marker is None:
            return CUT
        kind, at = marker[1][0], marker.end()
        if kind == 0xD9:
            return None
        (length,) = struct.unpack_from(">H", data, at)
        if 0xC0 <= kind <= 0xCF and kind not in {0xC4, 0xC8, 0xCC}:
            height, width = struct.unpack_from(">xHH", data, at + 2)
            pixels = max(pixels, width * height)
        scans += kind == 0xDA
        if pixels > MOST_PIXELS or pixels * scans > MOST_SCANNED:
            return LONG
        at += length
    return LONG


def _gif(data: bytes) -> str | None:
    steps = iter(range(MOST_STEPS))
    at = 13 + _colours(data[10])
    for _ in steps:
        kind = data[at]
        if kind == 0x3B:
            return None
        if kind == 0x2C:
            left, top, width, height, flags = struct.unpack_from("<4HB", data, at + 1)
            if (left + width) * (top + height) > MOST_PIXELS:  # frames may lie outside of the screen, which then grows
                return LONG
            at += 11 + _colours(flags)
        elif kind == 0x21:
            at += 2
        else:
            return BROKEN
        for _ in steps:  # blocks of at most 255 bytes; an empty one is the last
            length = data[at]
            at += 1 + length
            if not length:
                break
    return LONG


def _webp(data: bytes) -> str | None:
    (length,) = struct.unpack_from("<I", data, 4)
    return CUT if 8 + length > len(data) else None  # libwebp checks the chunks


def _colours(flags: int) -> int:
    """Return the size of a GIF's colour table in bytes."""
    return 3 << (flags & 0x07) + 1 if flags & 0x80 else 0


_FORMATS = {
    "PNG": re.compile(rb"\x89PNG\r\n\x1a\n"),
    "JPEG": re.compile(rb"\xff\xd8\xff"),
    "GIF": re.compile(rb"GIF8[79]a"),
    "WEBP": re.compile(rb"RIFF....WEBP", re.DOTALL),
}
_WALKS: dict[str, Callable[[bytes], str | None]] = {"PNG": _png, "JPEG": _jpeg, "GIF": _gif, "WEBP": _webp}


def _decoding_problem(data: bytes, name: str) -> str | None:
    opener = _openers().get(name)
    if opener is None:  # a Pillow that was built without this format: nothing more can be found out
        return None
    decoded = 0
    _QUIET.is_checking = True
    try:
        with opener(BytesIO(data)) as picture:
            if picture.width * picture.height > MOST_PIXELS:  # Pillow may take the size from another place
                return HEADER
            picture.draft(None, (1, 1))  # JPEG at an eighth of its size: all of its data is read, in a third of the time
            for frame in range(MOST_FRAMES):
                try:
                    picture.seek(frame)
                except EOFError:
                    break
                picture.load()
                decoded += picture.width * picture.height
                if decoded > MOST_PIXELS:
                    break
    except Exception:  # noqa: BLE001 - decoders of damaged pixels raise OSError, SyntaxError, struct.error and whatever comes
        return BROKEN
    finally:
        _QUIET.is_checking = False
    return None


class _Quiet(threading.local):
    """A filter that drops what Pillow logs of the images checked here, chunk by chunk and with names out of them."""

    is_checking = False

    def filter(self, _: logging.LogRecord) -> bool:
        return not self.is_checking


_QUIET = _Quiet()


@cache
def _openers() -> dict[str, Callable[[BytesIO], ImageFile]]:
    """Return Pillow's classes by format.

    They are called directly: `Image.open` warns of what it finds odd, and warnings can only be silenced for all threads at once.
    """
    from PIL import Image, features  # 30 ms: only sessions with images pay for it
    from PIL.GifImagePlugin import GifImageFile
    from PIL.JpegImagePlugin import JpegImageFile
    from PIL.PngImagePlugin import PngImageFile
    from PIL.WebPImagePlugin import WebPImageFile

    logging.getLogger("PIL.PngImagePlugin").addFilter(_QUIET)

    class Jpeg(JpegImageFile):
        def getexif(self) -> Exif:
            return Image.Exif()  # Pillow looks for the resolution there, and warns of metadata that is damaged

    openers: dict[str, tuple[str, Callable[[BytesIO], ImageFile]]] = {
        "PNG": ("zlib", PngImageFile),
        "JPEG": ("jpg", Jpeg),
        "GIF": ("pil", GifImageFile),
        "WEBP": ("webp", WebPImageFile),
    }
    return {name: opener for name, (feature, opener) in openers.items() if features.check(feature)}
