"""Counting Claude's tokens offline with `ctok`, where it is installed: the extra `claude`, from Python 3.12 on."""

from __future__ import annotations

import re
from functools import cache, lru_cache
from importlib.util import find_spec
from typing import Any

from session.parts import Part

from ..errors import BudgetError
from .counter import count_by_rule
from .images import ImageRule, seed_image_tokens
from .vocabulary import o200k

VERSIONS = ("3.0", "4.7", "4.8")
"""The generations of the tokenizer by their first: Claude 3 to 4.6; 4.7; 4.8 and later."""
PIECE = 2_000
"""Characters that are counted at once, and remembered: what repeats in a text costs its time once."""
EXACT = 60_000
"""Characters up to which a text is counted whole: `ctok` is written in Python, and takes seconds for a megabyte."""
REMEMBERED = 1_024
"""Pieces that are remembered: 2 MB of text."""

_SEAM = re.compile(r"[A-Za-z] (?=[A-Za-z])")


class CtokCounter:
    """Counts as `ctok` has reconstructed Claude's tokenizer, which reproduced all counts of Anthropic's that it was tried on.

        ContextWindowManager("claude-opus-4-7", CtokCounter("4.7"))

    A manager takes it by itself for Claude's models. Of a text above 60,000 characters it counts a part, taken evenly from all
    of it, and scales by what the o200k vocabulary finds in the part and in the whole. Counters with the same values are equal.
    """

    expected_error = 0.02
    """Of whole requests: what a provider puts around texts is not in them."""

    def __init__(self, version: str = "4.8", image_rule: ImageRule = seed_image_tokens) -> None:
        """
        Args:
            version: The tokenizer's generation: 3.0, 4.7 or 4.8.
            image_rule: Tokens of an image.

        Raises:
            BudgetError: There is no such generation, or `ctok` is not installed.
        """
        if version not in VERSIONS:
            raise BudgetError("version", version, f"pass one of {', '.join(VERSIONS)}")
        if not has_ctok():
            raise BudgetError(
                "version", version, "ctok is not installed; pip install 'context-window-manager[claude]', on Python 3.12 or later"
            )
        self.name = f"ctok {version}"
        self.image_rule = image_rule
        self._version = version
        self._pieces = lru_cache(maxsize=REMEMBERED)(self._counted)

    def count_text(self, text: str) -> int:
        """Tokens of a text; at least 1 where there is one, though some characters are free for Claude."""
        if not text:
            return 0
        cut = pieces(text)
        if len(text) <= EXACT:
            return max(1, sum(map(self._pieces, cut)))
        step = -(-len(cut) * PIECE // EXACT)
        sample = cut[step // 2 :: step]
        found, sampled, whole = (sum(map(count, texts)) for count, texts in ((self._pieces, sample), (_o200k, sample), (_o200k, cut)))
        return max(1, -(-found * whole // max(1, sampled)))

    def count_part(self, part: Part) -> int:
        """Tokens of a part."""
        return count_by_rule(self, self.image_rule, part)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and isinstance(other, CtokCounter) and self._values() == other._values()

    def __hash__(self) -> int:
        return hash(self._values())

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._values()

    def _values(self) -> tuple[str, ImageRule]:
        return self._version, self.image_rule

    def _counted(self, piece: str) -> int:
        from ctok import token_count

        return int(token_count(piece, self._version)) - _frame(self._version)


def has_ctok() -> bool:
    """Whether `ctok` is installed; it is not imported for that."""
    return find_spec("ctok") is not None


@cache
def ctok_counter(version: str, image_rule: ImageRule) -> CtokCounter:
    """The counter with these values: managers share it, so that an item they share is counted once."""
    return CtokCounter(version, image_rule)


def pieces(text: str) -> list[str]:
    """The text in pieces of at most `PIECE` characters, cut where that changes no count wherever there is such a place.

    A space between two ASCII letters is one: `ctok` takes it for the border of two words, which are priced on their own, and so
    it is left out of both pieces. Elsewhere a cut may cost or save a token or two.
    """
    cut = []
    start = 0
    while len(text) - start > PIECE:
        seams = list(_SEAM.finditer(text, start + PIECE // 2, start + PIECE))
        end = seams[-1].start() + 1 if seams else start + PIECE
        cut.append(text[start:end])
        start = end + 1 if seams else end
    cut.append(text[start:])
    return cut


def _o200k(text: str) -> int:
    return len(o200k().encode_ordinary(text))


@cache
def _frame(version: str) -> int:
    """Tokens of the message around a text, which `ctok` counts with it: those beside a letter's one."""
    from ctok import token_count

    return int(token_count("a", version)) - 1
