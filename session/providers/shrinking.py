"""Images made small enough for a provider. The only place where pixels are decoded, and only of images that it would refuse."""

from __future__ import annotations

from io import BytesIO

from ..image_check import MOST_PIXELS
from ..images import image_size
from .media import Inline, Note

SMALLER_SIDES = (1568, 768)
"""Pixels of the long side to try when the file is still too large: what providers scale down to, and half of that."""


def within(image: Inline, *, side: int, encoded: int) -> Inline | Note:
    """The image itself where it is within the limits, else a smaller one, else a note that stands for it.

    Args:
        image: The file's bytes and media type.
        side: Pixels that the longer side may have.
        encoded: Characters that its base64 may have.
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


def _scaled(data: bytes, longest: int) -> bytes | None:
    """The picture with its longer side at most `longest`: JPEG stays JPEG, all else becomes PNG. None where it is damaged."""
    from PIL import Image, ImageOps  # 30 ms: only images that are too large pay for it

    out = BytesIO()
    try:
        with Image.open(BytesIO(data), formats=("PNG", "JPEG", "GIF", "WEBP")) as opened:
            jpeg = opened.format == "JPEG"
            picture = ImageOps.exif_transpose(opened)
            picture.thumbnail((longest, longest))
            picture.save(out, "JPEG" if jpeg else "PNG", **({"quality": 85} if jpeg else {}))
    except Exception:  # noqa: BLE001 - decoders of damaged pixels raise OSError, SyntaxError, struct.error and whatever comes
        return None
    return out.getvalue()
