"""`cold_cache`: what a prompt costs because the provider's cache has forgotten the session during a pause."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from .transcript_tail import LastAnswer

if TYPE_CHECKING:
    from decimal import Decimal

FIVE_MINUTES, HOUR = 300, 3_600
"""Seconds for which a written prefix stays in the provider's cache: https://platform.claude.com/docs/en/build-with-claude/prompt-caching."""


class ColdCache(NamedTuple):
    """A cache that has forgotten the session: seconds since the last answer, and tokens that the next prompt writes anew.

    `cost` is in US dollars, and `more` what reading from the cache would have saved; None if the model's price is unknown.
    """

    age: float
    tokens: int
    cost: Decimal | None
    more: Decimal | None

    @property
    def old(self) -> str:
        """Its age in words."""
        return f"{self.age / 60:.0f} minutes" if self.age < 2 * HOUR else f"{self.age / HOUR:.0f} hours"


def cold_cache(answer: LastAnswer | None, tokens: int, model: str, now: float) -> ColdCache | None:
    """Return the cache that has forgotten a session of so many tokens at `now` in Unix seconds; None while it remembers."""
    age = 0.0 if answer is None else now - answer.time
    if answer is None or age <= (HOUR if answer.is_for_hour else FIVE_MINUTES):
        return None
    from decimal import Decimal

    from .kept_prices import keeping, kept

    with keeping():
        prices = kept(lambda: _prices(model), "pause", model) if model else None
    if prices is None:
        return ColdCache(age, tokens, None, None)
    read, *writes = map(Decimal, prices)
    write = writes[answer.is_for_hour]
    return ColdCache(age, tokens, *(tokens * price / 1_000_000 for price in (write, write - read)))


def _prices(model: str) -> list[str] | None:
    """Return a model's prices per million tokens read, written for five minutes, and written for an hour; None if they are unknown."""
    from .models.prices import look_up  # slow

    prices = look_up(model).prices
    if prices is None:
        return None
    read = prices.input if prices.cache_read is None else prices.cache_read
    return [str(price) for price in (read, prices.cache_write or prices.input, 2 * prices.input)]
