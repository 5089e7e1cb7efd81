"""The items of a conversation that no compaction has replaced yet.

1. A compaction replaces all items before it, except those of the records that it preserved: a range of lines.
2. It names only items that no earlier compaction named, because those are out of the context already. So all compactions of
   a log together name each item at most once.
3. The items are in two heaps by their lines, one with the first line on top, the other with the last. A compaction takes items
   from both tops until it meets the preserved range, and never looks inside it. So each item is handled a constant number of
   times, however many compactions the log has.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush

from .entry import Entry


class UncompactedItems:
    """Ids of the items that no compaction has replaced yet, in the order in which they were added."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        """
        Args:
            entries: All entries of the conversation. A compaction names the records that it preserved by their uuids.
        """
        self._lines = {entry.uuid: entry.line for entry in entries if entry.uuid}
        self._ids: dict[int, str] = {}  # by number, in order
        self._next_number = 0
        self._from_first: list[tuple[int, int]] = []  # line and number; may still contain replaced items
        self._from_last: list[tuple[int, int]] = []  # the same, negated

    def add(self, item_id: str, line: int) -> None:
        """Add the next item of the conversation, which is on this line."""
        self._ids[self._next_number] = item_id
        heappush(self._from_first, (line, self._next_number))
        heappush(self._from_last, (-line, -self._next_number))
        self._next_number += 1

    def replaced_by(self, compaction: Entry) -> tuple[str, ...]:
        """Remove the items that the compaction replaces, and return their ids in order."""
        metadata = compaction.compaction or {}
        head, tail = metadata.get("head"), metadata.get("tail")
        first, last = (self._lines.get(str(head), 0), self._lines.get(str(tail), -1)) if head and tail else (0, -1)
        if first > last:
            replaced = tuple(self._ids.values())
            self._ids.clear()
            self._from_first.clear()
            self._from_last.clear()
            return replaced
        numbers: list[int] = []
        while self._from_first and self._from_first[0][0] < first:
            numbers.append(heappop(self._from_first)[1])
        while self._from_last and -self._from_last[0][0] > last:
            numbers.append(-heappop(self._from_last)[1])
        return tuple(self._ids.pop(number) for number in sorted(set(numbers)) if number in self._ids)
