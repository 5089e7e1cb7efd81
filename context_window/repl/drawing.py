"""What the chat draws beside the tables of `display/`: the usage line, what was said and called, lists. Layout only."""

from __future__ import annotations

from collections.abc import Sequence

from session.items import Compaction, FunctionCall, FunctionCallOutput, Item, Message, MessageCategory
from session.parts import Document, Image, Part, Text

from ..display.cells import bar
from ..display.glyphs import BAD, FREE, OVERHEAD, QUIET, STRONG, STYLES, Glyphs
from ..display.lines import Column, Line, Span, fitted, flow, table, width_of
from ..display.rendering import Draw
from ..display.usage import percent, tenths
from .wrapping import folded

WITH_BAR = 40
"""Columns from which there is room for a bar."""
BAR = 20
"""Columns of the bar, at most."""
WITH_COLUMNS = 60
"""Columns from which names and what they mean stand side by side."""
YOU = "> "
"""Stands before what the user said."""
LONG = 24
"""Lines of a message that are shown of a transcript."""
MUCH = 100_000
"""Characters that are laid out at most: no screen has room for more."""


def usage_line(usage: dict[str, int], news: Sequence[str]) -> Draw:
    """A bar, how full the window is, and what was done about it.

    Args:
        usage: As `get_token_usage` gives it.
        news: What the manager told.
    """

    def draw(width: int, glyphs: Glyphs) -> list[Line]:
        total, budget = usage["total"], usage["budget"]
        spans = [Span(used(usage), STRONG), Span(f"{total:,} of {budget:,} tokens")]
        if total > budget:
            spans.append(Span(f"over budget by {total - budget:,}", BAD))
        spans += [Span(glyphs.shown(text), "yellow") for text in news]
        if width < WITH_BAR:
            return flow(spans, width, glyphs)
        columns = min(BAR, width // 4)
        drawn = bar(_amounts(usage), columns, glyphs)
        lines = flow(spans, width - columns - 2, glyphs)
        blank = Span(" " * (columns + 2))
        return [[*drawn, Span("  "), *lines[0]], *([blank, *line] for line in lines[1:])]

    return draw


def used(usage: dict[str, int]) -> str:
    """How much of the budget is used, in percent: as the usage report has it."""
    parts = [*_amounts(usage).values()]
    if usage["total"] > usage["budget"]:
        return percent(usage["total"], usage["budget"])
    tenth = sum(tenths(parts, usage["budget"])[:-1])
    return "<0.1%" if usage["total"] and not tenth else f"{tenth // 10}.{tenth % 10}%"


def _amounts(usage: dict[str, int]) -> dict[str, int]:
    names = [*(category.value for category in MessageCategory), OVERHEAD]
    return {name: usage[name] for name in names} | {FREE: max(0, usage["available"])}


def text_block(text: str, style: str = "", *, before: str = "", most: int | None = None) -> Draw:
    """A text, folded to the width.

    Args:
        text: The text.
        style: How it looks.
        before: What stands before its first line; the others are indented below it.
        most: Lines that are shown; None for all that a screen may hold.
    """

    def draw(width: int, glyphs: Glyphs) -> list[Line]:
        cut = text[:MUCH]
        lines = folded(cut, width - width_of(before), glyphs)
        shown = lines if most is None else lines[:most]
        left = len(lines) - len(shown)
        indent = " " * width_of(before)
        drawn: list[Line] = [[Span(indent if place else before, STRONG), Span(line, style)] for place, line in enumerate(shown)]
        if left or len(text) > MUCH:
            what = more(left, "line") if left else more(len(text) - MUCH, "character")
            drawn.append([Span(fitted(f"{indent}{glyphs.ellipsis} {what}", width, glyphs), QUIET)])
        return drawn

    return draw


def many(number: int, unit: str) -> str:
    """Return the number with its unit, in the plural unless it is one."""
    return f"{number:,} {unit}{'' if number == 1 else 's'}"


def more(number: int, unit: str) -> str:
    """How many more there are."""
    return many(number, f"more {unit}")


def quiet(text: str) -> Draw:
    """A text that is less loud."""
    return text_block(text, QUIET)


def fault(text: str) -> Draw:
    """What went wrong, as one paragraph whatever the message holds."""
    return text_block(" ".join(text.split()), BAD)


def blank(width: int, glyphs: Glyphs) -> list[Line]:  # noqa: ARG001 - every `Draw` takes both
    """An empty line."""
    return [[]]


def item_lines(item: Item) -> Draw | None:
    """An item as a reader of the conversation sees it; None for what is not said aloud: reasoning, prompts, handoffs."""
    match item:
        case Message(category=MessageCategory.SYSTEM):
            return None
        case Message(category=MessageCategory.CONTEXT):
            return quiet(f"[{size_of(item.content)} of context]")
        case Message(role="user"):
            return text_block(words_of(item.content), "cyan", before=YOU, most=LONG)
        case Message():
            return text_block(words_of(item.content), most=LONG) if item.content else None
        case FunctionCall():
            return call_line(item.name, item.arguments)
        case FunctionCallOutput():
            return quiet(
                f"  {item.name}{' failed' if item.is_error else ''}: {size_of(item.output)}"
            )  # calls that were made together are many
        case Compaction():
            return quiet(f"[a summary of {many(len(item.replaces), 'item')}]")
        case _:
            return None


def call_line(name: str, arguments: str) -> Draw:
    """A call, on one line."""

    def draw(width: int, glyphs: Glyphs) -> list[Line]:
        start = fitted(f"{glyphs.dot} {name} ", width, glyphs)
        return [[Span(start, STYLES[MessageCategory.SYSTEM_OUTPUT.value]), Span(fitted(arguments, width - width_of(start), glyphs), QUIET)]]

    return draw


def words_of(parts: Sequence[Part]) -> str:
    """The texts, with a note where something else is."""
    return "\n".join(part.text if isinstance(part, Text) else f"[{_kind(part)}]" for part in parts)


def _kind(part: Part) -> str:
    if isinstance(part, Image):
        return f"image {part.width}x{part.height}" if part.width and part.height else "image"
    return "document"


def size_of(parts: Sequence[Part]) -> str:
    """How much it is, in words."""
    texts = sum(len(part.text) for part in parts if isinstance(part, Text))
    others = [_kind(part) for part in parts if isinstance(part, Image | Document)]
    return ", ".join([*([many(texts, "character")] if texts or not others else []), *others])


def pairs(rows: Sequence[tuple[str, str]]) -> Draw:
    """Names with what they mean: side by side, or below each other where there is little room."""

    def draw(width: int, glyphs: Glyphs) -> list[Line]:
        names = max((width_of(glyphs.shown(name)) for name, _ in rows), default=0)
        side = width >= WITH_COLUMNS and names <= width // 2
        indent = names + 2 if side else 2
        lines: list[Line] = []
        for name, text in rows:
            told = folded(text, width - indent, glyphs)
            if side:
                shown = glyphs.shown(name)
                lines.append([Span(shown, "cyan"), Span(" " * (indent - width_of(shown))), Span(told[0])])
                told = told[1:]
            else:
                lines.append([Span(fitted(name, width, glyphs), "cyan")])
            lines += [[Span(" " * indent), Span(line)] for line in told]
        return lines

    return draw


def listing(heads: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: Sequence[int] = ()) -> Draw:
    """A table of texts, the last column of which is cut where there is no room.

    Args:
        heads: Titles of the columns.
        rows: The cells.
        numbers: Places of the columns that are numbers.
    """

    def draw(width: int, glyphs: Glyphs) -> list[Line]:
        columns = [
            Column(
                head,
                [Span(glyphs.shown(row[place])) for row in rows],
                left=place not in numbers,
                elastic=place not in numbers,
                whole=place == 0,
                keep=0 if place == 0 else len(heads) - place,
            )
            for place, head in enumerate(heads)
        ]
        return table(columns, width, glyphs)

    return draw
