"""Counting with tiktoken's o200k vocabulary, offline."""

from __future__ import annotations

from fractions import Fraction
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from session.parts import Part

from .counter import count_by_rule
from .images import ImageRule, seed_image_tokens
from .vocabulary import o200k

if TYPE_CHECKING:
    import tiktoken

PIECE = 200_000
"""Characters given to tiktoken at once: on runs of white space near a million its regex engine gives up with a panic."""
SHORT = 64
"""Texts up to so many characters (tool names, mostly) are remembered."""


class TiktokenCounter:
    """Counts with o200k: exact for OpenAI's models since 4o; for others times the ratio that their family has to it."""

    def __init__(self, image_rule: ImageRule = seed_image_tokens, ratio: Fraction = Fraction(1)) -> None:
        self.name = "tiktoken o200k" if ratio == 1 else f"tiktoken o200k x {float(ratio):g}"
        self.image_rule = image_rule
        self._ratio = ratio
        self._encoding: tiktoken.Encoding | None = None
        self._short = lru_cache(maxsize=4096)(self._count)

    def count_text(self, text: str) -> int:
        """Tokens of a text; text that looks like a special token is text."""
        return self._short(text) if len(text) <= SHORT else self._count(text)

    def count_part(self, part: Part) -> int:
        """Tokens of a part."""
        return count_by_rule(self, self.image_rule, part)

    def _count(self, text: str) -> int:
        found = self._encoded(text)
        return found if self._ratio == 1 else -(-found * self._ratio.numerator // self._ratio.denominator)

    def _encoded(self, text: str) -> int:
        if self._encoding is None:
            self._encoding = o200k()
        if len(text) <= PIECE:
            return len(self._encoding.encode_ordinary(text))
        return sum(len(self._encoding.encode_ordinary(piece)) for piece in pieces(text))


@cache
def default_counter(image_rule: ImageRule = seed_image_tokens, ratio: Fraction = Fraction(1)) -> TiktokenCounter:
    """The one counter for this rule and ratio: managers share it, so that an item they share is counted once."""
    return TiktokenCounter(image_rule, ratio)


def pieces(text: str, size: int = PIECE) -> list[str]:
    """The text in pieces of at most `size` characters, cut after a newline where there is one."""
    cut = []
    start = 0
    while len(text) - start > size:
        newline = text.rfind("\n", start, start + size)
        end = start + size if newline < start else newline + 1
        cut.append(text[start:end])
        start = end
    cut.append(text[start:])
    return cut
