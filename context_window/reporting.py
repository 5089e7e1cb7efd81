"""The figures of a session that has been folded: its statistics and its report. Counts nothing itself."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from heapq import nlargest

from session.items import FunctionCall, FunctionCallOutput, Item, Message, parts_of_item
from session.parts import Image
from session.units import PRIORITY

from .budget import Budget
from .config import Shares
from .counting.measure import Measurer
from .following import Following
from .ledger import Noted, rows_of
from .trimming.limits import portion
from .trimming.placeholders import CLEARED, MARK
from .trimming.plan import Reason
from .usage import LargeItem, Row, SessionStats, ToolRow, UsageReport, describe

LARGEST = 5
"""Items that a report lists by size."""


def stats_on(census: Following, budget: Budget) -> SessionStats:
    """The figures of a session, as far as they are known here.

    Args:
        census: It, folded without limits.
        budget: What a request may cost.
    """
    fold = census.fold
    rows = rows_of(fold.tally.tokens, fold.overhead, fold.correction)
    return SessionStats(
        total_tokens=fold.total,
        per_category={category.value: tokens for category, tokens in rows.by_category.items()},
        items={category.value: items for category, items in zip(PRIORITY, fold.tally.items, strict=True)},
        message_count=census.message_count,
        item_count=sum(fold.tally.items),
        image_count=fold.tally.images,
        overhead_tokens=rows.overhead,
        budget=budget.tokens,
        available_tokens=budget.tokens - fold.total,
        over_budget=fold.total > budget.tokens,
        counter=budget.counter.name,
        expected_error=budget.expected_error,
        counter_problem=budget.counter_problem,
        reported_tokens=fold.reported,
        settled_tokens=fold.settled,
        provider_tokens=None,
    )


def report_on(
    session_id: str, census: Following, measurer: Measurer, noted: Noted, *, budget: Budget, shares: Shares, title: str = ""
) -> UsageReport:
    """The report on a session or view.

    Args:
        session_id: What is reported on.
        census: It, folded without limits.
        measurer: What counted.
        noted: What is used.
        budget: What the request may cost.
        shares: How the budget is shared.
        title: What to call it.
    """
    fold = census.fold
    rows = noted.rows
    places = [place for place in range(len(fold)) if fold.gone(place) is None]
    costs = [(census.items[place], fold.tokens(place), fold.groups.rank[place]) for place in places]
    pictures = [(image_count(item), sum(measurer.images(item))) for item, _, _ in costs]
    return UsageReport(
        session_id=session_id,
        title=title,
        rows=tuple(
            Row(category, tokens, portion(share, budget.tokens), items)
            for category, tokens, share, items in zip(PRIORITY, rows.tokens, shares.exact, fold.tally.items, strict=True)
        ),
        overhead=rows.overhead,
        budget=budget.tokens,
        window=budget.window,
        reserve=budget.reserve,
        tools=_tool_rows((item, tokens) for item, tokens, _ in costs),
        largest=tuple(
            LargeItem(item.id, describe(item), PRIORITY[rank], tokens)
            for item, tokens, rank in nlargest(LARGEST, costs, key=lambda cost: cost[1])
        ),
        images=sum(count for count, _ in pictures),
        image_tokens=sum(tokens for _, tokens in pictures),
        items=len(costs),
        messages=sum(isinstance(item, Message) for item, _, _ in costs),
        compacted_items=sum(fold.gone(place) is Reason.COMPACTED for place in range(len(fold))),
        counter=budget.counter.name,
        model=budget.model,
        expected_error=budget.expected_error,
        counter_problem=budget.counter_problem,
        reported_tokens=noted.reported,
        settled_tokens=noted.settled,
        provider_tokens=noted.provider,
    )


def _tool_rows(costs: Iterable[tuple[Item, int]]) -> tuple[ToolRow, ...]:
    sums: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    for item, tokens in costs:
        if isinstance(item, FunctionCall | FunctionCallOutput):
            row = sums[item.name]
            row[0] += tokens
            row[1] += isinstance(item, FunctionCall)
            row[2] += isinstance(item, FunctionCallOutput) and item.extra.get(MARK) == CLEARED
    rows = (ToolRow(name, *figures) for name, figures in sums.items())
    return tuple(sorted(rows, key=lambda row: (-row.tokens, row.name)))


def image_count(item: Item) -> int:
    """Image parts of an item."""
    return sum(isinstance(part, Image) for part in parts_of_item(item))
