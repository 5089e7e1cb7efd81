"""The items of a log as a fold measures them: notes stand in place of the parts that the provider has refused."""

from __future__ import annotations

from collections.abc import Sequence

from session.items import Item

from .counting.measure import Measurer
from .trimming.placeholders import without_refused
from .trimming.plan import Cut
from .trimming.refused import RefusedParts


class FoldedItems:
    """The items of a log by position, and what their smaller forms cost.

    The fold asks this and not `Following`: a cycle of references would keep both until the garbage collector comes.

    Attributes:
        items: The log's items, unchanged.
        refused: What the provider has refused.
        noted: By position, the places of an item's parts that are shown as notes.
    """

    def __init__(self, items: Sequence[Item], measurer: Measurer, refused: RefusedParts) -> None:
        self.items = items
        self.refused = refused
        self.noted: dict[int, tuple[int, ...]] = {}
        self._measurer = measurer
        self._with_notes: dict[int, Item] = {}  # the same object at every turn
        self._edits: dict[int, list[int]] = {}

    def __getitem__(self, place: int) -> Item:
        return self._with_notes.get(place) or self.items[place]

    def take(self, place: int) -> Item:
        """Return the next item of the log, with notes in place of its refused parts."""
        item = self.items[place]
        refused = self.refused.places(item)
        if not refused:
            return item
        self.noted[place] = tuple(refused)
        self._with_notes[place] = without_refused(item, self.noted[place])
        length = max(refused.values())
        if place < length:
            self._edits.setdefault(length, []).append(place)
        return self._with_notes[place]

    def edits_before(self, place: int | None = None) -> list[int]:
        """Return the positions of items that the model saw whole until the log had `place` items, and as notes since.

        With None, return those of the rest of the log. Each position is returned once.
        """
        if place is None:
            edits = [edit for edits in self._edits.values() for edit in edits]
            self._edits.clear()
            return edits
        return self._edits.pop(place, [])

    def cleared(self, place: int) -> int:
        """Return the tokens of an output once cleared."""
        return self._measurer.cleared(self[place])

    def shortened(self, place: int, limit: int) -> Cut:
        """Return the longest cut of an output with at most `limit` tokens."""
        return self._measurer.shortened(self[place], limit)
