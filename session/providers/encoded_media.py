"""Check the base64 images and documents of a request, for the validators. Shares no code with the converters but the byte checks."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator

from session.document_check import document_problem
from session.errors import short
from session.image_check import image_problem

_MAGIC = {
    "image/png": re.compile(rb"\x89PNG"),
    "image/jpeg": re.compile(rb"\xff\xd8\xff"),
    "image/gif": re.compile(rb"GIF8"),
    "image/webp": re.compile(rb"RIFF....WEBP", re.DOTALL),
}


def decoded(encoded: str) -> bytes | None:
    """Return the bytes of a base64 text, or None if it is not base64."""
    try:
        return base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        return None


def image_faults(media_type: str, encoded: str) -> Iterator[str]:
    """Yield each fault of an image: in its type, its base64, its label, or its bytes."""
    if media_type not in _MAGIC:
        yield f"{short(media_type)} is no media type of images here"
        return
    raw = decoded(encoded)
    if raw is None:
        yield "not base64"
        return
    actual = next((name for name, magic in _MAGIC.items() if magic.match(raw)), None)
    if actual is not None and actual != media_type:
        yield f"labelled {media_type}, but the bytes are {actual}"
    if (problem := image_problem(raw)) is not None:
        yield f"image {problem}"


def document_fault(media_type: str, encoded: str) -> str | None:
    """Return the fault in a document's base64 or bytes, or None. Documents of unknown types have none."""
    raw = decoded(encoded)
    problem = "is no base64" if raw is None else document_problem(raw, media_type)
    return None if problem is None else f"document {problem}"
