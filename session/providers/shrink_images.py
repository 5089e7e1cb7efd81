"""Shrink images to the limits of a provider. Only here are pixels decoded, and only of images that the provider would refuse."""

from __future__ import annotations

from functools import lru_cache
from io import BytesIO

from ..image_check import MOST_PIXELS
from ..images import image_size
from .media import Inline, Note

SMALLER_SIDES = (1568, 768)
"""Long sides to try while the file is still too large, in pixels: the size that providers scale down to, and half of it."""


def shrunk_to_fit(image: Inline, *, side: int, encoded: int) -> Inline | Note:
    """Return the image if it keeps the limits, else a smaller image, else a note in its place.

    Args:
        image: The file's bytes and media type.
        side: Maximum pixels of the longer side.
        encoded: Maximum characters of its base64.
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
    from PIL import Image, ImageOps  # imported late: takes 30 ms, and only images that are too large need it

    out = BytesIO()
    try:
        with Image.open(BytesIO(data), formats=("PNG", "JPEG", "GIF", "WEBP")) as opened:
            jpeg = opened.format == "JPEG"
            picture = ImageOps.exif_transpose(opened)
            picture.thumbnail((longest, longest))
            picture.save(out, "JPEG" if jpeg else "PNG", **({"quality": 85} if jpeg else {}))
    except Exception:  # noqa: BLE001 - decoders of damaged pixels raise OSError, SyntaxError, struct.error and others
        return None
    return out.getvalue()
