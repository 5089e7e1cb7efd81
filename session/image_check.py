"""Finds damage in the bytes of an image before a provider does.

A provider refuses a request with bytes that it cannot decode. Every later request of the session sends them again and is refused too.
So images are checked to their end before they are sent:

1. The header gives the format and the size. An image of more than `MOST_PIXELS` pixels, or `MOST_WEBP_PIXELS`, is never decoded.
2. The file is walked to its end without decoding: to IEND in PNG (`png_check`), to the end-of-image marker in JPEG, to the trailer in
   GIF, to its stated length in WebP. This finds every cut, even if a program has set Pillow's `LOAD_TRUNCATED_IMAGES`.
3. Pillow decodes the pixels: all of a still image, and the first frames of an animation, up to `MOST_PIXELS` in total.
4. libjpeg silently fills a scan that ends too early with grey. So a sequential JPEG is decoded a second time with other coded data
   after its last scan. The pixels stay the same unless the scan is cut. A cut inside the last blocks may go unnoticed, and so may a
   progressive JPEG whose last scan was cut before an end marker was appended.

JPEG without its end marker (ITU-T T.81, B.2.1) and GIF without its trailer (GIF89a, 27) break their specifications. Browsers show
them, stricter decoders refuse them, and no provider promises to accept them. They count as damaged: a wrong "no" costs one picture,
a wrong "yes" the session.

The result depends on the bytes alone, so that the same log always gives the same request. That is why work is limited by pixels,
scans, frames and steps instead of a clock.
"""

from __future__ import annotations

import logging
import re
import struct
import threading
from collections.abc import Callable
from functools import cache
from io import BytesIO
from typing import TYPE_CHECKING

from .images import image_size
from .png_check import is_decodable_png

if TYPE_CHECKING:
    from PIL.Image import Exif
    from PIL.ImageFile import ImageFile

MOST_PIXELS = 80_000_000
"""A decoded image takes up to four bytes per pixel. Nothing of a larger one is decoded."""
MOST_WEBP_PIXELS = 32_000_000
"""libwebp holds several copies of a picture, up to 20 bytes per pixel: no more than the other formats take for `MOST_PIXELS`."""
MOST_SCANNED = 20 * MOST_PIXELS
"""Pixels of a JPEG times its scans. Progressive files have about ten; each is a pass over all pixels, and a file may hold thousands."""
MOST_FRAMES = 1_000
"""Frames of an animation that are decoded."""
MOST_STEPS = 500_000
"""Chunks, blocks and segments that are walked: 16 per kilobyte in a file of the largest size that providers accept."""

UNKNOWN = "damaged: its bytes are no image of a format that models take"
HEADER = "damaged: its header cannot be read"
CUT = "damaged: it ends in the middle"
BROKEN = "damaged: its content cannot be decoded"
LONG = "too large to check: it has too many parts"

_MARKER = re.compile(rb"\xff([^\x00\x01\xd0-\xd7\xff])")
"""A JPEG marker other than a restart marker, a stuffed byte or filler."""
_SEQUENTIAL = {0xC0, 0xC1}
"""JPEG frames with Huffman coding in which one scan holds all pixels."""
_ARITHMETIC = 0xC9
"""The first JPEG frame type with arithmetic coding: it needs no Huffman tables, and a scan may have no coded bytes."""
_FILLER = b"".join(bytes(range(3 + n, 250, 7)) + bytes((0xFF, 0xD0 + n)) for n in range(8))
"""Coded data that decoders skip after a complete JPEG scan, and take for the missing pixels after a cut one. It has all restart
markers, so that it is read after a cut between two of them too."""
_NEXT_MARKER = re.compile(rb"\xff+([^\x00\x01\xd0-\xd7\xff])")
"""The marker right after a segment, with any filler. Bytes between segments are skipped by lenient decoders and refused by strict ones."""


def image_problem(data: bytes) -> str | None:
    """Return the problem with an image's bytes, or None for a sound PNG, JPEG, GIF or WebP image.

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
        return _CHECKS[name](data)
    except (struct.error, IndexError):  # a walk ran past the last byte
        return CUT


def heif_problem(data: bytes) -> str | None:
    """Return the problem with a HEIC or HEIF file as far as its boxes show it: Pillow cannot decode the format.

    Its description and its data must be complete. What follows them is ignored, since phones append data of their own.
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
    is_decodable = is_decodable_png(data, MOST_STEPS)
    if is_decodable is None:
        return LONG
    return _decoding_problem(data, "PNG") if is_decodable else BROKEN


