"""`CleanedLines`: the lines of a client as the MCP library can answer all of them.

The library says nothing to a call with a lone surrogate, which a model can write, to one that is nested deeply, that does not name the
protocol, or whose parameters are no object. The client would wait for ever. So each line is written anew: surrogates become U+FFFD, the
protocol is named, and what is too deep is left out, as are other parameters and a byte order mark.
"""

from __future__ import annotations

import io
import json
from math import isfinite
from typing import Any, BinaryIO

from session.sanitize import clean
from session.transcripts.source import decode, parse

LONGEST = 16 * 1024 * 1024
"""Bytes of a line that is looked at. A longer one passes as it is."""
LEVELS = 64
"""Levels of nesting that are kept."""


class CleanedLines(io.RawIOBase):
    """Reads from another stream of bytes, a line at a time."""

    def __init__(self, stream: BinaryIO) -> None:
        """Take the stream that the client writes to."""
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
    if len(line) > LONGEST:
        return line
    values, _ = parse(decode(line).removeprefix("\ufeff"))
    if len(values) != 1 or not isinstance(values[0], dict):
        return line
    call = _shallow({**values[0], "jsonrpc": "2.0"}, LEVELS)
    if not isinstance(call.get("params", {}), dict):
        del call["params"]
    return clean(json.dumps(call, ensure_ascii=False)).encode() + b"\n"


def _shallow(value: Any, levels: int) -> Any:
    """Return a value without its deepest levels, in numbers that a float holds."""
    if isinstance(value, float) and not isfinite(value):
        return str(value)
    if isinstance(value, dict | list) and not levels:
        return None
    if isinstance(value, dict):
        return {name: _shallow(each, levels - 1) for name, each in value.items()}
    return [_shallow(each, levels - 1) for each in value] if isinstance(value, list) else value
