"""The values of a timeline: points, markers, sums. Computes only what follows from its own fields."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any

from session.items import MessageCategory
from session.transcripts.reported_requests import Request
from session.units import PRIORITY

from ..spend.money import Invoice, invoice_of
from ..spend.tables import SpendRow, amounts_by_name, sum_of


class MarkerKind(StrEnum):
    """An event between two requests.

    Attributes:
        COMPACTION: A summary took the place of earlier items.
        TRIM: The prompt lost items without a summary.
        CACHE_BREAK: The provider read less from its cache than the request before had left there.
    """

    COMPACTION = "compaction"
    TRIM = "trim"
    CACHE_BREAK = "cache break"


@dataclass(frozen=True, slots=True)
class Marker:
    """An event just before a request.

    Attributes:
        kind: The event.
        tokens: Tokens that left the prompt or, of a cache break, tokens that were in the cache and were paid for again.
        cause: The reason in words; empty where the kind says it all.
        cost: Price of a cache break in US dollars: what these tokens cost more than cache reads. None if unknown, or for other kinds.
    """

    kind: MarkerKind
    tokens: int
    cause: str = ""
    cost: Decimal | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the marker as JSON values. Prices are exact decimal texts."""
        return {"kind": self.kind.value, "tokens": self.tokens, "cause": self.cause, "cost_usd": dollars(self.cost)}


@dataclass(frozen=True, slots=True)
class Point:
    """The window at one request. Amounts are tokens.

    Attributes:
        number: 1 for the first request. The last point has the number of the request that would come next.
        length: Number of the log's items before the response.
        tokens: Tokens by rank of the category, as in a usage report.
        overhead: Tokens of the request outside its items.
        unlogged: Those of the overhead that the provider reported and nothing in the log accounts for.
        is_reported: True if the total is the prompt that the provider reported; False if it is a local count or an upper bound.
        is_in_log: False if the log has no response to this request: it broke off, or belongs to a branch that was left.
        is_next: True for the last point: the request that would come next.
        time: Unix seconds of the response; None if unknown.
        request: The report; None without one.
        cost: Price of the request in US dollars; None if unknown.
        added: The largest item that is new since the point before, in words without content; empty if there is none.
        added_tokens: Its tokens.
        markers: Events just before the request.
        new_items: The largest items that are new since the point before: the position in the log and the tokens of each, the largest first.
    """

    number: int
    length: int
    tokens: tuple[int, ...]
    overhead: int
    unlogged: int = 0
    is_reported: bool = False
    is_in_log: bool = True
    is_next: bool = False
    time: float | None = None
    request: Request | None = None
    cost: Decimal | None = None
    added: str = ""
    added_tokens: int = 0
    markers: tuple[Marker, ...] = ()
    new_items: tuple[tuple[int, int], ...] = ()

    @property
    def total(self) -> int:
        """Tokens of the prompt: all categories and the overhead."""
        return sum(self.tokens) + self.overhead

    @property
    def by_category(self) -> dict[MessageCategory, int]:
        """The tokens by category, in falling priority."""
        return dict(zip(PRIORITY, self.tokens, strict=True))

    def to_dict(self) -> dict[str, Any]:
        """Return the point as JSON values. `categories` and `overhead` sum to `total`. `disputed_usd` is by how much two price lists
        differ, and `lacking` what `cost_usd` has no price for.
        """
        invoice = Invoice(None) if self.request is None else invoice_of(self.request)
        return {
            "number": self.number,
            "is_next": self.is_next,
            "time": None if self.time is None else instant(self.time),
            "length": self.length,
            "total": self.total,
            "categories": {category.value: tokens for category, tokens in self.by_category.items()},
            "overhead": self.overhead,
            "unlogged": self.unlogged,
            "is_reported": self.is_reported,
            "is_in_log": self.is_in_log,
            "reported": None if self.request is None else reported_figures(self.request),
            "cost_usd": dollars(self.cost),
            "disputed_usd": dollars(invoice.dispute),
            "lacking": invoice.lacking or None,
            "added": {"what": self.added, "tokens": self.added_tokens} if self.added else None,
            "markers": [marker.to_dict() for marker in self.markers],
        }


@dataclass(frozen=True, slots=True)
class Timeline:
    """The requests of one session.

    Attributes:
        session_id: The session's id.
        points: The requests in order. The last point is the request that would come next.
        elsewhere: Requests that the same log reports and that are no request of this session: those of sub-agents and other sessions, and
            sums that a log has in place of requests.
        budget: Tokens that a request may cost.
        window: The model's context window in tokens; None if unknown.
        model: The model's name; None if unknown.
        counter: The token counter's name.
    """

    session_id: str
    points: tuple[Point, ...]
    elsewhere: tuple[Request, ...]
    budget: int
    window: int | None
    model: str | None
    counter: str

    @property
    def requests(self) -> tuple[Request, ...]:
        """The reports of the session's requests."""
        return tuple(point.request for point in self.points if point.request is not None)

    @property
    def is_reported(self) -> bool:
        """True if the log reports the session's requests; False if all figures are counted."""
        return any(point.is_reported for point in self.points)

    @property
    def spent(self) -> SpendRow:
        """The sums of the session's requests."""
        return sum_of("this session", self.requests)

    @property
    def spent_elsewhere(self) -> SpendRow:
        """The sums of the log's other requests."""
        return sum_of("elsewhere", self.elsewhere)

    @property
    def spent_in_log(self) -> SpendRow:
        """The sums of all requests in the log: what `spend` says of it."""
        return sum_of("total", (*self.requests, *self.elsewhere))

    def to_dict(self) -> dict[str, Any]:
        """Return the timeline as JSON values."""
        return {
            "session_id": self.session_id,
            "model": self.model,
            "budget": self.budget,
            "window": self.window,
            "counter": self.counter,
            "is_reported": self.is_reported,
            "spent": self.spent.to_dict(),
            "spent_elsewhere": self.spent_elsewhere.to_dict(),
            "spent_in_log": self.spent_in_log.to_dict(),
            "points": [point.to_dict() for point in self.points],
        }

    def _repr_html_(self) -> str:
        from ..display.render import html_of
        from ..display.timeline import timeline_draw

        return html_of(timeline_draw(self, self.session_id))


def reported_figures(request: Request) -> dict[str, Any]:
    """Return a report as JSON values."""
    return {"model": request.model, **amounts_by_name(request)}


def dollars(cost: Decimal | None) -> str | None:
    """Return a price as an exact decimal text; None if unknown."""
    return None if cost is None else f"{cost:f}"


def instant(time: float) -> str | None:
    """Return Unix seconds as ISO 8601 in UTC; None if no calendar has them."""
    try:
        return datetime.fromtimestamp(time, UTC).isoformat()
    except (OverflowError, ValueError, OSError):
        return None
