"""Recognizes binary files by their first bytes."""

from __future__ import annotations

SNIFFED = 8_192
"""Bytes at a file's beginning that are checked."""

_MAGIC = {b"\x89PNG": "PNG image", b"\xff\xd8\xff": "JPEG image", b"GIF8": "GIF image", b"%PDF": "PDF", b"PK\x03\x04": "ZIP archive"}


def binary_kind(data: bytes) -> str | None:
    """Return the kind of a binary file in words; None for a text file."""
    for magic, kind in _MAGIC.items():
        if data.startswith(magic):
            return kind
    if b"\0" in data[:SNIFFED]:
        return "no text in UTF-8"
    try:
        data[:SNIFFED].decode("utf-8")
    except UnicodeDecodeError as error:
        if error.start < min(len(data), SNIFFED) - 3:  # an error at the very end is a character that was cut
            return "no text in UTF-8"
    return None
