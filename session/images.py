"""An image's dimensions, read from its header. Pixels are never decoded here."""

from __future__ import annotations

import os
import stat
import warnings
from io import BytesIO
from typing import IO

FORMATS = ("PNG", "JPEG", "GIF", "WEBP")
"""The formats that model providers take; no other decoder is ever started."""

MAX_SIDE = 100_000
"""Pixels. A header that claims more is taken for damaged: no provider accepts an image near that size."""

ORIENTATION = 0x0112
ROTATED = (5, 6, 7, 8)
"""The EXIF tag, and its values that swap width and height."""


def image_size(data: bytes) -> tuple[int, int] | None:
    """Width and height in pixels as shown (EXIF rotation applied), or None where the header cannot be believed."""
    return _size(BytesIO(data))


def image_file_size(path: str | os.PathLike[str]) -> tuple[int, int] | None:
    """Like `image_size` for a file; None too where there is no regular file that can be read."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return None  # a pipe or a device could block for ever
        with open(path, "rb") as file:
            return _size(file)
    except (OSError, ValueError):  # ValueError: a NUL in the path
        return None


def _size(file: IO[bytes]) -> tuple[int, int] | None:
    from PIL import Image  # 30 ms: only sessions with images pay for it

    try:
        with warnings.catch_warnings():
            # Pillow's bomb check counts pixels it would decode; we decode none and have a limit of our own.
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            with Image.open(file, formats=FORMATS) as image:
                width, height = image.size
                # Only where the tag stands in the header: asking a PNG for it would decode the pixels.
                if "exif" in image.info and image.getexif().get(ORIENTATION) in ROTATED:
                    width, height = height, width
    except Exception:  # noqa: BLE001 - on damaged headers decoders raise struct.error, KeyError and whatever comes
        return None
    if not (0 < width <= MAX_SIDE and 0 < height <= MAX_SIDE):
        return None
    return width, height
