"""The one accounting that displays, triggers and the command line all read. Its rows sum exactly to its total.

The figures alone; how they are made of a session is in `reporting.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict

from session.items import FunctionCall, FunctionCallOutput, Item, Message, MessageCategory

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult


class SessionStats(TypedDict):
    """What `analyze_session` finds. Amounts are tokens.

    `total_tokens` is `overhead_tokens` and all of `per_category` together. `items` by category, `item_count` their sum: those
    that cost something. `message_count` is of the whole log, messages that a summary stands for too. `expected_error` is the
    part of the count by which it is usually off, 0 where that is not known; `counter_problem` says why a lesser counter than usual
    counts. `reported_tokens` is what the provider reported of the last request that the total is anchored on; the total is then an
    upper bound. Likewise `settled_tokens`, where the session is a view that said itself what it costs, and nothing was reported since.
    `provider_tokens` is the provider's own count of the whole request, where it was asked and has answered; nothing is decided by it.
    """

    total_tokens: int
    per_category: dict[str, int]
    items: dict[str, int]
    message_count: int
    item_count: int
    image_count: int
    overhead_tokens: int
    budget: int
    available_tokens: int
    over_budget: bool
    counter: str
    expected_error: float
    counter_problem: str
    reported_tokens: int | None
    settled_tokens: int | None
    provider_tokens: int | None


@dataclass(frozen=True, slots=True)
class Row:
    """One category.

    Attributes:
        category: The category.
        tokens: Tokens in use.
        share: Tokens of its share of the budget.
        items: Items in it.
    """

    category: MessageCategory
    tokens: int
    share: int
    items: int


@dataclass(frozen=True, slots=True)
class ToolRow:
    """One tool: its calls and their outputs.

    Attributes:
        name: The tool.
        tokens: Tokens of calls and outputs.
        calls: How many calls.
        cleared: How many outputs are placeholders.
    """

    name: str
    tokens: int
    calls: int
    cleared: int


@dataclass(frozen=True, slots=True)
class LargeItem:
    """One of the largest items.

    Attributes:
        item_id: The item.
        what: What it is, without its content.
        category: What it counts for.
        tokens: What it costs.
    """

    item_id: str
    what: str
    category: MessageCategory
    tokens: int


@dataclass(frozen=True, slots=True)
class UsageReport:
    """Where a request's tokens go. `print(report)` shows it, as does rich. All amounts are tokens.

    Attributes:
        session_id: The session.
        title: What is reported on: a file's name, a model, …
        rows: By category, in falling priority.
        overhead: What the request costs beside the items: its frame, tools, what converters must add.
        budget: What it may cost.
        window: The model's window, where one is known.
        reserve: What of the window is kept for the answer.
        tools: By tokens, the largest first.
        largest: The largest items.
        images: Image parts.
        image_tokens: Their tokens.
        items: Items in all.
        messages: Messages among them.
        compacted_items: Items of the log that a summary stands for; they cost nothing.
        counter: What counted.
        model: The model, where one was asked for and is known.
        expected_error: The part of the count by which it is usually off the provider's own.
        budget_from: Who chose the budget, in words; the command line says so.
        counter_problem: Why a lesser counter than usual counts; empty where none does.
        reported_tokens: What the provider reported of the last request that the total is anchored on: the total is then an upper bound,
            and what no log holds is in the overhead. None where nothing was reported.
        settled_tokens: Likewise, what the session, a view, said that it costs, where nothing was reported since.
        provider_tokens: What the provider itself counts for the request, where it was asked and has answered.
    """

    session_id: str
    title: str
    rows: tuple[Row, ...]
    overhead: int
    budget: int
    window: int | None
    reserve: int
    tools: tuple[ToolRow, ...]
    largest: tuple[LargeItem, ...]
    images: int
    image_tokens: int
    items: int
    messages: int
    compacted_items: int
    counter: str
    model: str | None = None
    expected_error: float = 0.0
    budget_from: str = ""
    counter_problem: str = ""
    reported_tokens: int | None = None
    settled_tokens: int | None = None
    provider_tokens: int | None = None

    @property
    def total(self) -> int:
        """Tokens of the request: all rows and the overhead."""
        return self.overhead + sum(row.tokens for row in self.rows)

    @property
    def available(self) -> int:
        """Tokens left of the budget; negative when over it."""
        return self.budget - self.total

    @property
    def over_budget(self) -> bool:
        """Whether the request costs more than it may."""
        return self.total > self.budget

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON values; the rows of `categories` and `overhead` sum to `total`."""
        return {
            "session_id": self.session_id,
            "title": self.title,
            "total": self.total,
            "budget": self.budget,
            "budget_from": self.budget_from,
            "available": self.available,
            "over_budget": self.over_budget,
            "overhead": self.overhead,
            "window": self.window,
            "reserve": self.reserve,
            "categories": {row.category.value: {"tokens": row.tokens, "share": row.share, "items": row.items} for row in self.rows},
            "tools": [{"name": row.name, "tokens": row.tokens, "calls": row.calls, "cleared": row.cleared} for row in self.tools],
            "largest": [
                {"id": item.item_id, "what": item.what, "category": item.category.value, "tokens": item.tokens} for item in self.largest
            ],
            "images": {"count": self.images, "tokens": self.image_tokens},
            "items": self.items,
            "messages": self.messages,
            "compacted_items": self.compacted_items,
            "counter": self.counter,
            "expected_error": self.expected_error,
            "counter_problem": self.counter_problem,
            "reported_tokens": self.reported_tokens,
            "settled_tokens": self.settled_tokens,
            "provider_tokens": self.provider_tokens,
            "model": self.model,
        }

    def __str__(self) -> str:
        from .display import usage_text

        return usage_text(self)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from .display import usage_renderable

        yield usage_renderable(self)


def describe(item: Item) -> str:
    """What an item is, without its content: `Read output`, `user message`, `Bash call`."""
    match item:
        case FunctionCallOutput():
            return f"{item.name} output"
        case FunctionCall():
            return f"{item.name} call"
        case Message():
            return "summary" if item.is_summary else f"{item.role} message"
        case _:
            return item.type.replace("_", " ")
