"""What the price list says of a model: its window, its prices, and the prompt size from which they rise.

genai-prices is the list, with our corrections where it is silent or wrong. It takes 130 ms to import: only who names a model pays.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache
from typing import TYPE_CHECKING, Any

from .names import Family, bare, family, spellings

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo, Provider

PRICED_ON = datetime(2026, 11, 21, tzinfo=UTC)
"""The day whose prices are told. Not the clock's: the same log must give the same view on any day, and a cliff moves budgets."""

PROVIDERS = ("anthropic", "openai", "google")
FAMILIES: tuple[Family, ...] = ("claude", "openai", "google")
"""Whose prices are read, and what each of them makes."""

WINDOWS = {"gemini-2.5-pro": 1_048_576, "gemini-3-pro": 1_048_576, "gemini-3.1-pro": 1_048_576, "gpt-6.2-sol": 1_050_000}
"""Tokens of windows that the list leaves out, by the start of the name; the longest start that fits counts."""

CORRECTIONS = ((r"^gpt-5(\.\d)?-chat", 128_000), (r"^claude-.*\[1m\]$", 1_000_000))
"""Tokens of windows that the list mistakes for another model's: OpenAI's chat models have smaller ones than the models
they are named after, and `[1m]` is how Claude Code asks for the long window."""

UNLISTED = re.compile(
    r"embedding|tts|transcribe|whisper|realtime|audio|live|image|banana|moderation|instruct|robotics"  # hold no conversations
    r"|-20\d\d-|-\d{4}$|@"  # dated names of others
    r"|^gemini-(1|pro|flash-1)|^claude-2|^gpt-(3\.5-turbo-16k|4-32k|4-vision)"  # retired
)
"""Models that are known where they are asked for, but not listed."""


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices in US dollars for a million tokens.

    Attributes:
        input: Of a prompt that is below the cliff, and not cached.
        output: Of the answer to it.
        cache_read: Of what of the prompt is read from the cache; None where there is no such price.
        cache_write: Of what is written to it, to be kept five minutes; None where that costs nothing beside `input`.
        input_above: `input` for the whole of a prompt above the cliff; None where there is no cliff.
    """

    input: Decimal
    output: Decimal
    cache_read: Decimal | None = None
    cache_write: Decimal | None = None
    input_above: Decimal | None = None


@dataclass(frozen=True, slots=True)
class Listed:
    """What the list knows of a model.

    Attributes:
        window: Tokens; None where not known.
        prices: None where not known.
        cliff: Tokens of a prompt above which all of it costs more; None where it never does.
    """

    window: int | None = None
    prices: Prices | None = None
    cliff: int | None = None


def listed(name: str) -> Listed:
    """What the list and our corrections know of a model, however its name is spelled."""
    corrected = next((window for pattern, window in CORRECTIONS if re.search(pattern, bare(name))), None)
    providers = _providers()
    for spelling in spellings(name):
        found = [model for provider in providers if (model := provider.find_model(spelling)) is not None]
        window = corrected or next((model.context_window for model in found if model.context_window), None)
        if window is None and (starts := [start for start in WINDOWS if spelling.startswith(start)]):
            window = WINDOWS[max(starts, key=len)]
        if window is not None:
            return _told(window, found[0] if found else None)
    return Listed()


@cache
def known_names() -> tuple[str, ...]:
    """The names that have a window, each once: several providers list the same model."""
    listed_there = (model.id for provider in _providers() for model in provider.models if model.context_window)
    return tuple(dict.fromkeys((*listed_there, *WINDOWS)))


@cache
def chat_names() -> tuple[str, ...]:
    """The names of what holds conversations and has a window and a price, by maker; not those under which others sell it."""
    return tuple(
        model.id
        for provider, whose in zip(_providers(), FAMILIES, strict=True)
        for model in provider.models
        if (model.context_window or model.id.startswith(tuple(WINDOWS)))
        and family(model.id) == whose
        and not UNLISTED.search(model.id)
        and _prices(model)[0] is not None
    )


def _providers() -> list[Provider]:
    from genai_prices import data_snapshot

    providers = {provider.id: provider for provider in data_snapshot.get_snapshot().providers}
    return [providers[name] for name in PROVIDERS]


def _told(window: int, model: ModelInfo | None) -> Listed:
    prices, cliff = (None, None) if model is None else _prices(model)
    return Listed(window, prices, cliff)


def _prices(model: ModelInfo) -> tuple[Prices | None, int | None]:
    """The model's prices on that day, and where they rise."""
    price: Any = model.get_prices(PRICED_ON)
    if price.input_mtok is None or price.output_mtok is None:
        return None, None
    cliff = min(_steps(price.input_mtok), default=None)
    return (
        Prices(
            input=_below(price.input_mtok),
            output=_below(price.output_mtok),
            cache_read=None if price.cache_read_mtok is None else _below(price.cache_read_mtok),
            cache_write=None if price.cache_write_mtok is None else _below(price.cache_write_mtok),
            input_above=None if cliff is None else next(tier.price for tier in price.input_mtok.tiers if tier.start == cliff),
        ),
        cliff,
    )


def _below(price: Any) -> Decimal:
    """A price below any cliff."""
    return Decimal(str(getattr(price, "base", price)))


def _steps(price: Any) -> Iterator[int]:
    """Prompt sizes, in tokens, from which a price is another one."""
    yield from (tier.start for tier in getattr(price, "tiers", ()))
