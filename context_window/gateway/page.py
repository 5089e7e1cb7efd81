"""The gateway's page: the contents of its conversations' windows, the trims, and their cost. Figures only."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from ..events.definitions import Kind
from ..models import describe_model
from ..pages import Chart, ChartMarker, ChartPoint, HtmlPage, document
from ..pages.templates import filled
from .history import REQUESTS, AnsweredRequest, ConversationHistory, History

if TYPE_CHECKING:
    from markupsafe import Markup

FOLDER = Path(__file__).parent
WINDOW_BANDS = ("Outside the messages", "System", "Context", "Dialog", "Tool results")
CACHE_BANDS = ("Read from cache", "Written to cache", "Not cached")
TRIMS = 20
"""Trims that are listed: the newest ones."""


def page_document(history: History, number: int | None) -> HtmlPage:
    """Return the whole page.

    Args:
        history: The figures.
        number: The number of the conversation to show; None for the most recently used one.
    """
    return document("context-window gateway", filled("page.html", FOLDER, main=_main(history, number)), scripts=[_script()], fetches=True)


def page_update(history: History, number: int | None, version: int) -> str | None:
    """Return the part of the page that changes; None if it has not changed.

    Args:
        history: The figures.
        number: As for `page_document`.
        version: The version of the part that the browser has.
    """
    return None if history.version == version else str(_main(history, number))


def _main(history: History, number: int | None) -> Markup:
    version, conversations = history.snapshot()
    chosen = next(
        (conversation for conversation in conversations if conversation.number == number), conversations[0] if conversations else None
    )
    views = [ConversationView(conversation) for conversation in conversations]
    chosen_view = next((view for view in views if view.conversation is chosen), None)
    warnings = [] if history.secrets is None else list(history.secrets.latest)
    smallest = history.savings.smallest
    figures = {"views": views, "shown": chosen_view, "kept": REQUESTS, "smallest": smallest, "warnings": warnings}
    figures["limits"] = history.plans.sentences()
    return filled("conversations.html", FOLDER, version=version, **figures)


class ConversationView:
    """One conversation as the page shows it."""

    def __init__(self, conversation: ConversationHistory) -> None:
        """
        Args:
            conversation: Its figures.
        """
        self.conversation = conversation
        self.newest = conversation.requests[-1]
        self.figures = self.newest.figures
        self.window = self.newest.view_tokens
        self.begun = time.strftime("%H:%M", time.localtime(conversation.begun))

    @property
    def name(self) -> str:
        """Its name: the client, or that it is a sub-agent of it; the model and the time of its first answer."""
        agent = "sub-agent of " if self.conversation.is_subagent else ""
        return f"{agent}{self.conversation.client}, {self.conversation.model}, {self.begun}"

    @property
    def percent(self) -> int:
        """The part of the budget that the newest request takes."""
        return round(100 * self.window / max(1, self.figures.budget))

    @property
    def cached_percent(self) -> int | None:
        """The part of all reported prompts that was read from the cache; None if nothing was reported."""
        conversation = self.conversation
        prompts = conversation.uncached + conversation.cache_read + conversation.cache_write
        return round(100 * conversation.cache_read / prompts) if prompts else None

    @property
    def saved_percent(self) -> int | None:
        """The part of the estimated cost without management that was saved; negative for a loss. None if nothing can be compared."""
        conversation = self.conversation
        if not conversation.unmanaged_cost:
            return None
        return round(100 * (1 - conversation.compared_cost / conversation.unmanaged_cost))

    @property
    def own_saved_percent(self) -> int | None:
        """The part of the estimated cost with the client's own compaction that was saved; negative for a loss. None if it is not known."""
        conversation = self.conversation
        if conversation.own is None or not conversation.own_cost:
            return None
        return round(100 * (1 - conversation.own_compared / conversation.own_cost))

    @property
    def left_out(self) -> str:
        """The items that the newest request lacks or shows shortened, by kind."""
        return _kinds_text(dict(self.figures.kinds)) or "nothing"

    @property
    def model_window(self) -> int | None:
        """Tokens that the model's window has room for in a prompt; None if unknown."""
        return describe_model(self.conversation.model).input_limit

    @property
    def trims(self) -> list[tuple[str, str, int]]:
        """The newest trims, the latest first: the request, the items by kind, and tokens."""
        trims = [request for request in reversed(self.conversation.requests) if request.freed]
        return [(_label(request), _taken_text(request), request.freed) for request in trims[:TRIMS]]

    @property
    def window_chart(self) -> Chart:
        """The window by category, request by request."""
        points = [ChartPoint(_label(request), _amounts(request), _markers(request)) for request in self.conversation.requests]
        return Chart("window", "The window", WINDOW_BANDS, points, limit=self.figures.budget, limit_name="Budget")

    @property
    def cache_chart(self) -> Chart | None:
        """The reported prompts, request by request; None if nothing was reported."""
        requests = list(self.conversation.requests)
        breaks = [(), *(_cache_break(earlier, later) for earlier, later in pairwise(requests))]
        points = [ChartPoint(_label(request), _reported(request), marker) for request, marker in zip(requests, breaks, strict=True)]
        has_report = any(request.reported for request in self.conversation.requests)
        first = len(WINDOW_BANDS)
        return Chart("cache", "Prompts as the provider counts them", CACHE_BANDS, points, first_band=first) if has_report else None


def _label(request: AnsweredRequest) -> str:
    return f"request {request.number:,}, {time.strftime('%H:%M', time.localtime(request.time))}"


def _amounts(request: AnsweredRequest) -> tuple[int, ...]:
    rows = request.figures.rows
    return rows.overhead, *rows.tokens


def _reported(request: AnsweredRequest) -> tuple[int, ...]:
    report = request.reported
    return (0, 0, 0) if report is None else (report.cache_read, report.cache_write + report.cache_write_1h, report.input_tokens)


def _markers(request: AnsweredRequest) -> tuple[ChartMarker, ...]:
    return (ChartMarker("trim", f"trimmed {_taken_text(request)}: {request.freed:,} tokens"),) if request.freed else ()


def _cache_break(earlier: AnsweredRequest, later: AnsweredRequest) -> tuple[ChartMarker, ...]:
    """Return the marker of a request that read less than half of what the provider's cache had from the request before."""
    cache_read, cache_write, _ = _reported(earlier)
    if later.reported is None or 2 * later.reported.cache_read >= cache_read + cache_write:
        return ()
    return (ChartMarker("break", f"cache break: {later.reported.cache_read:,} of {cache_read + cache_write:,} cached tokens read"),)


def _taken_text(request: AnsweredRequest) -> str:
    return _kinds_text(request.taken) or "more of what was shortened before"


def _kinds_text(kinds: Mapping[Kind, int]) -> str:
    return ", ".join(f"{count:,} {_plural(kind) if count > 1 else kind}" for kind, count in kinds.items())


def _plural(kind: str) -> str:
    return {"summary": "summaries", "reasoning": "reasoning items"}.get(kind, f"{kind}s")


@cache
def _script() -> str:
    return (FOLDER / "page.js").read_text(encoding="utf-8")
