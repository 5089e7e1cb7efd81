"""Tokens of an image, from its dimensions alone: the size of the file does not matter.

This file has Claude's rule and the estimate for unknown models; `images_openai.py`, `images_gemini.py` and `images_makers.py` have the
other rules.
Rules are values: equal rules count alike, so counters with equal rules share their counts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from session.estimate import IMAGE_TOKENS
from session.parts import Image

from .documents import DocumentRule, claude_high_pages, claude_pages, estimated_pages

ImageRule: TypeAlias = Callable[[Image], int]
"""Returns the tokens of an image. If its dimensions are unknown: the most that the provider charges for an image, so that what fits by
our count fits. Where there is no such maximum: those of a large image, or 300 for an unknown provider."""

STANDARD_TOKENS = 1568
"""Maximum tokens of an image on Claude up to 4.6."""
PATCH = 28
"""Side of Claude's patches in pixels (Anthropic's documentation of vision, "Calculate image costs")."""


@dataclass(frozen=True, slots=True)
class ClaudeRule:
    """Tokens of an image on Claude: one per patch, after scaling the image down to the largest size within both limits.

    Source: https://platform.claude.com/docs/en/build-with-claude/vision, "Calculate image costs". Its examples: 1920 x 1080 is
    1,560 tokens in the standard tier and 2,691 in the high one; 3840 x 2160 is 1,560 and 4,784.

    Attributes:
        side: Maximum of the longer side, in pixels.
        tokens: Maximum tokens of an image.
    """

    side: int
    tokens: int

    @property
    def name(self) -> str:
        """Name of the rule in displays."""
        return f"28 px, to {self.tokens:,}"

    @property
    def documents(self) -> DocumentRule:
        """The same provider's rule for documents."""
        return claude_high_pages if self.tokens > STANDARD_TOKENS else claude_pages

    def __call__(self, image: Image) -> int:
        """Return the tokens of the image."""
        if image.width is None or image.height is None:
            return self.tokens
        return _patches(*self._scaled(image.width, image.height))

    def _scaled(self, width: int, height: int) -> tuple[int, int]:
        """Return the size to which the provider scales the image: the largest within both limits, in the same proportions."""
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
        scaled_short = max(1, round(short * low / long))
        return (low, scaled_short) if width >= height else (scaled_short, low)


claude_standard_tokens = ClaudeRule(side=1568, tokens=STANDARD_TOKENS)
"""Claude up to 4.6."""

claude_high_tokens = ClaudeRule(side=2576, tokens=4784)
"""Claude from 4.7 on."""


def estimated_image_tokens(image: Image) -> int:
    """Return an estimate for an unknown provider: Claude's rule, and 300 tokens if the dimensions are unknown.

    A flat figure would be wrong by a factor of five for an icon or a screenshot.
    """
    return IMAGE_TOKENS if image.width is None or image.height is None else claude_standard_tokens(image)


def document_rule_of(rule: ImageRule) -> DocumentRule:
    """Return the rule for documents of the provider with this image rule; an estimate if the image rule is no provider's."""
    document_rule: DocumentRule = getattr(rule, "documents", estimated_pages)
    return document_rule


def rule_name(rule: ImageRule) -> str:
    """Return the rule's name in displays: the side of its patches or tiles, and their price in tokens."""
    return str(getattr(rule, "name", "estimate"))


def _patches(width: int, height: int) -> int:
    return -(-width // PATCH) * -(-height // PATCH)
