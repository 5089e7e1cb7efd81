"""Turns all that a request's usage states into US dollars, by two price lists with a date each.

1. A price that the log states goes first: the tool knows its charge.
2. genai-prices has the price of the request's moment, terms (`fast`, `batch`, `flex`, `priority`) and prompt size. litellm's table answers
   where it knows nothing. Where both know and differ, the invoice has both.
3. Inference limited to a region costs `REGIONAL` of that. Searches are added.
4. Terms that neither list has a price for are charged by a known multiple, else as usual, and the invoice names them as `lacking`.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from functools import lru_cache
from typing import Any, NamedTuple

from session.transcripts.reported_requests import Request
from session.usage import Usage

from ..kept_prices import kept
from ..models.names import claude_version, family
from ..models.prices import priced_model
from ..models.second_prices import second_prices

PRICES = ("input_mtok", "output_mtok", "cache_read_mtok", "cache_write_mtok", "cache_write_1h_mtok")
"""Names of the prices in the price list."""
MILLION = 1_000_000
FAST = ((r"claude-opus-4[-.][67]", 6),)
"""By model: what fast answers cost, as a multiple, where no list says so: https://platform.claude.com/docs/en/build-with-claude/fast-mode."""
HALF = Decimal("0.5")
"""What a batch costs at each of the three makers, as a part of the usual price."""
REGIONAL = Decimal("1.1")
"""What inference in one region costs, as a multiple: https://platform.claude.com/docs/en/about-claude/pricing#data-residency-pricing."""
REGIONAL_FROM = (4, 5)
"""First version of Claude whose regional endpoints on Amazon Bedrock cost `REGIONAL`."""
BEDROCK_REGION = re.compile(r"(?:^|/)(?!global\.)[a-z]{2,6}(?:-gov)?\.anthropic\.")
SEARCHES = Decimal(10)
"""US dollars for 1,000 web searches: https://platform.claude.com/docs/en/agents-and-tools/tool-use/web-search-tool."""
SAME = Decimal("0.001")
"""Part of a price by which two lists may differ and still agree: some round."""
EARLIEST, LATEST = -62_135_510_400, 253_402_214_400
"""Unix seconds of the second and the last day that a date can be, in any time zone."""
DAY, HALF_HOUR = 86_400, 1_800
"""Seconds for which a price stays the same: prices by the time of day change at half hours."""


@dataclass(frozen=True, slots=True)
class Rates:
    """Prices of one request in US dollars per token.

    Attributes:
        input: Of prompt tokens that are neither read from the cache nor written to it.
        cache_read: Of prompt tokens read from the cache.
        cache_write: Of prompt tokens written to the cache for five minutes.
        cache_write_1h: Of prompt tokens written to the cache for an hour.
        output: Of tokens of the answer.
    """

    input: Decimal
    cache_read: Decimal
    cache_write: Decimal
    cache_write_1h: Decimal
    output: Decimal

    @classmethod
    def filled(cls, uncached: Decimal, output: Decimal, read: Decimal | None, write: Decimal | None, for_hour: Decimal | None) -> Rates:
        """Return the prices, with those of input where the cache has none of its own.

        An hour costs twice the price of input: https://platform.claude.com/docs/en/build-with-claude/prompt-caching.
        """
        write = uncached if write is None else write
        return cls(uncached, uncached if read is None else read, write, 2 * uncached if for_hour is None else for_hour, output)

    def times(self, multiple: Decimal) -> Rates:
        """Return the prices multiplied."""
        return Rates(*(multiple * getattr(self, name) for name in self.__dataclass_fields__))

    def price(self, request: Request) -> Decimal:
        """Return the price of the request in US dollars."""
        return (
            request.input_tokens * self.input
            + request.cache_read * self.cache_read
            + request.cache_write * self.cache_write
            + request.cache_write_1h * self.cache_write_1h
            + request.output_tokens * self.output
        )


