"""Condensations of OpenHands, which name the events that they replace. Each item is replaced at most once."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Sequence
from typing import Generic, TypeVar

from session.items import Compaction
from session.transcripts.draft import Draft
from session.transcripts.record import Record

EventId = TypeVar("EventId", int, str)


class EventItems(Generic[EventId]):
    """The item ids of each event, without those that a condensation has replaced."""

    def __init__(self) -> None:
        self._items: dict[EventId, Sequence[str]] = {}
        self._sorted_events: list[EventId] = []

    def add(self, event: EventId, item_ids: Sequence[str]) -> None:
        """Add the items of an event. If an event id repeats, the last one counts."""
        if event not in self._items:
            insort(self._sorted_events, event)
        self._items[event] = item_ids

    def take(self, events: Iterable[EventId]) -> tuple[str, ...]:
        """Remove and return the items of these events. The events stay, without items, because they may be named again."""
        item_ids: list[str] = []
        for event in events:
            if event_items := self._items.get(event):
                item_ids += event_items
                self._items[event] = ()
        return tuple(item_ids)

    def take_range(self, first: EventId, last: EventId) -> tuple[str, ...]:
        """Remove the events with ids from `first` to `last`, and return their items."""
        start, end = bisect_left(self._sorted_events, first), bisect_right(self._sorted_events, last)
        events = self._sorted_events[start:end]
        del self._sorted_events[start:end]
        return tuple(item_id for event in events for item_id in self._items.pop(event))


def put_condensation(draft: Draft, record: Record, summary: str, replaces: tuple[str, ...], event_id: str, time: float) -> None:
    """Put a condensation into the draft, unless it has no text and replaces nothing.

    Args:
        draft: The session.
        record: The record of the condensation.
        summary: Its text; may be empty.
        replaces: Ids of the items that it replaces.
        event_id: The event's id in the file, if it is a text; else empty.
        time: Unix seconds.
    """
    if replaces or summary:
        draft.put(record, Compaction(summary, replaces, id=draft.new_id(event_id, record), created_at=time))
    else:
        record.skip("a condensation that replaces nothing")
