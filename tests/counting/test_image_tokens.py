"""What an image costs on Claude: documented examples, and the search for the fitted size against a plain one."""

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from context_window.counting.images import ImageRule, claude_high_tokens, claude_standard_tokens, estimated_image_tokens
from context_window.counting.images_makers import grok_tokens, qwen_tokens
from context_window.models import describe_model
from session.estimate import IMAGE_TOKENS
from session.parts import Image

TIERS: dict[ImageRule, tuple[int, int]] = {claude_standard_tokens: (1568, 1568), claude_high_tokens: (2576, 4784)}
"""Of each rule: pixels a side, and tokens, that an image may have."""

rules = st.sampled_from(list(TIERS))
pixels = st.one_of(st.integers(1, 60), st.integers(1, 4000), st.integers(1, 100_000))


def image(width: int, height: int) -> Image:
    return Image(url="u", width=width, height=height)


def patches(width: int, height: int) -> int:
    return math.ceil(width / 28) * math.ceil(height / 28)


def plainly(width: int, height: int, side: int, tokens: int) -> int:
    """From the largest size down, one pixel of the long side at a time, until both limits are kept."""
    long, short = max(width, height), min(width, height)
    for size in range(long, 0, -1) if long <= side else range(side, 0, -1):
        other = short if size == long else max(1, round(short * size / long))
        if patches(size, other) <= tokens:
            return patches(size, other)
    raise AssertionError("one pixel is one token")


@pytest.mark.parametrize(
    ("width", "height", "standard", "high"),
    [
        (1920, 1080, 1560, 2691),
        (3840, 2160, 1560, 4784),
        (1, 1, 1, 1),
        (28, 28, 1, 1),
        (29, 28, 2, 2),
        (200, 200, 64, 64),
        (1000, 1000, 1296, 1296),
        (1092, 1092, 1521, 1521),
        (100_000, 1, 56, 92),
    ],
)
def test_examples(width: int, height: int, standard: int, high: int) -> None:
    """The first two are Anthropic's; the others follow from its formula by hand."""
    assert claude_standard_tokens(image(width, height)) == standard
    assert claude_high_tokens(image(width, height)) == high


@given(rule=rules, width=pixels, height=pixels)
@example(rule=claude_standard_tokens, width=1569, height=1)
@example(rule=claude_standard_tokens, width=1568, height=784)
@example(rule=claude_standard_tokens, width=7269, height=1825)  # one pixel of the side's limit is one row of patches here
@example(rule=claude_high_tokens, width=7088, height=2394)
@example(rule=claude_high_tokens, width=100_000, height=99_999)
def test_the_fitted_size_is_the_largest_within_both_limits(rule: ImageRule, width: int, height: int) -> None:
    assert rule(image(width, height)) == plainly(width, height, *TIERS[rule])


@given(rule=rules, width=pixels, height=pixels)
def test_the_count_is_within_the_tier_and_the_same_upright(rule: ImageRule, width: int, height: int) -> None:
    tokens = rule(image(width, height))
    assert 1 <= tokens <= TIERS[rule][1]
    assert rule(image(height, width)) == tokens


@given(rule=rules, width=st.integers(1, 3000), height=st.integers(1, 3000), times=st.integers(1, 20))
def test_the_same_picture_larger_costs_no_less(rule: ImageRule, width: int, height: int, times: int) -> None:
    """Other proportions can: a picture one pixel wider may be scaled to one patch row less."""
    assert rule(image(width * times, height * times)) >= rule(image(width, height))


@given(rule=rules, width=st.integers(1, 1500), height=st.integers(1, 700), wider=st.integers(0, 60), higher=st.integers(0, 60))
def test_what_needs_no_scaling_costs_more_the_larger_it_is(rule: ImageRule, width: int, height: int, wider: int, higher: int) -> None:
    side, tokens = TIERS[rule]
    larger = (min(side, width + wider), height + higher)
    if patches(*larger) <= tokens:
        assert rule(image(*larger)) == patches(*larger) >= rule(image(width, height))


@given(width=pixels, height=pixels)
def test_high_resolution_costs_no_less(width: int, height: int) -> None:
    assert claude_high_tokens(image(width, height)) >= claude_standard_tokens(image(width, height))


UNKNOWN = [(None, None), (100, None), (None, 100)]


@pytest.mark.parametrize("size", UNKNOWN)
def test_an_unknown_size_costs_the_flat_estimate_if_the_provider_is_unknown(size: tuple[int | None, int | None]) -> None:
    assert estimated_image_tokens(Image(url="u", width=size[0], height=size[1])) == IMAGE_TOKENS == 300


@given(
    st.sampled_from(["claude-sonnet-4-5", "claude-opus-4-8", "gpt-4o", "gpt-4o-mini", "gpt-5", "gpt-5.4", "o4-mini", "gemini-3-pro"]),
    pixels,
    pixels,
)
def test_an_unknown_size_costs_the_most_that_any_image_costs(model: str, width: int, height: int) -> None:
    """The most that the provider charges for an image, so that what fits by our count fits."""
    rule = describe_model(model).image_rule
    for size in UNKNOWN:
        assert rule(Image(url="u", width=size[0], height=size[1])) >= rule(image(width, height))


def test_the_largest_size_that_a_header_may_claim() -> None:
    assert claude_high_tokens(image(100_000, 100_000)) == patches(1932, 1932) == 4761
    assert claude_standard_tokens(image(1, 100_000)) == 56


@pytest.mark.parametrize(("width", "height", "grok", "qwen"), [(50, 65, 256, 82), (448, 449, 768, 198), (4000, 3000, 1792, 11_752)])
def test_grok_has_tiles_and_qwen_patches(width: int, height: int, grok: int, qwen: int) -> None:
    """The first image is recorded, for both: 256 tokens, and 97 with 15 of text."""
    assert (grok_tokens(image(width, height)), qwen_tokens(image(width, height))) == (grok, qwen)


@given(width=pixels, height=pixels)
def test_no_size_leaves_the_limits_of_grok_and_qwen(width: int, height: int) -> None:
    assert 256 <= grok_tokens(image(width, height)) <= 1792
    assert 1 <= qwen_tokens(image(width, height)) - 2 <= 16_384 or max(width, height) > 200 * min(width, height)
