"""The sizes that an output had before a view changed it.

A view may itself be used as a log. Outputs that it changed are then described, and changed again, as their originals would be. An
unchanged output is its own original. A changed one records in `extra[WAS]` what can no longer be seen in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from session.items import FunctionCallOutput
from session.parts import Document, Image, Text
from session.sanitize import MAX_COUNT

WAS = "context_window_was"
"""The key in `extra` under which a changed output records its original sizes."""


@dataclass(frozen=True, slots=True)
class Original:
    """The original sizes of an output, and the parts of it that are left.

    Attributes:
        characters: Number of characters in all its text parts.
        length: The same with the line ends between the parts. Cuts are positions in this text.
        images: Number of image parts.
        documents: Number of document parts.
        head: Characters of the beginning that are left.
        tail: Characters of the end that are left. Equal to `length` if nothing was cut.
        places: For each part that is left, its index among the original parts.
        notes: Indexes of the parts, among those left, that are placeholders of images.
    """

    characters: int
    length: int
    images: int
    documents: int
    head: int
    tail: int
    places: tuple[int, ...]
    notes: tuple[int, ...] = ()

    def available(self, head: int, tail: int) -> tuple[int, int]:
        """Return the given characters of head and tail, limited to the characters that are left."""
        return min(head, self.head), min(tail, self.tail)

    def text(self, item: FunctionCallOutput) -> str:
        """Return the text that is left: the text parts, one per line."""
        return "\n".join(part.text for place, part in enumerate(item.output) if isinstance(part, Text) and place not in self.notes)

    def to_extra(self) -> dict[str, Any]:
        """Return the value for `extra[WAS]`."""
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
    """Return the recorded original of the output; the output itself as original if there is no valid record."""
    if WAS in item.extra:
        original = _parse(item.extra[WAS], len(item.output))
        if original is not None and max(original.head, original.tail) <= len(original.text(item)):
            return original
    texts = [len(part.text) for part in item.output if isinstance(part, Text)]
    length = sum(texts) + max(0, len(texts) - 1)
    images, documents = (sum(isinstance(part, kind) for part in item.output) for kind in (Image, Document))
    return Original(sum(texts), length, images, documents, length, length, tuple(range(len(item.output))))


def _parse(record: object, part_count: int) -> Original | None:
    """Return the original that a record describes. It may come from a file, so every value is checked."""
    if not isinstance(record, Mapping):
        return None
    amounts = _amounts([record.get(name) for name in ("characters", "length", "images", "documents")])
    ends, places, notes = (_amounts(record.get(name)) for name in ("kept", "places", "notes"))
    if amounts is None or ends is None or places is None or notes is None or len(ends) != 2 or len(places) != part_count:
        return None
    characters, length, images, documents = amounts
    head, tail = ends
    return Original(characters, length, images, documents, head, tail, places, notes)


def _amounts(values: object) -> tuple[int, ...] | None:
    if not isinstance(values, list) or not all(type(value) is int and 0 <= value <= MAX_COUNT for value in values):
        return None
    return tuple(values)
