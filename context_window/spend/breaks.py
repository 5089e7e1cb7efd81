"""Compares each request's cache reads with what the request before it left in the cache, and names the cause where the log shows it.

1. A request leaves in the cache all that it read from it or wrote to it.
2. If the next request reads less, the cache broke there. Less than `LEAST` tokens is noise: providers cache in blocks.
3. The cause is the first that the log shows: another agent, another model, a compaction, a change of the system prompt or the tools, an
   item that changed or left, a pause longer than the cache's lifetime.
4. Else the counts tell what must have happened. A cache that nobody writes to by request is the provider's own, and misses at times.
   One that is written to is reliable, so what it no longer answered with has changed: all from the start of the prompt, or what came
   after the part that was read. If exactly what the request before had read was read again, and at once, that request's own part was
   not there yet.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from session.transcripts.reported_requests import Request

from ..pauses import FIVE_MINUTES, HOUR
from .money import rates_of

LEAST = 1024
"""Tokens: the smallest prefix that the large providers cache."""
SMALLER = 0.67
"""A prompt of at most this part of the one before follows a compaction."""
AT_ONCE = 5.0
"""Seconds between the answers to requests that may have been sent at the same time."""
PROVIDER, NOT_YET = "the provider's cache missed", "requests at the same time"
START, MIDDLE = "the start of the prompt changed", "earlier messages changed"


@dataclass(frozen=True, slots=True)
class Between:
    """Events in the log between two requests.

    Attributes:
        compacted: True if a summary took the place of earlier items.
        configured: True if the system prompt or the tools changed.
        edited: True if an earlier item changed, or left without a summary.
    """

    compacted: bool = False
    configured: bool = False
    edited: bool = False


def cached_prefix(request: Request) -> int:
    """Return the tokens that a request leaves in the cache, as far as it is reported."""
    return request.cache_read + request.cache_write + request.cache_write_1h


def lost_tokens(before: Request, request: Request) -> int:
    """Return the tokens by which the cache reads fall below what the request before left in the cache; 0 without a cache break."""
    uncached = min(cached_prefix(before), request.prompt) - request.cache_read
    return uncached if uncached >= LEAST else 0


def pause_between(before: Request, request: Request) -> float:
    """Return the seconds from one request to the next; 0 if they are not known."""
    return 0.0 if before.time is None or request.time is None else request.time - before.time


def is_outlived(before: Request, request: Request) -> bool:
    """True if the cache had forgotten a request when the next one came."""
    return pause_between(before, request) > (HOUR if before.cache_write_1h else FIVE_MINUTES)


def cause_of(before: Request, request: Request, between: Between) -> str:
    """Return the reason of a cache break in words."""
    if before.agent != request.agent:
        return "a sub-agent"
    if before.model != request.model:
        return "another model"
    if between.compacted:
        return "a compaction"
    if between.configured:
        return "another system prompt or other tools"
    if between.edited:
        return "edited history"
    if is_outlived(before, request):
        return f"a pause of {pause_between(before, request) / 60:,.0f} minutes"
    if not (before.cache_write or before.cache_write_1h or request.cache_write or request.cache_write_1h):
        return PROVIDER
    if request.cache_read == before.cache_read and request.cache_read and pause_between(before, request) <= AT_ONCE:
        return NOT_YET
    return START if request.cache_read < LEAST else MIDDLE


def cost_of_break(request: Request, tokens: int) -> Decimal | None:
    """Return the price in US dollars of paying for tokens again that were in the cache; None if prices are unknown.

    They cost what the request's other prompt tokens cost on average: some were written to the cache, some were not.
    """
    rates = rates_of(request)
    paid = request.input_tokens + request.cache_write + request.cache_write_1h
    if rates is None or not paid:
        return None
    price = request.input_tokens * rates.input + request.cache_write * rates.cache_write + request.cache_write_1h * rates.cache_write_1h
    return tokens * (price / paid - rates.cache_read)
