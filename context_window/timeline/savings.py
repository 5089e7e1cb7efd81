"""Replays a session under a budget: what its requests would have cost if they had been the views of a manager.

1. What the first prompt had beyond the local count is in no log and stays in every prompt. The rest of a reported prompt is smaller in
   proportion to the local counts of the view and of the untrimmed log.
2. Its beginning is read from the cache as far as it equals the view before it, and no further than the real request was read: a pause or
   another model breaks the cache of a view too. After a trim, the line about removed items changes, and only what stands before the items
   can be read.
3. The rest costs what the rest of the real request cost per token. Answers stay the same.

So the model is that of `benchmarks/replay` at the prices of each request. Compactions by the tool stay where they were.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from session.transcripts.reported_requests import Request

from ..decision.view import View
from ..spend.money import cost_of, rates_of
from .build import RequestEvent
from .walk import WindowState


@dataclass(frozen=True, slots=True)
class Savings:
    """The result of a replay.

    Attributes:
        budget: The budget of the views in tokens.
        trims: Number of requests at which a view lost something.
        cost: Price in US dollars of the priced requests as they were.
        managed_cost: Price of the same requests as views.
        prompt_tokens: Their prompt tokens as they were.
        managed_prompt_tokens: Prompt tokens of the views.
        largest: Prompt tokens of the largest view.
    """

    budget: int
    trims: int
    cost: Decimal
    managed_cost: Decimal
    prompt_tokens: int
    managed_prompt_tokens: int
    largest: int

    @property
    def saved(self) -> Decimal:
        """US dollars saved; negative if views would have cost more."""
        return self.cost - self.managed_cost


@dataclass(frozen=True, slots=True)
class ViewWindow:
    """A view when the model was called.

    Attributes:
        counted: Tokens of its request by the local count.
        overhead: Those of them outside its items.
        stable: Tokens of its items before the first that differs from the view before; None if it has only grown.
        is_altered: True if it lacks something that the log has.
    """

    counted: int
    overhead: int
    stable: int | None
    is_altered: bool


class ViewWalk:
    """The views of one session.

    Attributes:
        states: The view at each request.
    """

    def __init__(self) -> None:
        self.states: list[ViewWindow] = []
        self._costs: array[int] = array("q")
        self._removed = 0

    def on_request(self, view: View, _: int) -> None:
        """Keep the figures of the view at a request."""
        common = len(self._costs)
        stable = None
        if self._costs != view.costs[:common]:
            changed = next(at for at in range(common) if self._costs[at] != view.costs[at])
            stable = sum(view.costs[:changed])
        if view.removed != self._removed:
            stable, self._removed = 0, view.removed
        self._costs = view.costs[:]
        self.states.append(ViewWindow(view.counted, view.overhead, stable, len(view.edits) > view.replaced))


def savings_of(events: Sequence[RequestEvent], states: Sequence[WindowState], views: ViewWalk, budget: int) -> Savings:
    """Return the result of a replay.

    Args:
        events: The session's requests.
        states: The untrimmed window at each request.
        views: The views at each request.
        budget: Their budget in tokens.
    """
    priced = [(request, managed, cost) for request, managed in _managed(events, states, views) if (cost := cost_of(request)) is not None]
    return Savings(
        budget,
        trims=sum(view.stable is not None and view.is_altered for view in views.states),
        cost=sum((cost for *_, cost in priced), Decimal(0)),
        managed_cost=sum((_price(request, managed, cost) for request, managed, cost in priced), Decimal(0)),
        prompt_tokens=sum(request.prompt for request, *_ in priced),
        managed_prompt_tokens=sum(managed.prompt for _, managed, _ in priced),
        largest=max((managed.prompt for _, managed, _ in priced), default=0),
    )


def _managed(events: Sequence[RequestEvent], states: Sequence[WindowState], views: ViewWalk) -> Iterator[tuple[Request, Request]]:
    """Yield each request and the one that the view would have been."""
    altered, before, last_state = False, 0, -1
    unlogged: int | None = None
    for event in events:
        request = event.request
        if request is None or not request.prompt:
            continue
        if event.state >= len(views.states):
            yield request, request
            continue
        state, view = states[event.state], views.states[event.state]
        passed = views.states[last_state + 1 : event.state + 1]
        last_state = max(last_state, event.state)
        unlogged = max(0, request.prompt - state.counted) if unlogged is None else unlogged
        altered = altered or view.is_altered
        if not altered:
            before = request.prompt
            yield request, request
            continue
        fixed = unlogged if request.prompt > unlogged else 0
        factor = (request.prompt - fixed) / max(1, state.counted)
        prompt = max(1, min(request.prompt, fixed + round(view.counted * factor)))
        stable = min((passing.stable for passing in passed if passing.stable is not None), default=None)
        cacheable = before if stable is None else fixed + round((view.overhead + stable) * factor)
        yield request, _smaller(request, prompt, min(cacheable, before))
        before = prompt


def _smaller(request: Request, prompt: int, cacheable: int) -> Request:
    """Return the request with this many prompt tokens; at most `cacheable` of them are read from the cache."""
    cache_read = min(request.cache_read, cacheable, prompt)
    rest, real_rest = prompt - cache_read, request.prompt - request.cache_read
    if real_rest <= 0:
        return replace(request, input_tokens=0, cache_read=cache_read, cache_write=rest, cache_write_1h=0)
    cache_write, for_hour = (rest * tokens // real_rest for tokens in (request.cache_write, request.cache_write_1h))
    return replace(
        request, input_tokens=rest - cache_write - for_hour, cache_read=cache_read, cache_write=cache_write, cache_write_1h=for_hour
    )


def _price(request: Request, managed: Request, cost: Decimal) -> Decimal:
    """Return the price of the managed request, in proportion to what the real one cost by its prices."""
    rates, managed_rates = rates_of(request), rates_of(managed)
    if rates is None or managed_rates is None:  # the log states a price and no list has one
        return cost * managed.total / request.total
    listed = rates.price(request)
    return cost * managed_rates.price(managed) / listed if listed else cost
