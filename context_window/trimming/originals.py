"""What an output was before a view changed it. A view may be a log: what it changed is then told of, and changed again, as the original is.

An untouched output is its own original. A changed one says in `extra[WAS]` what cannot be seen of it any more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from session.door import MAX_COUNT
from session.items import FunctionCallOutput
from session.parts import Document, Image, Text

WAS = "context_window_was"
"""The key in `extra` under which a changed output says what it was."""


@dataclass(frozen=True, slots=True)
class Original:
    """An output, as far as it is known in full.

    Attributes:
        characters: Of all its text parts.
        length: The same with the line ends between them, where a cut counts.
        images: Its image parts.
        documents: Its document parts.
        head: Characters of its beginning that are still there.
        tail: Characters of its end that are still there, the head's not counted where all of it is.
        places: Of each part that is there: its place among the original parts.
        notes: Which of them are images' placeholders, by place in what is there.
    """

    characters: int
    length: int
    images: int
    documents: int
    head: int
    tail: int
    places: tuple[int, ...]
    notes: tuple[int, ...] = ()

    def kept(self, head: int, tail: int) -> tuple[int, int]:
        """So much of head and tail, as far as it is there."""
        return min(head, self.head), min(tail, self.tail)

    def text(self, item: FunctionCallOutput) -> str:
        """What is there of the text: the text parts, one a line."""
        return "\n".join(part.text for place, part in enumerate(item.output) if isinstance(part, Text) and place not in self.notes)

    def to_extra(self) -> dict[str, Any]:
        """What is written under `WAS`."""
        return {
            "characters": self.characters,
            "length": self.length,
            "images": self.images,
            "documents": self.documents,
            "kept": [self.head, self.tail],
            "places": list(self.places),
            "notes": list(self.notes),
        }


def original_of(item: FunctionCallOutput) -> Original:
    """What the output was; what it is where nothing sound is said of that."""
    if WAS in item.extra:
        told = _told(item.extra[WAS], len(item.output))
        if told is not None and max(told.head, told.tail) <= len(told.text(item)):
            return told
    texts = [len(part.text) for part in item.output if isinstance(part, Text)]
    length = sum(texts) + max(0, len(texts) - 1)
    images, documents = (sum(isinstance(part, kind) for part in item.output) for kind in (Image, Document))
    return Original(sum(texts), length, images, documents, length, length, tuple(range(len(item.output))))


def _told(was: object, parts: int) -> Original | None:
    """What an item says that it was. It may come from a file, so that nothing is taken for granted."""
    if not isinstance(was, Mapping):
        return None
    amounts = _amounts([was.get(name) for name in ("characters", "length", "images", "documents")])
    kept, places, notes = (_amounts(was.get(name)) for name in ("kept", "places", "notes"))
    if amounts is None or kept is None or places is None or notes is None or len(kept) != 2 or len(places) != parts:
        return None
    characters, length, images, documents = amounts
    head, tail = kept
    return Original(characters, length, images, documents, head, tail, places, notes)


def _amounts(values: object) -> tuple[int, ...] | None:
    if not isinstance(values, list) or not all(type(one) is int and 0 <= one <= MAX_COUNT for one in values):
        return None
    return tuple(values)
