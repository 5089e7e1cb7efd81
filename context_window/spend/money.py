"""Prices a request by the price list of its day. A price that the log states goes first: the tool knows what it was charged."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from session.transcripts.reported_requests import Request

from ..models.prices import price_list_of

MILLION = 1_000_000


def cost_of(request: Request) -> Decimal | None:
    """Return the price of a request in US dollars, or None if it is unknown.

    A log that states nothing, or 0 as tools do for models that they have no price for, leaves it to the price list. Without a time,
    the price is unknown, since prices change.
    """
    if request.cost:
        return request.cost
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
    amounts = (
        (request.input_tokens, uncached),
        (request.cache_read, uncached if read is None else read),
        (request.cache_write, uncached if write is None else write),
        (request.cache_write_1h, for_hour),
        (request.output_tokens, answer),
    )
    return sum((tokens * rate for tokens, rate in amounts), Decimal(0)) / MILLION


def _rate(price: Any, prompt: int) -> Decimal | None:
    """Return the price in US dollars per million tokens for a prompt of this many tokens, or None if there is no such price."""
    if price is None:
        return None
    rate = getattr(price, "base", price)
    for tier in sorted(getattr(price, "tiers", ()), key=lambda tier: tier.start):
        if prompt > tier.start:
            rate = tier.price
    return Decimal(str(rate))
