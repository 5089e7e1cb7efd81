"""A model's window, its prices, and the prompt size above which they rise, from the price list genai-prices.

The makers of Claude, GPT and Gemini are asked first, then other makers. A model that only resellers sell has the smallest window that
any of them states, and no price. Our corrections and the second list (`second_prices.py`) fill the gaps and errors of the list. The list
takes twenty times as long to import as Python takes to start, so our own table has the windows of current models, and the list is imported
for a price or for another model.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from ..kept_prices import kept
from .names import Family, bare, family, spellings
from .second_prices import second_prices

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo, Provider

PRICED_ON = datetime(2026, 11, 21, tzinfo=UTC)
"""Date of the prices. It is fixed, since the same log must give the same view on any day, and a price cliff limits budgets."""

PROVIDERS = ("anthropic", "openai", "google")
FAMILIES: tuple[Family, ...] = ("claude", "openai", "google")
"""Providers whose prices are read first, and the family that each of them makes."""

OTHER_MAKERS = ("deepseek", "x-ai", "moonshotai", "minimax", "mistral", "aws", "zai", "zhipuai", "cohere", "meta")
"""Providers that make other models. Amazon sells models of several makers under names of its own."""

LISTED_MAKERS = OTHER_MAKERS[:5]
"""Those of them whose models are listed. All can be looked up."""

WINDOWS = {
    "gemini-2.5-pro": 1_048_576,
    "gemini-3-pro": 1_048_576,
    "gemini-3.1-pro": 1_048_576,
    "gpt-6.2-sol": 1_050_000,
    "claude-mythos-5": 1_000_000,  # https://platform.claude.com/docs/en/models/fable-5/overview: those of Fable 5
    "mistral-large-2512": 262_144,  # https://vercel.com/ai-gateway/models/mistral-large-3
    "mistral-large-3": 262_144,
    "mistral-large-latest": 262_144,
}
"""Windows in tokens that the list lacks, by prefix of the name; the longest matching prefix is used."""

CORRECTIONS = (
    (r"^gpt-5(\.\d)?-chat|codex-spark", 128_000),  # smaller than those of the models they are named after
    (r"^claude-sonnet-4([-.][05])?\[1m\]$", 200_000),  # their beta ended on 2026-04-30: https://github.com/pydantic/genai-prices/pull/585
    (r"^claude-.*\[1m\]$", 1_000_000),  # Claude Code's name for the long window
    (r"^gpt-4\.1", 1_047_576),  # https://developers.openai.com/api/docs/models/gpt-4.1
    (r"^gpt-5\.5", 1_050_000),  # https://developers.openai.com/api/docs/models/gpt-5.5
    (r"^deepseek-(chat|reasoner)$", 128_000),  # https://api-docs.deepseek.com/news/news251201; retired on 2026-07-24
    (r"^codestral-(2508|latest)$|^codestral$", 128_000),  # https://docs.mistral.ai/getting-started/models/models_overview/
)
"""Windows in tokens that the list gets wrong."""

OUTDATED = re.compile(r"^deepseek-(chat|reasoner)$|^mistral-large-latest$")
"""Names whose entries have the prices of older models, so that the second list has their present price: DeepSeek's what they cost before
September 2025 (https://api-docs.deepseek.com/news/news250929), Mistral's what it cost before Mistral Large 3."""

CURRENT = (
    (r"^claude-(haiku-4-5|opus-4-[015]|sonnet-4-[05])(-20\d{6})?$", 200_000),
    (r"^claude-(haiku-5-5|opus-(4-[678]|5|5-5)|sonnet-(4-6|5|5-5)|fable-5(-[12])?|mythos-5-2)(-20\d{6})?$", 1_000_000),
    (r"^gpt-4o(-mini)?$", 128_000),
    (r"^o([13]|4-mini)$", 200_000),
    (r"^gpt-5(-mini|-nano|-pro|\.1|\.2|\.2-pro|\.3-codex|\.4-mini|\.4-nano)?$", 400_000),
    (r"^gpt-(5\.4|5\.6-(luna|sol|terra)|6-(astra|luna|sol)|6\.1-(sol|terra))$", 1_050_000),
    (r"^gemini-(2\.5-(flash|flash-lite|pro)|3-flash-preview|3\.5-flash(-lite)?|3\.[678]-flash|4-argon)$", 1_048_576),
)
"""Windows in tokens of current models, as the list has them. Their names are resolved without the list."""

ROUNDED = {("google", 1_000_000): 1_048_576}
"""By family and the list's window: the exact window (https://ai.google.dev/gemini-api/docs/models)."""

UNLISTED = re.compile(
    r"embed|tts|transcribe|whisper|realtime|audio|live|image|banana|moderation|instruct|robotics"  # not for conversations
    r"|-20\d\d-|-\d{4}$|@|-fast|-turbo-|highspeed"  # dated names and variants of listed models
    r"|^gemini-(1|pro|flash-1)|^claude-2|^deepseek-v3|^gpt-(3\.5-turbo-16k|4-32k|4-vision)"  # retired
)
"""Models that can be looked up but are not listed."""


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices in US dollars per million tokens.

    Attributes:
        input: Price of uncached prompt tokens, below the cliff.
        output: Price of answer tokens, below the cliff.
        cache_read: Price of prompt tokens read from the cache; None if there is no such price.
        cache_write: Price of prompt tokens written to the cache for five minutes; None if that costs nothing on top of `input`.
        input_above: Price of all prompt tokens if the prompt is above the cliff; None if there is no cliff.
    """

    input: Decimal
    output: Decimal
    cache_read: Decimal | None = None
    cache_write: Decimal | None = None
    input_above: Decimal | None = None


@dataclass(frozen=True, slots=True)
class ListedModel:
    """A model's entry in the price list.

    Attributes:
        window: Context window in tokens; None if unknown.
        prices: Its prices; None if unknown.
        cliff: Prompt size in tokens above which the whole prompt costs more; None if there is none.
    """

    window: int | None = None
    prices: Prices | None = None
    cliff: int | None = None


def find_window(name: str) -> int | None:
    """Return the window of a model in tokens, or None if unknown. The list is not imported for a current model."""
    return next((window for pattern, window in (*CORRECTIONS, *CURRENT) if re.search(pattern, bare(name))), None) or kept(
        lambda: look_up(name).window, "window", name
    )


@lru_cache(maxsize=1 << 14)
def look_up(name: str) -> ListedModel:
    """Return the entry of a model in the list, with our corrections, however its name is spelled.

    Without a price there, it has that of the second list.
    """
    listed = _look_up(name)
    if listed.prices is not None or (second := second_prices(name, "", 0)) is None:
        return listed
    return replace(listed, prices=Prices(second.input, second.output, second.cache_read, second.cache_write))


def _look_up(name: str) -> ListedModel:
    corrected = next((window for pattern, window in CORRECTIONS if re.search(pattern, bare(name))), None)
    for providers in (_providers(PROVIDERS), _providers(OTHER_MAKERS)):
        for spelling in spellings(name):
            entries = [entry for provider in providers if (entry := _find(provider, spelling)) is not None]
            window = next((entry.context_window for entry in entries if entry.context_window), None)
            if window is None and (prefixes := [prefix for prefix in WINDOWS if spelling.startswith(prefix)]):
                window = WINDOWS[max(prefixes, key=len)]
            if window is not None:
                prices, cliff = _prices(entries[0]) if entries and not OUTDATED.search(spelling) else (None, None)
                return ListedModel(corrected or ROUNDED.get((family(name), window), window), prices, cliff)
    return ListedModel(corrected or next((window for spelling in spellings(name) if (window := _windows_by_id().get(spelling))), None))


@cache
def known_names() -> tuple[str, ...]:
    """Return the names of all models of a maker with a window, without duplicates: several providers list the same model."""
    providers = (*_providers(PROVIDERS), *_providers(OTHER_MAKERS))
    ids = (model.id for provider in providers for model in provider.models if model.context_window)
    return tuple(dict.fromkeys((*ids, *WINDOWS)))


@cache
def _windows_by_id() -> dict[str, int]:
    """Return the smallest window in tokens that any provider states for each name."""
    windows: dict[str, int] = {}
    for provider in _snapshot().values():
        for model in provider.models:
            if model.context_window:
                name = bare(model.id)
                windows[name] = min(windows.get(name, model.context_window), model.context_window)
    return windows


@cache
def chat_names() -> tuple[str, ...]:
    """Return the names of conversational models with a window and a price, by maker. Names used by resellers are left out."""
    makers = (*zip(PROVIDERS, FAMILIES, strict=True), *((name, "other") for name in LISTED_MAKERS))
    names = (
        model.id
        for name, maker_family in makers
        for provider in _providers((name,))
        for model in provider.models
        if (model.context_window or model.id.startswith(tuple(WINDOWS)))
        and family(model.id) == maker_family
        and not UNLISTED.search(model.id)
        and _prices(model)[0] is not None
    )
    return tuple(dict.fromkeys(names))


@lru_cache(maxsize=1 << 14)
def priced_model(name: str) -> ModelInfo | None:
    """Return genai-prices' entry of a model, however its name is spelled, or None if no maker lists it."""
    for providers in (_providers(PROVIDERS), _providers(OTHER_MAKERS)):
        for spelling in spellings(name):
            for provider in providers:
                if (entry := _find(provider, spelling)) is not None:
                    return entry
    return None


def _find(provider: Provider, spelling: str) -> ModelInfo | None:
    """Return the provider's entry for a name. The patterns of a few entries do not match the entry's own id."""
    found = provider.find_model(spelling) if _may_match(provider.id, spelling.lower()) else None
    return found or next((model for model in provider.models if model.id == spelling), None)


def _may_match(provider: str, spelling: str) -> bool:
    """Return False if no entry of the provider can match: told of an unknown name many times as fast as by trying each entry."""
    clauses = _clauses(provider)
    return (
        spelling.startswith((*clauses["starts_with"], *clauses["equals"]))
        or spelling.endswith(clauses["ends_with"])
        or any(part in spelling for part in clauses["contains"])
        or any(re.search(pattern, spelling) for pattern in clauses["regex"])
        or spelling[-8:].isdecimal()  # a day, of which the list tries two forms
    )


@cache
def _clauses(provider: str) -> dict[str, tuple[str, ...]]:
    """Return the texts that the provider's entries look for in a name, by how they do."""
    texts: dict[str, list[str]] = {kind: [] for kind in ("starts_with", "equals", "ends_with", "contains", "regex")}
    waiting = [model.match for model in _snapshot()[provider].models]
    while waiting:
        [(kind, value)] = vars(waiting.pop()).items()
        if isinstance(value, list):  # all or any of several
            waiting += value
        else:
            texts[kind].append(value if kind == "regex" else value.lower())
    return {kind: tuple(dict.fromkeys(values)) for kind, values in texts.items()}


def _providers(names: tuple[str, ...]) -> list[Provider]:
    providers = _snapshot()
    return [providers[name] for name in names if name in providers]


@cache
def _snapshot() -> dict[str, Provider]:
    """Return the list's providers by name."""
    from genai_prices import data_snapshot

    return {provider.id: provider for provider in data_snapshot.get_snapshot().providers}


def _prices(model: ModelInfo) -> tuple[Prices | None, int | None]:
    """Return the model's prices on `PRICED_ON`, and the prompt size in tokens above which they rise."""
    price: Any = model.get_prices(PRICED_ON)
    if price.input_mtok is None or price.output_mtok is None:
        return None, None
    cliff = min(_tier_starts(price.input_mtok), default=None)
    return (
        Prices(
            input=_base_price(price.input_mtok),
            output=_base_price(price.output_mtok),
            cache_read=None if price.cache_read_mtok is None else _base_price(price.cache_read_mtok),
            cache_write=None if price.cache_write_mtok is None else _base_price(price.cache_write_mtok),
            input_above=None if cliff is None else next(tier.price for tier in price.input_mtok.tiers if tier.start == cliff),
        ),
        cliff,
    )


def _base_price(price: Any) -> Decimal:
    """Return the price below any cliff."""
    return Decimal(str(getattr(price, "base", price)))


def _tier_starts(price: Any) -> Iterator[int]:
    """Yield the prompt sizes, in tokens, at which the price changes."""
    yield from (tier.start for tier in getattr(price, "tiers", ()))
