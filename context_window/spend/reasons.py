"""Divides the money of requests among its reasons: what was lost from the cache, thinking, answers, and what prompts were made of.

1. Each request's price is divided in full. Its reasons come from `Request.makeup`, which `timeline/makeup.py` works out.
2. Tokens that the cache had lost are charged to their item at the price of reading them; the rest of their price is the loss's.
3. Definitions of tools that the session never calls are a part like an item, at the start of the prompt, where a log states them.
4. What is left, the system prompt, other tool definitions and framing, gets what the other reasons do not have, so that sums are exact.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple

from session.transcripts.reported_requests import Request

from .money import SEARCHES, cost_of, invoice_of, rates_of
from .tables import others

READ, READ_AGAIN, SHELL, MCP, SKILL, OTHER = "files read", "files read again", "shell commands", "MCP tools", "skills", "other tools"
MESSAGES, REASONING, SUMMARIES, CONTEXT, INSTRUCTIONS = (
    "messages",
    "earlier thinking",
    "summaries",
    "project context",
    "logged instructions",
)
LOST, THINKING, ANSWERS, SEARCHED = "cache lost", "thinking", "answers", "web searches"
OUTSIDE, UNUSED, UNEXPLAINED = "system prompt and tools", "tool definitions never called", "not explained"
ADVICE = {
    f"{LOST}: a pause": "go on sooner, or compact before; the gateway trims",
    f"{LOST}: a compaction": "compact less often; the gateway keeps what the cache holds",
    f"{LOST}: another model": "change the model in a new session",
    f"{LOST}: another system prompt or other tools": "change MCP servers and settings before a session",
    f"{LOST}: edited history": "the gateway trims rarely, and much at once",
    f"{LOST}: the start of the prompt changed": "a system prompt without the time, the same tools throughout",
    f"{LOST}: earlier messages changed": "resume less often; let nothing edit what was sent",
    f"{LOST}: requests at the same time": "let the first answer begin before sending others like it",
    f"{LOST}: the provider's cache missed": "nothing but a prompt cache key, where the provider takes one",
    READ_AGAIN: "tell it what it has read; recall with the gateway",
    READ: "read parts; a new session for a new task",
    SHELL: "quieter flags, `| tail`; the gateway shortens them",
    MCP: "fewer servers; tool rules clear their outputs first",
    THINKING: "a lower effort",
    REASONING: "a lower effort",
    OUTSIDE: "fewer MCP servers, a shorter CLAUDE.md",
    UNUSED: "deny the assistant the tools that it does not need",
    MESSAGES: "a new session for a new task",
}
"""By cause: what it takes to save it. `advice_of` knows also those that name an MCP server."""
REST = {"call": "(all but tools)", "server": "(all but MCP servers)", "command": "(all but shell commands)", "skill": "(all but skills)"}
"""By grouping: the name of the row for all money that is not for one."""
REASON_GROUPINGS = ("cause", *REST)
"""What `reasons_by` can sum by."""


class Charge(NamedTuple):
    """A part of a request's price.

    Attributes:
        kind: The reason.
        call: The tool that was called; empty if none was.
        detail: The command, the skill, the MCP server, or why the cache was lost; empty for other kinds.
        cost: US dollars.
    """

    kind: str
    call: str
    detail: str
    cost: Decimal


@dataclass(frozen=True, slots=True)
class ReasonRow:
    """The money of one reason.

    Attributes:
        name: The reason, such as a tool or a command.
        requests: Requests that have paid for it.
        cost: US dollars.
        share: Its part of the money of all reasons, from 0 to 1.
        unpriced: Requests of them whose price is known only in part.
        disputed: Requests of them for which two price lists differ.
    """

    name: str
    requests: int
    cost: Decimal
    share: float
    unpriced: int = 0
    disputed: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return the row as JSON values. The price is an exact decimal text in US dollars."""
        uncertain = {"unpriced_requests": self.unpriced, "disputed_requests": self.disputed}
        return {"name": self.name, "requests": self.requests, "cost_usd": f"{self.cost:f}", "share": round(self.share, 4), **uncertain}


