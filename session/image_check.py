"""Finds damage in the bytes of an image before a provider does: Pillow decodes them.

A provider refuses a request with bytes that it cannot decode. Every later request of the session sends them again and is refused too.
So images are decoded once before they are sent, and never to be counted. What Pillow does not notice, a provider may refuse:
`context_window/requests/part_refusals.py` then replaces the image.

The result depends on the bytes alone, so that the same log always gives the same request. That is why work is limited by pixels, scans
and frames instead of a clock.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from io import BytesIO
from typing import TYPE_CHECKING

from .images import image_size

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
"""Frames of an animation that are decoded, of at most `MOST_PIXELS` in total."""

UNKNOWN = "damaged: its bytes are no image of a format that models take"
HEADER = "damaged: its header cannot be read"
BROKEN = "damaged: its content cannot be decoded"
LONG = "too large to check: it has too many parts"

_FORMATS = {
    "PNG": re.compile(rb"\x89PNG\r\n\x1a\n"),
    "JPEG": re.compile(rb"\xff\xd8\xff(?!\x00)"),  # 0xFF 0 is no marker
    "GIF": re.compile(rb"GIF8[79]a"),
    "WEBP": re.compile(rb"RIFF....WEBP", re.DOTALL),
}


def image_problem(data: bytes) -> str | None:
    """Return the problem with an image's bytes, or None for a sound PNG, JPEG, GIF or WebP image. Its first bytes tell the format.

    It is a predicate for a note such as `[image damaged: its content cannot be decoded]`, and never quotes the bytes.
    """
    name = next((name for name, pattern in _FORMATS.items() if pattern.match(data)), None)
    if name is None:
        return UNKNOWN
    size = image_size(data)
    if size is None:
        return HEADER
    pixels = size[0] * size[1]
    if pixels > (MOST_WEBP_PIXELS if name == "WEBP" else MOST_PIXELS):
        return f"too large to send: {size[0]}x{size[1]}"
    if name == "JPEG" and data.count(b"\xff\xda") * pixels > MOST_SCANNED:
        return LONG
    try:
        return _decoding_problem(data, _openers()[name])
    except Exception:  # noqa: BLE001 - decoders of damaged pixels raise OSError, SyntaxError, struct.error and others
        return BROKEN


def _decoding_problem(data: bytes, opener: Callable[[BytesIO], ImageFile]) -> str | None:
    """Return the problem with the size that Pillow finds, or None if it can decode the pixels. It raises whatever it likes if not."""
    with opener(BytesIO(data)) as picture:
        if picture.width * picture.height > MOST_PIXELS:  # Pillow may read the size from another field
            return HEADER
        picture.verify()  # the checksums of a PNG, to its end
    with opener(BytesIO(data)) as picture:
        picture.draft(None, (1, 1))  # decode a JPEG at an eighth of its size: reads all data in a third of the time
        decoded = 0
        for frame in range(MOST_FRAMES):
            try:
                picture.seek(frame)
            except EOFError:
                break
            decoded += picture.width * picture.height
            if decoded > MOST_PIXELS:
                break
            picture.load()
    return None


@cache
def _openers() -> dict[str, Callable[[BytesIO], ImageFile]]:
    """Return Pillow's classes by format.

    They are called directly: `Image.open` warns of oddities, and warnings can only be silenced for all threads at once.
    """
    from PIL import Image  # 30 ms: only sessions with images pay for it
    from PIL.GifImagePlugin import GifImageFile
    from PIL.JpegImagePlugin import JpegImageFile
    from PIL.PngImagePlugin import PngImageFile
    from PIL.WebPImagePlugin import WebPImageFile

    class Jpeg(JpegImageFile):
        def getexif(self) -> Exif:
            return Image.Exif()  # Pillow looks for the resolution there and warns of damaged metadata

    return {"PNG": PngImageFile, "JPEG": Jpeg, "GIF": GifImageFile, "WEBP": WebPImageFile}
