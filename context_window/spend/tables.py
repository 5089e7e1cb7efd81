"""Filters requests and sums them by one property. The rows of every table add up to the same totals."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta, tzinfo
from decimal import Decimal
from fnmatch import fnmatchcase
from functools import reduce
from typing import Any

from session.transcripts.reported_requests import Request

from ..models.prices import PRICED_ON
from ..models.second_prices import second_list_date
from .blocks import block_names
from .money import Invoice, invoice_of
from .names import last_part, local_time

UNKNOWN = "(unknown)"
MAIN = "(main)"
NAMED = 4
"""Models that a note names."""
AMOUNTS = {
    "input_tokens": "input_tokens",
    "cache_read_tokens": "cache_read",
    "cache_write_tokens": "cache_write",
    "cache_write_1h_tokens": "cache_write_1h",
    "output_tokens": "output_tokens",
    "reasoning_tokens": "reasoning",
}
"""The attributes of a request, and of a row, by their names in JSON and Parquet."""


@dataclass(frozen=True, slots=True)
class SpendRow:
    """The sums of some requests. Amounts are in tokens and in none of the others, except `reasoning`.

    Attributes:
        name: What the requests share, such as the day `2026-03-25`.
        requests: Number of requests.
        input_tokens: Prompt tokens that were neither read from the cache nor written to it.
        cache_read: Prompt tokens read from the cache.
        cache_write: Prompt tokens written to the cache for five minutes, or for a time that the log does not state.
        cache_write_1h: Prompt tokens written to the cache for an hour.
        output_tokens: Tokens of the answers, reasoning included.
        reasoning: Those of them that are reasoning, of the requests whose log tells.
        reasoned: Number of requests whose log tells.
        cost: Price in US dollars of the requests whose price is known.
        unpriced: Number of requests whose price is unknown, in whole or in part.
        disputed: Number of requests for which two price lists differ.
        spread: The sum of those differences in US dollars.
    """

    name: str
    requests: int = 0
    input_tokens: int = 0
    cache_read: int = 0
    cache_write: int = 0
    cache_write_1h: int = 0
    output_tokens: int = 0
    reasoning: int = 0
    reasoned: int = 0
    cost: Decimal = Decimal(0)
    unpriced: int = 0
    disputed: int = 0
    spread: Decimal = Decimal(0)

    @property
    def total(self) -> int:
        """All tokens."""
        return self.input_tokens + self.cache_read + self.cache_write + self.cache_write_1h + self.output_tokens

    @property
    def known_reasoning(self) -> int | None:
        """Reasoning tokens of the requests whose log tells; None if none does."""
        return self.reasoning if self.reasoned or not self.requests else None

    @property
    def known_cost(self) -> Decimal | None:
        """Price in US dollars of the requests whose price is known; None if that is true of none."""
        return None if self.requests == self.unpriced and self.requests and not self.cost else self.cost

    @property
    def marks(self) -> str:
        """Signs of what is uncertain about the price."""
        return marks(self.unpriced, self.disputed)

    def to_dict(self) -> dict[str, Any]:
        """Return the row as JSON values: amounts in tokens, and the price in US dollars as an exact decimal text, or None if unknown."""
        cost = self.known_cost
        return {
            "name": self.name,
            "requests": self.requests,
            **amounts_by_name(self),
            "reasoning_tokens": self.known_reasoning,
            "total_tokens": self.total,
            "cost_usd": None if cost is None else f"{cost:f}",
            "unpriced_requests": self.unpriced,
            "disputed_requests": self.disputed,
            "disputed_usd": f"{self.spread:f}",
        }

    def plus(self, other: SpendRow) -> SpendRow:
        """Return the sum of both rows under this row's name."""
        names = [name for name in self.__dataclass_fields__ if name != "name"]
        return replace(self, **{name: getattr(self, name) + getattr(other, name) for name in names})


def marks(unpriced: int, disputed: int) -> str:
    """Return `+` if prices of requests are unknown, at least in part, and `±` if two price lists differ on some."""
    return f"{'+' if unpriced else ''}{'±' if disputed else ''}"


