"""What an image costs on OpenAI's and Google's models: documented examples, recorded counts, and slow forms of every formula."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal, localcontext
from fractions import Fraction
from math import ceil, floor

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from context_window.counting.images import ImageRule, document_rule_of, estimated_image_tokens, rule_name
from context_window.counting.images_gemini import MAXIMUM, GeminiRule, GeminiTileRule, grid_tokens
from context_window.counting.images_gemini import tiles as gemini_tiles
from context_window.counting.images_openai import MOST_PATCHES, PatchRule, ResizeLimits, TileRule, fitted_patches, tiles
from context_window.models import describe_model
from session.parts import DETAILS, Detail, Image
from tests.support.shared import TRANSCRIPTS, needs_transcripts

pixels = st.one_of(st.integers(1, 60), st.integers(1, 4000), st.integers(1, 100_000))
details = st.sampled_from([None, *DETAILS])


def image(width: int, height: int, detail: Detail | None = None) -> Image:
    return Image(url="u", width=width, height=height, detail=detail)


def rule(model: str) -> ImageRule:
    return describe_model(model).image_rule


@pytest.mark.parametrize(
    ("model", "size", "detail", "tokens"),
    [
        # the guide's examples: tiles
        ("gpt-4o", (1024, 1024), "high", 765),
        ("gpt-4o", (2048, 4096), "high", 1105),
        ("gpt-4o", (4096, 8192), "low", 85),
        # patches, with and without a budget
        ("gpt-5.4", (1024, 1024), "high", 1229),
        ("gpt-5.4", (2048, 2048), "high", 3000),
        ("gpt-6-astra", (2048, 2048), "high", 3000),
        # an earlier edition's: 1,024 and 1,452 patches
        ("gpt-5-mini", (1024, 1024), "high", 1229),
        ("gpt-4.1-nano", (1800, 2400), "high", ceil(1452 * 2.46)),
        ("o4-mini", (1800, 2400), "high", ceil(1452 * 1.72)),
        # from the formulas by hand
        ("gpt-4o", (512, 512), None, 85 + 170),
        ("gpt-4o", (513, 512), None, 85 + 2 * 170),
        ("gpt-4o-mini", (512, 512), "auto", 2833 + 5667),
        ("gpt-5", (1024, 1024), "high", 70 + 4 * 140),
        ("gpt-5.1", (1024, 1024), "low", 70),
        ("o3", (1024, 1024), "high", 75 + 4 * 150),
        ("gpt-5.2", (2048, 2048), "low", ceil(4096 * 1.2)),
        ("gpt-5.4", (2048, 2048), "low", ceil(4096 * 1.2)),  # more than in high detail: the guide says so
        ("gpt-5.4", (2048, 2048), None, 3000),
        ("gpt-5.4", (2048, 2048), "original", ceil(4096 * 1.2)),
        ("gpt-5.5", (2048, 2048), "low", ceil(256 * 1.2)),
        ("gpt-5.5", (2048, 2048), None, ceil(4096 * 1.2)),
        ("gpt-5.5", (4032, 3024), "auto", ceil(115 * 86 * 1.2)),
        ("gpt-5.6-sol", (4032, 3024), None, ceil(126 * 95 * 1.2)),
        ("gpt-6-sol", (2560, 1440), "high", ceil(66 * 37 * 1.2)),
        ("gpt-6-sol", (2560, 1440), None, ceil(80 * 45 * 1.2)),
        ("gpt-99", (1024, 1024), None, 1229),  # counted as the newest is
        ("gemini-2.5-flash", (384, 384), None, 258),
        ("gemini-2.5-flash", (960, 540), None, 258),  # not cut into tiles
        ("gemini-2.5-flash-lite", (3840, 2160), None, 258),
        ("gemini-2.5-pro", (960, 540), None, 258 * (6 + 1)),
        ("gemini-2.0-flash", (960, 540), None, 258 * (6 + 1)),  # the guide's example: unit 360, 3 x 2 tiles
        ("gemini-3-pro", (1000, 1000), None, 33 * 33),
        ("gemini-4-argon", (1000, 1000), None, 33 * 33),
        ("gemini-3.5-flash", (60, 30), None, 47 * 23),
        ("gemini-3.5-flash", (100_000, 1), None, 1120),
    ],
)
def test_examples(model: str, size: tuple[int, int], detail: Detail | None, tokens: int) -> None:
    assert rule(model)(image(*size, detail)) == tokens


def test_a_model_without_a_rule_is_estimated() -> None:
    for name in ("gpt-oss-120b", "my-own", "gemma-3"):
        assert rule(name) is estimated_image_tokens
    for name in ("gpt-4", "gpt-3.5-turbo", "o3-mini"):
        assert rule_name(rule(name)) == "estimate"
        assert rule(name)(Image(url="u", width=100, height=100)) == 300
    assert rule_name(estimated_image_tokens) == "estimate"


@pytest.mark.parametrize(
    ("model", "tokens"),
    [("gpt-4o", 85 + 8 * 170), ("gpt-4o-mini", 2833 + 8 * 5667), ("gpt-6-sol", 3_000), ("gemini-2.5-pro", 7 * 258), ("gemini-3-pro", 1120)],
)
def test_an_unknown_size_costs_the_most_that_any_image_costs_or_a_large_image(model: str, tokens: int) -> None:
    assert rule(model)(Image(url="u")) == rule(model)(Image(url="u", width=7)) == tokens
    if model == "gpt-4o":
        assert rule(model)(Image(url="u", detail="low")) == 85


def documented_patches(width: int, height: int, limits: ResizeLimits) -> int:
    """The guide's steps A to C as they stand there, with a hundred digits."""
    with localcontext() as context:
        context.prec = 100
        if limits.side is not None and max(width, height) > limits.side:
            scale = Fraction(limits.side, max(width, height))
            width, height = (max(1, floor(side * scale + Fraction(1, 2))) for side in (width, height))
        count = ceil(Fraction(width, 32)) * ceil(Fraction(height, 32))
        budget = limits.patches
        if budget is None or count <= budget:
            return count
        factor = (Decimal(32 * 32 * budget) / Decimal(width * height)).sqrt()
        hair = Decimal(10) ** -60  # what a hundred digits lose where the result is a whole number
        exact = [side * factor / 32 for side in (width, height)]
        rounded = [floor(side_length + hair) for side_length in exact]
        if 0 in rounded:
            return budget
        factor *= min(Decimal(low) / side_length for low, side_length in zip(rounded, exact, strict=True))
        fitted = [floor(side * factor + hair) for side in (width, height)]
        return ceil(Fraction(fitted[0], 32)) * ceil(Fraction(fitted[1], 32))


