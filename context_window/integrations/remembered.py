"""`RememberedConversations`: the conversations that a tracker goes on with, found by the messages that they begin with."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import Generic, TypeVar

from .tracked_conversation import TrackedConversation

M = TypeVar("M")


class RememberedConversations(Generic[M]):
    """The most recently used conversations. One that is in use is not among them. Thread-safe."""

    def __init__(self, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        """Take the number of conversations to remember, and what returns the time in seconds."""
        self._most, self._clock = most, clock
        self._lock = Lock()
        self._last_use: OrderedDict[TrackedConversation[M], float] = OrderedDict()

    @property
    def latest(self) -> list[TrackedConversation[M]]:
        """The conversations, the most recently used first."""
        with self._lock:
            return list(reversed(self._last_use))

    def take(self, hashes: list[bytes], system_hash: bytes) -> tuple[int, TrackedConversation[M] | None]:
        """Remove and return the conversation that matches the most leading messages, and their number.

        The hashes are those of the first messages, from none of them to all.
        """
        with self._lock:
            by_key = {key: tracked for tracked in self._last_use for key in tracked.keys}  # of two with the same key, the latest
            for length in range(len(hashes) - 1, 0, -1):
                if (tracked := by_key.get((system_hash, hashes[length]))) is not None:
                    del self._last_use[tracked]
                    return length, tracked
        return 0, None

    def put(self, tracked: TrackedConversation[M]) -> None:
        """Remember a conversation as the one that was used last."""
        with self._lock:
            self._last_use[tracked] = self._clock()
            while len(self._last_use) > self._most:
                self._last_use.popitem(last=False)

    def forget_idle(self, seconds: float) -> int:
        """Forget the conversations that were last used this number of seconds ago, or earlier. Return their number."""
        with self._lock:
            count, end = len(self._last_use), self._clock() - seconds
            while self._last_use and next(iter(self._last_use.values())) <= end:
                self._last_use.popitem(last=False)
            return count - len(self._last_use)
