"""Finds what a strict decoder refuses in a PNG file, by the PNG specification (third edition, 5, 7, 8 and 11).

Pillow fills missing rows with black and ignores chunks it does not know, where libpng refuses the file. Every chunk is read to IEND,
and the pixels are decompressed step by step and only counted, so memory stays bounded.

Two breaches that libpng only warns of are accepted: bytes after the last row, and more palette entries than the bit depth can address.
"""

from __future__ import annotations

import re
import struct
import zlib

STEP = 1 << 16
"""Bytes: the most that is decompressed at once, and the most compressed bytes that are copied at once."""

_DEPTHS = {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}
"""Legal bit depths by colour type."""
_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
_PALETTE_COLOUR = 3
_ADAM7 = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))
"""First column, first row, column step and row step of each pass of an interlaced image."""
_ANCILLARY = re.compile(rb"[a-z][A-Za-z]{3}")
"""The name of a chunk that a decoder may skip. Any other name that it does not know makes the file undecodable."""


def is_decodable_png(data: bytes, most_chunks: int) -> bool | None:
    """Return True if a strict decoder takes the file's chunks and finds all rows, None if the file has too many chunks to check.

    Raises:
        struct.error: The file ends before IEND.
    """
    view, at, previous = memoryview(data), 8, b""
    pixels: _Pixels | None = None
    needs_palette = has_palette = has_pixels = False
    for _ in range(most_chunks):
        length, kind = struct.unpack_from(">I4s", data, at)
        (checksum,) = struct.unpack_from(">I", data, at + 8 + length)
        if zlib.crc32(view[at + 4 : at + 8 + length]) != checksum:
            return False
        content = view[at + 8 : at + 8 + length]
        if kind == b"IHDR":
            row_bytes = None if previous else _row_bytes(content)
            if row_bytes is None:
                return False
            pixels, needs_palette = _Pixels(row_bytes), content[9] == _PALETTE_COLOUR
        elif pixels is None:
            return False
        elif kind == b"PLTE":
            if has_palette or (needs_palette and (has_pixels or length % 3 or not 3 <= length <= 3 * 256)):
                return False
            has_palette = True
        elif kind == b"IDAT":
            is_misplaced = (has_pixels and previous != b"IDAT") or (needs_palette and not has_palette)
            if is_misplaced or not pixels.feed(content):
                return False
            has_pixels = True
        elif kind == b"IEND":
            return pixels.is_complete
        elif not _ANCILLARY.fullmatch(kind):
            return False
        at, previous = at + 12 + length, kind
    return None


def _row_bytes(header: memoryview) -> int | None:
    """Return the size of all rows in bytes, each with its filter byte, or None for an illegal IHDR chunk."""
    if len(header) != 13:
        return None
    width, height, depth, colour, compression, filtering, interlacing = struct.unpack(">IIBBBBB", header)
    if depth not in _DEPTHS.get(colour, ()) or compression or filtering or interlacing > 1:
        return None
    total = 0
    for first_column, first_row, column_step, row_step in _ADAM7 if interlacing else ((0, 0, 1, 1),):
        columns, rows = -((first_column - width) // column_step), -((first_row - height) // row_step)
        if columns > 0 and rows > 0:
            total += rows * (1 + (columns * depth * _CHANNELS[colour] + 7) // 8)
    return total


class _Pixels:
    """Counts the bytes of the rows as they are decompressed."""

    def __init__(self, row_bytes: int) -> None:
        self._missing = row_bytes
        self._stream = zlib.decompressobj()

    @property
    def is_complete(self) -> bool:
        """True if there are bytes for all rows, and either the compressed stream ends soundly or there are more bytes than needed."""
        return self._missing < 0 or (self._missing == 0 and self._stream.eof)

    def feed(self, content: memoryview) -> bool:
        """Decompress one IDAT chunk, up to the end of the rows. Return False if it cannot be decompressed."""
        for start in range(0, len(content), STEP):
            compressed: bytes | memoryview = content[start : start + STEP]
            while not self._stream.eof and self._missing >= 0:
                try:
                    size = len(self._stream.decompress(compressed, STEP))
                except zlib.error:
                    return False
                self._missing -= size
                compressed = self._stream.unconsumed_tail
                if not compressed and size < STEP:
                    break
        return True
