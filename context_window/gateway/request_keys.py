"""`RequestKeys`: takes the keys with which a request came out of whatever is recorded of it."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl

from starlette.requests import Request

HIDDEN = b"[key]"
"""Stands in a recording where a key stood."""
SHORTEST = 8
"""Characters of the shortest value that is taken for a key. Local servers take any word for one."""
_SECRET = re.compile(r"auth|key|token|secret|cookie|credential|signature", re.IGNORECASE)
"""A part of the name of each header and query parameter that holds a key."""
_BETWEEN = re.compile(r"[\s;,=]+")


class RequestKeys:
    """Replaces keys in bytes. What comes in pieces is searched across their borders."""

    def __init__(self, request: Request) -> None:
        """
        Args:
            request: A client's request. The keys are the values of its headers and parameters whose names say so.
        """
        query = parse_qsl(request.url.query, keep_blank_values=True)
        values = [value for name, value in (*request.headers.items(), *query) if _SECRET.search(name)]
        keys = {key.encode() for value in values for key in _BETWEEN.split(value) if len(key) >= SHORTEST}
        self._pattern = re.compile(b"|".join(map(re.escape, sorted(keys, key=len, reverse=True)))) if keys else None
        self._kept = max(map(len, keys), default=1) - 1
        self._rest = b""

    def hidden(self, content: bytes) -> bytes:
        """Return content without keys."""
        return content if self._pattern is None else self._pattern.sub(HIDDEN, content)

    def hidden_piece(self, piece: bytes) -> bytes:
        """Return what can be written once this piece is known. The beginning of a key may wait for the next piece."""
        content = self.hidden(self._rest + piece)
        end = max(0, len(content) - self._kept)
        self._rest = content[end:]
        return content[:end]

    def hidden_end(self) -> bytes:
        """Return what waited when the last piece has come."""
        rest, self._rest = self._rest, b""
        return rest
