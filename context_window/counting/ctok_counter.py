"""Counts Claude's tokens offline with `ctok`, if it is installed: the extra `claude`, Python 3.12 or later."""

from __future__ import annotations

import re
from functools import cache, lru_cache
from importlib.util import find_spec

from session.extras import install_line

from ..errors import ArgumentError
from .counter import ValueCounter
from .images import ImageRule, estimated_image_tokens
from .vocabulary import o200k

VERSIONS = ("3.0", "4.7", "4.8")
"""Generations of the tokenizer, each named after its first model: Claude 3 to 4.6; 4.7; 4.8 and later."""
PIECE = 2_000
"""Characters that are counted at once and remembered, so that repeated text is tokenized once."""
EXACT = 60_000
"""Longest text, in characters, that is counted whole. `ctok` is written in Python and takes seconds for a megabyte."""
REMEMBERED = 1_024
"""Pieces that are remembered: 2 MB of text."""

_SEAM = re.compile(r"[A-Za-z] (?=[A-Za-z])")


class CtokCounter(ValueCounter):
    """Counts with `ctok`, a reconstruction of Claude's tokenizer. It reproduced all of Anthropic's counts that it was tried on.

        ContextWindowManager("claude-opus-4-7", CtokCounter("4.7"))

    A manager selects it automatically for Claude models. Of a text above 60,000 characters it counts an evenly spread sample, and
    scales it by the o200k counts of the sample and of the whole text. Counters with the same values are equal.
    """

    expected_error = 0.02
    """For whole requests: a provider's framing around texts is not included."""

    def __init__(self, version: str = "4.8", image_rule: ImageRule = estimated_image_tokens) -> None:
        """
        Args:
            version: Generation of the tokenizer: 3.0, 4.7 or 4.8.
            image_rule: Returns the tokens of an image.

        Raises:
            ArgumentError: There is no such generation, or `ctok` is not installed.
        """
        if version not in VERSIONS:
            raise ArgumentError("version", version, f"pass one of {', '.join(VERSIONS)}")
        if not has_ctok():
            raise ArgumentError("version", version, f"ctok is not installed; {install_line('claude')}, on Python 3.12 or later")
        self.name = f"ctok {version}"
        self.image_rule = image_rule
        self._version = version
        self._piece_tokens = lru_cache(maxsize=REMEMBERED)(self._count_piece)

    def count_text(self, text: str) -> int:
        """Return the tokens of a text: at least 1 if it is not empty, though Claude does not charge for some characters."""
        if not text:
            return 0
        parts = pieces(text)
        if len(text) <= EXACT:
            return max(1, sum(map(self._piece_tokens, parts)))
        step = -(-len(parts) * PIECE // EXACT)
        sample = parts[step // 2 :: step]
        sample_tokens = sum(map(self._piece_tokens, sample))
        sample_o200k, total_o200k = (sum(map(_o200k_tokens, texts)) for texts in (sample, parts))
        return max(1, -(-sample_tokens * total_o200k // max(1, sample_o200k)))

    def _values(self) -> tuple[str, ImageRule]:
        return self._version, self.image_rule

    def _count_piece(self, piece: str) -> int:
        from ctok import token_count

        return int(token_count(piece, self._version)) - _message_tokens(self._version)


def has_ctok() -> bool:
    """True if `ctok` is installed. Does not import it."""
    return find_spec("ctok") is not None


@cache
def ctok_counter(version: str, image_rule: ImageRule) -> CtokCounter:
    """Return the counter with these values. Managers share it, so that an item they share is counted once."""
    return CtokCounter(version, image_rule)


def pieces(text: str) -> list[str]:
    """Split the text into pieces of at most `PIECE` characters, at places that do not change the count if possible.

    A space between two ASCII letters is such a place: `ctok` prices the words on both sides separately, and the space is left out
    of both pieces. A split elsewhere may add or save a token or two.
    """
    parts = []
    start = 0
    while len(text) - start > PIECE:
        seams = list(_SEAM.finditer(text, start + PIECE // 2, start + PIECE))
        end = seams[-1].start() + 1 if seams else start + PIECE
        parts.append(text[start:end])
        start = end + 1 if seams else end
    parts.append(text[start:])
    return parts


def _o200k_tokens(text: str) -> int:
    return len(o200k().encode_ordinary(text))


@cache
def _message_tokens(version: str) -> int:
    """Return the tokens of the message that `ctok` adds around a text: its count of one letter, minus the letter."""
    from ctok import token_count

    return int(token_count("a", version)) - 1
