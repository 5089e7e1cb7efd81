"""What all sessions have cost, for one screen: by day, by what, and the dearest causes. The sums are those of `tables.py`.

Causes are of requests whose price is known. They overlap in nothing, and together cost at most what the requests did:

1. A request that finds less than half of the prompt before it in the cache has written that anew. What this cost beyond reading it is due
   to a *pause* if the cache's lifetime was over, to a *compaction* if the prompt is smaller by a third, else to *another loss*: an edit of
   what came before, another model, other tools.
2. *Thinking* costs what its tokens cost as output.

If `spend --by cause` has explained at least half of the money before, its causes are shown instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from enum import Enum
from itertools import pairwise

from session.transcripts.reported_requests import Request

from .breaks import SMALLER, cached_prefix, cost_of_break, is_outlived
from .money import Invoice, cost_of, invoice_of, rates_of
from .reasons import UNEXPLAINED, advice_of, reasons_by
from .tables import SpendRow, local_day, spend_by, sum_of
from .what_if import what_if

ALL = "all days"
HALF = 0.5


class Cause(Enum):
    """What made sessions dear: in words, and what it takes to save it."""

    PAUSE = ("pauses in which the cache forgot", "go on sooner; the gateway trims")
    COMPACTION = ("compactions", "the gateway keeps the prefix")
    LOSS = ("other losses of the cache", "timeline LOG --why tells what changed")
    THINKING = ("requests with thinking", "a lower effort")


@dataclass(frozen=True, slots=True)
class CauseRow:
    """One cause.

    Attributes:
        name: The cause, in words.
        advice: What it takes to save it.
        cost: What it cost, in US dollars.
        count: Requests that it befell.
    """

    name: str
    advice: str
    cost: Decimal
    count: int


@dataclass(frozen=True, slots=True)
class Overview:
    """What one screen shows.

    Attributes:
        periods: The sums of today, of the last seven days, of this month and of all days.
        scope: The period that groups and causes are of: this month, or all days if there is no request in it.
        groups: By property, the period's rows, the dearest first.
        causes: The period's causes that something can be done about, the dearest first.
        is_explained: True if they are those of `spend --by cause`.
        saved: US dollars by which the period would have been cheaper behind the gateway, by the sizes of prompts.
    """

    periods: Sequence[SpendRow]
    scope: str
    groups: Mapping[str, Sequence[SpendRow]]
    causes: Sequence[CauseRow]
    is_explained: bool
    saved: Decimal


def overview_of(requests: Iterable[Request], today: date) -> Overview:
    """Return the overview of some requests.

    Args:
        requests: All requests.
        today: The day in the machine's time zone.
    """
    requests = list(requests)
    invoices = {id(request): invoice_of(request) for request in requests}

    def invoice(request: Request) -> Invoice:
        return invoices.get(id(request)) or invoice_of(request)

    dated = [(request, day) for request in requests if (day := local_day(request)) is not None and day <= today]
    starts = {"today": today, "7 days": today - timedelta(days=6), "this month": today.replace(day=1)}
    chosen = {name: [request for request, day in dated if day >= start] for name, start in starts.items()} | {ALL: requests}
    scope = "this month" if chosen["this month"] else ALL
    groups = {
        name: sorted(spend_by(name, chosen[scope], invoice=invoice), key=lambda row: (-row.cost, row.name))
        for name in ("model", "project", "tool")
    }
    periods = {name: sum_of(name, of_period, invoice) for name, of_period in chosen.items()}
    saved = periods[scope].cost - sum_of("", what_if(chosen[scope], "auto").requests, invoice).cost
    reasons = reasons_by("cause", chosen[scope]) if any(request.makeup for request in chosen[scope]) else []
    unexplained = sum((row.share for row in reasons if row.name == UNEXPLAINED), 0.0)
    is_explained = bool(reasons) and unexplained <= HALF
    causes = [CauseRow(row.name, advice, row.cost, row.requests) for row in reasons if (advice := advice_of(row.name)) and row.cost > 0]
    return Overview(
        list(periods.values()), scope, groups, causes if is_explained else causes_of(chosen[scope]), is_explained=is_explained, saved=saved
    )


def causes_of(requests: Sequence[Request]) -> list[CauseRow]:
    """Return the causes of some requests, the dearest first."""
    found: dict[Cause, list[Decimal]] = {}
    for cause, cost in _causes(requests):
        if cost > 0:
            found.setdefault(cause, []).append(cost)
    rows = [CauseRow(*cause.value, sum(costs, Decimal(0)), len(costs)) for cause, costs in found.items()]
    return sorted(rows, key=lambda row: (-row.cost, row.name))


def _causes(requests: Sequence[Request]) -> Iterator[tuple[Cause, Decimal]]:
    conversations: dict[tuple[str, str, str], list[Request]] = {}
    for request in requests:
        if request.time is not None and rates_of(request) is not None:
            conversations.setdefault((request.tool, request.session, request.agent), []).append(request)
            if request.reasoning:
                yield Cause.THINKING, _thinking(request)
    for conversation in conversations.values():
        for before, now in pairwise(sorted(conversation, key=lambda request: request.time or 0)):
            if (rewritten := _rewritten(before, now)) > 0:
                yield _cause_of(before, now), rewritten


def _thinking(request: Request) -> Decimal:
    rates, cost = rates_of(request), cost_of(request)
    return Decimal(0) if rates is None or cost is None else min(cost, min(request.reasoning or 0, request.output_tokens) * rates.output)


def _rewritten(before: Request, now: Request) -> Decimal:
    """Return what it cost to write anew what the request before had in the cache; 0 if it was read."""
    if not cached_prefix(before) or not before.session or 2 * now.cache_read >= before.prompt:
        return Decimal(0)
    beyond = cost_of_break(now, min(before.prompt, now.prompt) - now.cache_read) or Decimal(0)
    return max(Decimal(0), min(beyond, (cost_of(now) or Decimal(0)) - _thinking(now)))


def _cause_of(before: Request, now: Request) -> Cause:
    if is_outlived(before, now):
        return Cause.PAUSE
    return Cause.COMPACTION if now.prompt <= SMALLER * before.prompt else Cause.LOSS
