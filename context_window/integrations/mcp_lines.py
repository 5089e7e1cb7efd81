"""`CleanedLines`: the lines of a client as the MCP library can answer all of them.

The library says nothing to a call with a lone surrogate, which a model can write, to one that does not name the protocol, or to one whose
parameters are no object. The client would wait for ever. So surrogates become U+FFFD, the protocol is named, and other parameters and a
byte order mark are left out. A number that no float holds is passed as a text if a line is changed.
"""

from __future__ import annotations

import io
import json
from codecs import BOM_UTF8
from math import isfinite
from typing import Any, BinaryIO

from session.sanitize import clean

LONGEST = 16 * 1024 * 1024
"""Bytes of a line that is looked at. A longer one passes as it is."""


class CleanedLines(io.RawIOBase):
    """Reads from another stream of bytes, a line at a time."""

    def __init__(self, stream: BinaryIO) -> None:
        """
        Args:
            stream: Where the client writes.
        """
        self._stream, self._rest = stream, b""

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read bytes of the next line into the buffer."""
        if not self._rest:
            self._rest = cleaned(self._stream.readline())
        view = memoryview(buffer)
        piece, self._rest = self._rest[: len(view)], self._rest[len(view) :]
        view[: len(piece)] = piece
        return len(piece)


def cleaned(line: bytes) -> bytes:
    """Return a line that the library answers if it holds a call. Anything but a JSON object is returned as it is."""
    try:
        value = json.loads(line, parse_float=_finite, parse_constant=str) if len(line) <= LONGEST else None
        if not isinstance(value, dict):
            return line
        params = value.get("params", {})
        mended = {**value, "jsonrpc": "2.0", "params": params if isinstance(params, dict) else {}}
        text = json.dumps(mended, ensure_ascii=False)
    except (ValueError, RecursionError):
        return line
    is_sound = clean(text) == text and mended == {"params": {}, **value} and not line.startswith(BOM_UTF8)
    return line if is_sound else clean(text).encode() + b"\n"


def _finite(number: str) -> float | str:
    return value if isfinite(value := float(number)) else number
