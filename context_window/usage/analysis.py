"""Computes statistics and reports from a session's tracker. Counts nothing itself."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from heapq import nlargest

from session.identity import digested, is_digest
from session.items import FunctionCall, FunctionCallOutput, Item, Message, parts_of_item
from session.parts import Document, Image, Part
from session.session import Session
from session.units import PRIORITY

from ..counting.item_tokens import Measurer
from ..events.item_kinds import describe
from ..settings.budget import Budget
from ..settings.resolved import Settings
from ..settings.shares import Shares
from ..settings.usage_snapshot import UsageFigures, rows_of
from ..trimming.limits import portion
from ..trimming.placeholders import CLEARED, MARK
from ..trimming.plan import Reason
from ..views.tracker import SessionTracker
from .report import (
    CategoryRow,
    LargeItem,
    SessionStats,
    ToolRow,
    UsageReport,
)
from .unlogged import unlogged_tokens

LARGEST = 5
"""Number of largest items in a report."""


def stats_on(census: SessionTracker, budget: Budget) -> SessionStats:
    """Return the statistics of a session, without the provider's count.

    Args:
        census: The session's tracker that trims nothing.
        budget: The budget and the counter.
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
        reported_tokens=census.report_feed.reported,
        settled_tokens=census.report_feed.saved_total,
        provider_tokens=None,
    )


class ReportSums:
    """The sums of a report, kept up to date: an update costs the items that are new or changed, as a fold's does."""

    def __init__(self, measurer: Measurer) -> None:
        """
        Args:
            measurer: Measures images.
        """
        self._measurer = measurer
        self._tokens = array("q")  # by position: tokens of the item in the request, -1 if it is not there
        self._compacted: dict[int, int] = {}  # by position: tokens of an item that a summary replaces
        self._tools: dict[str, tuple[Counter[str], Counter[str], Counter[str]]] = {}  # its sums; by call id, cleared items and extracts
        self._sums: Counter[str] = Counter()

    def update(self, census: SessionTracker) -> None:
        """Take the changes since the last call.

        Args:
            census: The session's tracker that trims nothing: the same at every call. Nobody else takes its fold's changes.
        """
        length, fold = len(self._tokens), census.fold
        for place in sorted(fold.take_changed()):
            if place < length:
                self._add(census.items[place], place, -1)
                self._read(census, place)
                self._add(census.items[place], place, 1)
        for place in range(length, len(fold)):
            self._tokens.append(0)
            self._read(census, place)
            self._add(census.items[place], place, 1)

    def _read(self, census: SessionTracker, place: int) -> None:
        fold = census.fold
        reason = fold.hidden_reason(place)
        self._tokens[place] = fold.tokens(place) if reason is None else -1
        self._compacted.pop(place, None)
        if reason is Reason.COMPACTED:
            self._compacted[place] = self._measurer.measure(census.items[place]).tokens

    def _add(self, item: Item, place: int, sign: int) -> None:
        """Add the item to the sums, or take it out again."""
        sums, tokens = self._sums, self._tokens[place]
        if place in self._compacted:
            sums["compacted tokens"] += sign * self._compacted[place]
        if tokens < 0:
            return
        sums["items"] += sign
        sums["messages"] += sign * isinstance(item, Message)
        if images := self._measurer.image_tokens(item):
            sums["images"] += sign * len(images)
            sums["image tokens"] += sign * sum(images)
        sums["unknown"] += sign * unknown_count(item)
        if is_digest(item):
            self._add_digest(item, tokens, sign)
        if isinstance(item, FunctionCall | FunctionCallOutput):
            tool, cleared, _ = self._tools.setdefault(item.name, (Counter(), Counter(), Counter()))
            tool["items"] += sign
            tool["tokens"] += sign * tokens
            tool["calls"] += sign * isinstance(item, FunctionCall)
            if item.extra.get(MARK) == CLEARED:
                cleared[item.call_id] += sign

    def _add_digest(self, digest: Item, tokens: int, sign: int) -> None:
        """Add a digest to the sums, or take it out again."""
        entries = digested(digest)
        self._sums["extracts"] += sign * len(entries)
        self._sums["extract tokens"] += sign * tokens
        for entry in entries:
            tool, call_id = entry.get("name"), entry.get("call_id")
            if isinstance(tool, str) and isinstance(call_id, str):
                self._tools.setdefault(tool, (Counter(), Counter(), Counter()))[2][call_id] += sign

    def report(
        self, session: Session, census: SessionTracker, figures: UsageFigures, *, budget: Budget, shares: Shares, title: str = ""
    ) -> UsageReport:
        """Return the report on the session or view.

        Args:
            session: The session or view.
            census: As in `update`.
            figures: Its usage figures.
            budget: The budget and the counter.
            shares: The shares of the budget.
            title: The report's title.
        """
        fold, items, sums, rows = census.fold, census.items, self._sums, figures.rows
        largest = nlargest(LARGEST, range(len(self._tokens)), key=self._tokens.__getitem__)
        return UsageReport(
            session_id=session.id,
            title=title,
            rows=tuple(
                CategoryRow(category, tokens, portion(share, budget.tokens), items_of_category)
                for category, tokens, share, items_of_category in zip(PRIORITY, rows.tokens, shares.exact, fold.tally.items, strict=True)
            ),
            overhead=rows.overhead,
            budget=budget.tokens,
            window=budget.window,
            reserve=budget.reserve,
            tools=self._tool_rows(),
            largest=tuple(
                LargeItem(items[place].id, describe(items[place]), PRIORITY[fold.groups.rank[place]], self._tokens[place])
                for place in largest
                if self._tokens[place] >= 0
            ),
            images=sums["images"],
            image_tokens=sums["image tokens"],
            items=sums["items"],
            messages=sums["messages"],
            compacted_items=len(self._compacted),
            compacted_tokens=sums["compacted tokens"],
            extracts=sums["extracts"],
            extract_tokens=sums["extract tokens"],
            counter=budget.counter.name,
            model=budget.model,
            expected_error=budget.expected_error,
            counter_problem=budget.counter_problem,
            reported_tokens=figures.reported,
            settled_tokens=figures.settled,
            provider_tokens=figures.provider,
            unknown=sums["unknown"] if figures.reported is None else self._unknown_since_response(items),
            unlogged=None if figures.reported is not None or figures.settled is not None else unlogged_tokens(session.metadata),
        )

    def _unknown_since_response(self, items: Sequence[Item]) -> int:
        """Return the unknown parts after the last response. The provider's report includes those before it."""
        count = 0
        for place in reversed(range(len(self._tokens))):
            item = items[place]
            if isinstance(item, FunctionCall) or (isinstance(item, Message) and item.role == "assistant"):
                break
            count += unknown_count(item) if self._tokens[place] >= 0 else 0
        return count

    def _tool_rows(self) -> tuple[ToolRow, ...]:
        rows = (
            ToolRow(name, sums["tokens"], sums["calls"], *(sum(count > 0 for count in changed.values()) for changed in (cleared, extracts)))
            for name, (sums, cleared, extracts) in self._tools.items()
            if sums["items"] or any(count > 0 for count in extracts.values())
        )
        return tuple(sorted(rows, key=lambda row: (-row.tokens, row.name)))


