"""Amount of text in a PDF, and the size of its pages, from a bounded scan of its bytes. The text itself is not read.

PDF is ISO 32000. The text of pages is in content streams (7.8.2), most of them compressed, as strings that an operator shows (9.4.3).
Which letters a string stands for depends on its font (9.10); here only their number counts.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator

from .pdf import SCANNED_BYTES

STREAM_BYTES, INFLATED_BYTES = 1024 * 1024, 16 * 1024 * 1024
"""Limits against decompression bombs: bytes read of each stream, and decompressed bytes of all together."""
DICTIONARY = 400
"""Bytes before a stream that are searched for its filter."""
LETTER = (612, 792)
"""Width and height of a page in points if none is stated: US letter."""
LARGEST_SIDE = 14_400
"""Points. No page may be larger (ISO 32000, annex C)."""

_STREAM = re.compile(rb"\bstream\r?\n")
_PICTURE = re.compile(rb"/(?:DCT|JPX|CCITTFax|JBIG2)Decode")
_TEXT_OBJECT, _SHOW = re.compile(rb"\bBT\b"), re.compile(rb"\bT[jJ]\b")
_STRING = re.compile(rb"\(((?:[^\\()]|\\.){0,4000})\)|<([0-9A-Fa-f\s]{2,4000})>", re.DOTALL)
_NUMBER = rb"(-?\d{1,6})(?:\.\d{0,9})?"
_BOX = re.compile(rb"/MediaBox\s{0,9}\[\s{0,9}" + rb"\s{1,9}".join([_NUMBER] * 4))
_ENCRYPTED = re.compile(rb"/Encrypt\s{1,9}[\d<]")


def text_characters(data: bytes) -> int | None:
    """Return about how many characters the PDF shows, or None if none of its streams can be read.

    A file of scanned pages shows none: pictures have filters of their own.

    Strings in hexadecimal are taken for two bytes per character, as fonts with many characters have it. What lies beyond the limits is
    not counted.
    """
    if _ENCRYPTED.search(data, 0, SCANNED_BYTES) is not None:
        return None
    characters = streams = 0
    for content in _streams(data):
        streams += 1
        if _TEXT_OBJECT.search(content) is not None and _SHOW.search(content) is not None:
            characters += sum(len(match[1]) if match[2] is None else len(match[2]) // 4 for match in _STRING.finditer(content))
    return characters if streams else None


def page_size(data: bytes) -> tuple[int, int]:
    """Return the width and height of the first page in points, or those of US letter if none is in plain sight."""
    match = _BOX.search(data, 0, SCANNED_BYTES)
    if match is None:
        return LETTER
    x, y, opposite_x, opposite_y = map(int, match.groups())
    width, height = abs(opposite_x - x), abs(opposite_y - y)
    return (width, height) if 1 <= width <= LARGEST_SIDE and 1 <= height <= LARGEST_SIDE else LETTER


def _streams(data: bytes) -> Iterator[bytes]:
    """Yield the content of each stream that can be read; of a picture nothing, since it shows no text."""
    view, position, remaining = memoryview(data), 0, INFLATED_BYTES
    while remaining > 0 and (match := _STREAM.search(data, position, SCANNED_BYTES)) is not None:
        end = data.find(b"endstream", match.end(), SCANNED_BYTES)
        position = len(data) if end < 0 else end + len(b"endstream")
        compressed = view[match.end() : min(position, match.end() + STREAM_BYTES)]
        try:
            content = zlib.decompressobj().decompress(compressed, min(remaining, STREAM_BYTES))
        except zlib.error:
            dictionary = data[max(0, match.start() - DICTIONARY) : match.start()].rpartition(b"obj")[2]
            if b"/Filter" in dictionary and _PICTURE.search(dictionary) is None:
                continue
            content = b"" if b"/Filter" in dictionary else bytes(compressed[:remaining])
        remaining -= len(content)
        yield content
