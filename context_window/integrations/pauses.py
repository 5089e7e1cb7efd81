"""`Pauses`: tells when a conversation's request comes so late that the provider's cache has forgotten the one before."""

from __future__ import annotations

import time
from collections import OrderedDict
from threading import Lock

KEPT = 10_000
"""Conversations whose last request is remembered: the most recent ones."""
PAUSE = 1e9
"""Seconds by which the items after a pause are younger than those before, in the log: longer than any cache remembers."""


class Pauses:
    """The times of conversations' last requests. Thread-safe."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._last: OrderedDict[bytes, float] = OrderedDict()

    def note_request(self, start: bytes, seconds: float) -> bool:
        """Note a request, and return True if the one before was more than this number of seconds ago. Without one before it is False."""
        with self._lock:
            now, last = time.monotonic(), self._last.pop(start, None)
            self._last[start] = now
            if len(self._last) > KEPT:
                self._last.popitem(last=False)
        return last is not None and now - last > seconds
