"""Prices a request by the price list of its day. A price that the log states goes first: the tool knows its charge."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import lru_cache
from typing import Any

from session.transcripts.reported_requests import Request
from session.usage import Usage

from ..models.prices import price_list_of

PRICES = ("input_mtok", "output_mtok", "cache_read_mtok", "cache_write_mtok", "cache_write_1h_mtok")
"""Names of the prices in the price list."""
MILLION = 1_000_000


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

    def price(self, request: Request) -> Decimal:
        """Return the price of the request in US dollars."""
        return (
            request.input_tokens * self.input
            + request.cache_read * self.cache_read
            + request.cache_write * self.cache_write
            + request.cache_write_1h * self.cache_write_1h
            + request.output_tokens * self.output
        )


def cost_of(request: Request) -> Decimal | None:
    """Return the price of a request in US dollars, or None if it is unknown.

    A log that states nothing, or 0 as tools do for models that they have no price for, leaves it to the price list. Without a time,
    the price is unknown, since prices change.
    """
    if request.cost:
        return request.cost
    rates = rates_of(request)
    return None if rates is None else rates.price(request)


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
    """Return the list prices of a request's model on its day, or None if they are unknown."""
    if request.time is None or not request.model:
        return None
    try:
        day = datetime.fromtimestamp(request.time, UTC).date()
    except (OverflowError, ValueError, OSError):
        return None
    starts = _starts(request.model, day)
    step = bisect_left(starts, request.prompt)
    return _rates(request.model, day, starts[step - 1] + 1 if step else 0)


@lru_cache(maxsize=4096)
def _starts(model: str, day: date) -> tuple[int, ...]:
    """Return the sizes of prompts above which a price of the model is another one, in tokens."""
    prices = price_list_of(model, day)
    lists = [getattr(prices, name, None) for name in PRICES]
    return tuple(sorted({tier.start for price in lists for tier in getattr(price, "tiers", ())}))


@lru_cache(maxsize=4096)
def _rates(model: str, day: date, prompt: int) -> Rates | None:
    """Return the list prices of a model on a day for a prompt of this many tokens. They are the same up to the next of `_starts`."""
    prices = price_list_of(model, day)
    if prices is None:
        return None
    uncached, answer = _rate(prices.input_mtok, prompt), _rate(prices.output_mtok, prompt)
    if uncached is None or answer is None:
        return None
    cache_read = _rate(prices.cache_read_mtok, prompt)
    write = _rate(prices.cache_write_mtok, prompt)
    for_hour = _rate(prices.cache_write_1h_mtok, prompt)
    if for_hour is None:  # twice the price of input: https://platform.claude.com/docs/en/build-with-claude/prompt-caching
        for_hour = 2 * uncached
    return Rates(uncached, uncached if cache_read is None else cache_read, uncached if write is None else write, for_hour, answer)


def _rate(price: Any, prompt: int) -> Decimal | None:
    """Return the price in US dollars per token for a prompt of this many tokens, or None if there is no such price."""
    if price is None:
        return None
    rate = getattr(price, "base", price)
    for tier in sorted(getattr(price, "tiers", ()), key=lambda tier: tier.start):
        if prompt > tier.start:
            rate = tier.price
    return Decimal(str(rate)) / MILLION
