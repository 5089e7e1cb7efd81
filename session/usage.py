"""`Usage`: tokens that a provider reported for one request.

For one answer Anthropic reads several prompts if tools or advisors run there. The counts are then sums, which is what is paid for. Only the
last prompt is what the window holds.
"""

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
        last_prompt: Tokens of the whole last prompt, cached ones included, if there were several; 0 if there was one.
    """

    input_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    output_tokens: int = 0
    last_prompt: int = 0

    def __post_init__(self) -> None:
        for name in ("input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens", "last_prompt"):
            check_count(self, name, 0, MAX_COUNT, "tokens")

    @property
    def total_input(self) -> int:
        """Tokens of all prompts of the request."""
        return self.input_tokens + self.cache_read_tokens + self.cache_write_tokens

    @property
    def prompt(self) -> int:
        """Tokens of the prompt, or of the last one if there were several."""
        return self.last_prompt or self.total_input