limits = st.builds(
    ResizeLimits, st.sampled_from([None, 512, 2048, 6000, 65_535]), st.sampled_from([None, 1536, 2500, 6144, 10_000]) | st.integers(1, 50)
)


@given(width=pixels, height=pixels, within=limits)
@example(width=3000, height=3000, within=ResizeLimits(patches=2500))  # floating point gives 49.999 patches a side here, and 2,401 in all
@example(width=1800, height=2400, within=ResizeLimits(2048, 1536))
@example(width=100_000, height=1, within=ResizeLimits(patches=2500))
@example(width=90, height=271, within=ResizeLimits(patches=6))  # 96.35 pixels high: 96, and three patches
def test_patches_are_the_documented_ones(width: int, height: int, within: ResizeLimits) -> None:
    patches = fitted_patches(width, height, within)
    assert patches == documented_patches(width, height, within)
    assert within.patches is None or 1 <= patches <= within.patches
    assert patches == fitted_patches(height, width, within)


def documented_tiles(width: int, height: int) -> int:
    """The guide's steps, a fraction of a pixel at a time, and the tiles laid out one by one."""
    sides = [Fraction(width), Fraction(height)]
    if max(sides) > 2048:
        sides = [side * 2048 / max(sides) for side in sides]
    if min(sides) > 768:
        scale = 768 / min(sides)
        sides = [Fraction(floor(side * scale)) for side in sides]
    laid = [0, 0]
    for axis in (0, 1):
        while laid[axis] * 512 < sides[axis]:
            laid[axis] += 1
    return laid[0] * laid[1]


@given(width=pixels, height=pixels)
@example(width=2048, height=4096)
@example(width=769, height=769)
def test_tiles_are_the_documented_ones(width: int, height: int) -> None:
    assert tiles(width, height) == documented_tiles(width, height)
    assert 1 <= tiles(width, height) <= 8


