"""The short texts in place of removed content, and items that contain them. Pure functions of the item.

The placeholder of an item is the same at every turn and with every tokenizer, so that prompt caches stay valid: sizes are in characters
and pixels. Items with placeholders are recognised by `extra[MARK]`, never by their text, which a tool could imitate.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

from session.identity import is_digest
from session.items import FunctionCall, FunctionCallOutput, Item, Message, copy_with, parts_of_item
from session.json_strings import change_strings, longest_string
from session.parts import Document, Image, Part, Text
from session.printable import short_name
from session.removed import short_id
from session.sanitize import MAX_COUNT

from .plan import Cut

MARK = "context_window"
"""The key in `extra` under which an item records how it was changed."""
CLEARED, TRUNCATED, REPLACED, REFUSED, DIGEST = TAKEN = ("cleared", "truncated", "images replaced", "parts refused", "digest")
"""The values under that key. Any other value is the caller's."""

GONE = "## taken out whole; the recall id ends each line"
"""The heading of what a note says of outputs that a view does not show at all."""
GAP = "\n…\n"
"""Stands between two passages of a text where others are missing."""
SHOWN = 200
"""Characters of a path or URL that a placeholder repeats, as in converters' notes: a URL can cost more tokens than the image."""
NAME_SHOWN = 64
"""Characters of a tool's name that a placeholder repeats."""

_SHOWABLE = re.compile(r"[!-Z\\^-~]{1,64}")  # ASCII without spaces and brackets
_ALIAS = re.compile(r"id-[0-9a-f]{32}")


def shown_id(item_id: str) -> str:
    """Return the id of an item as placeholders show it; no two items of a session have the same.

    An id of at most 64 ASCII characters without spaces and brackets is shown as it is. Any other id is shown by an alias, a hash of it.
    So is an id in the form of an alias: an alias is never the id of another item. `recall` accepts the id as shown.
    """
    if _SHOWABLE.fullmatch(item_id) and not is_alias(item_id):
        return item_id
    return f"id-{sha256(item_id.encode()).hexdigest()[:32]}"


def is_alias(text: str) -> bool:
    """True if the text has the form of an alias."""
    return _ALIAS.fullmatch(text) is not None


def part_id(item: Item, place: int) -> str:
    """Return the id with which an image or document can be recalled: its item's id and its index among the original parts."""
    return f"{shown_id(item.id)}#{original_place(item, place)}"


def original_place(item: Item, place: int) -> int:
    """Return the index that a part had before the item was changed."""
    return original_of(item).places[place] if isinstance(item, FunctionCallOutput) else place


def image_placeholder(item: Item, place: int, image: Image) -> str:
    """Return the placeholder of an image: its size in pixels and its file, if known."""
    return f"[{_described(image)} taken out; recall id {part_id(item, place)}]"


def refused_placeholder(item: Item, place: int, part: Image | Document) -> str:
    """Return the note in place of a part that the provider has refused."""
    return f"[{_described(part)} refused by the model's provider; recall id {part_id(item, place)}]"


def output_placeholder(item: FunctionCallOutput) -> str:
    """Return the placeholder of a tool's output: the tool, the size taken out, the id."""
    if len(item.output) == 1 and isinstance(item.output[0], Text) and WAS not in item.extra:  # nearly all outputs
        sizes, media = [f"{len(item.output[0].text):,} characters"], []
    else:
        original = original_of(item)
        media = media_words(original.images, original.documents)
        sizes = [f"{original.characters:,} characters"] if original.characters or not media else []
    return f"[{short_name(item.name, NAME_SHOWN)} output taken out: {', '.join(sizes + media)}; recall id {shown_id(item.id)}]"


def media_words(images: int, documents: int) -> list[str]:
    """Return the numbers of images and documents in words, without absent kinds: `2 images`, `1 document`."""
    return [f"{count} {kind}{'s' if count > 1 else ''}" for kind, count in (("image", images), ("document", documents)) if count]


def cut_marker(item: FunctionCallOutput, characters: int, *, is_scattered: bool = False) -> str:
    """Return the placeholder in the middle of a truncated output; `is_scattered` if passages follow that were kept."""
    where = "here and at each … below" if is_scattered else "here"
    return f"\n[{characters:,} characters taken out {where}; recall id {shown_id(item.id)}]\n"


def middle_marker(item: Item) -> str:
    """Return the placeholder in the middle of a text of a user's message."""
    return f"\n[text taken out here; recall id {shown_id(item.id)}]\n"


def value_marker(item: Item) -> str:
    """Return the placeholder in the middle of a string value of a call's arguments, or in its place. Shorter than `LONG_VALUE`."""
    return f"[text taken out here; recall id {shown_id(item.id)}]"