def _jpeg(data: bytes) -> str | None:
    pixels = scans = frame = scan_end = 0
    has_tables = is_scan = False
    at = 2
    for _ in range(MOST_STEPS):
        # in a scan, skip its coded data
        marker = _MARKER.search(data, at) if is_scan else _NEXT_MARKER.match(data, at)
        if marker is None:
            return CUT if is_scan or at >= len(data) else BROKEN
        if is_scan:
            scan_end = marker.start()
        kind, at = marker[1][0], marker.end()
        if kind == 0xD9:
            return _decoding_problem(data, "JPEG", data[:scan_end] + _FILLER + data[scan_end:] if frame in _SEQUENTIAL else None)
        (length,) = struct.unpack_from(">H", data, at)
        if 0xC0 <= kind <= 0xCF and kind not in {0xC4, 0xC8, 0xCC}:
            frame = kind
            height, width = struct.unpack_from(">xHH", data, at + 2)
            pixels = max(pixels, width * height)
        has_tables |= kind == 0xC4
        is_scan = kind == 0xDA
        scans += is_scan
        if pixels > MOST_PIXELS or pixels * scans > MOST_SCANNED:
            return LONG
        at += length
        if is_scan and frame < _ARITHMETIC and not (has_tables and _is_coded(data, at)):
            return BROKEN
    return LONG


def _is_coded(data: bytes, at: int) -> bool:
    """True if coded data of a JPEG begins here, not a marker: in coded data, 0 follows 0xFF."""
    return data[at] != 0xFF or data[at + 1] == 0


def _gif(data: bytes) -> str | None:
    steps = iter(range(MOST_STEPS))
    at = 13 + _colours(data[10])
    for _ in steps:
        kind = data[at]
        if kind == 0x3B:
            return _decoding_problem(data, "GIF")
        if kind == 0x2C:
            x, y, width, height, flags = struct.unpack_from("<4HB", data, at + 1)
            if (x + width) * (y + height) > MOST_PIXELS:  # a frame may lie outside the screen, which then grows
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
    return CUT if 8 + length > len(data) else _decoding_problem(data, "WEBP")  # libwebp checks the chunks


def _colours(flags: int) -> int:
    """Return the size of a GIF's colour table in bytes."""
    return 3 << (flags & 0x07) + 1 if flags & 0x80 else 0


_FORMATS = {
    "PNG": re.compile(rb"\x89PNG\r\n\x1a\n"),
    "JPEG": re.compile(rb"\xff\xd8\xff(?!\x00)"),  # 0xFF 0 is no marker
    "GIF": re.compile(rb"GIF8[79]a"),
    "WEBP": re.compile(rb"RIFF....WEBP", re.DOTALL),
}
_CHECKS: dict[str, Callable[[bytes], str | None]] = {"PNG": _png, "JPEG": _jpeg, "GIF": _gif, "WEBP": _webp}


def _decoding_problem(data: bytes, name: str, filled: bytes | None = None) -> str | None:
    """Return the problem with the pixels, or None.

    Args:
        data: The whole file.
        name: Its format.
        filled: The same JPEG with `_FILLER` after its last scan. Its pixels differ where that scan is cut.
    """
    opener = _openers().get(name)
    if opener is None:  # Pillow was built without this format, so nothing more can be checked
        return None
    decoded = 0
    _QUIET.is_checking = True
    try:
        with opener(BytesIO(data)) as picture:
            if picture.width * picture.height > MOST_PIXELS:  # Pillow may read the size from another field
                return HEADER
            picture.draft(None, (1, 1))  # decode a JPEG at an eighth of its size: reads all data in a third of the time
            for frame in range(MOST_FRAMES):
                try:
                    picture.seek(frame)
                except EOFError:
                    break
                picture.load()
                decoded += picture.width * picture.height
                if decoded > MOST_PIXELS:
                    break
            if filled is not None:
                with opener(BytesIO(filled)) as other:
                    other.draft(None, (1, 1))
                    if other.tobytes() != picture.tobytes():
                        return CUT
    except Exception:  # noqa: BLE001 - decoders of damaged pixels raise OSError, SyntaxError, struct.error and others
        return BROKEN
    finally:
        _QUIET.is_checking = False
    return None


class _Quiet(threading.local):
    """A filter that drops Pillow's log records about images checked here: one per chunk, with names from the file."""

    is_checking = False

    def filter(self, _: logging.LogRecord) -> bool:
        return not self.is_checking


_QUIET = _Quiet()


@cache
def _openers() -> dict[str, Callable[[BytesIO], ImageFile]]:
    """Return Pillow's classes by format.

    They are called directly: `Image.open` warns of oddities, and warnings can only be silenced for all threads at once.
    """
    from PIL import Image, features  # 30 ms: only sessions with images pay for it
    from PIL.GifImagePlugin import GifImageFile
    from PIL.JpegImagePlugin import JpegImageFile
    from PIL.PngImagePlugin import PngImageFile
    from PIL.WebPImagePlugin import WebPImageFile

    logging.getLogger("PIL.PngImagePlugin").addFilter(_QUIET)

    class Jpeg(JpegImageFile):
        def getexif(self) -> Exif:
            return Image.Exif()  # Pillow looks for the resolution there and warns of damaged metadata

    openers: dict[str, tuple[str, Callable[[BytesIO], ImageFile]]] = {
        "PNG": ("zlib", PngImageFile),
        "JPEG": ("jpg", Jpeg),
        "GIF": ("pil", GifImageFile),
        "WEBP": ("webp", WebPImageFile),
    }
    return {name: opener for name, (feature, opener) in openers.items() if features.check(feature)}
