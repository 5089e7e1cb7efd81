"""The short texts that stand where content was taken out, and items with them in place. Pure functions of the item.

A placeholder is the same for an item at every turn and with every tokenizer, so that prompt caches stay warm: sizes are
in characters and pixels. Items with one are known by `extra[MARK]`, never by their text, which a tool could imitate.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256

from session.items import FunctionCallOutput, Item, Message, parts_of_item
from session.parts import Document, Image, Part, Text
from session.printable import short_name

from .originals import WAS, original_of
from .plan import Cut

MARK = "context_window"
"""The key in `extra` under which an item says what was done to it."""
CLEARED, TRUNCATED, REPLACED, REFUSED = TAKEN = ("cleared", "truncated", "images replaced", "parts refused")
"""What it says. Anything else there is the caller's own."""

SHOWN = 200
"""Characters of a path or URL that a placeholder repeats, as converters' notes do: an address may be longer than its image is dear."""
NAME_SHOWN = 64
"""Characters of a tool's name."""

_SHOWABLE = re.compile(r"[!-Z\\^-~]{1,64}")  # ASCII without spaces and brackets
_ALIAS = re.compile(r"id-[0-9a-f]{32}")


def shown_id(item_id: str) -> str:
    """Return the id of an item as placeholders show it; no two items of a session have the same.

    An id of at most 64 ASCII characters without spaces and brackets is shown as it is. Any other is shown by an alias, a hash of
    it, and so is one that has the form of an alias: an alias is never the id of another item. `recall` takes what is shown.
    """
    if _SHOWABLE.fullmatch(item_id) and not is_alias(item_id):
        return item_id
    return f"id-{sha256(item_id.encode()).hexdigest()[:32]}"


def is_alias(shown: str) -> bool:
    """True if the text has the form of an alias."""
    return _ALIAS.fullmatch(shown) is not None


def part_id(item: Item, place: int) -> str:
    """Return the id under which an image or document can be recalled: its item's, and its place among the original parts."""
    return f"{shown_id(item.id)}#{original_place(item, place)}"


def original_place(item: Item, place: int) -> int:
    """Return the place that a part had before the item was changed."""
    return original_of(item).places[place] if isinstance(item, FunctionCallOutput) else place


def image_placeholder(item: Item, place: int, image: Image) -> str:
    """What stands for an image: its size in pixels and, where known, its file."""
    return f"[{_described(image)} taken out; recall id {part_id(item, place)}]"


def refused_placeholder(item: Item, place: int, part: Image | Document) -> str:
    """Return the note in place of a part that the provider has refused."""
    return f"[{_described(part)} refused by the model's provider; recall id {part_id(item, place)}]"


def output_placeholder(item: FunctionCallOutput) -> str:
    """What stands for a tool's output: the tool, the size taken out, the id."""
    was = original_of(item)
    others = [(kind, count) for kind, count in (("image", was.images), ("document", was.documents)) if count]
    sizes = [f"{was.characters:,} characters"] if was.characters or not others else []
    sizes += [f"{count} {kind}{'s' if count > 1 else ''}" for kind, count in others]
    return f"[{short_name(item.name, NAME_SHOWN)} output taken out: {', '.join(sizes)}; recall id {shown_id(item.id)}]"


def cut_marker(item: FunctionCallOutput, taken: int) -> str:
    """What stands in the middle of a truncated output."""
    return f"\n[{taken:,} characters taken out here; recall id {shown_id(item.id)}]\n"


def output_text(item: FunctionCallOutput) -> str:
    """The text that a cut of this output goes by: its text parts, one a line; of one that is cut already, what is left with the marker."""
    return original_of(item).text(item)


def cut_text(item: FunctionCallOutput, head: int, tail: int) -> str:
    """The output's text with only `head` characters of its beginning and `tail` of its end left, where it has as many left."""
    was = original_of(item)
    text, (head, tail) = was.text(item), was.kept(head, tail)
    return text[:head] + cut_marker(item, max(0, was.length - head - tail)) + text[len(text) - tail :]


def cleared(item: FunctionCallOutput) -> FunctionCallOutput:
    """The output with its content replaced by a placeholder."""
    extra = {key: value for key, value in item.extra.items() if key != WAS}
    return replace(item, output=(Text(output_placeholder(item)),), extra={**extra, MARK: CLEARED})


def changed(item: Item, images: tuple[int, ...], cut: Cut | None) -> Item:
    """The item with images replaced by placeholders and its text truncated."""
    pictures = ((place, part) for place, part in enumerate(parts_of_item(item)) if place in images and isinstance(part, Image))
    notes = {place: image_placeholder(item, place, image) for place, image in pictures}
    return _noted(item, notes, cut, REPLACED)


def without_refused(item: Item, places: tuple[int, ...]) -> Item:
    """Return the item with notes in place of the images and documents at these places, which the provider has refused."""
    media = ((place, part) for place, part in enumerate(parts_of_item(item)) if place in places and not isinstance(part, Text))
    notes = {place: refused_placeholder(item, place, part) for place, part in media}
    return _noted(item, notes, None, REFUSED)


def _noted(item: Item, notes: Mapping[int, str], cut: Cut | None, mark: str) -> Item:
    if isinstance(item, FunctionCallOutput):
        return _changed_output(item, notes, cut, mark)
    if isinstance(item, Message):
        parts = (Text(notes[place]) if place in notes else part for place, part in enumerate(item.content))
        return replace(item, content=tuple(parts), extra={**item.extra, MARK: mark})
    return item


def _changed_output(item: FunctionCallOutput, noted: Mapping[int, str], cut: Cut | None, mark: str) -> FunctionCallOutput:
    was = original_of(item)
    parts: list[Part] = []
    places, notes = [], []
    cut_done = False
    for place, part in enumerate(item.output):
        if cut is not None and isinstance(part, Text) and place not in was.notes:
            if cut_done:
                continue
            cut_done = True
            part = Text(cut_text(item, cut.head, cut.tail))  # noqa: PLW2901 - what stands there from now on
        elif place in noted:
            part = Text(noted[place])  # noqa: PLW2901
            notes.append(len(parts))
        elif place in was.notes:
            notes.append(len(parts))
        parts.append(part)
        places.append(was.places[place])
    if cut is not None:
        head, tail = was.kept(cut.head, cut.tail)
        was = replace(was, head=head, tail=tail)
    said = replace(was, places=tuple(places), notes=tuple(notes)).to_extra()
    mark = TRUNCATED if cut is not None or item.extra.get(MARK) == TRUNCATED else mark
    return replace(item, output=tuple(parts), extra={**item.extra, MARK: mark, WAS: said})


def _described(part: Image | Document) -> str:
    """Return `image 800x600 plan.png`, or `document Plan`: the kind of the part, and what is known of it."""
    if isinstance(part, Document):
        title = part.title or _address(part.url)
        return f"document {short_name(title, SHOWN)}" if title else "document"
    size = f" {part.width}x{part.height}" if part.width and part.height else ""
    name = short_name(part.path, SHOWN) if part.path else _address(part.url)
    return f"image{size}{f' {name}' if name else ''}"


def _address(url: str | None) -> str:
    """Return the beginning of an address; of a `data:` URL, which is the content itself, nothing."""
    return short_name(url, SHOWN) if url and url[:5].lower() != "data:" else ""
