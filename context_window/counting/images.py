"""What an image costs, by its dimensions alone: the same picture in twice the bytes costs the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from session.estimate import IMAGE_TOKENS
from session.parts import Image

ImageRule: TypeAlias = Callable[[Image], int]
"""Tokens of an image. Where its size is not known: `seed`, 300 tokens."""

PATCH = 28
"""Claude's patches have this many pixels a side (Anthropic's documentation of vision, "Calculate image costs")."""


def seed_image_tokens(image: Image) -> int:
    """The estimate for a provider whose rule is not known: by size as Claude counts, and 300 tokens where no size is known.

    A flat figure would be wrong by a factor of five between an icon and a screenshot.
    """
    return claude_standard_tokens(image)


def claude_standard_tokens(image: Image) -> int:
    """Tokens on Claude up to 4.6: at most 1,568 pixels a side and 1,568 tokens."""
    return _claude_tokens(image, side=1568, tokens=1568)


def claude_high_tokens(image: Image) -> int:
    """Tokens on Claude from 4.7: at most 2,576 pixels a side and 4,784 tokens."""
    return _claude_tokens(image, side=2576, tokens=4784)


def _claude_tokens(image: Image, *, side: int, tokens: int) -> int:
    if image.width is None or image.height is None:
        return IMAGE_TOKENS
    width, height = _fitted(image.width, image.height, side, tokens)
    return _patches(width, height)


def _fitted(width: int, height: int, side: int, tokens: int) -> tuple[int, int]:
    """The size that the provider scales the image to, its proportions kept: the largest within both limits."""
    if max(width, height) <= side and _patches(width, height) <= tokens:
        return width, height
    long, short = max(width, height), min(width, height)
    low, high = 1, min(long, side)  # the long side: `low` fits, all above `high` do not
    while low < high:
        middle = (low + high + 1) // 2
        if _patches(middle, max(1, round(short * middle / long))) <= tokens:
            low = middle
        else:
            high = middle - 1
    scaled = max(1, round(short * low / long))
    return (low, scaled) if width >= height else (scaled, low)


def _patches(width: int, height: int) -> int:
    return -(-width // PATCH) * -(-height // PATCH)
