"""Finds the images and documents of a view that every provider would refuse, and reports each once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal
from weakref import ref

from session.items import parts_of_item
from session.parts import Document, Image, Text
from session.units import NONE

from ..events.definitions import PartUnusable
from ..trimming.fold import Fold
from .tracker import SessionTracker


class UnusableMedia:
    """The unusable parts of one session that were reported.

    A part's bytes are checked once, when a view first shows it. A view without new items costs nothing.
    """

    __slots__ = ("_checked_length", "_places", "_rebuilds", "_reported", "_tracker", "_unchecked")

    def __init__(self) -> None:
        self._tracker: ref[SessionTracker] | None = None
        self._checked_length = 0
        self._rebuilds = 0
        self._places: list[int] = []  # positions of items with images or documents
        self._unchecked: list[int] = []  # positions of items with images or documents that no view has shown in full
        self._reported: set[tuple[str, int]] = set()

    def events(self, tracker: SessionTracker, session_id: str, budget: int) -> Iterator[PartUnusable]:
        """Yield an event for each unusable part that a view shows for the first time.

        Args:
            tracker: The session's tracker, up to date.
            session_id: The session's id, for the events.
            budget: The budget in tokens, for the events.
        """
        fold, items = tracker.fold, tracker.items
        if self._tracker is None or self._tracker() is not tracker:  # positions may have changed
            self._tracker, self._checked_length, self._places, self._unchecked = ref(tracker), 0, [], []
        new = enumerate(items[self._checked_length : len(fold)], self._checked_length)
        new_places = list(dict.fromkeys(place for place, item in new for part in parts_of_item(item) if type(part) is not Text))
        self._places += new_places
        old_places = self._unchecked if tracker.rebuilds != self._rebuilds else []
        if new_places or old_places:
            places = (*old_places, *new_places)
            unchecked = [place for place in places if not _shows_all_parts(fold, place)]
            self._unchecked = unchecked if old_places else self._unchecked + unchecked
            yield from self._unusable(tracker, places, session_id, budget)
        self._checked_length, self._rebuilds = len(fold), tracker.rebuilds

    def go_on_from(self, parent: UnusableMedia, tracker: SessionTracker, copied: SessionTracker) -> None:
        """Take what the parent of a fork knows of its items. What was reported of the parent is still reported of the fork.

        Args:
            parent: The parts of the session that was forked.
            tracker: That session's tracker.
            copied: The fork's tracker, a copy of that one.
        """
        if parent._tracker is not None and parent._tracker() is tracker:
            self._tracker, self._checked_length = ref(copied), parent._checked_length
            self._rebuilds = NONE  # all places are looked at again
            self._places, self._unchecked = parent._places[:], parent._places[:]

    def events_of_one_shot(self, tracker: SessionTracker, session_id: str, budget: int) -> Iterator[PartUnusable]:
        """Yield an event for each unusable part of a one-shot trim that was not reported before; arguments as in `events`."""
        return self._unusable(tracker, tracker.fold.visible, session_id, budget)

    def _unusable(self, tracker: SessionTracker, places: Iterable[int], session_id: str, budget: int) -> Iterator[PartUnusable]:
        fold = tracker.fold
        for place in places:
            if fold.hidden_reason(place) is not None or fold.is_shortened(place):
                continue
            item, replaced = tracker.items[place], fold.replaced_images(place)
            for number, part in enumerate(parts_of_item(item)):
                if not isinstance(part, Image | Document) or number in replaced or (item.id, number) in self._reported:
                    continue
                from session.providers.media import unusable  # not loaded for sessions without media

                problem = unusable(part)
                if problem is not None:
                    self._reported.add((item.id, number))
                    kind: Literal["image", "document"] = "image" if isinstance(part, Image) else "document"
                    yield PartUnusable(session_id, fold.total, budget, item.id, number, kind, problem)


def _shows_all_parts(fold: Fold, place: int) -> bool:
    """True if the view shows all parts of the item."""
    return fold.hidden_reason(place) is None and not fold.is_shortened(place) and not fold.replaced_images(place)
