"""Computes statistics and reports from a session's replay. Counts nothing itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from heapq import nlargest

from session.identity import digested, is_digest
from session.items import FunctionCall, FunctionCallOutput, Item, Message, Reasoning, parts_of_item
from session.parts import Document, Image, Part
from session.session import Session
from session.units import PRIORITY

from ..counting.certainty import interval_of
from ..counting.counter import TokenCounter
from ..counting.overhead import definition_tokens
from ..decision.limits import portion
from ..decision.placeholders import CLEARED, MARK
from ..decision.plan import Reason, ToolDefinition, describe
from ..decision.replay import SessionReplay
from ..decision.view import View
from ..recall import as_shown
from ..settings.budget import Budget
from ..settings.resolved import Settings
from ..settings.shares import Shares
from ..settings.usage_snapshot import UsageFigures, rows_of
from ..tools import Tool
from .report import (
    CategoryRow,
    LargeItem,
    SessionStats,
    ToolRow,
    UsageReport,
)
from .stated import stated_usage
from .unlogged import unlogged_tokens

LARGEST = 5
"""Number of largest items in a report."""


def stats_on(census: SessionReplay, budget: Budget) -> SessionStats:
    """Return the statistics of a session, without the provider's count."""
    view, feed = census.decided, census.feed
    rows, total = rows_of(view.tokens, view.overhead, view.correction), view.total
    return SessionStats(
        total_tokens=total,
        per_category={category.value: tokens for category, tokens in rows.by_category.items()},
        items={category.value: items for category, items in zip(PRIORITY, view.items, strict=True)},
        message_count=sum(isinstance(item, Message) for item in census.items),
        item_count=sum(view.items),
        image_count=view.images,
        overhead_tokens=rows.overhead,
        budget=budget.tokens,
        available_tokens=budget.tokens - total,
        over_budget=total > budget.tokens,
        counter=budget.counter.name,
        expected_error=budget.expected_error,
        counter_problem=budget.counter_problem,
        reported_tokens=feed.reported,
        settled_tokens=feed.saved_total,
        provider_tokens=None,
    )


def report_on(
    session: Session, census: SessionReplay, figures: UsageFigures, settings: Settings, shares: Shares, title: str = ""
) -> UsageReport:
    """Return the report on a session or view."""
    view, rows, budget = census.decided, figures.rows, settings.budget
    items, sent = census.items, view.visible()
    images = [tokens for at in sent for tokens in settings.measurer.image_tokens(items[at])]
    compacted = [at for at, edit in view.edits.items() if edit.gone is Reason.COMPACTED]
    digests = [at for at in sent if is_digest(items[at])]
    sent_costs = [(items[at], view.costs[at]) for at in sent]
    total = sum(rows.tokens) + rows.overhead
    overhead = settings.overhead
    deferred = sum(tokens for _, tokens in overhead.deferred)
    interval = interval_of(total, sent_costs, overhead.tools, budget.counter, budget.expected_error, deferred)
    least, most = interval or (None, None)
    return UsageReport(
        session_id=session.id,
        title=title,
        rows=tuple(
            CategoryRow(category, tokens, portion(share, budget.tokens), items_of_category)
            for category, tokens, share, items_of_category in zip(PRIORITY, rows.tokens, shares.exact, view.items, strict=True)
        ),
        overhead=rows.overhead,
        budget=budget.tokens,
        window=budget.window,
        reserve=budget.reserve,
        tools=_tool_rows(view, [items[at] for at in digests]),
        thinking_tokens=sum(view.costs[at] for at in sent if isinstance(items[at], Reasoning)),
        tools_overhead=settings.overhead.tools,
        definitions=definitions_of(view.log.items, settings.budget.counter, settings.tools),
        largest=tuple(
            LargeItem(items[at].id, describe(items[at]), PRIORITY[view.log.groups.rank[at]], view.costs[at])
            for at in nlargest(LARGEST, sent, key=view.costs.__getitem__)
        ),
        images=len(images),
        image_tokens=sum(images),
        items=len(sent),
        messages=sum(isinstance(items[at], Message) for at in sent),
        compacted_items=len(compacted),
        compacted_tokens=sum(settings.measurer.measure(items[at]).tokens for at in compacted),
        extracts=sum(len(digested(items[at])) for at in digests),
        extract_tokens=sum(view.costs[at] for at in digests),
        counter=budget.counter.name,
        model=budget.model,
        expected_error=budget.expected_error,
        least=least,
        most=most,
        counter_problem=budget.counter_problem,
        reported_tokens=figures.reported,
        settled_tokens=figures.settled,
        provider_tokens=figures.provider,
        unknown=sum(map(unknown_count, _items_since_response(view) if figures.reported is not None else map(items.__getitem__, sent))),
        unlogged=None if figures.reported is not None or figures.settled is not None else unlogged_tokens(session.metadata),
        stated=stated_usage(view.log.items, lambda item: settings.measurer.measure(item).tokens),
    )


