"""The images and documents of one session that its provider has refused. Data and pure functions.

A part is identified by its content, not by its position: a copy of a refused image, such as a recalled one, counts as refused too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from session.items import Item, parts_of_item
from session.parts import Document, Image, Part
from session.session import Session

Source: TypeAlias = tuple[type, str, object]
"""The class of a part, the field with its content, and the content: bytes, URL, path, file id or text."""


@dataclass(frozen=True, slots=True)
class RefusedParts:
    """The parts that the provider of one session has refused. Immutable: each refusal makes a new value.

    Attributes:
        since: By source, the number of items that the log had when the part was refused.
        guesses: The sources among them that no refusal named.
        last_ids: By source, the id of the last item that the log had at that time.
        lineage: The token of the log that `since` refers to. An edit of the log changes it.
    """

    since: Mapping[Source, int] = field(default_factory=dict)
    guesses: frozenset[Source] = frozenset()
    last_ids: Mapping[Source, str] = field(default_factory=dict)
    lineage: object = field(default=None, compare=False)

    def adding(self, sources: Iterable[Source], log: Session, *, guessed: bool) -> RefusedParts:
        """Return these parts and those that are refused now. They are guesses if the provider did not say that it was about them."""
        length = len(log.items)
        new = {source: length for source in sources if source not in self.since}
        last_ids = dict.fromkeys(new, log.items[-1].id if length else "")
        guesses = self.guesses.union(new) if guessed else self.guesses
        return RefusedParts({**self.since, **new}, guesses, {**self.last_ids, **last_ids}, log.lineage)

    def rebased(self, log: Session) -> RefusedParts:
        """Return these for a log that has been edited since: lengths follow the item that was the last one.

        If that item was deleted, the part counts as refused at the old length, or at the end of a shorter log.
        """
        since: dict[Source, int] = {}
        last_ids: dict[Source, str] = {}
        for source, length in self.since.items():
            place = log.position(self.last_ids.get(source, ""))
            since[source] = min(length, len(log.items)) if place is None else place + 1
            last_ids[source] = log.items[since[source] - 1].id if since[source] else ""
        return RefusedParts(since, self.guesses, last_ids, log.lineage)

    def without_guesses(self, answered_length: int) -> RefusedParts:
        """Return these without the guesses that no response has confirmed. Up to the last one the log had so many items."""
        open_guesses = {source for source in self.guesses if self.since[source] >= answered_length}
        since = {source: length for source, length in self.since.items() if source not in open_guesses}
        return RefusedParts(since, self.guesses - open_guesses, self.last_ids, self.lineage)

    def places(self, item: Item) -> dict[int, int]:
        """Return the indexes of the item's refused parts, each with the number of items that the log had when it was refused."""
        if not self.since:
            return {}
        sources = ((place, source_of_part(part)) for place, part in enumerate(parts_of_item(item)))
        return {place: self.since[source] for place, source in sources if source is not None and source in self.since}


NONE_REFUSED = RefusedParts()


def source_of_part(part: Part) -> Source | None:
    """Return where the content of an image or document comes from; None for a text."""
    if not isinstance(part, Image | Document):
        return None
    names = ("data", "url", "file_id", "path") if isinstance(part, Image) else ("data", "url", "file_id", "text")
    return next((type(part), name, value) for name in names if (value := getattr(part, name)) is not None)
