"""Estimates what a request would have cost without management, from its reported usage and the tokens that were left out of it.

1. Without management the prompt has the tokens that were left out, too. They are counted here, and scaled as the provider's count of
   this request's prompt is to ours. The answer is the same.
2. Such a client only appends. So its earlier messages come from the provider's cache, if the cache was in use:
   - in a request whose view only grew, and which read from the cache: the tokens left out would have been read, too;
   - in the request of a trim, whose view begins otherwise than the one before: if the request before reported the cache and is not older
     than the cache keeps it, everything is read except the newer messages;
   - in any other request, the tokens left out cost what the new tokens of this request cost.
3. A prompt that the model's window has no room for could not have been sent. It has no cost, and is not compared.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal

from session.transcripts.reported_requests import Request

from ..models import describe_model
from ..spend.breaks import cached_prefix, is_outlived
from ..spend.money import cost_of
from ..spend.new_tokens import kind_of_new, with_new


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of one request in US dollars.

    Attributes:
        managed: By its reported usage; None if the price is unknown.
        unmanaged: The estimate for the same request without management; None if it could not have been sent, or the price is unknown.
        is_sendable: False if it would not have fitted the model's window.
    """

    managed: Decimal | None
    unmanaged: Decimal | None
    is_sendable: bool


@dataclass(frozen=True, slots=True)
class LeftOut:
    """The part of a conversation that a request lacks. Amounts are the provider's tokens.

    Attributes:
        tokens: Tokens that were left out.
        appended: Tokens by which the whole conversation has grown since the request before.
        is_trim: True if something was taken out that the request before still had.
    """

    tokens: int
    appended: int
    is_trim: bool


def cost_without_management(request: Request, left_out: LeftOut, earlier: Request | None) -> Cost:
    """Return the cost of a request, and the estimate without management.

    Args:
        request: The reported request.
        left_out: The part of the conversation that it lacks.
        earlier: The conversation's request before it; None if there is none, or its usage was not reported.
    """
    managed, limit = cost_of(request), describe_model(request.model).input_limit
    unmanaged = unmanaged_request(request, left_out, earlier)
    is_sendable = limit is None or prompt_tokens(unmanaged) <= limit or not left_out.tokens
    return Cost(managed, cost_of(unmanaged) if is_sendable else None, is_sendable)


def unmanaged_request(request: Request, left_out: LeftOut, earlier: Request | None) -> Request:
    """Return the request as it would have been reported without management. Arguments as above."""
    if not left_out.tokens:
        return request
    new = kind_of_new(request)
    if left_out.is_trim and earlier is not None and is_cached(earlier, request):
        total = prompt_tokens(request) + left_out.tokens
        appended = min(total, left_out.appended)
        read_all = replace(request, input_tokens=0, cache_read=total - appended, cache_write=0, cache_write_1h=0)
        return with_new(read_all, new, appended)
    if not left_out.is_trim and request.cache_read:
        return replace(request, cache_read=request.cache_read + left_out.tokens)
    return with_new(request, new, getattr(request, new) + left_out.tokens)


def prompt_tokens(request: Request) -> int:
    """Return the tokens of a request's prompt."""
    return request.total - request.output_tokens


def is_cached(earlier: Request, request: Request) -> bool:
    """True if the earlier prompt was in the provider's cache when this request came."""
    return bool(cached_prefix(earlier)) and not is_outlived(earlier, request)
