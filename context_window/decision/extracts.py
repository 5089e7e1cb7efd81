"""The lines of items, and the digest that shows some of them. Pure functions of the items.

Example, with lines 1 and 4 of an output, and one of a call:

    [extracts of earlier items; the recall id of each ends its heading]
    ## read_file src/ledger/rows.py 3fa9c1
    …
    ParseError in read_rows: no rows
    …
    rows = read_rows(path, limit=218)
    …
    ## bash call 7be02d
    python -m pytest tests/test_rows.py

Lines are numbered through all texts of an item: the text parts of a message or output, or the string values in the arguments of a call.
Blank lines have no number. Each line is shown as it was, and `…` stands wherever lines are missing. An item that a view has changed
already has no lines: its texts are partly ours, and are never parsed. What a line is worth is in `terms.py`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple, TypeAlias

from session.identity import digest_record
from session.items import FunctionCall, FunctionCallOutput, Item, Message, parts_of_item
from session.json_strings import string_values
from session.parts import Document, Image, Text
from session.printable import short_name
from session.removed import short_id

from .placeholders import DIGEST, GAP, MARK, NAME_SHOWN, TAKEN, WAS, media_words
from .plan import Cut
from .tool_rules import subject_of

HEAD = "[extracts of earlier items; the recall id of each ends its heading]"
"""The first text of a digest."""
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
        return [value for value in string_values(item.arguments) if value.strip()]
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
    is_one = isinstance(item, FunctionCallOutput)  # truncated as one text: its text parts, one per line
    lengths = [len("\n".join(texts))] * len(texts) if is_one else list(map(len, texts))
    passages = passages_of(texts, lines) if is_one else [(start, end) for _, start, end in lines]
    kept = iter([*cut.between, (max(lengths, default=0), 0)])
    passage = next(kept)
    uncut = []
    for number, ((text, _, _), (start, end)) in enumerate(zip(lines, passages, strict=True)):
        while passage[1] < end and passage[1]:
            passage = next(kept)
        if end <= cut.head or start >= lengths[text] - cut.tail or passage[0] <= start < end <= passage[1]:
            uncut.append(number)
    return uncut


def passages_of(texts: Sequence[str], lines: Sequence[Line]) -> list[tuple[int, int]]:
    """Return the first character of each line, and the one after its last, in all these texts as one, with a line end between them."""
    offsets = list(accumulate((len(text) + 1 for text in texts), initial=0))
    return [(offsets[text] + start, offsets[text] + end) for text, start, end in lines]


def cut_to_lines(output: FunctionCallOutput, lines: Sequence[Line], numbers: Sequence[int]) -> Cut:
    """Return the cut of an output that keeps these of its lines, in rising order, and what stands between neighbours. Its tokens are 0."""
    texts = texts_of(output)
    places, length = passages_of(texts, lines), len("\n".join(texts))
    passages: list[tuple[int, int]] = []
    for before, number in pairwise([-2, *numbers]):
        start, end = places[number]
        passages[-1:] = [(passages[-1][0], end)] if before + 1 == number else [*passages[-1:], (start, end)]
    head = passages.pop(0)[1] if numbers and numbers[0] == 0 else 0
    tail = length - passages.pop()[0] if passages and numbers[-1] == len(lines) - 1 else 0
    return Cut(head, tail, 0, tuple(passages))


class DigestPart(NamedTuple):
    """What a digest shows of an item: the numbers of its lines, in rising order. An output comes with the call that it answers."""

    item: Item
    lines: Sequence[int]
    call: FunctionCall | None = None


def digest(parts: Sequence[DigestPart]) -> Message:
    """Return the digest of some items, with the first one's id."""
    first = parts[0].item
    sections = [Text(section(*part)) for part in parts]
    return Message(
        "user",
        (Text(HEAD), *sections),
        id=first.id,
        created_at=first.created_at,
        category=first.category,
        extra={MARK: DIGEST, WAS: digest_record([part.item for part in parts])},
    )


def section(item: Item, numbers: Sequence[int], call: FunctionCall | None = None) -> str:
    """Return what a digest shows of an item: a heading, and lines of it. Without any, the heading and a gap."""
    if not numbers:
        return f"{_heading(item, call)}{GAP[:-1]}"
    texts = texts_of(item)
    lines = lines_of(texts)
    return f"{_heading(item, call)}\n{excerpt(texts, lines, numbers, range(len(lines)))}"


def _heading(item: Item, call: FunctionCall | None) -> str:
    """Return the heading of an item in a digest: what it is or is about, the images and documents that it lacks, and its id."""
    if isinstance(item, FunctionCall | FunctionCallOutput):
        subject = "call" if isinstance(item, FunctionCall) else (call and subject_of(call)) or "output"
        what = f"{short_name(item.name, NAME_SHOWN)} {short_name(subject, NAME_SHOWN)}"
    else:
        what = item.role if isinstance(item, Message) else item.type
    parts = parts_of_item(item)
    media = media_words(sum(isinstance(part, Image) for part in parts), sum(isinstance(part, Document) for part in parts))
    without = f" without {' and '.join(media)}" if media else ""
    return f"## {what}{without} {short_id(item.id)}"


def excerpt(texts: Sequence[str], lines: Sequence[Line], numbers: Sequence[int], of: Sequence[int]) -> str:
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
