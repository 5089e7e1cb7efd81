"""Tokens of an image on models of other makers: xAI's and Qwen's by their rules, all others by the estimate."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor, sqrt
from typing import Literal, TypeAlias

from session.parts import Image

from .documents import DocumentRule, estimated_pages, mistral_pages
from .images import estimated_image_tokens

Maker: TypeAlias = Literal[
    "deepseek 3", "deepseek", "glm", "grok 2", "grok 3", "grok 4", "grok code", "kimi", "kimi 2", "llama 3", "llama 3.1", "llama 4",
    "mistral", "nova", "qwen", "qwen coder",
]  # fmt: skip
"""Makers of other models, or groups of their models, whose framing is known (`framing.py`)."""

GROK_TILE, GROK_TOKENS, GROK_TILES = 448, 256, 6
"""Side of a tile in pixels, its tokens, and the most tiles of an image, on Grok."""
QWEN_PATCH, QWEN_LEAST, QWEN_MOST = 32, 65_536, 16_777_216
"""Side of a patch in pixels, and the least and the most pixels to which an image is scaled, on Qwen."""
LARGE_SIDE = 1_600
"""Side in pixels of an image of unknown dimensions on Qwen, whose images have no maximum that one would reach."""


@dataclass(frozen=True, slots=True)
class MakerRule:
    """Tokens of an image on a model of one of the other makers."""

    maker: Maker
    name = "estimate"

    @property
    def documents(self) -> DocumentRule:
        """The same maker's rule for documents."""
        return mistral_pages if self.maker == "mistral" else estimated_pages

    def __call__(self, image: Image) -> int:
        """Return the tokens of the image."""
        if self.maker.startswith("grok"):
            return grok_tokens(image)
        return qwen_tokens(image) if self.maker == "qwen" else estimated_image_tokens(image)


def grok_tokens(image: Image) -> int:
    """Return the tokens of an image on Grok: 256 for each tile of 448 pixels, and for one more if there are several; at most 1,792.

    Source: https://docs.x.ai/docs/key-information/consumption-and-rate-limits. That a single tile is not charged twice follows from its
    "between 256 and 1,792 tokens", and from a recorded request.
    """
    if image.width is None or image.height is None:
        return GROK_TOKENS * (GROK_TILES + 1)
    tiles = min(GROK_TILES, ceil(image.width / GROK_TILE) * ceil(image.height / GROK_TILE))
    return GROK_TOKENS * (tiles + 1 if tiles > 1 else 1)


def qwen_tokens(image: Image) -> int:
    """Return the tokens of an image on Qwen 3 and later: one for each patch, and two around them.

    Each side is rounded to whole patches; an image that is then too small or too large is scaled, and rounded up or down. Source: the
    image processor of transformers (`smart_resize` for Qwen-VL) with the limits of
    https://huggingface.co/Qwen/Qwen3-VL-8B-Instruct/blob/main/preprocessor_config.json.
    """
    width, height = image.width or LARGE_SIDE, image.height or LARGE_SIDE
    columns, rows = (max(1, round(side / QWEN_PATCH)) for side in (width, height))
    pixels = columns * rows * QWEN_PATCH**2
    if not QWEN_LEAST <= pixels <= QWEN_MOST:
        limit, whole = (QWEN_LEAST, ceil) if pixels < QWEN_LEAST else (QWEN_MOST, floor)
        scale = sqrt(limit / (width * height)) / QWEN_PATCH
        columns, rows = (max(1, whole(side * scale)) for side in (width, height))
    return columns * rows + 2