@given(width=pixels, height=pixels, most=st.sampled_from(list(MAXIMUM.values())) | st.integers(1, 40))
def test_geminis_grid_is_the_finest_within_the_maximum(width: int, height: int, most: int) -> None:
    """Each side by trying, from 1 up: it may have as many patches as leave the other its proportion."""

    def side(first: int, second: int) -> int:
        patches = 0
        while (patches + 1) ** 2 * second <= most * first:
            patches += 1
        return patches

    expected = side(width, height) * side(height, width) or most
    assert grid_tokens(width, height, most) == expected <= most


@given(width=pixels, height=pixels)
def test_geminis_tiles_are_the_documented_ones(width: int, height: int) -> None:
    unit = max(256, floor(Fraction(min(width, height)) / Fraction(3, 2)))
    expected = 1 if width <= 384 and height <= 384 else ceil(Fraction(width, unit)) * ceil(Fraction(height, unit))
    assert gemini_tiles(width, height) == expected
    assert GeminiTileRule()(image(width, height)) in {258 * expected, 258 * (expected + 1)}


@pytest.mark.parametrize(("resolution", "tokens"), [("low", 256), ("medium", 529), ("high", 1089), ("ultra_high", 2209)])
def test_geminis_media_resolution_can_be_asked_for(resolution: str, tokens: int) -> None:
    assert GeminiRule(resolution)(image(500, 500)) == tokens  # type: ignore[arg-type]


MODELS = ("gpt-4o", "gpt-4o-mini", "gpt-4.1-mini", "gpt-5-nano", "gpt-5.4", "gpt-5.5", "gpt-6-sol", "gemini-2.5-pro", "gemini-3-pro")


@given(model=st.sampled_from(MODELS), width=pixels, height=pixels, detail=details, twice=st.binary(min_size=1, max_size=9))
def test_an_image_costs_something_within_bounds_and_whatever_its_bytes_are(
    model: str, width: int, height: int, detail: Detail | None, twice: bytes
) -> None:
    small, large = (Image(data=data, width=width, height=height, detail=detail) for data in (twice, twice * 2))
    tokens = rule(model)(small)
    assert rule(model)(large) == tokens
    assert 1 <= tokens <= max(MOST_PATCHES * 2, 258 * 400)


def test_equal_rules_are_equal_values() -> None:
    """Counters with equal rules share their counts."""
    assert GeminiRule() == rule("gemini-3-pro") == rule("gemini-3.5-flash")
    assert TileRule(85, 170) == rule("gpt-4o") == rule("gpt-4.1")
    assert hash(TileRule(85, 170)) == hash(rule("gpt-4o"))
    assert isinstance(rule("gpt-5.4"), PatchRule)
    assert rule("gpt-5.4") != rule("gpt-5.5")
    assert document_rule_of(rule("gpt-4o")) == document_rule_of(rule("gpt-5-mini"))
    assert document_rule_of(rule("gpt-5.4")) == document_rule_of(rule("gpt-6-sol"))


def recorded() -> Iterator[tuple[str, Image, int, int | None]]:
    """Requests with one image of known size: model, image, tokens of all of it, and of the image where the provider told them apart."""
    for path in sorted((TRANSCRIPTS / "provider_truth").glob("*.jsonl")):
        for record in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
            sizes = [media["dims"] for media in record["media"] if media.get("dims")]
            if len(sizes) == 1 == len(record["media"]) and not record["n_tools"]:
                apart = [media["tokenCount"] for media in record["usage"].get("promptTokensDetails", ()) if media["modality"] == "IMAGE"]
                yield record["model"].partition(":")[0], image(*sizes[0]), record["input_tokens_total"], apart[0] if apart else None


@needs_transcripts
def test_providers_counted_as_the_rules_do() -> None:
    """Exactly, if they reported the image's tokens separately; otherwise the rest must be those of a short text."""
    records = list(recorded())
    assert len(records) >= 6
    assert sum(apart is not None for *_, apart in records) >= 3
    for model, picture, total, apart in records:
        tokens = rule(model)(picture)
        assert apart in {None, tokens}, model
        assert 5 <= total - tokens <= 25, model
