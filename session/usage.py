"""`Usage`: tokens that a provider reported for one request."""

from __future__ import annotations

from dataclasses import dataclass

from .sanitize import MAX_COUNT, check_count


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens that a provider reported for one request.

    Attributes:
        input_tokens: Prompt tokens neither read from nor written to a cache.
        cache_read_tokens: Prompt tokens read from a cache.
        cache_write_tokens: Prompt tokens written to a cache.
        output_tokens: Tokens of the response.
    """

    input_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    output_tokens: int = 0

    def __post_init__(self) -> None:
        for name in ("input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens"):
            check_count(self, name, 0, MAX_COUNT, "tokens")

    @property
    def total_input(self) -> int:
        """Tokens of the whole prompt."""
        return self.input_tokens + self.cache_read_tokens + self.cache_write_tokens