def longest_text(item: Item) -> int:
    """Return the characters of the longest text that `changed` would cut in a message or call; 0 if there is none."""
    if isinstance(item, FunctionCall):
        return longest_string(item.arguments)
    parts = item.content if isinstance(item, Message) else ()
    texts = (part for place, part in enumerate(parts) if isinstance(part, Text) and not _is_note(item, place, part))
    return max((len(part.text) for part in texts), default=0)


def output_text(item: FunctionCallOutput) -> str:
    """Return the text in which an output is cut: its text parts, one per line. If it is cut already, the rest with the marker."""
    return original_of(item).text(item)


def cut_text(item: FunctionCallOutput, head: int, tail: int, between: Sequence[tuple[int, int]] = ()) -> str:
    """Return the output's text with only `head` characters of its beginning and `tail` of its end, or fewer if it has fewer left.

    Passages `between` are kept as well, if the output is unchanged so far: they are positions in its own text.
    """
    original = original_of(item)
    text, (head, tail) = original.text(item), original.available(head, tail)
    kept = [text[start:end] + GAP for start, end in between]
    marker = cut_marker(item, max(0, original.length - head - tail - sum(map(len, kept)) + len(GAP) * len(kept)), is_scattered=bool(kept))
    return text[:head] + marker + "".join(kept) + text[len(text) - tail :]


def arguments_once_cleared(item: FunctionCall) -> str:
    """Return the call's arguments with a placeholder in place of each long string value, or of what a truncation left of it."""
    return cleared_arguments(item.arguments, value_marker(item)) if len(item.arguments) > LONG_VALUE else item.arguments


def cleared_call(item: FunctionCall) -> FunctionCall:
    """Return the call with a placeholder in place of each long string value of its arguments, or of what a truncation left of it."""
    return copy_with(item, arguments=arguments_once_cleared(item), extra={**item.extra, MARK: CLEARED})


def cleared(item: FunctionCallOutput) -> FunctionCallOutput:
    """Return the output with its content replaced by a placeholder."""
    extra = {key: value for key, value in item.extra.items() if key != WAS}
    return copy_with(item, output=(Text(output_placeholder(item)),), extra={**extra, MARK: CLEARED})


def changed(item: Item, images: tuple[int, ...], cut: Cut | None) -> Item:
    """Return the item with images replaced by placeholders and its text truncated: of a call, the string values of its arguments."""
    if isinstance(item, FunctionCall):
        return item if cut is None else cut_call(item, cut)
    replaced = ((place, part) for place, part in enumerate(parts_of_item(item)) if place in images and isinstance(part, Image))
    notes = {place: image_placeholder(item, place, image) for place, image in replaced}
    return _with_notes(item, notes, cut, REPLACED)


def without_refused(item: Item, places: tuple[int, ...]) -> Item:
    """Return the item with notes in place of the images and documents at these indexes, which the provider has refused."""
    media = ((place, part) for place, part in enumerate(parts_of_item(item)) if place in places and not isinstance(part, Text))
    notes = {place: refused_placeholder(item, place, part) for place, part in media}
    return _with_notes(item, notes, None, REFUSED)


def _with_notes(item: Item, notes: Mapping[int, str], cut: Cut | None, mark: str) -> Item:
    if isinstance(item, FunctionCallOutput):
        return _changed_output(item, notes, cut, mark)
    if isinstance(item, Message):
        return _changed_message(item, notes, cut, mark)
    return item


def cut_call(item: FunctionCall, cut: Cut) -> FunctionCall:
    """Return the call with the long string values of its arguments truncated."""
    arguments = shortened_arguments(item.arguments, cut, value_marker(item))
    return replace(item, arguments=arguments, extra={**item.extra, MARK: TRUNCATED})


def _changed_message(item: Message, notes: Mapping[int, str], cut: Cut | None, mark: str) -> Message:
    parts: list[Part] = []
    for place, part in enumerate(item.content):
        if place in notes:
            parts.append(Text(notes[place]))
        elif cut is not None and isinstance(part, Text) and not _is_note(item, place, part):
            parts.append(Text(shortened(part.text, cut, middle_marker(item))))
        else:
            parts.append(part)
    mark = TRUNCATED if cut is not None or item.extra.get(MARK) == TRUNCATED else mark
    return replace(item, content=tuple(parts), extra={**item.extra, MARK: mark})


