"""Drawings of the chat: the usage line, messages and calls, lists. Reports and plans are drawn in `display/`. Layout only."""

from __future__ import annotations

from collections.abc import Sequence

from session.items import Compaction, FunctionCall, FunctionCallOutput, Item, Message, MessageCategory
from session.parts import Document, Image, Part, Text

from ..display.charts import bar
from ..display.glyphs import BAD, FREE, OVERHEAD, QUIET, STRONG, STYLES, Glyphs
from ..display.lines import Column, Line, Span, fit, flow, table, width_of
from ..display.render import Draw
from ..display.usage import percent, tenths
from .wrap import folded

BAR_FROM = 40
"""Columns of the narrowest terminal that gets a usage bar."""
BAR = 20
"""Columns of the usage bar, at most."""
SIDE_BY_SIDE_FROM = 60
"""Columns of the narrowest terminal that shows terms and definitions side by side."""
USER_PREFIX = "> "
"""Precedes a user message."""
MESSAGE_LINES = 24
"""Lines of a message that are shown."""
MAX_TEXT = 100_000
"""Characters of a text that are laid out, at most. No screen has room for more."""


def usage_line(usage: dict[str, int], notices: Sequence[str]) -> Draw:
    """Return the usage bar, the figures behind it, and the notices.

    Args:
        usage: Token counts from `get_token_usage`.
        notices: Texts of recent events.
    """

    def draw(width: int, glyphs: Glyphs) -> list[Line]:
        total, budget = usage["total"], usage["budget"]
        spans = [Span(percent_used(usage), STRONG), Span(f"{total:,} of {budget:,} tokens")]
        if total > budget:
            spans.append(Span(f"over budget by {total - budget:,}", BAD))
        spans += [Span(glyphs.safe(text), "yellow") for text in notices]
        if width < BAR_FROM:
            return flow(spans, width, glyphs)
        columns = min(BAR, width // 4)
        usage_bar = bar(_amounts(usage), columns, glyphs)
        lines = flow(spans, width - columns - 2, glyphs)
        indent = Span(" " * (columns + 2))
        return [[*usage_bar, Span("  "), *lines[0]], *([indent, *line] for line in lines[1:])]

    return draw


def percent_used(usage: dict[str, int]) -> str:
    """Return the used part of the budget in percent, rounded as in the usage report."""
    parts = [*_amounts(usage).values()]
    if usage["total"] > usage["budget"]:
        return percent(usage["total"], usage["budget"])
    tenth = sum(tenths(parts, usage["budget"])[:-1])
    return "<0.1%" if usage["total"] and not tenth else f"{tenth // 10}.{tenth % 10}%"


def _amounts(usage: dict[str, int]) -> dict[str, int]:
    names = [*(category.value for category in MessageCategory), OVERHEAD]
    return {name: usage[name] for name in names} | {FREE: max(0, usage["available"])}


def text_block(text: str, style: str = "", *, before: str = "", most: int | None = None) -> Draw:
    """Return a text folded to the width.

    Args:
        text: The text.
        style: Its style.
        before: Precedes the first line. The other lines are indented by its width.
        most: Lines that are shown, at most; None for no limit.
    """

    def draw(width: int, glyphs: Glyphs) -> list[Line]:
        lines = folded(text[:MAX_TEXT], width - width_of(before), glyphs)
        visible = lines if most is None else lines[:most]
        omitted = len(lines) - len(visible)
        indent = " " * width_of(before)
        drawn: list[Line] = [[Span(indent if number else before, STRONG), Span(line, style)] for number, line in enumerate(visible)]
        if omitted or len(text) > MAX_TEXT:
            note = plural(omitted, "more line") if omitted else plural(len(text) - MAX_TEXT, "more character")
            drawn.append([Span(fit(f"{indent}{glyphs.ellipsis} {note}", width, glyphs), QUIET)])
        return drawn

    return draw


def plural(number: int, unit: str) -> str:
    """Return the number with its unit, in the plural unless it is one."""
    return f"{number:,} {unit}{'' if number == 1 else 's'}"


def dim(text: str) -> Draw:
    """Return a text in a subdued style."""
    return text_block(text, QUIET)


def error_text(text: str) -> Draw:
    """Return an error message as one paragraph, even if it holds line breaks."""
    return text_block(" ".join(text.split()), BAD)


def empty_line(width: int, glyphs: Glyphs) -> list[Line]:  # noqa: ARG001 - every `Draw` takes both
    """Return an empty line."""
    return [[]]


def item_block(item: Item) -> Draw | None:
    """Return an item as the conversation shows it; None for items that it does not show: reasoning, system prompts, handoffs."""
    match item:
        case Message(category=MessageCategory.SYSTEM):
            return None
        case Message(category=MessageCategory.CONTEXT):
            return dim(f"[{size_text(item.content)} of context]")
        case Message(role="user"):
            return text_block(parts_text(item.content), "cyan", before=USER_PREFIX, most=MESSAGE_LINES)
        case Message():
            return text_block(parts_text(item.content), most=MESSAGE_LINES) if item.content else None
        case FunctionCall():
            return call_line(item.name, item.arguments)
        case FunctionCallOutput():
            # with its name: the outputs of several calls can follow each other
            return dim(f"  {item.name}{' failed' if item.is_error else ''}: {size_text(item.output)}")
        case Compaction():
            return dim(f"[a summary of {plural(len(item.replaces), 'item')}]")
        case _:
            return None


def call_line(name: str, arguments: str) -> Draw:
    """Return a tool call on one line."""

    def draw(width: int, glyphs: Glyphs) -> list[Line]:
        start = fit(f"{glyphs.dot} {name} ", width, glyphs)
        return [[Span(start, STYLES[MessageCategory.SYSTEM_OUTPUT.value]), Span(fit(arguments, width - width_of(start), glyphs), QUIET)]]

    return draw


def parts_text(parts: Sequence[Part]) -> str:
    """Return the texts of the parts, with a note for each image and document."""
    return "\n".join(part.text if isinstance(part, Text) else f"[{_media_note(part)}]" for part in parts)


def _media_note(part: Part) -> str:
    if isinstance(part, Image):
        return f"image {part.width}x{part.height}" if part.width and part.height else "image"
    return "document"


def size_text(parts: Sequence[Part]) -> str:
    """Return the size of the parts in words, such as "14 characters, image 800x600"."""
    characters = sum(len(part.text) for part in parts if isinstance(part, Text))
    media = [_media_note(part) for part in parts if isinstance(part, Image | Document)]
    return ", ".join([*([plural(characters, "character")] if characters or not media else []), *media])


def definition_list(rows: Sequence[tuple[str, str]]) -> Draw:
    """Return terms with their definitions: side by side, or below each other in a narrow terminal."""

    def draw(width: int, glyphs: Glyphs) -> list[Line]:
        term_width = max((width_of(glyphs.safe(term)) for term, _ in rows), default=0)
        is_side_by_side = width >= SIDE_BY_SIDE_FROM and term_width <= width // 2
        indent = term_width + 2 if is_side_by_side else 2
        lines: list[Line] = []
        for term, definition in rows:
            folded_lines = folded(definition, width - indent, glyphs)
            if is_side_by_side:
                clean_term = glyphs.safe(term)
                lines.append([Span(clean_term, "cyan"), Span(" " * (indent - width_of(clean_term))), Span(folded_lines[0])])
                folded_lines = folded_lines[1:]
            else:
                lines.append([Span(fit(term, width, glyphs), "cyan")])
            lines += [[Span(" " * indent), Span(line)] for line in folded_lines]
        return lines

    return draw


def text_table(heads: Sequence[str], rows: Sequence[Sequence[str]], *, number_columns: Sequence[int] = ()) -> Draw:
    """Return a table of texts. If it is too wide, columns are left out from the right, then texts are cut. The first column stays.

    Args:
        heads: Titles of the columns.
        rows: The cells.
        number_columns: Indices of the columns that hold numbers.
    """

    def draw(width: int, glyphs: Glyphs) -> list[Line]:
        columns = [
            Column(
                head,
                [Span(glyphs.safe(row[index])) for row in rows],
                is_left=index not in number_columns,
                is_elastic=index not in number_columns,
                is_last_resort=index == 0,
                priority=0 if index == 0 else len(heads) - index,
            )
            for index, head in enumerate(heads)
        ]
        return table(columns, width, glyphs)

    return draw
