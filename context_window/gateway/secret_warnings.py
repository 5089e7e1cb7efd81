"""`SecretWarnings`: says that a request holds a key, and where, before it is sent. It keeps no key, only digests."""

from __future__ import annotations

import hashlib
import logging
import secrets
from collections import deque
from collections.abc import Iterator
from threading import Lock

from session.secret_finder import secrets_in

from ..printable import printable
from .wire_format import Json

NOT_TEXT = frozenset(
    {"data", "signature", "encrypted_content", "thoughtSignature", "thought_signature", "id", "call_id", "tool_use_id", "tool_call_id"}
)
"""Fields that hold bytes or ids, which look like keys."""
TEXTS_MAX = 100_000
"""Texts without a key that are remembered, so that a conversation is not searched anew with each request."""
SHOWN = 10
"""Warnings that are shown on the page."""
_LOGGER = logging.getLogger(__name__)


class SecretWarnings:
    """Logs a warning for each key in requests, once. Thread-safe.

    Attributes:
        count: Different keys so far.
        latest: What was said of the latest of them.
    """

    def __init__(self) -> None:
        self.count = 0
        self.latest: deque[str] = deque(maxlen=SHOWN)
        self._salt = secrets.token_bytes(16)
        self._seen: set[bytes] = set()
        self._searched: dict[bytes, None] = {}
        self._lock = Lock()

    def look(self, fields: Json) -> None:
        """Search a request that is about to be sent.

        Args:
            fields: Its body.
        """
        for place, text in _texts(fields):
            digest = self._digest(text)
            with self._lock:
                if digest in self._searched:
                    continue
                self._searched[digest] = None
                if len(self._searched) > TEXTS_MAX:
                    del self._searched[next(iter(self._searched))]
            for secret in secrets_in(text):
                if self._is_new(secret.value):
                    line = text.count("\n", 0, secret.start) + 1
                    self.latest.append(message := f"a request holds {secret.kind}, in {place}, line {line:,}")
                    _LOGGER.warning("%s", message)

    def _is_new(self, value: str) -> bool:
        digest = self._digest(value)
        with self._lock:
            if digest in self._seen:
                return False
            self._seen.add(digest)
            self.count += 1
        return True

    def _digest(self, text: str) -> bytes:
        return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16, key=self._salt).digest()


def _texts(fields: Json) -> Iterator[tuple[str, str]]:
    """Yield each text of a request and its place in words: `messages[12] (user, tool_result)`."""
    waiting: list[tuple[str, object]] = [("", fields)]
    while waiting:
        place, value = waiting.pop()
        if isinstance(value, str):
            if not value.startswith("data:"):
                yield place, value
        elif isinstance(value, dict):
            inner = [(_within(place, str(name), value), each) for name, each in value.items() if name not in NOT_TEXT]
            waiting += reversed(inner)
        elif isinstance(value, list):
            waiting += [(f"{place}[{index}]" if "[" not in place else place, each) for index, each in enumerate(value)][::-1]


def _within(place: str, name: str, value: Json) -> str:
    """Return the place of a field: its name at the top, below a list the entry with its role or kind."""
    if not place:
        return printable(name)[:40]
    kind = value.get("role") or value.get("type") or value.get("name")
    return f"{place} ({printable(kind)[:40]})" if isinstance(kind, str) and place.endswith("]") else place
