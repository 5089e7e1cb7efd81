"""Finds the images and documents of a view that every provider would refuse, and reports each once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from session.items import parts_of_item
from session.parts import Document, Image, Text

from .definitions import PartUnusable

if TYPE_CHECKING:
    from ..decision.view import View


class UnusableMedia:
    """The unusable parts of one session that were reported. A part's bytes are checked once, when a view first shows it in full."""

    __slots__ = ("_checked", "_done")

    def __init__(self) -> None:
        self._checked: set[tuple[str, int]] = set()  # ids of items, and the parts
        self._done: set[str] = set()  # ids of items all of whose parts were checked

    def events(self, view: View, session_id: str, budget: int) -> Iterator[PartUnusable]:
        """Yield an event for each unusable part that a view shows for the first time."""
        for at in view.visible(view.log.media):
            item, edit = view.log.items[at], view.edit(at)
            if item.id in self._done:
                continue
            if not (edit.is_shortened or edit.images):
                self._done.add(item.id)
            for number, part in enumerate(parts_of_item(item)):
                if type(part) is Text or edit.is_shortened or number in edit.images or (item.id, number) in self._checked:
                    continue
                from session.providers.media import unusable  # not loaded for sessions without media

                assert isinstance(part, Image | Document)
                self._checked.add((item.id, number))
                problem = unusable(part)
                if problem is not None:
                    kind: Literal["image", "document"] = "image" if isinstance(part, Image) else "document"
                    yield PartUnusable(session_id, view.total, budget, item.id, number, kind, problem)
