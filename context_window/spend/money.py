"""Prices a request by the price list of its day. A price that the log states goes first: the tool knows what it was charged."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from session.transcripts.reported_requests import Request

from ..models.prices import price_list_of

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


def rates_of(request: Request) -> Rates | None:
    """Return the list prices of a request's model on its day, or None if they are unknown."""
    if request.time is None or not request.model:
        return None
    try:
        day = datetime.fromtimestamp(request.time, UTC).date()
    except (OverflowError, ValueError, OSError):
        return None
    prices = price_list_of(request.model, day)
    if prices is None:
        return None
    prompt = request.total - request.output_tokens
    uncached, answer = _rate(prices.input_mtok, prompt), _rate(prices.output_mtok, prompt)
    if uncached is None or answer is None:
        return None
    read = _rate(prices.cache_read_mtok, prompt)
    write = _rate(prices.cache_write_mtok, prompt)
    for_hour = _rate(prices.cache_write_1h_mtok, prompt)
    if for_hour is None:  # twice the price of input: https://platform.claude.com/docs/en/build-with-claude/prompt-caching
        for_hour = 2 * uncached
    return Rates(uncached, uncached if read is None else read, uncached if write is None else write, for_hour, answer)


def _rate(price: Any, prompt: int) -> Decimal | None:
    """Return the price in US dollars per token for a prompt of this many tokens, or None if there is no such price."""
    if price is None:
        return None
    rate = getattr(price, "base", price)
    for tier in sorted(getattr(price, "tiers", ()), key=lambda tier: tier.start):
        if prompt > tier.start:
            rate = tier.price
    return Decimal(str(rate)) / MILLION
