"""The items of a log as the fold measures them, with notes in place of the parts that the provider refused."""

from __future__ import annotations

from collections.abc import Sequence

from session.items import Item

from ..counting.item_tokens import Measurer
from ..trimming.placeholders import without_refused
from ..trimming.plan import Cut
from ..trimming.refused_parts import RefusedParts
from ..trimming.view_totals import LinePrice


class MeasuredItems:
    """The items of a log by position, and the tokens of their smaller forms.

    The fold refers to this object instead of its `SessionTracker`: a reference cycle would keep both alive until the next garbage
    collection.

    Attributes:
        items: The log's items, unchanged.
        refused: The images and documents that the provider refused.
        noted: By position, the places of an item's parts that are shown as notes.
    """

    def __init__(self, items: Sequence[Item], measurer: Measurer, refused: RefusedParts) -> None:
        self.items = items
        self.refused = refused
        self.noted: dict[int, tuple[int, ...]] = {}
        self._measurer = measurer
        self._with_notes: dict[int, Item] = {}  # by position; the same object at every turn
        self._edits: dict[int, list[int]] = {}  # by length of the log at the refusal: positions of items that became notes then

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
        """Return the positions of items that the model saw with their media until the log had `place` items, and with notes since.

        With None, return all remaining ones. Each position is returned once.
        """
        if place is None:
            edits = [edit for edits in self._edits.values() for edit in edits]
            self._edits.clear()
            return edits
        return self._edits.pop(place, [])

    def unchanged(self, place: int) -> int:
        """Return the tokens of the item, with notes in place of its refused parts."""
        return self._measurer.measure(self[place]).tokens

    def cleared(self, place: int, cut: Cut | None = None) -> int:
        """Return the tokens of an output or call after it is cleared; `cut` is how a call is truncated already."""
        return self._measurer.cleared_tokens(self[place], cut)

    def line_price(self, place: int) -> LinePrice:
        """Return what the lines of an item cost."""
        return self._measurer.line_price(self[place])

    def section(self, place: int, lines: Sequence[int]) -> int:
        """Return the tokens of what a digest shows of the item if it shows these lines."""
        return self._measurer.section_tokens(self[place], lines)

    def shortened(self, place: int, limit: int) -> Cut:
        """Return the longest cut of an item with at most `limit` tokens."""
        return self._measurer.truncated(self[place], limit)
