"""The items of a view, kept up to date with the fold. Decides nothing.

1. The list of items is shared with the sessions that were returned as views. It is only ever appended to; for any other change a new
   list replaces it.
2. The list is in the order of the fold's order keys: that of the log, but a summary stands where the items that it replaces stood, and a
   digest before the first of its items. Its other items are not in the list.
3. The fold lists the positions that have changed (`ViewState.take_changed`). Only these are examined; the stretches between them are
   copied as slices. An update therefore costs the number of changed and new items, plus a copy of the list if anything changed.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable
from typing import Protocol

from session.items import Item
from session.units import NONE

from ..events.definitions import Kind
from ..events.item_kinds import kind_of
from ..trimming.apply import shape
from ..trimming.extracts import digest
from ..trimming.fold import Fold
from ..trimming.view_contents import KEY_BITS, UNMOVED, place_of
from .item_forms import UNCHANGED, Form, action_of, form_of, is_less, is_shown


class Items(Protocol):
    """The items of the fold by position."""

    def __getitem__(self, place: int, /) -> Item: ...


class ViewItems:
    """The items that a view shows of its log.

    Attributes:
        items: The items of the view; not maintained while `is_log`.
        conversions: What was converted of these items (`session_log.conversions_of`): it goes with the list.
        breaks: The ids of items that begin a response directly after another one.
        ends: The ids of answers after which a request ended: in the log a summary follows them that the view shows earlier.
        is_log: True if the view is the whole log.
        rebuilds: Number of updates that changed items already in the view.
        reduced: Number of items, by kind, that the view hides or shows in a smaller form, without those that a summary stands for.
    """

    def __init__(self, fold: Fold) -> None:
        self._fold = fold
        self._length = 0  # length of the log at the last update
        self.rebuilds = 0
        self._reset()

    def _reset(self) -> None:
        self.items: list[Item] = []
        self.conversions: dict[str, object] = {}
        self.breaks: frozenset[str] = frozenset()
        self.ends: frozenset[str] = frozenset()
        self.is_log = True
        self.reduced: Counter[Kind] = Counter()
        self._keys = array("q")  # order keys of the items
        self._digest_keys: dict[int, int] = {}  # of the digests among them, by position of the first item of each
        self._changed_items: dict[int, tuple[Form, Item]] = {}  # by position: the last form that was not the log's own
        self._is_reduced = bytearray()  # by position: 1 if `reduced` counts the item

    def update(self, log: Items, changed: Iterable[int], *, is_other: bool = False) -> bool:
        """Bring the view up to date. Return True if it hides more than before: part of an item that it showed, or a new item.

        Args:
            log: The items of the fold.
            changed: The positions that have changed since the last update (`ViewState.take_changed`).
            is_other: True if the view is not the log even with all of its items: some have notes in place of refused parts, or the line
                about usage has come or gone.
        """
        fold = self._fold
        new = range(self._length, len(fold))
        moved_places = [place for place in new if place in fold.moved]
        if not fold.tally.altered and not is_other and fold.first_moved is None:
            if not self.is_log:
                self.rebuilds += 1
                self._reset()
            hides_more = False
        elif self.is_log:
            self.rebuilds += 1
            self._reset()
            self.is_log = False
            is_in_order = not (fold.moved or fold.tally.digests)
            places = range(len(fold)) if is_in_order else sorted(range(len(fold)), key=fold.order_key)
            hides_more = self._append(log, places, fold.digests.heads())
            self._set_ends(log)
        else:
            changed = list(changed)
            hides_more = self._change(log, [place for place in changed if place < self._length])
            hides_more = self._append(log, [place for place in new if place not in fold.moved] if moved_places else new) or hides_more
            digests = {*self._digest_keys, *fold.digests.heads()} if changed else ()  # with any of its items, a digest changes
            hides_more = self._change(log, [*moved_places, *digests]) or hides_more
        self._length = len(fold)
        return hides_more

    def replace(self, place: int, item: Item) -> None:
        """Show another item of the log at this position, for now as it is."""
        self._changed_items.pop(place, None)
        key = self._fold.order_key(place)
        index = bisect_left(self._keys, key)
        if index < len(self._keys) and self._keys[index] == key:
            self.rebuilds += 1
            self.items, self.conversions = [*self.items[:index], item, *self.items[index + 1 :]], {}

    def last_id_before(self, place: int, log: Items) -> str | None:
        """Return the id of the view's last item before a position of the log; None if there is none."""
        if self.is_log:
            return log[place - 1].id
        index = bisect_left(self._keys, place << KEY_BITS) - 1
        return None if index < 0 else self.items[index].id

    def _append(self, log: Items, new: Iterable[int], digest_heads: Collection[int] = ()) -> bool:
        """Append the visible new items. Return True if not all of them are shown in full.

        Args:
            log: The items of the fold.
            new: The new positions, in the view's order.
            digest_heads: Those of them in whose place a digest is appended.
        """
        fold, heads = self._fold, set(digest_heads)
        previous = place_of(self._keys[-1]) if self._keys else NONE
        hides_more = False
        breaks = []
        for place in new:
            is_reduced = self._note_reduced(log, place)
            hides_more = hides_more or is_reduced
            if fold.hidden_reason(place) is not None or (fold.digests.has(place) and place not in heads):
                continue
            if self._is_break(previous, place):
                breaks.append(log[place].id)
            self.items.append(self._item(log, place) if is_reduced else log[place])  # an item that is shown is reduced or as in the log
            self._keys.append(fold.order_key(place))
            if fold.digests.has(place):
                self._digest_keys[place] = self._keys[-1]
            previous = place
        if breaks:
            self.breaks = self.breaks.union(breaks)
        return hides_more

    def _keys_of(self, place: int) -> set[int]:
        """Return the order keys that the item has now, has without a digest, and had as a digest."""
        own = place << KEY_BITS | UNMOVED
        return {self._fold.order_key(place), *(() if place in self._fold.moved else (own,)), self._digest_keys.get(place, own)}

    def _change(self, log: Items, changed: Iterable[int]) -> bool:
        """Bring these positions up to date. Return True if a trim shows less of one of them than before."""
        fold, old_keys = self._fold, self._keys
        items: list[Item] = []
        keys = array("q")
        copied = 0  # entries of the old list that were copied or left out
        hides_more = False
        rebuilt: list[tuple[int, int]] = []
        for key, place in sorted((key, member) for member in changed for key in self._keys_of(member)):
            index = bisect_left(old_keys, key, copied)
            was_visible = index < len(old_keys) and old_keys[index] == key
            is_visible = key == fold.order_key(place) and is_shown(fold, place)
            old_form = self._changed_items[place][0] if place in self._changed_items else UNCHANGED
            self._note_reduced(log, place)
            if was_visible and is_visible and old_form == form_of(fold, place):
                continue
            if not is_visible:  # `_changed_items` keeps its last form: the item may return in it
                hides_more = hides_more or (was_visible and not fold.is_replaced(place))
                if not was_visible:
                    continue
            items += self.items[copied:index]
            keys += old_keys[copied:index]
            copied = index + was_visible
            if is_visible:
                items.append(self._item(log, place))
                keys.append(key)
                hides_more = hides_more or (was_visible and is_less(form_of(fold, place), old_form))
            rebuilt.append((key, place))
        if rebuilt:
            self.rebuilds += 1
            self.items, self._keys = items + self.items[copied:], keys + old_keys[copied:]
            self._note_digests(rebuilt)
            self.conversions = {}
            self._set_breaks(log, rebuilt)
            self._set_ends(log)
        return hides_more

    def _note_digests(self, rebuilt: Iterable[tuple[int, int]]) -> None:
        """Update the order keys of digests at these positions."""
        for _, place in rebuilt:
            self._digest_keys.pop(place, None)
            if is_shown(self._fold, place) and self._fold.digests.has(place):
                self._digest_keys[place] = self._fold.order_key(place)

    def _set_breaks(self, log: Items, rebuilt: Iterable[tuple[int, int]]) -> None:
        """Update the breaks at these order keys and directly after them."""
        added: set[str] = set()
        removed: set[str] = set()
        for key, place in rebuilt:
            index = bisect_left(self._keys, key)
            if index == len(self._keys) or self._keys[index] != key:
                removed.add(log[place].id)
            for near in range(index, min(index + 2, len(self._keys))):
                at = place_of(self._keys[near])
                is_break = near > 0 and self._is_break(place_of(self._keys[near - 1]), at)
                (added if is_break else removed).add(log[at].id)
        removed -= added
        removed &= self.breaks
        if removed or not added <= self.breaks:
            self.breaks = self.breaks.difference(removed).union(added)

    def _set_ends(self, log: Items) -> None:
        """Find the answers that in the log are followed by a summary which the view shows elsewhere."""
        fold = self._fold
        ends = set()
        for place in fold.moved:
            if fold.hidden_reason(place) is not None:
                continue
            index = bisect_left(self._keys, place << KEY_BITS) - 1
            while index >= 0 and place_of(self._keys[index]) in fold.moved:
                index -= 1
            if index >= 0 and fold.response(before := place_of(self._keys[index])) != NONE:
                ends.add(log[before].id)
        self.ends = frozenset(ends)

    def _is_break(self, previous: int, place: int) -> bool:
        """True if these items are neighbours in the view, but belong to two different responses."""
        if previous == NONE:
            return False
        response, response_before = self._fold.response(place), self._fold.response(previous)
        return response != response_before and NONE not in (response, response_before)

    def _note_reduced(self, log: Items, place: int) -> bool:
        """Update `reduced` for an item, and return True if the item is a reduced one."""
        is_reduced = self._fold.is_altered(place) and not self._fold.is_replaced(place)
        if place >= len(self._is_reduced):
            self._is_reduced.extend(bytes(place + 1 - len(self._is_reduced)))
        if is_reduced != self._is_reduced[place]:
            self._is_reduced[place] = is_reduced
            self.reduced[kind_of(log[place])] += 1 if is_reduced else -1
        return is_reduced

    def _item(self, log: Items, place: int) -> Item:
        """Return the item as the view shows it: the same object at every turn while its form stays the same."""
        fold = self._fold
        form = form_of(fold, place)
        if form == UNCHANGED:
            self._changed_items.pop(place, None)
            return log[place]
        changed = self._changed_items.get(place)
        if changed is None or changed[0] != form:
            shown = (
                digest([(log[member], lines) for member, lines in form.sources])
                if form.sources
                else shape(log[place], action_of(fold, place), form.images, form.cut)
            )
            changed = self._changed_items[place] = (form, shown)
        return changed[1]
