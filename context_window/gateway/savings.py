"""`Savings`: what requests have cost in US dollars, and the estimates without management and with the client's own compaction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from decimal import Decimal

from session.transcripts.reported_requests import Request

from ..models import describe_model
from ..spend.money import cost_of
from ..spend.new_tokens import kind_of_new, with_new
from .unmanaged import Cost, LeftOut, is_cached, prompt_tokens

COMPACTED, SUMMARY = 10_000, 2_000
"""Tokens that a client's compaction leaves besides the first request's, and those of the summary that it pays for."""
OWN: dict[str, tuple[str, Callable[[int], int]]] = {
    "claude": ("Claude Code", lambda window: min(window, 200_000) - 33_000),
    "codex": ("Codex", lambda window: window * 9 // 10),
}
"""By the beginning of the client's `User-Agent`: its name, and the prompt at which it compacts in a model's window, as seen with both.
Claude Code uses more than 200,000 tokens only of models whose names end in `[1m]`."""


@dataclass(slots=True)
class OwnCompaction:
    """A conversation as its client would have kept it by itself.

    Attributes:
        name: The client's name.
        limit: Tokens of a prompt at which it compacts.
        head: Tokens of its first prompt.
        size: Tokens of the prompt now.
        has_compacted: True once it has compacted.
    """

    name: str
    limit: int
    head: int = 0
    size: int = 0
    has_compacted: bool = False

    def cost(self, request: Request, left_out: LeftOut, earlier: Request | None) -> Decimal | None:
        """Return the cost of a request and of the compaction that would have come before it; None if the price is unknown.

        Args:
            request: The request as the gateway's upstream reported it.
            left_out: What it lacks.
            earlier: The request before it; None without one.
        """
        total = prompt_tokens(request) + left_out.tokens
        before, self.size = self.size, self.size + left_out.appended if self.has_compacted else total
        if self.size <= self.limit and not (left_out.tokens or self.has_compacted):
            self.head = self.head or total
            return cost_of(request)
        self.head, appended = self.head or total, max(0, self.size - before)
        summary: Decimal | None = Decimal(0)
        if self.size > self.limit:
            asked = replace(request, input_tokens=appended, cache_read=self.size - appended, cache_write=0, cache_write_1h=0)
            summary = cost_of(replace(asked, output_tokens=SUMMARY))
            self.size, self.has_compacted = min(self.size, self.head + COMPACTED), True
            appended = self.size - self.head
        elif earlier is not None and not is_cached(earlier, request):
            appended = self.size
        sent = replace(request, input_tokens=0, cache_read=self.size - appended, cache_write=0, cache_write_1h=0)
        own = cost_of(with_new(sent, kind_of_new(request), appended))
        return None if own is None or summary is None else own + summary


def own_compaction(client: str, model: str) -> OwnCompaction | None:
    """Return how a client would have kept a conversation; None if that is not known, or the model's window is not."""
    known = next((own for beginning, own in OWN.items() if client.lower().startswith(beginning)), None)
    window = describe_model(model).window
    return None if known is None or window is None else OwnCompaction(known[0], known[1](window))


@dataclass(slots=True)
class Savings:
    """Totals of all conversations, in US dollars.

    Attributes:
        managed: Cost of the requests whose price is known and that could also have been sent without management.
        unmanaged: The estimate for them without it.
        own: By client, the cost of the same requests with its own compaction, and the gateway's for these.
        trims: Requests in which something was taken out.
        smallest: The smallest sensible budget in tokens, as a conversation goes out unchanged that does not fit; 0 if all fit.
        outgrown: Numbers of the conversations that, as they are now, do not fit the model's window without the gateway.
    """

    managed: Decimal = Decimal(0)
    unmanaged: Decimal = Decimal(0)
    own: dict[str, tuple[Decimal, Decimal]] = field(default_factory=dict)
    trims: int = 0
    smallest: int = 0
    outgrown: set[int] = field(default_factory=set)

    def add(self, cost: Cost, own: tuple[str, Decimal] | None) -> None:
        """Add a request: its cost, and with its client's name what it would have cost with that one's own compaction."""
        if cost.managed is None:
            return
        if cost.unmanaged is not None:
            self.managed += cost.managed
            self.unmanaged += cost.unmanaged
        if own is not None:
            theirs, ours = self.own.get(own[0], (Decimal(0), Decimal(0)))
            self.own[own[0]] = theirs + own[1], ours + cost.managed

    @property
    def warning(self) -> str:
        """What to do before a conversation that has outgrown its window goes on without the gateway; empty if there is none."""
        count = len(self.outgrown)
        subject = "a conversation has" if count == 1 else f"{count:,} conversations have"
        return f"{subject} outgrown the model's window: run /compact behind the gateway before you go on without it" if count else ""

    def text(self) -> str:
        """Return the savings in words; empty if no price is known."""
        if not self.unmanaged:
            return ""
        parts = [f"{_compared(theirs - ours)} than with {name}'s own compaction" for name, (theirs, ours) in self.own.items()]
        against = f" ({'; '.join(parts)})" if parts else ""
        saved, trims = self.unmanaged - self.managed, f"{self.trims:,} trim{'' if self.trims == 1 else 's'}"
        verb = f"saved about {_money(saved)} of" if saved >= 0 else f"cost about {_money(-saved)} more than"
        return f"{verb} {_money(self.unmanaged)}{against}; {trims}"


def _compared(saved: Decimal) -> str:
    return f"{_money(abs(saved))} {'less' if saved >= 0 else 'more'}"


def _money(amount: Decimal) -> str:
    return f"${amount:,.2f}"
