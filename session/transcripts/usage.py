"""Parses the usage that providers report for a request. Some include cached tokens in the input tokens, others do not."""

from __future__ import annotations

from decimal import Decimal
from typing import NamedTuple

from session.providers.anthropic.parse import last_prompt
from session.sanitize import MAX_COUNT

from .values import JsonObject, count_at, object_at

DOLLARS_MAX = Decimal(10**9)
"""US dollars: a higher price of one request is damage, as are more tokens than `MAX_COUNT`."""


class Counts(NamedTuple):
    """Reported tokens in the fields of `Usage`. They may be absurd; `Draft.report` checks them."""

    input_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    output_tokens: int = 0
    last_prompt: int = 0


def usage_of(report: object) -> Counts | None:
    """Return the tokens in a usage report of any provider, or None if the value is not such a report."""
    if not isinstance(report, dict):
        return None
    if "promptTokenCount" in report or "prompt_token_count" in report:
        return _google(report)
    if "inputTokens" in report:
        cache_read = count_at(report, "cacheReadInputTokens") or count_at(report, "cacheReadInputTokenCount")
        cache_write = count_at(report, "cacheWriteInputTokens") or count_at(report, "cacheWriteInputTokenCount")
        return Counts(count_at(report, "inputTokens"), cache_read, cache_write, count_at(report, "outputTokens"))
    if "prompt_tokens" in report:
        return _openai(report, "prompt_tokens", "completion_tokens", object_at(report, "prompt_tokens_details"))
    if "input_tokens_details" in report:
        return _openai(report, "input_tokens", "output_tokens", object_at(report, "input_tokens_details"))
    if isinstance(report.get("input_tokens"), int):  # Anthropic, and Inspect, which counts the same way
        cache_read = count_at(report, "cache_read_input_tokens") or count_at(report, "input_tokens_cache_read")
        cache_write = count_at(report, "cache_creation_input_tokens") or count_at(report, "input_tokens_cache_write")
        tokens, output = count_at(report, "input_tokens"), count_at(report, "output_tokens")
        return Counts(tokens, cache_read, cache_write, output, last_prompt(report))
    return None


def split_total(total: int, cache_read: int, cache_write: int, output: int) -> Counts:
    """Return the counts for a report whose total input includes the cached tokens.

    Args:
        total: Input tokens, cached ones included. Absurd numbers are passed on, so that `Draft.report` refuses them.
        cache_read: Tokens read from the cache.
        cache_write: Tokens written to the cache.
        output: Output tokens.
    """
    if max(total, cache_read, cache_write, output) > MAX_COUNT:
        return Counts(total, cache_read, cache_write, output)
    cache_read = min(cache_read, total)
    cache_write = min(cache_write, total - cache_read)
    return Counts(total - cache_read - cache_write, cache_read, cache_write, output)


def dollars(value: object) -> Decimal | None:
    """Return a stated price in US dollars as the decimal number that the log shows, or None if it states none that can be one."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= DOLLARS_MAX:  # nor NaN
        return None
    return Decimal(str(value))


def _openai(report: JsonObject, input_name: str, output_name: str, details: JsonObject) -> Counts:
    cache_read = (
        count_at(details, "cached_tokens")
        or count_at(report, "cache_read_input_tokens")
        or count_at(report, "cache_read_tokens")
        or count_at(report, "prompt_cache_hit_tokens")
    )
    cache_write = (
        count_at(details, "cache_write_tokens") or count_at(report, "cache_creation_input_tokens") or count_at(report, "cache_write_tokens")
    )
    return split_total(count_at(report, input_name), cache_read, cache_write, count_at(report, output_name))


def _google(report: JsonObject) -> Counts:
    total = count_at(report, "promptTokenCount") or count_at(report, "prompt_token_count")
    cache_read = count_at(report, "cachedContentTokenCount") or count_at(report, "cached_content_token_count")
    visible = count_at(report, "candidatesTokenCount") or count_at(report, "candidates_token_count")
    thoughts = count_at(report, "thoughtsTokenCount") or count_at(report, "thoughts_token_count")
    return split_total(total, cache_read, 0, visible + thoughts)
