"""`OwnRefusals`: the refused prompts that one worker has seen. It keeps them longer than the conversations: they are numbers."""

from __future__ import annotations

from collections import OrderedDict, deque
from threading import Lock

from ..integrations.past_refusals import PastRefusal, RefusalMemory

KEPT = 10_000
"""Conversations whose refusals are kept: those that were refused last."""
MOST = 1_000
"""Refusals of conversations that begin alike, as those of a prompt that runs each hour: the newest ones."""


class OwnRefusals(RefusalMemory):
    """Refused prompts in this process. A conversation that is forgotten and comes back has the view that it would have had. Thread-safe."""

    def __init__(self, kept: int = KEPT) -> None:
        """
        Args:
            kept: Conversations whose refusals are kept.
        """
        self._kept = kept
        self._lock = Lock()
        self._by_start: OrderedDict[bytes, deque[PastRefusal]] = OrderedDict()

    def known(self, start: bytes, /) -> list[PastRefusal]:
        """Return the refusals of conversations that begin like this."""
        with self._lock:
            return list(self._by_start.get(start, ()))

    def add(self, start: bytes, refusal: PastRefusal, /) -> None:
        """Keep a refusal."""
        with self._lock:
            self._by_start.setdefault(start, deque(maxlen=MOST)).append(refusal)
            self._by_start.move_to_end(start)
            if len(self._by_start) > self._kept:
                self._by_start.popitem(last=False)
