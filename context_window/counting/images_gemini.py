"""What an image costs on Gemini: tiles up to 2.5, from 3 on a number that its media resolution sets.

Media resolution is a setting of the request, not of an image in a log: `detail`, which is OpenAI's, changes nothing here.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt
from typing import Literal, TypeAlias

from session.estimate import IMAGE_TOKENS
from session.parts import Image

from .documents import DocumentRule, gemini_2_pages, gemini_pages

TILE_TOKENS = 258
SMALL = 384
"""Pixels a side of an image that is one tile."""
LEAST_TILE = 256
"""Pixels a side of the smallest piece that is cut out of an image."""

Resolution: TypeAlias = Literal["low", "medium", "high", "ultra_high"]
MOST: dict[Resolution, int] = {"low": 280, "medium": 560, "high": 1120, "ultra_high": 2240}
"""Tokens of an image at most (https://ai.google.dev/gemini-api/docs/media-resolution, "Token counts"); `high` is the default."""


@dataclass(frozen=True, slots=True)
class GeminiTileRule:
    """Tokens of an image on Gemini 2: 258 a tile, and 258 for the whole where it is more than one.

    Source: https://ai.google.dev/gemini-api/docs/image-understanding, "Token calculation": an image within 384 x 384 pixels is one
    tile; of others the unit is the shorter side divided by 1.5, and both sides take as many units as they need (its example:
    960 x 540, unit 360, 3 x 2 tiles). The one for the whole is not on that page; the provider's own counts have it.
    """

    @property
    def name(self) -> str:
        """What the displays call it."""
        return f"768 px, {TILE_TOKENS}"

    @property
    def documents(self) -> DocumentRule:
        """What the same provider charges for documents."""
        return gemini_2_pages

    def __call__(self, image: Image) -> int:
        """Tokens of the image."""
        if image.width is None or image.height is None:
            return IMAGE_TOKENS
        cut = tiles(image.width, image.height)
        return TILE_TOKENS * (cut + 1 if cut > 1 else 1)


@dataclass(frozen=True, slots=True)
class GeminiRule:
    """Tokens of an image from Gemini 3 on: as many patches in the image's proportions as the media resolution allows.

    Source: https://ai.google.dev/gemini-api/docs/media-resolution gives what it is at most. How near it comes is what the provider's
    own counts show, all of which this agrees with: with at most 1,120, it is 33 x 33 for a square and 47 x 23 for 2 : 1.

    Attributes:
        resolution: The request's media resolution.
    """

    resolution: Resolution = "high"

    @property
    def name(self) -> str:
        """What the displays call it."""
        return f"to {MOST[self.resolution]:,}"

    @property
    def documents(self) -> DocumentRule:
        """What the same provider charges for documents."""
        return gemini_pages

    def __call__(self, image: Image) -> int:
        """Tokens of the image."""
        most = MOST[self.resolution]
        return most if image.width is None or image.height is None else grid_tokens(image.width, image.height, most)


def tiles(width: int, height: int) -> int:
    """Tiles that an image is cut into on Gemini 2; 1 where it stays whole."""
    if max(width, height) <= SMALL:
        return 1
    unit = max(LEAST_TILE, 2 * min(width, height) // 3)
    return -(-width // unit) * -(-height // unit)


def grid_tokens(width: int, height: int, most: int) -> int:
    """Patches of the finest grid in these proportions that has no more than `most`: each side is rounded down."""
    columns, rows = isqrt(most * width // height), isqrt(most * height // width)
    return columns * rows or most  # thinner than one patch: as many as there may be
