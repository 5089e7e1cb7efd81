"""The usage figures that users see: statistics and reports. The rows of a report sum exactly to its total.

`analysis.py` computes them, from the same numbers that trigger trims.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, TypedDict

from session.items import MessageCategory

from ..decision.plan import ToolDefinition
from .stated import StatedUsage
from .unlogged import UnloggedTokens

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult


class SessionStats(TypedDict):
    """The result of `analyze_session`. Amounts are tokens.

    Attributes:
        total_tokens: The sum of `overhead_tokens` and `per_category`.
        per_category: Tokens by category.
        items: Number of items that cost tokens, by category.
        message_count: Messages in the whole log, including those that a summary stands for.
        item_count: The sum of `items`.
        image_count: Image parts.
        overhead_tokens: Tokens of the request outside its items.
        budget: Tokens that the request may cost.
        available_tokens: Tokens left of the budget; negative if it is exceeded.
        over_budget: True if the request costs more than the budget.
        counter: The token counter's name.
        expected_error: The usual relative error of the local count; 0 if it is not known.
        counter_problem: The reason why a fallback counts; empty if none does.
        reported_tokens: Reported tokens of the request from which the total starts; the total is then an upper bound. None without a
            report.
        settled_tokens: The saved view's own count from which the total starts; None if there is none or a report has replaced it.
        provider_tokens: The provider's own count of the whole request; None without an answer. It never affects trimming.
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
class CategoryRow:
    """The usage of one category.

    Attributes:
        category: The category.
        tokens: Tokens in use.
        share: Its share of the budget, in tokens.
        items: Number of its items.
    """

    category: MessageCategory
    tokens: int
    share: int
    items: int


@dataclass(frozen=True, slots=True)
class ToolRow:
    """The usage of one tool: its calls and their outputs.

    Attributes:
        name: The tool's name.
        tokens: Tokens of calls and outputs.
        calls: Number of calls.
        cleared: Number of calls whose output or arguments show placeholders.
        extracts: Number of calls with lines in a digest: of the output, the arguments or both.
    """

    name: str
    tokens: int
    calls: int
    cleared: int
    extracts: int = 0


@dataclass(frozen=True, slots=True)
class LargeItem:
    """One of the largest items.

    Attributes:
        item_id: The item's id.
        what: A description without content.
        category: The item's category.
        tokens: The item's tokens.
    """

    item_id: str
    what: str
    category: MessageCategory
    tokens: int


@dataclass(frozen=True, slots=True)
class UsageReport:
    """A report of where a request's tokens go. `print(report)` shows it, and so does rich. All amounts are tokens.

    Attributes:
        session_id: The session's id.
        title: The report's title: a file's name, a model, …
        rows: Usage by category, in falling priority.
        overhead: Tokens of the request outside its items: its frame, tools, additions of the converter.
        budget: Tokens that the request may cost.
        window: The model's window; None if it is not known.
        reserve: Tokens of the window reserved for the answer.
        tools: Usage by tool, the largest first.
        largest: The largest items.
        images: Number of image parts.
        image_tokens: Tokens of the image parts.
        unknown: Images and documents behind a URL or a file id, whose size only the provider knows, and which its last report did not
            include. An image counts as the largest that the provider charges for, a document as an estimate: the total is then rough.
        items: Number of items.
        messages: Number of messages among them.
        compacted_items: Items of the log that a summary replaces; they are in no request.
        compacted_tokens: Tokens that these would cost.
        extracts: Number of items with lines in digests.
        extract_tokens: Tokens of these digests.
        counter: The token counter's name.
        model: The model's name; None if there is none or it is not known.
        expected_error: The usual relative error of the local count.
        least: The lower end of the interval in which the provider's count usually lies; None if nothing is known about the counter.
        most: Its upper end; None if there is no telling, as with a document that only the provider has.
        budget_from: The origin of the budget in words, as the command line shows it.
        counter_problem: The reason why a fallback counts; empty if none does.
        reported_tokens: Reported tokens of the request from which the total starts. The total is then an upper bound, and the overhead
            includes everything that is in no log. None without a report.
        settled_tokens: The saved view's own count from which the total starts; None if there is none or a report has replaced it.
        provider_tokens: The provider's own count of the request; None without an answer.
        thinking_tokens: Tokens of the model's reasoning in the view. They are in the rows.
        tools_overhead: The part of the overhead that is for tools: their definitions, and the provider's own text about tools.
        definitions: The tools' definitions, the largest first.
        unlogged: An estimate of what the tool that wrote the log sends and does not log; None if there is none, or a report or count of
            a saved view says it. The total lacks it.
        stated: The tool's own account of its window, at its last place in the log; None if it has none.
    """

    session_id: str
    title: str
    rows: tuple[CategoryRow, ...]
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
    compacted_tokens: int = 0
    extracts: int = 0
    extract_tokens: int = 0
    unlogged: UnloggedTokens | None = None
    stated: StatedUsage | None = None
    unknown: int = 0
    thinking_tokens: int = 0
    tools_overhead: int = 0
    definitions: tuple[ToolDefinition, ...] = ()
    least: int | None = None
    most: int | None = None

    @property
    def total(self) -> int:
        """Tokens of the request: all rows and the overhead."""
        return self.overhead + sum(row.tokens for row in self.rows)

    @property
    def available(self) -> int:
        """Tokens left of the budget; negative if it is exceeded."""
        return self.budget - self.total

    @property
    def over_budget(self) -> bool:
        """True if the request costs more than the budget."""
        return self.total > self.budget

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON values. `categories` and `overhead` sum to `total`."""
        values = {spec.name: getattr(self, spec.name) for spec in fields(self)}
        for name in ("rows", "image_tokens", "extract_tokens", "unlogged"):  # in other forms below
            del values[name]
        return {
            **values,
            "total": self.total,
            "available": self.available,
            "over_budget": self.over_budget,
            "definitions": [tool.to_dict() for tool in self.definitions],
            "categories": {row.category.value: {"tokens": row.tokens, "share": row.share, "items": row.items} for row in self.rows},
            "tools": [asdict(row) for row in self.tools],
            "largest": [
                {"id": item.item_id, "what": item.what, "category": item.category.value, "tokens": item.tokens} for item in self.largest
            ],
            "images": {"count": self.images, "tokens": self.image_tokens},
            "extracts": {"count": self.extracts, "tokens": self.extract_tokens},
            "unlogged_estimate": None if self.unlogged is None else self.unlogged.tokens,
            "unlogged_least": None if self.unlogged is None else self.unlogged.least,
            "unlogged_most": None if self.unlogged is None else self.unlogged.most,
            "stated": None if self.stated is None else asdict(self.stated),
        }

    def __str__(self) -> str:
        from ..display.usage import usage_text

        return usage_text(self)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from ..display.usage import usage_renderable

        yield usage_renderable(self)

    def _repr_html_(self) -> str:
        from ..display.render import html_of
        from ..display.usage import usage_draw

        return html_of(usage_draw(self))
