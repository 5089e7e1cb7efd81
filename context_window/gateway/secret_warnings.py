"""`SecretWarnings`: says that a request holds a key, and where, before it is sent. It keeps no key, only digests."""

from __future__ import annotations

import hashlib
import logging
import re
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
"""Fields that hold bytes or ids, which look like keys. In the arguments and the result of a call they are what a tool makes of them."""
FREE = frozenset({"input", "args", "response"})
"""Fields of a call, and of a result, that hold what a tool takes and returns."""
_BYTES = re.compile(r"data:(?!text/)[\w.+-]+/[\w.+-]+(?:;[\w.+=-]+)*;base64,[\w+/=-]*", re.ASCII)
TOLD_MAX = 10
"""Warnings for one request. How many more keys it holds is said in one."""
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
        self._seen: dict[bytes, None] = {}
        self._searched: dict[bytes, None] = {}
        self._lock = Lock()

    def look(self, fields: Json) -> None:
        """Search a request that is about to be sent.

        Args:
            fields: Its body.
        """
        told: list[str] = []
        untold = 0
        for place, text in _texts(fields):
            if not self._is_new(text, self._searched):
                continue
            line, at = 1, 0
            for secret in secrets_in(text):
                line, at = line + text.count("\n", at, secret.start), secret.start
                if self._is_new(secret.value, self._seen):
                    self.count += 1
                    if len(told) < TOLD_MAX:
                        told.append(f"a request holds {secret.kind}, in {place}, line {line:,}")
                    else:
                        untold += 1
        for message in [*told, f"a request holds {untold:,} more keys and passwords"] if untold else told:
            self.latest.append(message)
            _LOGGER.warning("%s", message)

    def _is_new(self, text: str, known: dict[bytes, None]) -> bool:
        """True if the text is not known yet. It is from now on, and the one that has been for the longest time no more."""
        digest = self._digest(text)
        with self._lock:
            is_new = digest not in known
            known[digest] = None
            if len(known) > TEXTS_MAX:
                del known[next(iter(known))]
        return is_new

    def _digest(self, text: str) -> bytes:
        return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16, key=self._salt).digest()


def _texts(fields: Json) -> Iterator[tuple[str, str]]:
    """Yield each text of a request and its place in words: `messages[12] (user, tool_result)`."""
    waiting: list[tuple[str, object, bool]] = [("", fields, False)]
    while waiting:
        place, value, is_free = waiting.pop()
        if isinstance(value, str):
            if not (value.startswith("data:") and _BYTES.fullmatch(value)):
                yield place, value
        elif isinstance(value, dict):
            yield from ((place, name) for name in value if is_free)
            waiting += [
                (_within(place, name, value), each, is_free or _is_free(name, value))
                for name, each in reversed(value.items())
                if is_free or _is_text(name, value)
            ]
        elif isinstance(value, list):
            waiting += [(f"{place}[{index}]" if "[" not in place else place, each, is_free) for index, each in enumerate(value)][::-1]


def _is_free(name: str, fields: Json) -> bool:
    """True if a field holds what a tool takes or returns: that of a call or of a result, which name the tool."""
    return name in FREE and "name" in fields


def _is_text(name: str, fields: Json) -> bool:
    """True if a field holds text: any, but for bytes and ids. The text of a document stands where others have bytes."""
    if name != "data":
        return name not in NOT_TEXT
    media_type = next((fields[each] for each in ("media_type", "mimeType", "mime_type") if isinstance(fields.get(each), str)), "")
    return fields.get("type") == "text" or media_type.startswith("text/")


def _within(place: str, name: str, value: Json) -> str:
    """Return the place of a field: its name at the top, below a list the entry with its role or kind."""
    if not place:
        return printable(name)[:40]
    kind = value.get("role") or value.get("type") or value.get("name")
    return f"{place} ({printable(kind)[:40]})" if isinstance(kind, str) and place.endswith("]") else place
