"""`Decoder`: an answer's bytes without their content encoding, up to a limit. Nothing else unpacks what an upstream sends."""

from __future__ import annotations

import zlib

DEFLATED = frozenset([b"gzip", b"x-gzip", b"deflate"])


class Decoder:
    """Collects the bytes of one answer as they come: as they are, or packed once by gzip or deflate.

    Attributes:
        content: What came, unpacked. Whoever has read its beginning may delete that.
        is_readable: False if it is packed otherwise, is damaged, or would exceed the limit. The content is empty then.
    """

    def __init__(self, encoding: bytes, longest: int) -> None:
        """
        Args:
            encoding: The answer's content encoding.
            longest: Bytes that the content may have.
        """
        encoding = encoding.lower()
        self.content = bytearray()
        self.is_readable = encoding == b"identity" or encoding in DEFLATED
        self._inflater = zlib.decompressobj(wbits=47) if encoding in DEFLATED else None  # 47: any window, the form is detected
        self._longest = longest

    def add(self, piece: bytes) -> None:
        """Take the next bytes of the answer."""
        if self.is_readable:
            try:
                self.content += piece if self._inflater is None else self._inflater.decompress(piece, self._longest)
            except zlib.error:
                self.is_readable = False
            is_cut = self._inflater is not None and bool(self._inflater.unconsumed_tail)
            if is_cut or len(self.content) > self._longest:
                self.is_readable = False
        if not self.is_readable:
            self.content.clear()
