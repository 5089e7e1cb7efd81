"""Counting with tiktoken, offline: o200k, or an older vocabulary that tiktoken has in its cache."""

from __future__ import annotations

from fractions import Fraction
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from session.parts import Part

from ..errors import BudgetError
from .counter import count_by_rule
from .images import ImageRule, seed_image_tokens
from .vocabulary import O200K, load, o200k

if TYPE_CHECKING:
    import tiktoken

PIECE = 200_000
"""Characters given to tiktoken at once: on runs of white space near a million its regex engine gives up with a panic."""
LOOK_BACK = 1_000
"""Characters before the end of a piece in which a better place to cut is looked for."""
SHORT = 64
"""Texts up to so many characters (tool names, mostly) are remembered."""


class TiktokenCounter:
    """Counts with o200k: exact for OpenAI's models since 4o; for others times the ratio that their family has to it.

    Counters with the same values are equal. They may be pickled; the vocabulary is loaded anew on the other side.
    """

    def __init__(self, image_rule: ImageRule = seed_image_tokens, ratio: Fraction = Fraction(1), encoding: str = O200K) -> None:
        """
        Args:
            image_rule: Tokens of an image.
            ratio: The model's tokens for one of the vocabulary's. Counts are rounded up, so that only nothing counts 0.
            encoding: The vocabulary: o200k_base, which is always there; or cl100k_base, p50k_base or r50k_base, where tiktoken
                has it in its cache. Nothing is downloaded.

        Raises:
            BudgetError: The ratio is not above 0, or the vocabulary is not there.
        """
        if not isinstance(ratio, Fraction) or ratio <= 0:
            raise BudgetError("ratio", ratio, "pass a Fraction above 0, such as Fraction('1.17')")
        shown = encoding.removesuffix("_base") if isinstance(encoding, str) else ""
        self.name = f"tiktoken {shown}" if ratio == 1 else f"tiktoken {shown} x {float(ratio):g}"
        self.image_rule = image_rule
        self._ratio = ratio
        self._vocabulary = encoding
        self._encoding: tiktoken.Encoding | None = None if encoding == O200K else load(encoding)
        self._short = lru_cache(maxsize=4096)(self._count)

    def count_text(self, text: str) -> int:
        """Tokens of a text; text that looks like a special token is text."""
        return self._short(text) if len(text) <= SHORT else self._count(text)

    def count_part(self, part: Part) -> int:
        """Tokens of a part."""
        return count_by_rule(self, self.image_rule, part)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and isinstance(other, TiktokenCounter) and self._values() == other._values()

    def __hash__(self) -> int:
        return hash(self._values())

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._values()

    def _values(self) -> tuple[ImageRule, Fraction, str]:
        return self.image_rule, self._ratio, self._vocabulary

    def _count(self, text: str) -> int:
        found = self._encoded(text)
        return found if self._ratio == 1 else -(-found * self._ratio.numerator // self._ratio.denominator)

    def _encoded(self, text: str) -> int:
        vocabulary = self._encoding
        if vocabulary is None:
            vocabulary = self._encoding = o200k()
        if len(text) <= PIECE:
            return len(vocabulary.encode_ordinary(text))
        return sum(len(vocabulary.encode_ordinary(piece)) for piece in pieces(text))


def default_counter(image_rule: ImageRule = seed_image_tokens, ratio: Fraction = Fraction(1), encoding: str = O200K) -> TiktokenCounter:
    """The counter with these values: managers share it, so that an item they share is counted once."""
    return _shared(image_rule, ratio, encoding)


_shared = cache(TiktokenCounter)  # one call above it: `cache` tells calls apart that leave out a default


def pieces(text: str, size: int = PIECE) -> list[str]:
    """The text in pieces of at most `size` characters, cut where the vocabularies cut too wherever there is such a place.

    Then the tokens of the pieces are those of the whole.
    """
    cut = []
    start = 0
    while len(text) - start > size:
        end = _seam(text, start, start + size)
        cut.append(text[start:end])
        start = end
    cut.append(text[start:])
    return cut


def _seam(text: str, start: int, end: int) -> int:
    """The last place up to `end` that is a good one to cut: where a word or number ends, else after a newline, else `end`.

    The patterns never join an ASCII letter or digit to the ASCII character after it unless that is one more of them,
    or the apostrophe of a contraction; and no earlier match looks further than its own end but for white space.
    """
    for place in range(end, max(start, end - LOOK_BACK), -1):
        before, after = text[place - 1], text[place]
        if before.isascii() and before.isalnum() and after.isascii() and not after.isalnum() and after != "'":
            return place
    newline = text.rfind("\n", start, end)
    return end if newline < start else newline + 1