def definitions_of(items: Sequence[Item], counter: TokenCounter, tools: Iterable[Tool]) -> tuple[ToolDefinition, ...]:
    """Return the tools' definitions, the largest first, with the number of their calls among the items.

    Raises:
        ToolsError: A tool cannot be written as a definition.
    """
    calls = Counter(item.name for item in items if isinstance(item, FunctionCall))
    rows = (
        ToolDefinition(name, tokens, sum(calls[each] for each in name.split(", "))) for name, tokens in definition_tokens(counter, tools)
    )
    return tuple(sorted(rows, key=lambda row: (-row.tokens, row.name)))


def _items_since_response(view: View) -> list[Item]:
    """Return the items of the view after the last response. The provider's report includes unknown parts before it."""
    items = view.log.items
    answers = [
        at for at, item in enumerate(items) if isinstance(item, FunctionCall) or (isinstance(item, Message) and item.role == "assistant")
    ]
    return [items[at] for at in view.visible(range(answers[-1] + 1 if answers else 0, len(view)))]


def _tool_rows(view: View, digests: Sequence[Item]) -> tuple[ToolRow, ...]:
    """Return a row per tool, the dearest first: its tokens and calls, and how many of its calls were cleared, or have an extract."""
    tokens, calls = Counter[str](), Counter[str]()
    cleared: dict[str, set[str]] = {}
    extracts: dict[str, set[str]] = {}
    for at in view.visible():
        item = view.log.items[at]
        if isinstance(item, FunctionCall | FunctionCallOutput):
            tokens[item.name] += view.costs[at]
            calls[item.name] += isinstance(item, FunctionCall)
            if item.extra.get(MARK) == CLEARED:
                cleared.setdefault(item.name, set()).add(item.call_id)
    for entry in (entry for digest in digests for entry in digested(digest)):
        tool, call_id = entry.get("name"), entry.get("call_id")
        if isinstance(tool, str) and isinstance(call_id, str):
            extracts.setdefault(tool, set()).add(call_id)
    names = dict.fromkeys((*tokens, *extracts))
    rows = (ToolRow(name, tokens[name], calls[name], *(len(changed.get(name, ())) for changed in (cleared, extracts))) for name in names)
    return tuple(sorted(rows, key=lambda row: (-row.tokens, row.name)))


def recounted(figures: UsageFigures, before: Settings, after: Settings) -> UsageFigures:
    """Return figures that were counted under one set of settings as they are under another.

    Tokens that the user added to a category or removed from it by hand stay added or removed.
    """
    if figures.contents is None or before.counts_as(after):
        return figures
    session = figures.contents.frozen()
    old, new = (_untrimmed(session, settings) for settings in (before, after))
    rows = zip(figures.tokens, old.decided.tokens, new.decided.tokens, strict=True)
    tokens = tuple(new_count + amount - old_count if amount >= old_count else amount for amount, old_count, new_count in rows)
    return replace(figures, tokens=tokens, overhead=new.decided.overhead, correction=0, reported=None, settled=None, provider=None)


def _untrimmed(session: Session, settings: Settings) -> SessionReplay:
    replay = SessionReplay(session, settings.limits.boundless(), settings.measurer, shown_as=as_shown)
    replay.update(session)
    return replay


def unknown_count(item: Item) -> int:
    """Return the number of an item's parts whose size only the provider knows: images and documents behind a URL or a file id."""
    return sum(map(_is_unknown, parts_of_item(item)))


def _is_unknown(part: Part) -> bool:
    if isinstance(part, Document):
        return part.data is None and part.text is None
    return isinstance(part, Image) and (part.width is None or part.height is None)
