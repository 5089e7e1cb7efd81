"""Finds the images and documents of a view that every provider would refuse, so that listeners hear of each once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal
from weakref import ref

from session.items import parts_of_item
from session.parts import Document, Image

from .events import PartUnusable
from .following import Following
from .trimming.fold import Fold


class MediaWatch:
    """The unusable parts of one session.

    A part's bytes are checked when a view first shows it, and never again. A view without new items costs nothing, and one with new
    items a look at their parts.
    """

    __slots__ = ("_following", "_looked", "_rebuilds", "_reported", "_waiting")

    def __init__(self) -> None:
        self._following: ref[Following] | None = None
        self._looked = 0
        self._rebuilds = 0
        self._waiting: list[int] = []  # places of items with images or documents that no view has shown in full
        self._reported: set[tuple[str, int]] = set()

    def news(self, following: Following, session_id: str, budget: int) -> Iterator[PartUnusable]:
        """Yield an event for each unusable part that a view shows for the first time.

        Args:
            following: The session, up to date.
            session_id: The session's id, for the events.
            budget: The budget in tokens, for the events.
        """
        fold, items = following.fold, following.items
        if self._following is None or self._following() is not following:  # what was at a place may be at another one
            self._following, self._looked, self._waiting = ref(following), 0, []
        new = [
            place
            for place in range(self._looked, len(fold))
            if any(isinstance(part, Image | Document) for part in parts_of_item(items[place]))
        ]
        old = self._waiting if following.rebuilds != self._rebuilds else []
        if new or old:
            waiting = [place for place in (*old, *new) if not _is_whole(fold, place)]
            self._waiting = waiting if old else self._waiting + waiting
            yield from self._unusable(following, (*old, *new), session_id, budget)
        self._looked, self._rebuilds = len(fold), following.rebuilds

    def of_one_shot(self, following: Following, session_id: str, budget: int) -> Iterator[PartUnusable]:
        """Yield an event for each unusable part of a one-shot trim that was not reported before; arguments as in `news`."""
        return self._unusable(following, following.fold.shown, session_id, budget)

    def _unusable(self, following: Following, places: Iterable[int], session_id: str, budget: int) -> Iterator[PartUnusable]:
        fold = following.fold
        for place in places:
            if fold.gone(place) is not None or fold.is_cleared(place):
                continue
            item, hidden = following.items[place], fold.replaced_images(place)
            for number, part in enumerate(parts_of_item(item)):
                if not isinstance(part, Image | Document) or number in hidden or (item.id, number) in self._reported:
                    continue
                from session.providers.media import unusable  # not loaded for sessions of text

                problem = unusable(part)
                if problem is not None:
                    self._reported.add((item.id, number))
                    kind: Literal["image", "document"] = "image" if isinstance(part, Image) else "document"
                    yield PartUnusable(session_id, fold.total, budget, item.id, number, kind, problem)


def _is_whole(fold: Fold, place: int) -> bool:
    """True if the view shows all parts of the item."""
    return fold.gone(place) is None and not fold.is_cleared(place) and not fold.replaced_images(place)
