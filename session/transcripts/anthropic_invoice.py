"""Reads all that one usage report of Anthropic's charges for: the answer, and passes of other kinds that its totals leave out.

1. `iterations` has a row for each pass. The totals are those of the `message` rows.
2. An advisor's pass and a compaction are charged too, at the price of their own model: each is a request of its own.
3. A pass whose tokens the totals contain, such as one of the model that took over, is taken out of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING

from .values import JsonObject, count_at, object_at, objects_at, text_at

if TYPE_CHECKING:
    from .requests import Request

MESSAGE = "message"
EVERYWHERE = ("global", "not_available")
"""Values of `inference_geo` that limit nothing."""
TIERS = ("batch", "flex", "priority")
"""Service tiers that have prices of their own."""


def invoiced(request: Request, usage: JsonObject, cost: Decimal | None) -> Iterator[Request]:
    """Yield the answer with all that its usage states, and each further pass that is charged.

    Args:
        request: The request without amounts.
        usage: The usage report.
        cost: Price in US dollars that the log states for all of it.
    """
    request = with_terms(request, usage)
    passes = objects_at(usage, "iterations")
    messages = [_amounts(row) for row in passes if row.get("type") == MESSAGE]
    totals = _amounts(usage)
    room = [total - sum(column) for total, column in zip(totals, zip(*messages, strict=True), strict=True)] if messages else []
    for number, row in enumerate(passes):
        amounts = _amounts(row)
        if row.get("type") == MESSAGE or not any(amounts):
            continue
        if room and all(free >= amount for free, amount in zip(room, amounts, strict=True)):
            room = [free - amount for free, amount in zip(room, amounts, strict=True)]
            totals = [total - amount for total, amount in zip(totals, amounts, strict=True)]
        own = replace(request, id=f"{request.id}:{number}" if request.id else "", model=text_at(row, "model") or request.model)
        yield _with_amounts(own, amounts)
    yield replace(
        _with_amounts(request, totals),
        cost=cost,
        searches=count_at(object_at(usage, "server_tool_use"), "web_search_requests"),
        largest_prompt=max(sum(amounts[:-1]) for amounts in messages) if len(messages) > 1 else 0,
    )


def with_terms(request: Request, usage: JsonObject) -> Request:
    """Return the request with the terms on which its prices depend, as a usage report states them: speed, service tier, region."""
    geo, tier = text_at(usage, "inference_geo"), text_at(usage, "service_tier")
    return replace(
        request,
        speed="fast" if usage.get("speed") == "fast" else "",
        tier=tier if tier in TIERS else "",
        region="" if geo in EVERYWHERE else geo,
    )


def _amounts(report: JsonObject) -> list[int]:
    """Return the tokens of a report: uncached, read from the cache, written for five minutes and for an hour, output."""
    parts = object_at(report, "cache_creation")
    for_hour = count_at(parts, "ephemeral_1h_input_tokens")
    written = count_at(report, "cache_creation_input_tokens") or count_at(parts, "ephemeral_5m_input_tokens") + for_hour
    for_hour = min(for_hour, written)
    read = count_at(report, "cache_read_input_tokens")
    return [count_at(report, "input_tokens"), read, written - for_hour, for_hour, count_at(report, "output_tokens")]


def _with_amounts(request: Request, amounts: list[int]) -> Request:
    uncached, read, written, for_hour, output = amounts
    return replace(request, input_tokens=uncached, cache_read=read, cache_write=written, cache_write_1h=for_hour, output_tokens=output)
