"""What requests would have cost within a window: an estimate by the sizes of their prompts alone, without their texts.

1. Until something would have been left out, a request costs what it did.
2. From then on a prompt grows by what the tool's own grew by; where that shrank, by the answer before. So a compaction of the tool's own
   does not happen, and costs nothing.
3. A prompt above the trigger goes down to the target, and what is kept besides the first prompt is written anew. Automatic windows have
   the trigger and the target of `decision/auto_window.py`; others the target ratio of `ContextWindow`.
4. What the tool itself had to write anew though the cache was in use (an edit, another model, other tools) is written anew here, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from math import isqrt
from typing import Literal, TypeAlias

from session.transcripts.reported_requests import Request

from ..models import KEPT, KEPT_PART, describe_model
from .breaks import SMALLER, is_outlived
from .money import cost_of, rates_of
from .new_tokens import kind_of_new, with_new

RATIO = 0.65
"""The part of a fixed window that a trim goes down to."""
Window: TypeAlias = Literal["auto"] | int


@dataclass(frozen=True, slots=True)
class WhatIf:
    """The estimate.

    Attributes:
        requests: The requests, with the estimated price as the one that their log states. Their tokens are what they were.
        trims: Requests in which something would have been left out that the request before still had.
    """

    requests: list[Request]
    trims: int


def what_if(requests: Sequence[Request], window: Window) -> WhatIf:
    """Return the estimate for some requests.

    Args:
        requests: The requests.
        window: Tokens that a prompt may have, or `auto` for what costs least.
    """
    estimated, trims = list(requests), 0
    conversations: dict[tuple[str, str, str], list[int]] = {}
    for index, request in enumerate(requests):
        if request.time is not None and request.session and request.prompt:
            conversations.setdefault((request.tool, request.session, request.agent), []).append(index)
    for conversation in conversations.values():
        conversation.sort(key=lambda index: requests[index].time or 0)
        state = _Conversation(window)
        for place, index in enumerate(conversation):
            neighbours = [requests[other] for other in conversation[place - 1 : place + 2 : 2]] if place else []
            if not _is_sum(requests[index], neighbours):
                estimated[index] = state.next(requests[index])
        trims += state.trims
    return WhatIf(estimated, trims)


def _is_sum(request: Request, neighbours: Sequence[Request]) -> bool:
    """True if the request stands alone as high as no growth explains: the sum of two of which a log reports only one."""
    return len(neighbours) == 2 and all(other.prompt <= SMALLER * request.prompt for other in neighbours)


class _Conversation:
    """Goes through the requests of one conversation.

    Attributes:
        trims: As for `WhatIf`.
    """

    def __init__(self, window: Window) -> None:
        self._window = window
        self._before: Request | None = None
        self._head = self._view = self._log = self._count = 0
        self._is_changed = False
        self.trims = 0

    def next(self, request: Request) -> Request:
        """Return the next request with its estimated price."""
        before, self._before = self._before, request
        if before is None:
            self._head = self._view = self._log = request.prompt
            return request
        has_compacted = request.prompt <= SMALLER * before.prompt
        grown = before.output_tokens if has_compacted else request.prompt - before.prompt
        self._log, self._count = self._log + grown, self._count + 1
        is_read = 2 * request.cache_read >= before.prompt
        is_warm = is_read or not is_outlived(before, request)
        is_lost = not is_read and not has_compacted
        read, self._view = self._view, self._view + grown
        trigger, target = self._limits(request, grown, is_warm=is_warm)
        is_trim = self._view > trigger and target < self._view
        if is_trim:
            read, self._view = self._head, target
        self._is_changed |= is_trim or has_compacted
        if not self._is_changed:
            return request
        cost = _cost(request, self._view, 0 if is_lost else min(read, self._view))
        self.trims += is_trim and cost is not None
        return replace(request, cost=cost)

    def _limits(self, request: Request, grown: int, *, is_warm: bool) -> tuple[int, int]:
        limit = describe_model(request.model).input_limit or self._view
        base = self._head + grown  # what the model has not seen yet stays
        if self._window != "auto":
            return min(self._window, limit), max(int(RATIO * self._window), base)
        rates = rates_of(request)
        write = max(rates.cache_write, rates.input) if rates is not None else Decimal(0)
        rewrite = (write - rates.cache_read) / rates.cache_read if rates is not None and rates.cache_read else Decimal(0)
        kept = min(KEPT, limit // KEPT_PART)
        step = max(kept, isqrt(max(0, int(2 * kept * (self._log - self._head) // self._count * rewrite))))
        return min(limit, base + kept + (step if is_warm else kept // 4)), base + kept


def _cost(request: Request, prompt: int, read: int) -> Decimal | None:
    """Return the price of the request with another prompt, of which a part is read from the cache."""
    new = prompt - read
    has_cache = bool(request.cache_read or request.cache_write or request.cache_write_1h)
    alone = replace(request, cost=None)
    emptied = replace(alone, input_tokens=0, cache_write=0, cache_write_1h=0, cache_read=read if has_cache else 0)
    listed, other = cost_of(alone), cost_of(with_new(emptied, kind_of_new(request), new if has_cache else prompt))
    stated = cost_of(request)
    if listed is None or other is None or stated is None:
        return stated
    return other if request.cost is None or not listed else stated * other / listed
