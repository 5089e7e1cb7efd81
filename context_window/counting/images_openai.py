"""Tokens of an image on OpenAI's models: patches of 32 pixels, or tiles of 512. `models/facts.py` has the rule of each model.

Source of everything here: https://developers.openai.com/api/docs/guides/images-vision, "Model sizing behavior" and "Calculating costs",
as of November 2026. All arithmetic is in whole numbers; OpenAI notes that its own floating point may differ by one token.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import isqrt

from session.estimate import IMAGE_TOKENS
from session.parts import Image

from .documents import DocumentRule, openai_detailed_pages, openai_pages, openai_read_4, openai_read_5

PATCH = 32
TILE = 512
"""Sides of a patch and of a tile, in pixels."""

TILED_SIDE, TILED_SHORT = 2048, 768
"""Maximum of both sides, and of the shorter side, in pixels. Images are scaled down to them before tiles are counted."""

MOST_PATCHES = 30_000
"""The API refuses images with more patches, so no image costs more."""

LARGE_IMAGE = 2_500
"""Patches of an image of unknown dimensions that is not scaled down: about 1,600 x 1,600 pixels."""

MOST_TILES = 8
"""Tiles of the largest image that fits: 2048 x 768 pixels."""


@dataclass(frozen=True, slots=True)
class ResizeLimits:
    """Limits to which an image is scaled down before patches are counted.

    Attributes:
        side: Maximum of the longer side in pixels; None for no limit.
        patches: Maximum number of patches; None for no limit.
    """

    side: int | None = None
    patches: int | None = None

    @property
    def most(self) -> int:
        """The most patches of an image, or those of a large one if there is no such maximum below the API's own."""
        if self.patches is not None:
            return self.patches
        return LARGE_IMAGE if self.side is None else min(LARGE_IMAGE, _covering(self.side, PATCH) ** 2)


OPENAI_4_TILES = frozenset({(85, 170), (2833, 5667)})
OPENAI_4_PRICES = frozenset({Fraction("1.62"), Fraction("2.46")})
"""Prices by which the models before GPT-5, other than the o series, are recognized."""

_UNSCALED = ResizeLimits(side=65_535)
"""Limits of models that get images, and so the pages of a PDF, in high detail unless asked otherwise: GPT-5.6 and later."""


@dataclass(frozen=True, slots=True)
class BlindRule:
    """Tokens of an image that the model cannot see: an estimate of the note in its place.

    Attributes:
        reasons: True for the o series.
    """

    reasons: bool = False
    name = "estimate"
    documents = openai_pages

    def __call__(self, image: Image) -> int:  # noqa: ARG002 - the protocol of image rules
        """Return the tokens of the image."""
        return IMAGE_TOKENS


@dataclass(frozen=True, slots=True)
class PatchRule:
    """Tokens of an image: its number of patches times the model's price of a patch, rounded up.

    Attributes:
        price: Tokens per patch.
        low: Limits for `detail="low"`.
        high: Limits for `detail="high"`.
        original: Limits for `detail="original"`. Models that do not know it treat it as `high`.
        default: Limits for `detail="auto"` and for images without a detail.
        on_responses: True if the Responses API serves the model, and not Chat Completions.
    """

    price: Fraction
    low: ResizeLimits
    high: ResizeLimits
    original: ResizeLimits
    default: ResizeLimits
    on_responses: bool = False

    @property
    def name(self) -> str:
        """Name of the rule in displays."""
        return f"{PATCH} px x {float(self.price):g}"

    @property
    def documents(self) -> DocumentRule:
        """The same provider's rule for documents."""
        if self.on_responses and self.default != _UNSCALED:
            return openai_read_4 if self.price in OPENAI_4_PRICES else openai_read_5
        return openai_pages if self.low == self.high else openai_detailed_pages

    def __call__(self, image: Image) -> int:
        """Return the tokens of the image."""
        limits = {"low": self.low, "high": self.high, "original": self.original}.get(image.detail or "auto", self.default)
        if image.width is None or image.height is None:
            patches = limits.most
        else:
            patches = min(MOST_PATCHES, fitted_patches(image.width, image.height, limits))
        return -(-patches * self.price.numerator // self.price.denominator)


@dataclass(frozen=True, slots=True)
class TileRule:
    """Tokens of an image: a base price, plus a price per tile unless its detail is `low`.

    Attributes:
        base: Tokens of every image.
        tile: Tokens per tile.
        on_responses: True if the Responses API serves the model, and not Chat Completions.
    """

    base: int
    tile: int
    on_responses: bool = False

    @property
    def name(self) -> str:
        """Name of the rule in displays."""
        return f"{TILE} px, {self.base} + {self.tile}"

    @property
    def documents(self) -> DocumentRule:
        """The same provider's rule for documents."""
        if self.on_responses:
            return openai_read_4 if (self.base, self.tile) in OPENAI_4_TILES else openai_read_5
        return openai_pages

    def __call__(self, image: Image) -> int:
        """Return the tokens of the image."""
        if image.detail == "low":
            return self.base
        if image.width is None or image.height is None:
            return self.base + self.tile * MOST_TILES
        return self.base + self.tile * tiles(image.width, image.height)


def tiles(width: int, height: int) -> int:
    """Return the tiles that cover the image after scaling it down to 2048 x 2048, and its shorter side to 768."""
    long, short = max(width, height), min(width, height)
    # The shorter side is `numerator / denominator` pixels, so that fractions of a pixel survive the first step.
    numerator, denominator = (short * TILED_SIDE, long) if long > TILED_SIDE else (short, 1)
    if numerator > TILED_SHORT * denominator:
        return _covering(TILED_SHORT * long // short, TILE) * _covering(TILED_SHORT, TILE)
    return _covering(min(long, TILED_SIDE), TILE) * _covering(numerator, denominator * TILE)


def fitted_patches(width: int, height: int, limits: ResizeLimits) -> int:
    """Return the patches that cover the image after scaling it down to the limits."""
    if limits.side is not None:
        width, height = _within(width, height, limits.side)
    count = _covering(width, PATCH) * _covering(height, PATCH)
    budget = limits.patches
    if budget is None or count <= budget:
        return count
    # The documented factor, sqrt(32² x budget / (width x height)), makes the image sqrt(budget x width / height) patches wide and
    # sqrt(budget x height / width) high. The factor is then lowered until one of the two, whichever comes first, is a whole number.
    columns, rows = isqrt(budget * width // height), isqrt(budget * height // width)
    if not (columns and rows):
        return budget  # thinner than a patch at this scale: the documented factor is 0
    if columns * height <= rows * width:
        return columns * _covering(PATCH * columns * height // width, PATCH)  # the other side is rounded down to whole pixels
    return _covering(PATCH * rows * width // height, PATCH) * rows


def _within(width: int, height: int, side: int) -> tuple[int, int]:
    """Return the size in whole pixels, scaled down so that no side is longer than `side`."""
    long = max(width, height)
    if long <= side:
        return width, height
    return max(1, (2 * width * side + long) // (2 * long)), max(1, (2 * height * side + long) // (2 * long))


def _covering(length: int, unit: int) -> int:
    return -(-length // unit)