@dataclass(frozen=True, slots=True)
class Invoice:
    """The price of a request.

    Attributes:
        cost: Price in US dollars; None if it is unknown.
        other: Price by the second list, if that differs; else None.
        lacking: What is charged at an extra price that is unknown, such as `priority`; empty if nothing is.
    """

    cost: Decimal | None
    other: Decimal | None = None
    lacking: str = ""

    @property
    def dispute(self) -> Decimal | None:
        """Difference of the two lists in US dollars; None if they agree, or one of them knows nothing."""
        return None if self.cost is None or self.other is None else abs(self.cost - self.other)


def cost_of(request: Request) -> Decimal | None:
    """Return the price of a request in US dollars, or None if it is unknown."""
    return invoice_of(request).cost


def invoice_of(request: Request) -> Invoice:
    """Return the price of a request, and what is uncertain about it.

    A log that states nothing, or 0 as tools do for models that they have no price for, leaves it to the price lists. Without a time,
    the price is unknown, since prices change.
    """
    if request.cost:
        return Invoice(request.cost)
    quote = _quote_of(request)
    if quote is None or quote.rates is None:
        return Invoice(None)
    searches = request.searches * SEARCHES / 1_000
    cost = quote.rates.price(request) + searches
    other = None if quote.other is None else quote.other.price(request) + searches
    if other is not None and abs(cost - other) <= SAME * max(cost, other):
        other = None
    return Invoice(cost, other, quote.lacking)


def cost_of_usage(usage: Usage, model: str, time: float) -> Decimal | None:
    """Return the list price of one request of a session in US dollars, or None if it is unknown.

    Args:
        usage: The usage that the provider reported.
        model: The model's name.
        time: When it answered, in Unix seconds.
    """
    read, write = usage.cache_read_tokens, usage.cache_write_tokens
    return cost_of(Request("", time, "", model, "", "", "", usage.input_tokens, read, write, output_tokens=usage.output_tokens))


def rates_of(request: Request) -> Rates | None:
    """Return the prices of a request's model at its moment and on its terms, or None if they are unknown."""
    quote = _quote_of(request)
    return None if quote is None else quote.rates


class _Quote(NamedTuple):
    rates: Rates | None
    other: Rates | None
    lacking: str


