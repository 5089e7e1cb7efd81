"""How the new tokens of a prompt are billed: plain, or as a write to the cache."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, TypeAlias

from session.transcripts.reported_requests import Request

NewKind: TypeAlias = Literal["cache_write_1h", "cache_write", "input_tokens"]
"""How new tokens of a prompt are billed."""


def kind_of_new(request: Request) -> NewKind:
    """Return how the new tokens of a request were billed."""
    return "cache_write_1h" if request.cache_write_1h else "cache_write" if request.cache_write else "input_tokens"


def with_new(request: Request, kind: NewKind, tokens: int) -> Request:
    """Return a request with another number of new tokens, which are billed in this way."""
    match kind:
        case "cache_write_1h":
            return replace(request, cache_write_1h=tokens)
        case "cache_write":
            return replace(request, cache_write=tokens)
        case "input_tokens":
            return replace(request, input_tokens=tokens)