def advice_of(cause: str) -> str | None:
    """Return what it takes to save some of what a cause costs; None if nothing is known."""
    return ADVICE.get(cause) or ("turn the server off where no tool of it is needed" if cause.startswith(f"{UNUSED}: ") else None)


def charges_of(request: Request) -> Iterator[Charge]:
    """Yield the parts of a request's price. They add up to it; none if it is unknown."""
    cost, rates, makeup = cost_of(request), rates_of(request), request.makeup
    if cost is None:
        return
    searches = Decimal(0) if request.cost else min(cost, request.searches * SEARCHES / 1_000)
    listed = None if rates is None else rates.price(request)
    if rates is None or not listed or makeup is None:
        yield Charge(UNEXPLAINED, "", "", cost)
        return
    scale, read = (cost - searches) / listed, rates.cache_read
    uncached = request.prompt - request.cache_read
    paid = (listed - request.cache_read * read - request.output_tokens * rates.output) / uncached if uncached else read
    thinking = min(request.reasoning or 0, request.output_tokens)
    charges = [
        Charge(SEARCHED, "", "", searches),
        Charge(THINKING, "", "", thinking * rates.output * scale),
        Charge(ANSWERS, "", "", (request.output_tokens - thinking) * rates.output * scale),
        Charge(LOST, "", makeup.cause, makeup.lost * max(Decimal(0), paid - read) * scale),
    ]
    for part in makeup.parts:
        price = (part.read * read + part.lost * min(read, paid) + part.paid * paid) * scale
        charges.append(Charge(part.kind, part.call, part.detail, price))
    yield Charge(OUTSIDE, "", "", cost - sum((charge.cost for charge in charges), Decimal(0)))
    yield from (charge for charge in charges if charge.cost)


def reasons_by(grouping: str, requests: Iterable[Request]) -> list[ReasonRow]:
    """Return a row for each reason, the dearest first. Their money adds up to that of the requests.

    Args:
        grouping: One of `REASON_GROUPINGS`.
        requests: The requests.
    """
    costs: dict[str, Decimal] = {}
    payers, unpriced, disputed = Counter[str](), Counter[str](), Counter[str]()
    for request in requests:
        names, invoice = set(), invoice_of(request)
        for charge in charges_of(request):
            name = _name(grouping, charge)
            costs[name] = costs.get(name, Decimal(0)) + charge.cost
            names.add(name)
        payers.update(names)
        unpriced.update(names if invoice.lacking else ())
        disputed.update(names if invoice.dispute is not None else ())
    total = sum(costs.values(), Decimal(0))
    rows = (
        ReasonRow(name, payers[name], cost, float(cost / total) if total else 0.0, unpriced[name], disputed[name])
        for name, cost in costs.items()
    )
    return sorted(rows, key=lambda row: (-row.cost, row.name))


def leading_reasons(rows: Sequence[ReasonRow], top: int | None) -> list[ReasonRow]:
    """Return the first `top` rows, and one that sums up the rest. Its requests are at least those of its dearest row."""
    if top is None or len(rows) <= top:
        return list(rows)
    rest = rows[top:]
    cost, share = sum((row.cost for row in rest), Decimal(0)), sum(row.share for row in rest)
    counts = (max(getattr(row, name) for row in rest) for name in ("requests", "unpriced", "disputed"))
    requests, unpriced, disputed = counts
    return [*rows[:top], ReasonRow(others(len(rest)), requests, cost, share, unpriced, disputed)]


def _name(grouping: str, charge: Charge) -> str:
    match grouping:
        case "cause":
            detail = {LOST: charge.detail, UNUSED: charge.detail and f"MCP server {charge.detail}"}.get(charge.kind)
            return f"{charge.kind}: {detail}" if detail else charge.kind
        case "call":
            name = charge.call
        case "server":
            name = charge.detail if charge.kind in (MCP, UNUSED) else ""
        case "command":
            name = charge.detail if charge.kind == SHELL else ""
        case _:
            name = charge.detail if charge.kind == SKILL else ""
    return name or REST[grouping]
