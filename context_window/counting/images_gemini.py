"""Tokens of an image on Gemini: tiles up to 2.5; from 3 on, a number that depends on the request's media resolution.

Media resolution is a setting of the request, not of an image in a log. `detail`, which is OpenAI's, has no effect here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from math import isqrt
from typing import Literal, TypeAlias

from session.parts import Image

from .documents import PageRule, gemini_2_pages

TILE_TOKENS = 258
SMALL = 384
"""Largest side, in pixels, of an image that is a single tile."""
SMALLEST_TILE = 256
"""Side of the smallest tile in pixels."""
WIDE_TILES = 6
"""Tiles of an image of unknown dimensions: those of 16 : 9. Only images that are still wider or higher have more."""

Resolution: TypeAlias = Literal["low", "medium", "high", "ultra_high"]
MAXIMUM: dict[Resolution, int] = {"low": 280, "medium": 560, "high": 1120, "ultra_high": 2240}
"""Maximum tokens of an image (https://ai.google.dev/gemini-api/docs/media-resolution, "Token counts"); `high` is the default."""


def grid_tokens(width: int, height: int, maximum: int) -> int:
    """Return the patches of the finest grid in these proportions with at most `maximum` patches. Each side is rounded down."""
    columns, rows = isqrt(maximum * width // height), isqrt(maximum * height // width)
    return columns * rows or maximum  # an image thinner than one patch costs the maximum


gemini_pages = PageRule(MAXIMUM["medium"], image=partial(grid_tokens, maximum=MAXIMUM["medium"]), audio=32, video=102)
"""Gemini 3 and later: at most 560 per page (https://ai.google.dev/gemini-api/docs/media-resolution). Exact for 520 (letter) and 532 (A4),
5 records: the tokens of an image of medium resolution. Its text is free."""

gemini_output_pages = replace(gemini_pages, page=MAXIMUM["high"], image=partial(grid_tokens, maximum=MAXIMUM["high"]))
"""In a function's result, the Gemini API charges 1,102 for a letter page: 29 x 38 patches (1 record). Vertex AI does not (1 record)."""


@dataclass(frozen=True, slots=True)
class GeminiTileRule:
    """Tokens of an image on Gemini 2: 258 per tile, and 258 for the whole image if it has more than one tile.

    Source: https://ai.google.dev/gemini-api/docs/image-understanding, "Token calculation": an image within 384 x 384 pixels is one
    tile. For larger ones the unit is the shorter side divided by 1.5, and each side is covered by whole units (example: 960 x 540,
    unit 360, 3 x 2 tiles). The extra tile for the whole image is not on that page, but in the provider's own counts. These also say that
    2.5 Flash does not cut images into tiles.

    Attributes:
        has_tiles: False if every image is one tile.
        texts_only: True if a request costs its texts and media, and nothing around them, as before 2.5 and on Vertex AI.
        seals_calls: True if the thinking behind calls costs, too, as with 2.5 on Vertex AI.
    """

    has_tiles: bool = True
    texts_only: bool = False
    seals_calls: bool = False
    documents = gemini_2_pages

    @property
    def name(self) -> str:
        """Name of the rule in displays."""
        return f"768 px, {TILE_TOKENS}" if self.has_tiles else f"{TILE_TOKENS}"

    def __call__(self, image: Image) -> int:
        """Return the tokens of the image."""
        if not self.has_tiles:
            return TILE_TOKENS
        if image.width is None or image.height is None:
            return TILE_TOKENS * (WIDE_TILES + 1)
        count = tiles(image.width, image.height)
        return TILE_TOKENS * (count + 1 if count > 1 else 1)


@dataclass(frozen=True, slots=True)
class GeminiRule:
    """Tokens of an image from Gemini 3 on: as many patches in the image's proportions as the media resolution allows.

    Source of the maximum: https://ai.google.dev/gemini-api/docs/media-resolution. How close an image comes to it is inferred from the
    provider's own counts, and this rule reproduces every one of them. With a maximum of 1,120, a square has 33 x 33 patches, and
    2 : 1 has 47 x 23.

    Attributes:
        resolution: The request's media resolution.
        texts_only: True if a request costs its texts and media, and nothing around them, as on Vertex AI.
    """

    resolution: Resolution = "high"
    texts_only: bool = False
    documents = gemini_pages

    @property
    def name(self) -> str:
        """Name of the rule in displays."""
        return f"to {MAXIMUM[self.resolution]:,}"

    def __call__(self, image: Image) -> int:
        """Return the tokens of the image."""
        maximum = MAXIMUM[self.resolution]
        return maximum if image.width is None or image.height is None else grid_tokens(image.width, image.height, maximum)


def tiles(width: int, height: int) -> int:
    """Return the number of tiles of an image on Gemini 2; 1 if it stays whole."""
    if max(width, height) <= SMALL:
        return 1
    unit = max(SMALLEST_TILE, 2 * min(width, height) // 3)
    return -(-width // unit) * -(-height // unit)
