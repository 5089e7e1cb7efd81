"""The pace of blocks that are going on: tokens and dollars an hour, and what a block comes to at its end if it goes on so."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, NamedTuple

from session.transcripts.reported_requests import Request

from .blocks import HOUR, LENGTH, block_starts
from .tables import SpendRow, sum_of

SHORTEST = 300
"""Seconds since a block's first request from which on its pace says something."""


class BlockPace(NamedTuple):
    """A block that is going on, and its pace since its first request.

    Attributes:
        begins: Unix seconds of its beginning.
        first: Unix seconds of its first request.
        now: Unix seconds at which it was measured.
        row: Its sums so far, named by the tool.
    """

    begins: float
    first: float
    now: float
    row: SpendRow

    @property
    def ends(self) -> float:
        """Unix seconds of its end."""
        return self.begins + LENGTH

    @property
    def tokens_per_hour(self) -> int:
        """Tokens an hour since the first request."""
        return round(self.row.total * HOUR / (self.now - self.first))

    @property
    def cost_per_hour(self) -> Decimal | None:
        """US dollars an hour since the first request; None if no price is known."""
        cost = self.row.known_cost
        return None if cost is None else cost * HOUR / Decimal(self.now - self.first)

    @property
    def tokens_at_end(self) -> int:
        """Tokens of the block at its end if it goes on so."""
        return self.row.total + round(self.tokens_per_hour * (self.ends - self.now) / HOUR)

    @property
    def cost_at_end(self) -> Decimal | None:
        """US dollars of the block at its end if it goes on so; None if no price is known."""
        cost, rate = self.row.known_cost, self.cost_per_hour
        return None if cost is None or rate is None else cost + rate * Decimal(self.ends - self.now) / HOUR

    def to_dict(self) -> dict[str, Any]:
        """Return the pace as JSON values: times in ISO 8601, US dollars as decimal texts, None if no price is known."""
        dollars = {"cost_usd_per_hour": self.cost_per_hour, "cost_usd_at_end": self.cost_at_end}
        return {
            "tool": self.row.name,
            "begins": datetime.fromtimestamp(self.begins, UTC).isoformat(),
            "ends": datetime.fromtimestamp(self.ends, UTC).isoformat(),
            "tokens_per_hour": self.tokens_per_hour,
            "tokens_at_end": self.tokens_at_end,
            **{name: None if amount is None else f"{amount:.4f}" for name, amount in dollars.items()},
        }


def block_paces(requests: Sequence[Request], now: float) -> Iterator[BlockPace]:
    """Yield the block of each tool that is going on, by the tools' names. One whose first request has just come has no pace yet.

    Args:
        requests: The requests, in any order.
        now: Unix seconds.
    """
    blocks: dict[tuple[str, float], list[Request]] = {}
    for start, request in zip(block_starts(requests), requests, strict=True):
        if start is not None and start <= now < start + LENGTH:
            blocks.setdefault((request.tool, start), []).append(request)
    for (tool, start), inside in sorted(blocks.items()):
        first = min(request.time for request in inside if request.time is not None)
        if now - first >= SHORTEST:
            yield BlockPace(start, first, now, sum_of(tool, inside))
