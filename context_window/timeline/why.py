"""Explains what a session's money bought: by category, tool and item, cache breaks, files read again, and what views would have saved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from heapq import nlargest
from typing import Any

from session.items import FunctionCall, FunctionCallOutput, Item
from session.session import Session
from session.transcripts.reported_requests import Request
from session.units import PRIORITY

from ..spend.money import Rates, cost_of, rates_of
from .build import RequestEvent
from .lifetimes import Lifetimes
from .points import MarkerKind, Timeline, dollars
from .reasons import subjects_of
from .rereads import Reread, rereads_of
from .savings import Savings
from .walk import WindowState, WindowWalk

LARGEST = 8
"""Items in the list of the most expensive ones."""
OVERHEAD, ANSWERS, UNEXPLAINED = "overhead", "answers", "not explained"
"""Parts of the money besides the categories: prompt tokens outside the items, tokens of answers, and prices that no price list explains."""
EXACT = Decimal("1e-12")
"""US dollars: parts are rounded to this, so that sums are exact."""


@dataclass(frozen=True, slots=True)
class ToolCost:
    """The lifetime cost of one tool's calls and outputs in prompts.

    Attributes:
        name: The tool.
        calls: Number of calls.
        tokens: Tokens of calls and outputs, each counted once.
        cost: US dollars.
    """

    name: str
    calls: int
    tokens: int
    cost: Decimal


@dataclass(frozen=True, slots=True)
class ItemCost:
    """The lifetime cost of one item in prompts.

    Attributes:
        item_id: The item's id.
        what: What it is, and the file or the command that it is about.
        category: The name of its category.
        tokens: Its tokens.
        requests: Number of requests that it was in.
        cost: US dollars.
    """

    item_id: str
    what: str
    category: str
    tokens: int
    requests: int
    cost: Decimal


@dataclass(frozen=True, slots=True)
class Why:
    """The reasons for a session's cost. Money is in US dollars.

    Attributes:
        timeline: The session's requests.
        parts: Money by category, and of `OVERHEAD`, `ANSWERS` and `UNEXPLAINED`. They sum to the price of the session's requests.
        tools: The tools, the most expensive first.
        items: The most expensive items.
        rereads: Files read more than once, the most expensive first.
        savings: The result of a replay under the budget.
    """

    timeline: Timeline
    parts: dict[str, Decimal]
    tools: tuple[ToolCost, ...]
    items: tuple[ItemCost, ...]
    rereads: tuple[Reread, ...]
    savings: Savings

    @property
    def breaks(self) -> dict[str, tuple[int, int, Decimal]]:
        """The cache breaks by cause: their number, tokens that were paid for again, and what that cost as far as it is known."""
        breaks: dict[str, tuple[int, int, Decimal]] = {}
        for point in self.timeline.points:
            for marker in point.markers:
                if marker.kind is MarkerKind.CACHE_BREAK:
                    cause = "a pause" if marker.cause.startswith("a pause") else marker.cause
                    count, tokens, cost = breaks.get(cause, (0, 0, Decimal(0)))
                    breaks[cause] = count + 1, tokens + marker.tokens, cost + (marker.cost or 0)
        return breaks

    def to_dict(self) -> dict[str, Any]:
        """Return the reasons as JSON values, without the timeline. Prices are exact decimal texts."""
        savings = self.savings
        return {
            "parts": {name: dollars(cost) for name, cost in self.parts.items()},
            "tools": [{"name": row.name, "calls": row.calls, "tokens": row.tokens, "cost_usd": dollars(row.cost)} for row in self.tools],
            "items": [
                {
                    "id": row.item_id,
                    "what": row.what,
                    "category": row.category,
                    "tokens": row.tokens,
                    "requests": row.requests,
                    "cost_usd": dollars(row.cost),
                }
                for row in self.items
            ],
            "cache_breaks": [
                {"cause": cause, "breaks": count, "tokens": tokens, "cost_usd": dollars(cost)}
                for cause, (count, tokens, cost) in self.breaks.items()
            ],
            "rereads": [
                {"path": row.path, "reads": row.reads, "same": row.same, "tokens": row.tokens, "cost_usd": dollars(money_of(row.cost))}
                for row in self.rereads
            ],
            "managed": {
                "budget": savings.budget,
                "trims": savings.trims,
                "cost_usd": dollars(savings.cost),
                "managed_cost_usd": dollars(savings.managed_cost),
                "saved_usd": dollars(savings.saved),
                "prompt_tokens": savings.prompt_tokens,
                "managed_prompt_tokens": savings.managed_prompt_tokens,
                "largest_prompt": savings.largest,
            },
        }

    def _repr_html_(self) -> str:
        from ..display.render import html_of
        from ..display.why import why_draw

        return html_of(why_draw(self, self.timeline.session_id))


def why_of(session: Session, timeline: Timeline, walk: WindowWalk, events: Sequence[RequestEvent], savings: Savings) -> Why:
    """Return the reasons for the session's cost.

    Args:
        session: The session.
        timeline: Its timeline.
        walk: The walk over it, at its end.
        events: Its requests.
        savings: The result of a replay.
    """
    lifetimes, outside = lifetimes_of(walk, events)
    items, tokens, costs = session.items, walk.tokens, lifetimes.costs
    subjects = subjects_of(items)
    parts = {
        category.value: money_of(sum(cost for cost, r in zip(costs, walk.ranks, strict=True) if r == rank))
        for rank, category in enumerate(PRIORITY)
    }
    parts |= {name: money_of(cost) for name, cost in outside.items()}
    rest = timeline.spent.cost - sum(parts.values(), Decimal(0))
    if abs(rest) < EXACT * 1000:  # what rounding has left
        largest = max(parts, key=lambda name: parts[name])
        parts[largest] += rest
        rest = Decimal(0)
    return Why(
        timeline,
        parts | {UNEXPLAINED: rest},
        _tools(items, tokens, costs),
        tuple(
            ItemCost(
                items[position].id,
                subjects[position],
                PRIORITY[walk.ranks[position]].value,
                tokens[position],
                lifetimes.requests[position],
                money_of(costs[position]),
            )
            for position in nlargest(LARGEST, range(len(costs)), key=costs.__getitem__)
            if costs[position] > 0
        ),
        tuple(rereads_of(items, tokens, costs)),
        savings,
    )


def lifetimes_of(walk: WindowWalk, events: Sequence[RequestEvent]) -> tuple[Lifetimes, dict[str, float]]:
    """Return the costs of the items, and the money that was spent on overhead and answers."""
    assert walk.final is not None
    lifetimes, states = Lifetimes(len(walk.tokens)), [*walk.states, walk.final]
    outside = {OVERHEAD: 0.0, ANSWERS: 0.0}
    last_state = -1
    for event in events:
        for index in range(last_state + 1, event.state + 1):
            _enter(lifetimes, walk, states[index], states[index - 1].length if index else 0)
        last_state = max(last_state, event.state)
        request = event.request
        cost = None if request is None else cost_of(request)
        rates = None if request is None else rates_of(request)
        if request is None or cost is None or rates is None or not (listed := rates.price(request)):
            continue
        scale = float(cost / listed)
        outside[ANSWERS] += request.output_tokens * float(rates.output) * scale
        outside[OVERHEAD] += _charge(lifetimes, states[event.state], request, rates, scale)
    for position in range(len(walk.tokens)):
        lifetimes.settle(position)
    return lifetimes, outside


def _enter(lifetimes: Lifetimes, walk: WindowWalk, state: WindowState, start: int) -> None:
    for position, tokens in state.changes:
        lifetimes.put(position, max(0, tokens))
    for position in range(start, state.length):
        lifetimes.put(position, walk.tokens[position])


def _charge(lifetimes: Lifetimes, state: WindowState, request: Request, rates: Rates, scale: float) -> float:
    """Charge the items of a request, and return the cost of the rest of its prompt."""
    prompt, items = request.prompt, sum(state.tokens)
    is_scaled = prompt < state.counted
    factor = prompt / state.counted if is_scaled else 1.0
    regions = [
        (request.cache_read, float(rates.cache_read) * scale),
        (request.cache_write_1h, float(rates.cache_write_1h) * scale),
        (request.cache_write, float(rates.cache_write) * scale),
        (request.input_tokens, float(rates.input) * scale),
    ]
    return lifetimes.charge(regions, state.overhead * factor if is_scaled else prompt - items, factor if items else 0.0)


def _tools(items: Sequence[Item], tokens: Sequence[int], costs: Sequence[float]) -> tuple[ToolCost, ...]:
    sums: dict[str, list[float]] = {}
    for position, item in enumerate(items):
        if isinstance(item, FunctionCall | FunctionCallOutput):
            row = sums.setdefault(item.name, [0, 0, 0.0])
            row[0] += isinstance(item, FunctionCall)
            row[1] += tokens[position]
            row[2] += costs[position]
    rows = (ToolCost(name, int(calls), int(size), money_of(cost)) for name, (calls, size, cost) in sums.items())
    return tuple(sorted(rows, key=lambda row: (-row.cost, -row.tokens, row.name)))


def money_of(cost: float) -> Decimal:
    """Return an amount of US dollars as an exact one."""
    return Decimal(cost).quantize(EXACT)
