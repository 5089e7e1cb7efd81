"""The tokens that providers report for a request, in each one's words: some count cached tokens as input, some beside it."""

from __future__ import annotations

from typing import NamedTuple

from session.door import MAX_COUNT

from .values import JsonObject, count_at, object_at


class Counts(NamedTuple):
    """Tokens as a transcript states them, in the fields of `Usage`. They may be absurd: `Draft.report` checks them."""

    input_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    output_tokens: int = 0


def usage_of(reported: object) -> Counts | None:
    """The usage that an object reports, or None where it is no such object."""
    if not isinstance(reported, dict):
        return None
    if "promptTokenCount" in reported or "prompt_token_count" in reported:
        return _google(reported)
    if "inputTokens" in reported:
        read = count_at(reported, "cacheReadInputTokens") or count_at(reported, "cacheReadInputTokenCount")
        write = count_at(reported, "cacheWriteInputTokens") or count_at(reported, "cacheWriteInputTokenCount")
        return Counts(count_at(reported, "inputTokens"), read, write, count_at(reported, "outputTokens"))
    if "prompt_tokens" in reported:
        return _openai(reported, "prompt_tokens", "completion_tokens", object_at(reported, "prompt_tokens_details"))
    if "input_tokens_details" in reported:
        return _openai(reported, "input_tokens", "output_tokens", object_at(reported, "input_tokens_details"))
    if isinstance(reported.get("input_tokens"), int):  # Anthropic's, and Inspect's, which took over its way of counting
        read = count_at(reported, "cache_read_input_tokens") or count_at(reported, "input_tokens_cache_read")
        write = count_at(reported, "cache_creation_input_tokens") or count_at(reported, "input_tokens_cache_write")
        return Counts(count_at(reported, "input_tokens"), read, write, count_at(reported, "output_tokens"))
    return None


def inside(total: int, read: int, write: int, output: int) -> Counts:
    """The usage where the cached tokens are part of the total. Absurd numbers stay as they are, so that they are refused."""
    if max(total, read, write, output) > MAX_COUNT:
        return Counts(total, read, write, output)
    read = min(read, total)
    write = min(write, total - read)
    return Counts(total - read - write, read, write, output)


def _openai(reported: JsonObject, total: str, output: str, details: JsonObject) -> Counts:
    read = (
        count_at(details, "cached_tokens")
        or count_at(reported, "cache_read_input_tokens")
        or count_at(reported, "cache_read_tokens")
        or count_at(reported, "prompt_cache_hit_tokens")
    )
    write = (
        count_at(details, "cache_write_tokens")
        or count_at(reported, "cache_creation_input_tokens")
        or count_at(reported, "cache_write_tokens")
    )
    return inside(count_at(reported, total), read, write, count_at(reported, output))


def _google(reported: JsonObject) -> Counts:
    total = count_at(reported, "promptTokenCount") or count_at(reported, "prompt_token_count")
    read = count_at(reported, "cachedContentTokenCount") or count_at(reported, "cached_content_token_count")
    said = count_at(reported, "candidatesTokenCount") or count_at(reported, "candidates_token_count")
    thought = count_at(reported, "thoughtsTokenCount") or count_at(reported, "thoughts_token_count")
    return inside(total, read, 0, said + thought)
