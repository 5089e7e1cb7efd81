"""Pictures, made by hand: no library stands between a test and their bytes."""

from __future__ import annotations

import struct
import zlib


def png(width: int = 3, height: int = 2, colour: bytes = b"\x10\x20\x30") -> bytes:
    """A real picture, all of one colour: red, green, blue."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    pixels = zlib.compress((b"\0" + colour * width) * height)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")
