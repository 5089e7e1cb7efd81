"""The items of events that no condensation of OpenHands has replaced yet. A condensation names each of them at most once."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Sequence
from typing import Generic, TypeVar

K = TypeVar("K", int, str)


class Standing(Generic[K]):
    """Ids of items by the ids of their events."""

    def __init__(self) -> None:
        self._items: dict[K, Sequence[str]] = {}
        self._events: list[K] = []  # the same events, sorted: they come in order, as a rule

    def add(self, event: K, items: Sequence[str]) -> None:
        """Add the items of an event; of events with the same id the last one counts."""
        if event not in self._items:
            insort(self._events, event)
        self._items[event] = items

    def take(self, events: Iterable[K]) -> tuple[str, ...]:
        """Remove the items of these events, and return them. The events stay: they may be named again, and have nothing then."""
        replaced: list[str] = []
        for event in events:
            if items := self._items.get(event):
                replaced += items
                self._items[event] = ()
        return tuple(replaced)

    def take_range(self, first: K, last: K) -> tuple[str, ...]:
        """Remove the items of the events with ids from `first` to `last`, and return them."""
        start, end = bisect_left(self._events, first), bisect_right(self._events, last)
        events = self._events[start:end]
        del self._events[start:end]
        return tuple(item for event in events for item in self._items.pop(event))
