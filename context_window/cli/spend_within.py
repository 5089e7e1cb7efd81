"""`context-window spend --what-if`: one more column, and what it says in all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from session.transcripts.reported_requests import Request

    from ..spend import SpendRow


@dataclass(frozen=True, slots=True)
class Within:
    """What the rows would have cost within a window.

    Attributes:
        head: The head of a column.
        costs: US dollars by the names of the rows.
        note: What it says in all.
    """

    head: str
    costs: Mapping[str, Decimal]
    note: str


def within_window(
    window: int | Literal["auto"], grouping: str, requests: Sequence[Request], rows: Sequence[SpendRow], zone: tzinfo | None
) -> Within:
    """Return what the rows would have cost within a window.

    Args:
        window: Tokens that a prompt may have, or `auto`.
        grouping: What a row sums up.
        requests: The requests.
        rows: The rows; the last one may sum up others.
        zone: The time zone of days. Default: the machine's.
    """
    from ..spend import spend_by
    from ..spend.tables import sum_of
    from ..spend.what_if import what_if

    estimate = what_if(requests, window)
    costs = {row.name: row.cost for row in spend_by(grouping, estimate.requests, zone=zone)}
    was, total = sum_of("", requests).cost, sum_of("", estimate.requests).cost
    named = sum((costs[row.name] for row in rows if row.name in costs), Decimal(0))
    others = {row.name: total - named for row in rows if row.name not in costs}
    text = "as the gateway chooses it" if window == "auto" else f"of {window:,} tokens"
    share = f", {abs(total - was) / was:.0%} {'less' if total <= was else 'more'}" if was else ""
    sums = f"${total:,.2f} instead of ${was:,.2f}{share}, with {estimate.trims:,} trim{'' if estimate.trims == 1 else 's'}"
    note = f"Within a window {text}: {sums}, by the sizes of prompts. timeline LOG --why --max-tokens {window} replays one session."
    return Within(f"within {window}", {**costs, **others, "total": total}, note)


def dicts(rows: Sequence[SpendRow], within: Within | None) -> list[dict[str, Any]]:
    """Return rows as JSON values, with what they would have cost within a window if that was asked for."""
    if within is None:
        return [row.to_dict() for row in rows]
    return [row.to_dict() | {"within_usd": f"{within.costs[row.name]:f}"} for row in rows]
