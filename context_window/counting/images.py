"""What an image costs, by its dimensions alone: the same picture in twice the bytes costs the same.

Here are Claude's rule and the estimate for models of which no rule is known; `images_openai.py` and `images_gemini.py` have theirs.
Every rule is a value: equal rules count alike, and counters that have equal rules share what they counted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from session.estimate import IMAGE_TOKENS
from session.parts import Image

from .documents import DocumentRule, claude_pages, seed_pages

ImageRule: TypeAlias = Callable[[Image], int]
"""Tokens of an image. Where its size is not known: `seed`, 300 tokens, or what the rule asks of any image where that is more."""

PATCH = 28
"""Claude's patches have this many pixels a side (Anthropic's documentation of vision, "Calculate image costs")."""


@dataclass(frozen=True, slots=True)
class ClaudeRule:
    """Tokens of an image on Claude: a token a patch, after it was scaled to the largest size within both limits.

    Source: https://platform.claude.com/docs/en/build-with-claude/vision, "Calculate image costs". Its examples: 1920 x 1080 is
    1,560 tokens in the standard tier and 2,691 in the high one; 3840 x 2160 is 1,560 and 4,784.

    Attributes:
        side: Pixels of the longer side, at most.
        tokens: Tokens of the image, at most.
    """

    side: int
    tokens: int

    @property
    def name(self) -> str:
        """What the displays call it."""
        return f"28 px, to {self.tokens:,}"

    @property
    def documents(self) -> DocumentRule:
        """What the same provider charges for documents."""
        return claude_pages

    def __call__(self, image: Image) -> int:
        """Tokens of the image."""
        if image.width is None or image.height is None:
            return IMAGE_TOKENS
        return _patches(*self._fitted(image.width, image.height))

    def _fitted(self, width: int, height: int) -> tuple[int, int]:
        """The size that the provider scales the image to, its proportions kept: the largest within both limits."""
        if max(width, height) <= self.side and _patches(width, height) <= self.tokens:
            return width, height
        long, short = max(width, height), min(width, height)
        low, high = 1, min(long, self.side)  # the long side: `low` fits, all above `high` do not
        while low < high:
            middle = (low + high + 1) // 2
            if _patches(middle, max(1, round(short * middle / long))) <= self.tokens:
                low = middle
            else:
                high = middle - 1
        scaled = max(1, round(short * low / long))
        return (low, scaled) if width >= height else (scaled, low)


claude_standard_tokens = ClaudeRule(side=1568, tokens=1568)
"""Claude up to 4.6."""

claude_high_tokens = ClaudeRule(side=2576, tokens=4784)
"""Claude from 4.7 on."""


def seed_image_tokens(image: Image) -> int:
    """The estimate for a provider whose rule is not known: by size as Claude counts, and 300 tokens where no size is known.

    A flat figure would be wrong by a factor of five between an icon and a screenshot.
    """
    return claude_standard_tokens(image)


def documents_of(rule: ImageRule) -> DocumentRule:
    """What the provider with this rule for images charges for documents; an estimate where the rule is nobody's."""
    found: DocumentRule = getattr(rule, "documents", seed_pages)
    return found


def rule_name(rule: ImageRule) -> str:
    """What the displays call a rule: the side of its patches or tiles, and how their tokens are counted."""
    return str(getattr(rule, "name", "estimate"))


def _patches(width: int, height: int) -> int:
    return -(-width // PATCH) * -(-height // PATCH)