def amounts_by_name(figures: SpendRow | Request) -> dict[str, int | None]:
    """Return the tokens of a row or a request by their names in JSON; None if they are unknown."""
    return {column: getattr(figures, name) for column, name in AMOUNTS.items()}


def local_day(request: Request, *, zone: tzinfo | None = None) -> date | None:
    """Return the day of a request in a time zone, by default the machine's, or None if its time is unknown."""
    time = local_time(request.time, zone)
    return None if time is None else time.date()


def _week(day: date) -> str:
    return (day - timedelta(days=day.weekday())).isoformat()


DAYS: dict[str, Callable[[date], str]] = {"day": date.isoformat, "week": _week, "month": lambda day: day.isoformat()[:7]}
"""Groupings by time. A week is named by its Monday."""
WORK = {"commit": "(no commit)", "pr": "(no pull request)"}
"""Groupings by what the work went into, and the name of the row for work that went into none."""
PROPERTIES: dict[str, Callable[[Request], str]] = {
    "project": lambda request: request.project or UNKNOWN,
    "model": lambda request: request.model or UNKNOWN,
    "tool": lambda request: request.tool,
    "session": lambda request: request.session or UNKNOWN,
    "agent": lambda request: request.agent or MAIN,
    "branch": lambda request: request.branch or UNKNOWN,
    "commit": lambda request: (request.makeup.commit if request.makeup else "") or WORK["commit"],
    "pr": lambda request: (request.makeup.pull_request if request.makeup else "") or WORK["pr"],
}
BLOCK = "block"
GROUPINGS = (*DAYS, BLOCK, *PROPERTIES)
"""Properties that `spend_by` can sum by."""


PATTERNS = ("project", "model", "tool")
"""Properties of which a filter has a pattern."""


@dataclass(frozen=True, slots=True)
class Filter:
    """Tells which requests are asked for: those that pass all that is set.

    Attributes:
        since: First day. A request without a time passes only if no day is given.
        until: Last day.
        project: The folder: a pattern with `*`, or its last part.
        model: Pattern of the model's name.
        tool: Pattern of the tool's name, such as `claude_code`.
        zone: The time zone of days. Default: the machine's.
    """

    since: date | None = None
    until: date | None = None
    project: str = "*"
    model: str = "*"
    tool: str = "*"
    zone: tzinfo | None = None

    def __call__(self, request: Request) -> bool:
        """True if the request passes."""
        return all(self.fits(name, getattr(request, name)) for name in PATTERNS if getattr(self, name) != "*") and self._is_in_time(request)

    def fits(self, name: str, value: str) -> bool:
        """True if a value of one of `PATTERNS` passes."""
        pattern: str = getattr(self, name)
        return fnmatchcase(value, pattern) or (name == "project" and last_part(value) == pattern)

    def _is_in_time(self, request: Request) -> bool:
        if self.since is None and self.until is None:
            return True
        day = local_day(request, zone=self.zone)
        return day is not None and (self.since or date.min) <= day <= (self.until or date.max)


def choose(requests: Iterable[Request], **filters: Any) -> list[Request]:
    """Return the requests that pass all filters, which are named as the attributes of `Filter`."""
    return list(filter(Filter(**filters), requests))


def spend_by(
    grouping: str, requests: Iterable[Request], *, zone: tzinfo | None = None, invoice: Callable[[Request], Invoice] = invoice_of
) -> list[SpendRow]:
    """Return a row of sums for each value of a property, in the order of their names.

    Args:
        grouping: One of `GROUPINGS`.
        requests: The requests.
        zone: As for `choose`.
        invoice: As for `sum_of`.
    """
    requests = list(requests)
    rows: dict[str, list[Request]] = {}
    for name, request in zip(_names(grouping, requests, zone), requests, strict=True):
        rows.setdefault(name, []).append(request)
    return [sum_of(name, rows[name], invoice) for name in sorted(rows)]