def _quote_of(request: Request) -> _Quote | None:
    if request.time is None or not request.model or not EARLIEST <= request.time <= LATEST:
        return None
    step = HALF_HOUR if _goes_by_the_hour(request.model) else DAY
    moment = int(request.time // step) * step
    prompt = request.largest_prompt or request.prompt
    starts = _starts(request.model, moment)
    index = bisect_left(starts, prompt)
    return _quote(request.model, moment, starts[index - 1] + 1 if index else 0, _terms_of(request), request.region)


def _terms_of(request: Request) -> str:
    """Return the terms that have a price of their own. Some sellers name a fast model `claude-opus-4.8-fast`."""
    is_fast = request.model.endswith("-fast") and family(request.model) == "claude"
    return "fast" if is_fast else request.speed or request.tier


@lru_cache(maxsize=1 << 14)
def _goes_by_the_hour(model: str) -> bool:
    """True if a price of the model depends on the time of day."""

    def answer() -> bool:
        prices = getattr(priced_model(model), "prices", ())
        return isinstance(prices, list) and any(hasattr(price.constraint, "start_time") for price in prices)

    return kept(answer, "hourly", model)


@lru_cache(maxsize=1 << 14)
def _starts(model: str, moment: int) -> tuple[int, ...]:
    """Return the sizes of prompts above which a price of the model is another one, in tokens."""

    def answer() -> list[int]:
        entry = priced_model(model)
        prices = None if entry is None else entry.get_prices(datetime.fromtimestamp(moment, UTC))
        lists = [getattr(prices, name, None) for name in PRICES]
        return sorted({*SECOND_STARTS, *(tier.start for price in lists for tier in getattr(price, "tiers", ()))})

    return tuple(kept(answer, "starts", model, moment))


SECOND_STARTS = (128_000, 200_000, 272_000)
"""Sizes of prompts above which the second list has prices of their own, in tokens."""


@lru_cache(maxsize=1 << 14)
def _quote(model: str, moment: int, prompt: int, terms: str, region: str) -> _Quote:
    """Return the prices of a model for a prompt of this many tokens. They are the same up to the next of `_starts`."""
    question = model, moment, prompt, terms, region
    rates, other, lacking = kept(lambda: _texts(_looked_up(*question)), "quote", *question)
    return _Quote(rates and Rates(*map(Decimal, rates)), other and Rates(*map(Decimal, other)), lacking)


def _texts(quote: _Quote) -> list[Any]:
    return [*(rates and [str(getattr(rates, name)) for name in Rates.__dataclass_fields__] for rates in quote[:2]), quote.lacking]


def _looked_up(model: str, moment: int, prompt: int, terms: str, region: str) -> _Quote:
    """Return what `_quote` does, from the lists."""
    multiple = REGIONAL if _is_regional(model, region) else Decimal(1)
    first, second = _first_rates(model, moment, prompt, terms), _second_rates(model, prompt, terms)
    lacking = ""
    if first is None and second is None and terms:
        first, second = _first_rates(model, moment, prompt, ""), _second_rates(model, prompt, "")
        known = _multiple_of(model, terms)
        multiple *= known or 1
        lacking = "" if known else terms
    chosen, other = (first, None if first == second else second) if first is not None else (second, None)
    return _Quote(chosen and chosen.times(multiple), other and other.times(multiple), lacking)


def _is_regional(model: str, region: str) -> bool:
    if family(model) != "claude":
        return False
    return bool(region) or (claude_version(model) >= REGIONAL_FROM and BEDROCK_REGION.search(model.lower()) is not None)


def _multiple_of(model: str, terms: str) -> Decimal | None:
    """Return what the terms cost as a multiple of the usual price; None if that is unknown."""
    if terms == "batch" and family(model) != "other":
        return HALF
    return next((Decimal(times) for pattern, times in FAST if terms == "fast" and re.search(pattern, model.lower())), None)


def _first_rates(model: str, moment: int, prompt: int, terms: str) -> Rates | None:
    """Return genai-prices' prices, or None if it has none for these terms."""
    entry = priced_model(model)
    if entry is None:
        return None
    time = datetime.fromtimestamp(moment, UTC)
    if not terms:
        return _rates(entry.get_prices(time), prompt)
    context = (
        {"processing": "batch"}
        if terms == "batch"
        else {"speed": "fast", "service_tier": "fast"}
        if terms == "fast"
        else {"service_tier": terms}
    )
    variants = (variant.when.items() for variant in entry.price_variants or ())
    if not any(when <= context.items() for when in variants):
        return None
    return _rates(entry.get_prices(time, context), prompt)


def _rates(prices: Any, prompt: int) -> Rates | None:
    uncached, answer = _rate(prices.input_mtok, prompt), _rate(prices.output_mtok, prompt)
    if uncached is None or answer is None:
        return None
    read, write = _rate(prices.cache_read_mtok, prompt), _rate(prices.cache_write_mtok, prompt)
    return Rates.filled(uncached, answer, read, write, _rate(prices.cache_write_1h_mtok, prompt))


def _second_rates(model: str, prompt: int, terms: str) -> Rates | None:
    prices = second_prices(model, terms, prompt)
    if prices is None:
        return None
    cached = (None if price is None else price / MILLION for price in prices[2:])
    return Rates.filled(prices.input / MILLION, prices.output / MILLION, *cached)


def _rate(price: Any, prompt: int) -> Decimal | None:
    """Return the price in US dollars per token for a prompt of this many tokens, or None if there is no such price."""
    if price is None:
        return None
    rate = getattr(price, "base", price)
    for tier in sorted(getattr(price, "tiers", ()), key=lambda tier: tier.start):
        if prompt > tier.start:
            rate = tier.price
    return Decimal(str(rate)) / MILLION
