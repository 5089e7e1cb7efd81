"""Split the record of a conversation into pieces that fit into prompts. Part of step 5 of the package's charter (`__init__.py`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from session.conversation_text import INDENT, QUOTE, render_items

from ..errors import CompactionError
from .unit_selection import SummaryUnit

MAX_REQUESTS = 8
"""Requests for one summary. Units that are not reached stay in the log until the next summary."""

CHARACTERS_PER_TOKEN = 6
"""More than most texts have."""

Count = Callable[[str], int]


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of the record that fits into one prompt, with the number and the characters of the units that are complete with it."""

    text: str
    complete_units: int
    complete_characters: int


def split_record(units: Sequence[SummaryUnit], count: Count, room: int) -> Iterator[Piece]:
    """Yield the units' texts in pieces of at most `room` tokens. A unit that is larger spans several pieces."""
    texts: list[str] = []
    piece_tokens = complete_characters = 0
    for number, unit in enumerate(units):
        unit_text = render_items(unit.items)
        for part, part_tokens in _split_text(unit_text, count, room):
            tokens = part_tokens + 1  # with the line break before it
            if texts and piece_tokens + tokens > room:
                yield Piece("\n".join(texts), number, complete_characters)
                texts, piece_tokens = [], 0
            texts.append(part)
            piece_tokens += tokens
        complete_characters += len(unit_text)
    yield Piece("\n".join(texts), len(units), complete_characters)


def has_more_tokens(text: str, limit: int, count: Count) -> bool:
    """True if the beginning of a text alone has more tokens than the limit. The rest of it is not counted."""
    beginning = text[: limit * CHARACTERS_PER_TOKEN]
    return len(beginning) < len(text) and count(beginning) > limit


def _split_text(text: str, count: Count, room: int) -> Iterator[tuple[str, int]]:
    """Yield the text in parts of fewer than `room` tokens, each with its tokens.

    All but the first are indented, so that none looks like a new item. A part that begins inside a tool's output is quoted.
    """
    stack = [text] if text else []
    is_first, line = True, ""
    while stack:
        part = stack.pop()
        indented = part if is_first else INDENT + (QUOTE if line.startswith(INDENT + QUOTE) else "") + part.lstrip("\n")
        tokens = count(indented)
        if tokens < room:
            yield indented, tokens
            is_first, line = False, f"{line}{part}".rpartition("\n")[2]
            continue
        if len(part) < 2:
            raise CompactionError("the summariser's window is too small for a prompt; give it a larger one")
        step = max(1, min(len(part) // 2, len(part) * max(room, 1) // (tokens + 1)))
        stack += reversed([part[start : start + step] for start in range(0, len(part), step)])
