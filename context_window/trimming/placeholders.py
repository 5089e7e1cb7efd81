"""The short texts that stand where content was taken out, and items with them in place. Pure functions of the item.

A placeholder is the same for an item at every turn and with every tokenizer, so that prompt caches stay warm: sizes are
in characters and pixels. Items with one are known by `extra[MARK]`, never by their text, which a tool could imitate.
"""

from __future__ import annotations

from dataclasses import replace

from session.items import FunctionCallOutput, Item, Message
from session.parts import Document, Image, Part, Text

from .plan import Cut

MARK = "context_window"
"""The key in `extra` under which an item says what was done to it."""

SHOWN = 200
"""Characters of a path or URL that a placeholder repeats, as converters' notes do: an address may be longer than its image is dear."""


def image_id(item: Item, place: int) -> str:
    """The id under which an image can be recalled: its item's, and its place among the parts."""
    return f"{item.id}#{place}"


def image_placeholder(item: Item, place: int, image: Image) -> str:
    """What stands for an image: its size in pixels and, where known, its file."""
    size = f" {image.width}x{image.height}" if image.width and image.height else ""
    name = _name(image)
    return f"[image{size}{f' {name}' if name else ''} taken out; recall id {image_id(item, place)}]"


def output_placeholder(item: FunctionCallOutput) -> str:
    """What stands for a tool's output: the tool, the size taken out, the id."""
    texts = sum(len(part.text) for part in item.output if isinstance(part, Text))
    others = [(kind, sum(isinstance(part, cls) for part in item.output)) for kind, cls in (("image", Image), ("document", Document))]
    sizes = [f"{texts:,} characters"] if texts or not any(count for _, count in others) else []
    sizes += [f"{count} {kind}{'s' if count > 1 else ''}" for kind, count in others if count]
    return f"[{item.name} output taken out: {', '.join(sizes)}; recall id {item.id}]"


def cut_marker(item: FunctionCallOutput, taken: int) -> str:
    """What stands in the middle of a truncated output."""
    return f"\n[{taken:,} characters taken out here; recall id {item.id}]\n"


def output_text(item: FunctionCallOutput) -> str:
    """The text that a cut of this output goes by: its text parts, one a line."""
    return item.text


def cut_text(item: FunctionCallOutput, head: int, tail: int) -> str:
    """The output's text with only `head` characters of its beginning and `tail` of its end left."""
    text = output_text(item)
    return text[:head] + cut_marker(item, len(text) - head - tail) + text[len(text) - tail :]


def cleared(item: FunctionCallOutput) -> FunctionCallOutput:
    """The output with its content replaced by a placeholder."""
    return replace(item, output=(Text(output_placeholder(item)),), extra={**item.extra, MARK: "cleared"})


def changed(item: Item, images: tuple[int, ...], cut: Cut | None) -> Item:
    """The item with images replaced by placeholders and its text truncated."""
    parts: list[Part] = []
    cut_done = False
    for place, part in enumerate(_content(item)):
        if place in images and isinstance(part, Image):
            parts.append(Text(image_placeholder(item, place, part)))
        elif cut is not None and isinstance(part, Text) and isinstance(item, FunctionCallOutput):
            if not cut_done:
                parts.append(Text(cut_text(item, cut.head, cut.tail)))
            cut_done = True
        else:
            parts.append(part)
    mark = {MARK: "truncated" if cut is not None else "images replaced"}
    if isinstance(item, FunctionCallOutput):
        return replace(item, output=tuple(parts), extra={**item.extra, **mark})
    if isinstance(item, Message):
        return replace(item, content=tuple(parts), extra={**item.extra, **mark})
    return item


def _name(image: Image) -> str:
    """Where an image is, as far as that is worth saying. A `data:` URL is the image itself."""
    if image.path:
        return image.path[:SHOWN]
    return image.url[:SHOWN] if image.url and image.url[:5].lower() != "data:" else ""


def _content(item: Item) -> tuple[Part, ...]:
    if isinstance(item, Message):
        return item.content
    return item.output if isinstance(item, FunctionCallOutput) else ()
