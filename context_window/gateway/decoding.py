"""`Decoder`: the bytes of a request or an answer without their content encoding, up to a limit. Nothing else unpacks what is sent here."""

from __future__ import annotations

import zlib
from contextlib import suppress
from importlib import import_module
from typing import Any


def _zstd() -> Any:
    """Return the module for zstd: Python's own since 3.14, or the same for earlier ones; None without either."""
    for name in ("compression.zstd", "backports.zstd"):
        with suppress(ModuleNotFoundError):
            return import_module(name)
    return None


ZSTD = _zstd()
WIDEST = 23
"""Binary logarithm of the bytes of a zstd stream that its end may refer to: what RFC 9659 allows."""
_FAULTS = (zlib.error, EOFError, *(() if ZSTD is None else (ZSTD.ZstdError,)))


def _unpacker(encoding: bytes) -> Any:
    if encoding in (b"gzip", b"x-gzip", b"deflate"):
        return zlib.decompressobj(wbits=47)  # any window, the form is detected
    if encoding == b"zstd" and ZSTD is not None:
        return ZSTD.ZstdDecompressor(options={ZSTD.DecompressionParameter.window_log_max: WIDEST})
    return None


class Decoder:
    """Collects bytes as they come: as they are, or packed once by gzip, deflate or zstd.

    Attributes:
        content: What came, unpacked. Whoever has read its beginning may delete that.
        is_readable: False if it is packed otherwise, is damaged, or would exceed the limit. The content is empty then.
    """

    def __init__(self, encoding: bytes, longest: int) -> None:
        """
        Args:
            encoding: The content encoding.
            longest: Bytes that the content may have.
        """
        self.content = bytearray()
        self._unpacker = _unpacker(encoding.lower())
        self.is_readable = self._unpacker is not None or encoding.lower() == b"identity"
        self._longest = longest

    def add(self, piece: bytes) -> None:
        """Take the next bytes."""
        if self.is_readable:
            try:
                self.content += piece if self._unpacker is None else self._unpacker.decompress(piece, self._longest + 1)
            except _FAULTS:
                self.is_readable = False
            if len(self.content) > self._longest:
                self.is_readable = False
        if not self.is_readable:
            self.content.clear()

    @property
    def is_whole(self) -> bool:
        """True if what came can be read and is all: nothing is missing, and nothing follows."""
        return self.is_readable and (self._unpacker is None or (self._unpacker.eof and not self._unpacker.unused_data))


def unpacked(content: bytes, encoding: str, longest: int) -> bytes | None:
    """Return a request's body unpacked; None if it is packed otherwise, is damaged, or has more than `longest` bytes."""
    decoder = Decoder(encoding.encode("latin-1"), longest)
    decoder.add(content)
    return bytes(decoder.content) if decoder.is_whole else None
