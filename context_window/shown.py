"""The items of a view, kept up to date as the fold goes on. Decides nothing.

1. A view is a list of items that is shared with the sessions given out: it is appended to, and for every other change a new
   list takes its place.
2. The fold says which of its positions have changed (`ViewState.take_changed`). Those are looked at, one by one; what stands
   between them is copied in whole pieces. So an update costs what has changed and what is new, plus the copy of a list of
   references where something changed.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Protocol, TypeAlias

from session.items import Item
from session.units import NONE

from .events import Kind
from .kinds import kind_of
from .trimming.apply import shape
from .trimming.fold import Fold
from .trimming.plan import Action, Cut

Form: TypeAlias = tuple[bool, tuple[int, ...], Cut | None]
AS_IT_WAS: Form = (False, (), None)


class Items(Protocol):
    """The items that were folded, by position."""

    def __getitem__(self, place: int, /) -> Item: ...


class ShownItems:
    """What a fold shows of a log.

    Attributes:
        items: The items of the view; of no use while `is_whole`.
        breaks: The ids of those that begin a response of their own.
        is_whole: True if the view is the log.
        rebuilds: How often items that had been shown were changed.
        reduced: By kind, the items of the log that are not in the view, or in a smaller form.
    """

    def __init__(self, fold: Fold) -> None:
        self._fold = fold
        self._length = 0  # of the log at the last update
        self.rebuilds = 0
        self._begin()

    def _begin(self) -> None:
        self.items: list[Item] = []
        self.breaks: frozenset[str] = frozenset()
        self.is_whole = True
        self.reduced: Counter[Kind] = Counter()
        self._places = array("q")  # where in the log the items are
        self._shapes: dict[int, tuple[Form, Item]] = {}
        self._is_reduced = bytearray()  # by place: 1 for what `reduced` counts

    def update(self, log: Items, *, has_notes: bool = False) -> bool:
        """Bring the view up to date, and return True if it shows less of an item than before, or nothing of a new one.

        Args:
            log: The items that were folded.
            has_notes: True if some of them are not the log's own, but have notes in place of refused parts.
        """
        fold = self._fold
        changed, new = fold.take_changed(), range(self._length, len(fold))
        if not fold.tally.altered and not has_notes:
            if not self.is_whole:
                self.rebuilds += 1
                self._begin()
            has_lost = False
        elif self.is_whole:
            self.rebuilds += 1
            self._begin()
            self.is_whole = False
            has_lost = self._append(log, range(len(fold)))
        else:
            has_lost = self._change(log, sorted(place for place in changed if place < self._length))
            has_lost = self._append(log, new) or has_lost
        self._length = len(fold)
        return has_lost

    def _append(self, log: Items, new: Iterable[int]) -> bool:
        """Add what is shown of new items to the end, and return True if that is less than all of them."""
        fold = self._fold
        last = self._places[-1] if self._places else NONE
        has_lost = False
        breaks = []
        for place in new:
            is_reduced = self._note_reduced(log, place)
            has_lost = has_lost or is_reduced
            if fold.gone(place) is not None:
                continue
            if self._is_break(last, place):
                breaks.append(log[place].id)
            self.items.append(self._shape(log, place))
            self._places.append(place)
            last = place
        if breaks:
            self.breaks = self.breaks.union(breaks)
        return has_lost

    def _change(self, log: Items, changed: Sequence[int]) -> bool:
        """Bring these positions up to date, and return True if one of them shows less than before."""
        fold, before = self._fold, self._places
        items: list[Item] = []
        places = array("q")
        done = 0  # how much of the list before is in the new one, or was left out of it
        has_lost = False
        differing: list[int] = []
        for place in changed:
            at = bisect_left(before, place, done)
            was_shown, is_shown = at < len(before) and before[at] == place, fold.gone(place) is None
            form = self._shapes[place][0] if place in self._shapes else AS_IT_WAS
            self._note_reduced(log, place)
            if was_shown and is_shown and form == form_of(fold, place):
                continue
            if not is_shown:
                self._shapes.pop(place, None)
                has_lost = has_lost or was_shown
                if not was_shown:
                    continue
            items += self.items[done:at]
            places += before[done:at]
            done = at + was_shown
            if is_shown:
                items.append(self._shape(log, place))
                places.append(place)
                has_lost = has_lost or (was_shown and is_less(form_of(fold, place), form))
            differing.append(place)
        if differing:
            self.rebuilds += 1
            self.items, self._places = items + self.items[done:], places + before[done:]
            self._set_breaks(log, differing)
        return has_lost

    def _set_breaks(self, log: Items, differing: Iterable[int]) -> None:
        """Set the breaks at these positions and right after them."""
        more: set[str] = set()
        fewer: set[str] = set()
        for place in differing:
            at = bisect_left(self._places, place)
            if at == len(self._places) or self._places[at] != place:
                fewer.add(log[place].id)
            for here in range(at, min(at + 2, len(self._places))):
                is_break = here > 0 and self._is_break(self._places[here - 1], self._places[here])
                (more if is_break else fewer).add(log[self._places[here]].id)
        fewer &= self.breaks
        if fewer or not more <= self.breaks:
            self.breaks = self.breaks.difference(fewer).union(more)

    def _is_break(self, last: int, place: int) -> bool:
        """True if an item of a response stands right after one of another response."""
        response = self._fold.groups.response
        return last != NONE and response[place] != response[last] and NONE not in (response[place], response[last])

    def _note_reduced(self, log: Items, place: int) -> bool:
        """Count the item among the reduced ones if it is one, and return True then."""
        is_reduced = self._fold.is_altered(place)
        if place == len(self._is_reduced):
            self._is_reduced.append(0)
        if is_reduced != self._is_reduced[place]:
            self._is_reduced[place] = is_reduced
            self.reduced[kind_of(log[place])] += 1 if is_reduced else -1
        return is_reduced

    def _shape(self, log: Items, place: int) -> Item:
        """Return the item as the view shows it: the same object at every turn, for as long as its form is the same."""
        fold = self._fold
        form = form_of(fold, place)
        if form == AS_IT_WAS:
            self._shapes.pop(place, None)
            return log[place]
        shown = self._shapes.get(place)
        if shown is None or shown[0] != form:
            shown = self._shapes[place] = (form, shape(log[place], action_of(fold, place), form[1], form[2]))
        return shown[1]


def form_of(fold: Fold, place: int) -> Form:
    """Return the form in which an item is shown: whether it is cleared, its replaced images, and its cut."""
    return fold.is_cleared(place), fold.replaced_images(place), fold.cut(place)


def action_of(fold: Fold, place: int) -> Action:
    """Return what was done to an item."""
    if fold.gone(place) is not None:
        return Action.DROP
    if fold.is_cleared(place):
        return Action.CLEAR
    if fold.cut(place) is not None:
        return Action.TRUNCATE
    return Action.REPLACE_IMAGES if fold.replaced_images(place) else Action.KEEP


def is_less(form: Form, before: Form) -> bool:
    """True if a form shows less of an item than another one."""
    if form[0] or before[0]:
        return form[0] and not before[0]
    cut, uncut = form[2], before[2]
    shorter = cut is not None and (uncut is None or cut.head + cut.tail < uncut.head + uncut.tail)
    return shorter or not set(form[1]) <= set(before[1])