def unnamed(item: Item) -> Item:
    """Return an item of a view with placeholders that do not name the id to recall by, for a model that cannot recall."""
    if item.extra.get(MARK) not in TAKEN:
        return item
    if isinstance(item, Message) and is_digest(item):
        texts = [part.text for part in item.content if isinstance(part, Text) and not part.text.startswith(GONE)]
        return replace(item, content=tuple(Text(_without_id(text)) for text in texts))
    mention = re.compile(rf"; recall id (?:{re.escape(shown_id(item.id))}|{re.escape(short_id(item.id))})(?:#\d+)?(?=\])")
    if isinstance(item, FunctionCall):
        return replace(item, arguments=mention.sub("", item.arguments))
    parts = tuple(
        Text(mention.sub("", part.text)) if isinstance(part, Text) and mention.search(part.text) else part for part in parts_of_item(item)
    )
    if isinstance(item, FunctionCallOutput):
        return replace(item, output=parts)
    return replace(item, content=parts) if isinstance(item, Message) else item


def _without_id(text: str) -> str:
    """Return the first text of a digest without the mention of ids, or a section of it without the id that ends its heading."""
    heading, line_end, rest = text.partition("\n")
    if heading.startswith("["):
        return f"{heading.partition(';')[0]}]"
    return f"{heading.rpartition(' ')[0]}{line_end}{rest}"


def _is_note(item: Item, place: int, part: Text) -> bool:
    """True if a changed message shows this text in place of an image or document."""
    return item.extra.get(MARK) in TAKEN and part.text.startswith("[") and part.text.endswith(f"; recall id {part_id(item, place)}]")


def _changed_output(item: FunctionCallOutput, texts: Mapping[int, str], cut: Cut | None, mark: str) -> FunctionCallOutput:
    original = original_of(item)
    parts: list[Part] = []
    places, notes = [], []
    is_cut = False
    for place, part in enumerate(item.output):
        if cut is not None and isinstance(part, Text) and place not in original.notes:
            if is_cut:
                continue
            is_cut = True
            part = Text(cut_text(item, cut.head, cut.tail, cut.between))  # noqa: PLW2901 - the part that is shown instead
        elif place in texts:
            part = Text(texts[place])  # noqa: PLW2901
            notes.append(len(parts))
        elif place in original.notes:
            notes.append(len(parts))
        parts.append(part)
        places.append(original.places[place])
    if cut is not None:
        head, tail = original.available(cut.head, cut.tail)
        original = replace(original, head=head, tail=tail)
    record = replace(original, places=tuple(places), notes=tuple(notes)).to_extra()
    mark = TRUNCATED if cut is not None or item.extra.get(MARK) == TRUNCATED else mark
    return replace(item, output=tuple(parts), extra={**item.extra, MARK: mark, WAS: record})


def _described(part: Image | Document) -> str:
    """Return a description such as `image 800x600 plan.png` or `document Plan`."""
    if isinstance(part, Document):
        title = part.title or _address(part.url)
        return f"document {short_name(title, SHOWN)}" if title else "document"
    size = f" {part.width}x{part.height}" if part.width and part.height else ""
    name = short_name(part.path, SHOWN) if part.path else _address(part.url)
    return f"image{size}{f' {name}' if name else ''}"


def _address(url: str | None) -> str:
    """Return the beginning of an address. Empty for a `data:` URL, which is the content itself."""
    return short_name(url, SHOWN) if url and url[:5].lower() != "data:" else ""


# Texts that keep their ends. The marker between them is the same for all limits, so that a shortened text that is shortened further is the
# same as the original shortened at once.

LONG_VALUE = 200
"""Characters of a string value that stays in the arguments of a cleared call. Paths and short commands are not longer."""


def middle_cut(length: int, tokens: int = 0) -> Cut:
    """Return the cut that keeps `length` characters of each longer text, half of them at either end."""
    return Cut(length - length // 2, length // 2, tokens)


def shortened(text: str, cut: Cut, marker: str) -> str:
    """Return the text without its middle; the text itself if it would not become shorter."""
    if len(text) <= cut.head + cut.tail + len(marker):
        return text
    return text[: cut.head] + marker + text[len(text) - cut.tail :]


def cleared_arguments(arguments: str, marker: str) -> str:
    """Return the JSON text of an object with a marker in place of each long string value; any other text unchanged."""
    return change_strings(arguments, lambda value: marker if len(value) > LONG_VALUE else value, longer_than=LONG_VALUE)


def shortened_arguments(arguments: str, cut: Cut, marker: str) -> str:
    """Return the JSON text of an object with its long string values shortened; any other text unchanged."""
    return change_strings(arguments, lambda value: shortened(value, cut, marker), longer_than=cut.head + cut.tail)


# The sizes that an output had before a view changed it. A view may itself be used as a log: outputs that it changed are then described, and
# changed again, as their originals would be. An unchanged output is its own original.

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
