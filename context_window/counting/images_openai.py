"""What an image costs on OpenAI's models: patches of 32 pixels, or tiles of 512. Which model counts how is in `models/facts.py`.

Source of all here: https://developers.openai.com/api/docs/guides/images-vision, "Model sizing behavior" and "Calculating costs",
as of November 2026. In whole numbers throughout: OpenAI allows that its own floating point may differ by one token.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import isqrt

from session.estimate import IMAGE_TOKENS
from session.parts import Detail, Image

from .documents import DocumentRule, openai_pages

PATCH = 32
TILE = 512
"""Pixels a side."""

TILED_SIDE, TILED_SHORT = 2048, 768
"""Pixels that the sides, and the shorter of them, are scaled down to before tiles are counted."""

MOST_PATCHES = 30_000
"""Patches above which the API refuses the image: no image costs more."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What an image is scaled down to before patches are counted.

    Attributes:
        side: Pixels of the longer side, at most; None: any.
        patches: Patches, at most; None: any.
    """

    side: int | None = None
    patches: int | None = None


@dataclass(frozen=True, slots=True)
class PatchRule:
    """Tokens of an image: those of its patches times what the model charges for one, rounded up.

    Attributes:
        price: Tokens a patch.
        low: The limits for `detail="low"`.
        high: For `high`.
        original: For `original`; a model that does not know it is asked with it takes `high`.
        default: For `auto`, and where no detail is asked for.
    """

    price: Fraction
    low: Limits
    high: Limits
    original: Limits
    default: Limits

    @property
    def name(self) -> str:
        """What the displays call it."""
        return f"{PATCH} px x {float(self.price):g}"

    @property
    def documents(self) -> DocumentRule:
        """What the same provider charges for documents."""
        return openai_pages

    def __call__(self, image: Image) -> int:
        """Tokens of the image."""
        if image.width is None or image.height is None:
            return IMAGE_TOKENS
        patches = min(MOST_PATCHES, fitted_patches(image.width, image.height, self._limits(image.detail)))
        return -(-patches * self.price.numerator // self.price.denominator)

    def _limits(self, detail: Detail | None) -> Limits:
        match detail:
            case "low":
                return self.low
            case "high":
                return self.high
            case "original":
                return self.original
            case _:
                return self.default


@dataclass(frozen=True, slots=True)
class TileRule:
    """Tokens of an image: a base, and in any detail but `low` so many for each tile.

    Attributes:
        base: Tokens of any image.
        tile: Tokens of a tile.
    """

    base: int
    tile: int

    @property
    def name(self) -> str:
        """What the displays call it."""
        return f"{TILE} px, {self.base} + {self.tile}"

    @property
    def documents(self) -> DocumentRule:
        """What the same provider charges for documents."""
        return openai_pages

    def __call__(self, image: Image) -> int:
        """Tokens of the image."""
        if image.detail == "low":
            return self.base
        if image.width is None or image.height is None:
            return max(IMAGE_TOKENS, self.base + self.tile)
        return self.base + self.tile * tiles(image.width, image.height)


def tiles(width: int, height: int) -> int:
    """Tiles that cover the image, once it is scaled down to fit 2048 x 2048, and its shorter side to 768."""
    long, short = max(width, height), min(width, height)
    # Fractions of a pixel are kept in between: `short` is `over / under` pixels at each step.
    over, under = (short * TILED_SIDE, long) if long > TILED_SIDE else (short, 1)
    if over > TILED_SHORT * under:
        return _covering(TILED_SHORT * long // short, TILE) * _covering(TILED_SHORT, TILE)
    return _covering(min(long, TILED_SIDE), TILE) * _covering(over, under * TILE)


def fitted_patches(width: int, height: int, limits: Limits) -> int:
    """Patches that cover the image, scaled down to the limits."""
    if limits.side is not None:
        width, height = _within(width, height, limits.side)
    count = _covering(width, PATCH) * _covering(height, PATCH)
    budget = limits.patches
    if budget is None or count <= budget:
        return count
    # The documented factor, sqrt(32² x budget / (width x height)), makes the image sqrt(budget x width / height) patches wide, and
    # sqrt(budget x height / width) high. It is then lowered until the first of the two that can be is a whole number.
    columns, rows = isqrt(budget * width // height), isqrt(budget * height // width)
    if not (columns and rows):
        return budget  # thinner than a patch at this scale: the documented factor is 0 here
    if columns * height <= rows * width:
        return columns * _covering(PATCH * columns * height // width, PATCH)  # the other side is whole pixels, rounded down
    return _covering(PATCH * rows * width // height, PATCH) * rows


def _within(width: int, height: int, side: int) -> tuple[int, int]:
    """The size scaled down so that no side is longer, in whole pixels."""
    long = max(width, height)
    if long <= side:
        return width, height
    return max(1, (2 * width * side + long) // (2 * long)), max(1, (2 * height * side + long) // (2 * long))


def _covering(length: int, unit: int) -> int:
    return -(-length // unit)