def _names(grouping: str, requests: Sequence[Request], zone: tzinfo | None) -> list[str]:
    if grouping == BLOCK:
        return block_names(requests, zone, UNKNOWN)
    if grouping not in DAYS:
        names = [PROPERTIES[grouping](request) for request in requests]
        return _of_sessions(names, requests) if grouping in WORK else names
    days = (local_day(request, zone=zone) for request in requests)
    return [UNKNOWN if day is None else DAYS[grouping](day) for day in days]


def _of_sessions(names: list[str], requests: Sequence[Request]) -> list[str]:
    """Return the names of what the work went into, those of sub-agents' requests from the next request of the session itself."""
    own: dict[tuple[str, str], list[tuple[float, str]]] = {}
    for name, request in zip(names, requests, strict=True):
        if not request.agent and request.time is not None:
            own.setdefault((request.tool, request.session), []).append((request.time, name))
    for entries in own.values():
        entries.sort()
    for index, request in enumerate(requests):
        if request.agent and names[index] in WORK.values() and (entries := own.get((request.tool, request.session), [])):
            names[index] = entries[min(bisect_left(entries, (request.time or 0.0, "")), len(entries) - 1)][1]
    return names


def sum_of(name: str, requests: Sequence[Request], invoice: Callable[[Request], Invoice] = invoice_of) -> SpendRow:
    """Return the sums of the requests under a name.

    Args:
        name: The name.
        requests: The requests.
        invoice: Returns a request's price. Callers who make several sums of the same requests can work it out once.
    """
    invoices = [invoice(request) for request in requests]
    disputes = [invoice.dispute for invoice in invoices if invoice.dispute is not None]
    return SpendRow(
        name,
        len(requests),
        **{name: sum(getattr(request, name) or 0 for request in requests) for name in AMOUNTS.values()},
        reasoned=sum(request.reasoning is not None for request in requests),
        cost=sum((invoice.cost for invoice in invoices if invoice.cost is not None), Decimal(0)),
        unpriced=sum(invoice.cost is None or bool(invoice.lacking) for invoice in invoices),
        disputed=len(disputes),
        spread=sum(disputes, Decimal(0)),
    )


def price_notes(requests: Sequence[Request]) -> list[str]:
    """Return a sentence for each uncertainty of the requests' prices, with the models that it concerns."""
    unknown, disputed = Counter[str](), Counter[str]()
    for request in requests:
        invoice = invoice_of(request)
        model = request.model or UNKNOWN
        if invoice.cost is None or invoice.lacking:
            unknown[f"{model} ({invoice.lacking})" if invoice.lacking else model] += 1
        elif invoice.other is not None:
            disputed[model] += 1
    notes = []
    if unknown:
        notes.append(f"Sums marked + lack the price of {unknown.total():,} of {len(requests):,} requests: {_named(unknown)}.")
    if disputed:
        lists = f"Two price lists ({', '.join(list_dates())})"
        notes.append(f"{lists} differ on {disputed.total():,} of {len(requests):,} requests, in sums marked ±: {_named(disputed)}.")
    return notes


def list_dates() -> list[str]:
    """Return the day of each price list, the one that decides first."""
    return [f"{PRICED_ON:%Y-%m-%d}", second_list_date()]


def _named(counts: Counter[str]) -> str:
    names = sorted(counts, key=lambda name: (-counts[name], name))
    rest = len(names) - NAMED
    return ", ".join(names[:NAMED]) + (f" and {rest} more" if rest > 0 else "")


def added(name: str, rows: Iterable[SpendRow]) -> SpendRow:
    """Return the sum of rows under a name."""
    return reduce(SpendRow.plus, rows, SpendRow(name))


def leading(rows: Sequence[SpendRow], top: int | None) -> list[SpendRow]:
    """Return the first `top` rows, and one that sums up the rest."""
    if top is None or len(rows) <= top:
        return list(rows)
    return [*rows[:top], added(others(len(rows) - top), rows[top:])]


def others(count: int) -> str:
    """Return the name of a row that sums up others."""
    return "(1 other)" if count == 1 else f"({count:,} others)"