def recounted(figures: UsageFigures, before: Settings, after: Settings) -> UsageFigures:
    """Return figures that were counted under one set of settings as they are under another.

    Tokens that the user added to a category or removed from it by hand stay added or removed.

    Args:
        figures: The figures.
        before: The settings under which they were counted.
        after: The settings to count under.
    """
    if figures.contents is None or before.counts_as(after):
        return figures
    session = figures.contents.frozen()
    old, new = (_untrimmed(session, settings) for settings in (before, after))
    rows = zip(figures.tokens, old.fold.tally.tokens, new.fold.tally.tokens, strict=True)
    tokens = tuple(new_count + amount - old_count if amount >= old_count else amount for amount, old_count, new_count in rows)
    return replace(figures, tokens=tokens, overhead=new.fold.overhead, correction=0, reported=None, settled=None, provider=None)


def _untrimmed(session: Session, settings: Settings) -> SessionTracker:
    tracker = SessionTracker(session, settings.limits.boundless(), settings.measurer)
    tracker.update(session)
    return tracker


def unknown_count(item: Item) -> int:
    """Return the number of an item's parts whose size only the provider knows: images and documents behind a URL or a file id."""
    return sum(map(_is_unknown, parts_of_item(item)))


def _is_unknown(part: Part) -> bool:
    if isinstance(part, Document):
        return part.data is None and part.text is None
    return isinstance(part, Image) and (part.width is None or part.height is None)
