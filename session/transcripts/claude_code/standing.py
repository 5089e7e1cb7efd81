"""The items of a conversation that no compaction has replaced yet.

1. A compaction replaces all items before it, except those of the records that it preserved: a range of lines.
2. It names only items that no earlier compaction names: those are out of the context already. So all compactions of a log
   together name each item at most once.
3. The items that stand wait in two heaps, by their lines: the first line on top of one, the last line on top of the other.
   A compaction takes from both tops until it meets the preserved range. What it preserves is never looked at, so each item
   is handled a constant number of times, however many compactions the log has.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush

from .entry import Entry


class Standing:
    """The ids of the items that stand so far, in the order in which they were added."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        """
        Args:
            entries: All of the conversation: a compaction names the records that it preserved by their uuids.
        """
        self._lines = {entry.uuid: entry.line for entry in entries if entry.uuid}
        self._ids: dict[int, str] = {}  # by number, in order
        self._added = 0
        self._from_first: list[tuple[int, int]] = []  # line and number; the numbers of replaced items are in neither heap for long
        self._from_last: list[tuple[int, int]] = []  # the same, negated

    def add(self, item_id: str, line: int) -> None:
        """Add the next item of the conversation, which was written on this line."""
        self._ids[self._added] = item_id
        heappush(self._from_first, (line, self._added))
        heappush(self._from_last, (-line, -self._added))
        self._added += 1

    def replaced_by(self, compaction: Entry) -> tuple[str, ...]:
        """Remove the items that the compaction replaces, and return their ids in order."""
        about = compaction.told or {}
        head, tail = about.get("head"), about.get("tail")
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
