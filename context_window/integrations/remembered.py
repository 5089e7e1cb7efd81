"""`RememberedConversations`: the conversations that a tracker goes on with, found by the messages that they begin with."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import Generic, TypeVar

from session.session import Session

from .message_hashes import NO_MESSAGES, MessageHashes
from .tracked_conversation import TrackedConversation

M = TypeVar("M")


class RememberedConversations(Generic[M]):
    """The most recently used conversations. One that is in use is not among them. Thread-safe."""

    def __init__(self, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        """
        Args:
            most: Conversations to remember.
            clock: Returns the time in seconds.
        """
        self._most, self._clock = most, clock
        self._lock = Lock()
        self._by_key: dict[tuple[bytes, bytes], TrackedConversation[M]] = {}
        self._last_use: OrderedDict[TrackedConversation[M], float] = OrderedDict()

    def __len__(self) -> int:
        return len(self._last_use)

    @property
    def latest(self) -> list[TrackedConversation[M]]:
        """The conversations, the most recently used first."""
        with self._lock:
            return list(reversed(self._last_use))

    def most_similar(self, contents: list[object], system_hash: bytes) -> MessageHashes:
        """Return the remembered list of messages that these contents look most like. Only the time depends on the choice."""
        conversations = [tracked for tracked in self.latest if tracked.system_hash == system_hash]
        lists = [hashes for tracked in conversations for hashes in (tracked.received, tracked.returned)]
        return max(lists, key=lambda hashes: hashes.likeness(contents), default=NO_MESSAGES)

    def take(self, hashes: list[bytes], system_hash: bytes) -> tuple[int, TrackedConversation[M] | None]:
        """Remove and return the conversation that matches the most leading messages, and their number.

        Args:
            hashes: Hashes of the first messages, from none of them to all.
            system_hash: Hash of the system prompt.
        """
        with self._lock:
            for length in range(len(hashes) - 1, 0, -1):
                tracked = self._by_key.get((system_hash, hashes[length]))
                if tracked is not None:
                    self._forget(tracked)
                    return length, tracked
        return 0, None

    def put(self, tracked: TrackedConversation[M]) -> None:
        """Remember a conversation as the one that was used last."""
        with self._lock:
            self._last_use[tracked] = self._clock()
            for key in tracked.keys:
                self._by_key[key] = tracked
            while len(self._last_use) > self._most:
                self._forget(next(iter(self._last_use)))

    def forget_idle(self, seconds: float) -> int:
        """Forget the conversations that were last used so many seconds ago, or earlier. Return their number."""
        with self._lock:
            count, end = len(self._last_use), self._clock() - seconds
            while self._last_use and next(iter(self._last_use.values())) <= end:
                self._forget(next(iter(self._last_use)))
            return count - len(self._last_use)

    def sessions(self) -> list[Session]:
        """Return the conversations' logs, the most recently used first."""
        return [tracked.session for tracked in self.latest]

    def _forget(self, tracked: TrackedConversation[M]) -> None:
        del self._last_use[tracked]
        for key in tracked.keys:
            if self._by_key.get(key) is tracked:
                del self._by_key[key]
