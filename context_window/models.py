"""What is known of a model by its name: window, output limit, image rule, how its requests are framed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from fractions import Fraction
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Literal, TypeAlias

from .counting.images import ImageRule, claude_high_tokens, claude_standard_tokens, seed_image_tokens
from .errors import UnknownModelError

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo

WINDOWS = {"gemini-2.5-pro": 1_048_576, "gemini-3-pro": 1_048_576, "gemini-3.1-pro": 1_048_576}
"""Tokens of windows that genai-prices leaves out, by the start of the name; the longest start that fits counts."""

CORRECTIONS = ((r"^gpt-5(\.\d)?-chat", 128_000), (r"^claude-.*\[1m\]$", 1_000_000))
"""Tokens of windows that genai-prices mistakes for another model's: OpenAI's chat models have smaller ones than the models
they are named after, and `[1m]` is how Claude Code asks for the long window."""

OUTPUT_RESERVE = 32_000
"""Tokens kept for the answer where the window is large; a fourth of the window where it is small."""

PROVIDERS = ("anthropic", "openai", "google")

Family: TypeAlias = Literal["claude", "openai", "google", "other"]


@dataclass(frozen=True, slots=True)
class Model:
    """A model as far as budgets go.

    Attributes:
        name: As it was asked for.
        window: Tokens of prompt and answer together; None where not known.
        family: Whose it is, by its name.
        image_rule: What its provider charges for images.
        frame: Tokens that a request costs before anything is in it.
        token_ratio: Its tokens for one of o200k's, for the median of code and prose.
        expected_error: By what part of the count that is usually off.
        binds_thinking: Whether it refuses reasoning after an edited place (VALIDITY.md A5).
        price_cliff: Tokens of a prompt above which the provider charges more for all of it; None where it never does.
    """

    name: str
    window: int | None
    family: Family
    image_rule: ImageRule = seed_image_tokens
    frame: int = 0
    token_ratio: Fraction = Fraction(1)
    expected_error: float = 0.02
    binds_thinking: bool = False
    price_cliff: int | None = None

    @property
    def output_reserve(self) -> int:
        """Tokens of the window kept for the answer unless a `ContextWindow` says otherwise."""
        return OUTPUT_RESERVE if self.window is None else min(OUTPUT_RESERVE, self.window // 4)


def find_model(name: str) -> Model:
    """What is known of the model, its window at least.

    Raises:
        UnknownModelError: Its window is not known.
    """
    model = describe_model(name)
    if model.window is None:
        raise UnknownModelError(name, _alike(name))
    return model


@lru_cache(maxsize=256)
def describe_model(name: str) -> Model:
    """What is known of the model: of a new one often its family alone, and that it is counted as its family's newest are."""
    (window, cliff), family = _listed(name), _family(name)
    if family != "claude":
        return Model(name, window, family, expected_error=0.02 if family == "openai" else 0.15, price_cliff=cliff)
    version = _claude_version(name)
    newer = version >= (4, 7)
    return Model(
        name,
        window,
        family,
        image_rule=claude_high_tokens if newer else claude_standard_tokens,
        frame=7 if version < (4, 7) else 11 if version == (4, 7) else 6,
        token_ratio=Fraction("1.46") if newer else Fraction("1.17"),
        expected_error=0.10,
        price_cliff=cliff,
    )


def _listed(name: str) -> tuple[int | None, int | None]:
    """The model's window and its price cliff, in tokens, as far as the price list and our corrections know them."""
    from genai_prices import data_snapshot  # 130 ms: only who names a model pays for it

    bare = _bare(name)
    corrected = next((window for pattern, window in CORRECTIONS if re.search(pattern, bare)), None)
    providers = {provider.id: provider for provider in data_snapshot.get_snapshot().providers}
    for spelling in _spellings(bare):
        found = [model for provider in PROVIDERS if (model := providers[provider].find_model(spelling)) is not None]
        cliff = min((start for model in found for start in _price_steps(model)), default=None)
        window = corrected or next((model.context_window for model in found if model.context_window), None)
        starts = [start for start in WINDOWS if spelling.startswith(start)]
        if window is None and starts:
            window = WINDOWS[max(starts, key=len)]
        if window is not None:
            return window, cliff
    return None, None


def _price_steps(model: ModelInfo) -> Iterator[int]:
    """Prompt sizes, in tokens, from which the model's input has another price, under any condition that the list names."""
    lists = model.prices if isinstance(model.prices, list) else [model.prices]
    for one in lists:
        price = getattr(getattr(one, "prices", one), "input_mtok", None)
        yield from (tier.start for tier in getattr(price, "tiers", ()))


def _bare(name: str) -> str:
    """The name without the path of whoever passes it on: `openrouter/anthropic/…`, `models/…`."""
    return name.strip().rpartition("/")[2].lower()


def _spellings(bare: str) -> Iterator[str]:
    """The name, then what stands between its colons: `openai:gpt-5`, `ft:gpt-4o:someone::id`."""
    yield bare
    if ":" in bare:
        yield from filter(None, bare.split(":")[:2])


def _alike(name: str) -> list[str]:
    return get_close_matches(_bare(name), _known_names(), n=3)


@cache
def _known_names() -> tuple[str, ...]:
    from genai_prices import data_snapshot

    providers = data_snapshot.get_snapshot().providers
    known = (model.id for provider in providers if provider.id in PROVIDERS for model in provider.models if model.context_window)
    return tuple(dict.fromkeys((*known, *WINDOWS)))  # several providers list the same model


def _family(name: str) -> Family:
    lower = name.lower()
    if "claude" in lower:
        return "claude"
    if re.search(r"\b(gpt|chatgpt|o[1-9]|codex)", lower):
        return "openai"
    return "google" if re.search(r"gemini|gemma", lower) else "other"


def _claude_version(name: str) -> tuple[int, int]:
    """Major and minor version: `claude-opus-4-7` is (4, 7), `claude-3-5-haiku` (3, 5). Without one, it may be the newest."""
    numbers = re.search(r"claude-(?:[a-z]+-)?v?(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)", name.lower())
    return (int(numbers[1]), int(numbers[2] or 0)) if numbers else (99, 0)
