"""Counts with tiktoken, offline: with o200k, split as OpenAI or as Gemini does, or with an older vocabulary in tiktoken's cache."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cache, lru_cache

from ..errors import ArgumentError
from .claude_weights import UNIT
from .counter import ValueCounter
from .images import ImageRule, estimated_image_tokens
from .vocabulary import O200K, load, weights_of

PIECE = 200_000
"""Characters passed to tiktoken at once. Its regex engine panics on runs of white space near a million characters."""
LOOK_BACK = 1_000
"""Characters before the end of a piece that are searched for a better point to split."""
SHORT = 64
"""Longest text, in characters, whose count is remembered: tool names, mostly."""


class TiktokenCounter(ValueCounter):
    """Counts with o200k: exact for OpenAI's models since 4o; for other models times their family's token ratio.

    Counters with the same values are equal. They can be pickled; unpickling loads the vocabulary again.
    """

    def __init__(self, image_rule: ImageRule = estimated_image_tokens, ratio: Fraction = Fraction(1), encoding: str = O200K) -> None:
        """
        Args:
            image_rule: Returns the tokens of an image.
            ratio: The model's tokens per token of the vocabulary. Counts are rounded up, so that only an empty text costs 0.
            encoding: The vocabulary: o200k_base; o200k_gemini, which splits text as Gemini does; o200k_claude_3 or o200k_claude_4.7, which
                weigh each token; or cl100k_base, p50k_base or r50k_base, if tiktoken has it in its cache. Nothing is downloaded.

        Raises:
            ArgumentError: The ratio is not above 0, or the vocabulary is not available.
        """
        if not isinstance(ratio, Fraction) or ratio <= 0:
            raise ArgumentError("ratio", ratio, "pass a Fraction above 0, such as Fraction('1.17')")
        short_name = encoding.removesuffix("_base") if isinstance(encoding, str) else ""
        self.name = f"tiktoken {short_name}" if ratio == 1 else f"tiktoken {short_name} x {float(ratio):g}"
        self.image_rule = image_rule
        self.ratio = ratio
        self._is_plain = ratio == 1  # comparing a fraction takes a microsecond
        self.vocabulary = encoding
        self._encoding = load(encoding)
        self._weights = weights_of(encoding)
        self._count_short = lru_cache(maxsize=4096)(self._count)

    def count_text(self, text: str) -> int:
        """Return the tokens of a text. Text that looks like a special token is counted as text."""
        return self._count_short(text) if len(text) <= SHORT else self._count(text)

    def _values(self) -> tuple[ImageRule, Fraction, str]:
        return self.image_rule, self.ratio, self.vocabulary

    def _count(self, text: str) -> int:
        tokens = self._tokens(text) if len(text) <= PIECE else sum(map(self._tokens, pieces(text)))
        if self._weights is not None:
            tokens = -(-tokens // UNIT)
        return tokens if self._is_plain else -(-tokens * self.ratio.numerator // self.ratio.denominator)

    def _tokens(self, text: str) -> int:
        """Return the vocabulary's tokens of a text of at most `PIECE` characters, or their weight if they have one."""
        return self._weighed(self._encoding.encode_ordinary(text))

    def _weighed(self, tokens: Sequence[int]) -> int:
        return len(tokens) if self._weights is None else sum(map(self._weights.__getitem__, tokens))


def default_counter(
    image_rule: ImageRule = estimated_image_tokens, ratio: Fraction = Fraction(1), encoding: str = O200K
) -> TiktokenCounter:
    """Return the counter with these values. Managers share it, so that an item they share is counted once."""
    return _shared_counter(image_rule, ratio, encoding)


_shared_counter = cache(TiktokenCounter)  # called with all arguments: `cache` treats calls that omit a default as different


def pieces(text: str, size: int = PIECE) -> list[str]:
    """Split the text into pieces of at most `size` characters, where the vocabularies split it too if possible.

    The tokens of the pieces are then those of the whole text.
    """
    parts = []
    start = 0
    while len(text) - start > size:
        end = _seam(text, start, start + size)
        parts.append(text[start:end])
        start = end
    parts.append(text[start:])
    return parts


def _seam(text: str, start: int, end: int) -> int:
    """Return the last good point to split up to `end`: the end of a word or number, else after a newline, else `end`.

    The patterns never join an ASCII letter or digit to the ASCII character after it, unless that is another letter or digit or
    the apostrophe of a contraction. And no earlier match looks beyond its own end, except at white space.
    """
    for index in range(end, max(start, end - LOOK_BACK), -1):
        before, after = text[index - 1], text[index]
        if before.isascii() and before.isalnum() and after.isascii() and not after.isalnum() and after != "'":
            return index
    newline = text.rfind("\n", start, end)
    return end if newline < start else newline + 1
