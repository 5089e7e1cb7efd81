"""The lines of an item, and the item that shows only some of them: an extract. Pure functions of the item.

Example, lines 1 and 4 of an output:

    [extract; recall id 3fa9c1]
    …
    ParseError in read_rows: no rows
    …
    rows = read_rows(path, limit=218)
    …

Lines are numbered through all texts of an item: the text parts of a message or output, or the long string values in the arguments of a
call. Blank lines have no number. Each line is shown as it was, and `…` stands wherever lines are missing. An item that a view has
changed already has no lines: its texts are partly ours, and are never parsed. What a line is worth is in `terms.py`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import count, pairwise
from typing import TypeAlias

from session.items import FunctionCall, FunctionCallOutput, Item, Message, parts_of_item
from session.json_strings import change_strings, string_values
from session.parts import Document, Image, Text
from session.removed import short_id

from .edited_output import WAS, original_of
from .placeholders import EXTRACTED, MARK, TAKEN, media_words, value_marker
from .plan import Cut
from .shortened_text import LONG_VALUE

GAP = "\n…\n"
"""Stands between two lines where lines are missing."""
LONG_LINE = 400
"""Characters of a line that is cut into pieces, which then count as lines: JSON often has only one."""

_PIECE = re.compile(r'.{1,240}(?:\\n|[,;.}\]](?=[\s"{])|$)|.{1,240}')


Line: TypeAlias = tuple[int, int, int]
"""The place of a line in the texts of an item: the number of the text, the line's start in it, and its end, without white space."""


def texts_of(item: Item) -> list[str]:
    """Return the texts that an extract of the item takes lines from; none if a view has changed the item already."""
    if item.extra.get(MARK) in TAKEN:
        return []
    if isinstance(item, FunctionCall):
        return [value for value in string_values(item.arguments) if len(value) > LONG_VALUE]
    if isinstance(item, Message | FunctionCallOutput):
        return [part.text for part in parts_of_item(item) if isinstance(part, Text)]
    return []


def lines_of(texts: Sequence[str]) -> list[Line]:
    """Return the lines of these texts, without blank ones, in order."""
    lines = []
    for number, text in enumerate(texts):
        start = 0
        for line in text.split("\n"):
            stripped = line.rstrip()
            if len(stripped) > LONG_LINE:
                pieces = [match.span() for match in _PIECE.finditer(stripped)]
                lines += [(number, start + first, start + last) for first, last in pieces if not stripped[first:last].isspace()]
            elif stripped:
                lines.append((number, start, start + len(stripped)))
            start += len(line) + 1
    return lines


def uncut_lines(item: Item, lines: Sequence[Line], cut: Cut) -> list[int]:
    """Return the numbers of the lines that a truncation of the item has left whole."""
    texts = texts_of(item)
    if isinstance(item, FunctionCallOutput):  # truncated as one text: its text parts, one per line
        offsets = [sum(len(text) + 1 for text in texts[:number]) for number in range(len(texts))]
        lengths = [sum(map(len, texts)) + len(texts) - 1] * len(texts)
    else:
        offsets, lengths = [0] * len(texts), list(map(len, texts))
    return [
        number
        for number, (text, start, end) in enumerate(lines)
        if offsets[text] + end <= cut.head or offsets[text] + start >= lengths[text] - cut.tail
    ]


def extracted(item: Item, numbers: Sequence[int]) -> Item:
    """Return the item with only these lines of it, in order.

    Args:
        item: A message, output or call with lines.
        numbers: Numbers of the lines, in rising order. With none, only the marker and the gap are left.
    """
    if isinstance(item, FunctionCall):
        return _extracted_call(item, numbers)
    text = extract_text(item, numbers)
    if isinstance(item, FunctionCallOutput):
        record = replace(original_of(item), head=0, tail=0, places=(0,), notes=()).to_extra()
        return replace(item, output=(Text(text),), extra={**item.extra, MARK: EXTRACTED, WAS: record})
    assert isinstance(item, Message)
    return replace(item, content=(Text(text),), extra={**item.extra, MARK: EXTRACTED})


def extract_text(item: Item, numbers: Sequence[int]) -> str:
    """Return the text of an extract of a message or an output."""
    if not numbers:
        return f"{extract_marker(item)}\n{GAP[1:-1]}"
    texts = texts_of(item)
    lines = lines_of(texts)
    return f"{extract_marker(item)}\n{_excerpt(texts, lines, numbers, range(len(lines)))}"


def extract_marker(item: Item) -> str:
    """Return the first line of an extract: the images and documents that it lacks, and the id."""
    parts = parts_of_item(item)
    media = media_words(sum(isinstance(part, Image) for part in parts), sum(isinstance(part, Document) for part in parts))
    without = f" without {' and '.join(media)}" if media else ""
    return f"[extract{without}; recall id {short_id(item.id)}]"


def _extracted_call(item: FunctionCall, numbers: Sequence[int]) -> FunctionCall:
    """Return the call with only these lines in the long values of its arguments. A value without any becomes a placeholder."""
    texts = texts_of(item) if numbers else []
    lines = lines_of(texts)
    counter = count()

    def shorten(value: str) -> str:
        if len(value) <= LONG_VALUE:
            return value
        text = next(counter)
        chosen = [number for number in numbers if lines[number][0] == text]
        of_text = [number for number, line in enumerate(lines) if line[0] == text]
        return f"{extract_marker(item)}\n{_excerpt(texts, lines, chosen, of_text)}" if chosen else value_marker(item)

    return replace(item, arguments=change_strings(item.arguments, shorten), extra={**item.extra, MARK: EXTRACTED})


def _excerpt(texts: Sequence[str], lines: Sequence[Line], numbers: Sequence[int], of: Sequence[int]) -> str:
    """Return these lines of the lines `of`, with a gap wherever others are missing."""
    pieces = [] if numbers[0] == of[0] else [GAP[1:]]
    for previous, number in pairwise([-1, *numbers]):
        text, start, end = lines[number]
        if previous != -1:
            text_before, _, end_before = lines[previous]
            is_next = previous + 1 == number
            pieces.append(GAP if not is_next else texts[text][end_before:start] if text_before == text else "\n")
        pieces.append(texts[text][start:end])
    return "".join(pieces) + ("" if numbers[-1] == of[-1] else GAP[:-1])
