"""What is known of a model by its name: window, output limit, image rule, how its requests are framed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches
from fractions import Fraction
from functools import cache

from .counting.images import ImageRule, claude_high_tokens, claude_standard_tokens, seed_image_tokens
from .errors import UnknownModelError

WINDOWS = {"gemini-2.5-pro": 1_048_576, "gemini-3-pro": 1_048_576, "gemini-3.1-pro": 1_048_576, "gpt-5-chat": 128_000}
"""Tokens of windows that genai-prices leaves out, by the start of the name; the longest start that fits counts."""

OUTPUT_RESERVE = 32_000
"""Tokens kept for the answer where the window is large; a fourth of the window where it is small."""


@dataclass(frozen=True, slots=True)
class Model:
    """A model as far as budgets go.

    Attributes:
        name: As it was asked for.
        window: Tokens of prompt and answer together.
        family: `claude`, `openai`, `google` or `other`.
        image_rule: What its provider charges for images.
        frame: Tokens that a request costs before anything is in it.
        token_ratio: Its tokens for one of o200k's, for the median of code and prose.
        expected_error: By what part of the count that is usually off.
        binds_thinking: Whether it refuses reasoning after an edited place (VALIDITY.md A5).
    """

    name: str
    window: int
    family: str
    image_rule: ImageRule = seed_image_tokens
    frame: int = 0
    token_ratio: Fraction = Fraction(1)
    expected_error: float = 0.02
    binds_thinking: bool = False

    @property
    def output_reserve(self) -> int:
        """Tokens of the window kept for the answer unless a `ContextWindow` says otherwise."""
        return min(OUTPUT_RESERVE, self.window // 4)


def find_model(name: str) -> Model:
    """What is known of the model.

    Raises:
        UnknownModelError: Its window is not known.
    """
    window = _window(name)
    if window is None:
        raise UnknownModelError(name, get_close_matches(name, _known_names(), n=3))
    family = _family(name)
    if family != "claude":
        return Model(name, window, family, expected_error=0.02 if family == "openai" else 0.15)
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
    )


def _window(name: str) -> int | None:
    from genai_prices import data_snapshot  # 130 ms: only who names a model pays for it

    bare = name.rpartition("/")[2].lower()
    starts = [start for start in WINDOWS if bare.startswith(start)]
    if starts:
        return WINDOWS[max(starts, key=len)]
    snapshot = data_snapshot.get_snapshot()
    for provider_id in ("anthropic", "openai", "google"):
        for provider in snapshot.providers:
            if provider.id == provider_id and (model := provider.find_model(bare)) is not None and model.context_window:
                return model.context_window
    return None


@cache
def _known_names() -> tuple[str, ...]:
    from genai_prices import data_snapshot

    providers = data_snapshot.get_snapshot().providers
    return tuple(model.id for provider in providers if provider.id in ("anthropic", "openai", "google") for model in provider.models)


def _family(name: str) -> str:
    lower = name.lower()
    for family, pattern in (("claude", r"claude"), ("openai", r"\b(gpt|chatgpt|o[1-9]|codex)"), ("google", r"gemini|gemma")):
        if re.search(pattern, lower):
            return family
    return "other"


def _claude_version(name: str) -> tuple[int, int]:
    """Major and minor version: `claude-opus-4-7` is (4, 7), `claude-3-5-haiku` (3, 5)."""
    numbers = re.search(r"claude-(?:[a-z]+-)?(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)", name.lower())
    return (int(numbers[1]), int(numbers[2] or 0)) if numbers else (4, 0)
