"""The decisions of a trim as data: one `Decision` per item, in the log's order, and the `Plan` of all of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

from session.items import FunctionCall, FunctionCallOutput, Item, Message, MessageCategory
from session.removed import Removed


class Action(Enum):
    """The form in which the view shows an item."""

    KEEP = "keep"
    RESTORE = "restore"
    REPLACE_IMAGES = "replace images"
    REPLACE_REFUSED = "replace refused parts"
    TRUNCATE = "truncate"
    EXTRACT = "extract"
    CLEAR = "clear"
    SUMMARISE = "summarise"  # chosen by strategies, carried out by `manage`; in a plan the item is a DROP, because a summary stands for it
    DROP = "drop"


class Reason(Enum):
    """The reason of a decision. The value reads well after the action: "dropped: over budget"."""

    FITS = "fits"
    SYSTEM = "system items are always kept"
    PINNED = "pinned"
    SUMMARY = "stands for earlier items"
    FRONTIER = "the model is about to read it, or to answer it"
    WAITING = "its output is still to come"
    FIRST_MESSAGE = "the first message, which states the task"
    KEPT_BY_RULE = "a rule of its tool keeps it"
    OVER_SHARE = "over budget, and its category over its share"
    OVER_BUDGET = "over budget"
    SUPERSEDED = "its file was read again or written later"
    TOO_MANY_ITEMS = "more items than allowed"
    TOO_MANY_IMAGES = "newer images take its place"
    OUT_OF_WINDOW = "older than the strategy's window"
    BY_STRATEGY = "the strategy gives it up"
    NOT_BY_STRATEGY = "the strategy keeps it"
    NO_LINES = "other units have more valuable lines"
    LARGE_OUTPUT = "larger than its part of the window when it came"
    REFUSED_READ = "its assistant refers to an earlier result that is not in view"
    UNREAD_CONTEXT = "over budget, with nothing older left"
    LAST_RESORT = "the rest of the request leaves too little room"
    COMPACTED = "a summary stands for it"
    ORPHAN = "an output without a call before it"
    REPLACED_PROMPT = "a config update replaced these instructions"
    PROVIDER_REFUSED = "the provider refused it"
    BOUND_REASONING = "the model refuses reasoning after an edited place"


NEVER_SENT = (Reason.COMPACTED, Reason.REPLACED_PROMPT, Reason.ORPHAN)
"""Reasons for which an item is in no request, trimmed or not."""


@dataclass(frozen=True, slots=True)
class Cut:
    """A truncation of a text in its middle. In a message or a call's arguments, each longer text keeps that much.

    Attributes:
        head: Characters kept at the beginning.
        tail: Characters kept at the end.
        tokens: Tokens of the whole item after that, with all of its images.
        between: Of an output: passages kept between these, in order; each as its first character and the one after its last.
    """

    head: int
    tail: int
    tokens: int
    between: tuple[tuple[int, int], ...] = ()

    @property
    def kept(self) -> int:
        """Characters that are kept."""
        return self.head + self.tail + sum(end - start for start, end in self.between)


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision about one item.

    Attributes:
        item_id: Id of the item.
        what: A description without its content: `Read output`.
        category: The category that it counts for, which is its unit's.
        action: The form in which it is shown.
        reason: The reason for that.
        before: Tokens in the log.
        after: Tokens in the view.
        images: Indexes of its parts that are images and became placeholders.
        cut: The truncation of its text, if any.
        refused: Indexes of its images and documents that became notes because the provider refused them.
        superseded_by: Id of the output that supersedes it, if the reason is SUPERSEDED.
        lines: Numbers of the lines that a digest shows of it, if the action is EXTRACT.
        digest_before: Position in the log before which that digest stands.
        restores: Id of the earlier output that is shown instead, if the action is RESTORE.
    """

    item_id: str
    what: str
    category: MessageCategory
    action: Action
    reason: Reason
    before: int
    after: int
    images: tuple[int, ...] = ()
    cut: Cut | None = None
    refused: tuple[int, ...] = ()
    superseded_by: str | None = None
    lines: tuple[int, ...] | None = None
    digest_before: int | None = None
    restores: str | None = None


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """What the definition of a tool costs in every request.

    Attributes:
        name: The tool's name.
        tokens: Tokens of its definition.
        calls: Number of its calls in the session; 0 if it was never called.
    """

    name: str
    tokens: int
    calls: int

    @property
    def server(self) -> str | None:
        """The MCP server that offers it, by a name such as `mcp__github__get_issue`; None for any other tool."""
        prefix, _, rest = self.name.partition("__")
        return rest.partition("__")[0] if prefix == "mcp" and "__" in rest else None

    def to_dict(self) -> dict[str, Any]:
        """Return the definition as JSON values."""
        return {"name": self.name, "server": self.server, "tokens": self.tokens, "calls": self.calls}


class Note(NamedTuple):
    """A message that a rule adds to the view before a position in the log, and its tokens. Its id is no item's of the log."""

    before: int
    message: Message
    tokens: int


def describe(item: Item) -> str:
    """Return a description of an item without its content: `Read output`, `user message`, `Bash call`."""
    match item:
        case FunctionCallOutput():
            return f"{item.name} output"
        case FunctionCall():
            return f"{item.name} call"
        case Message():
            return "summary" if item.is_summary else f"{item.role} message"
        case _:
            return item.type.replace("_", " ")


def smallest_budget(kept_tokens: int) -> int:
    """Return the smallest sensible budget, in tokens: what must be kept leaves a fifth of it. Rounded up to a full hundred.

    For example 43,800 if 35,000 tokens must be kept. A fifth, because another budget leads to other views, and the reports of their
    requests to a slightly larger overhead.
    """
    return -(-kept_tokens // 80) * 100


@dataclass(frozen=True, slots=True)
class Plan:
    """The view that the model would be shown, and the reasons. Amounts are tokens.

    Attributes:
        decisions: One per item of the log, in its order.
        budget: The most that the request may cost.
        overhead_before: Cost of the request without a trim, besides its items.
        overhead: Cost of the request with the view, besides its items. Additions of converters are included.
        breaks: Ids of the view's items that begin a response although the item before them belongs to another response.
        ends: Ids of the view's answers after which a request ended.
        summary_places: By id, the summaries that the view does not show where the log has them: the positions in the log before which it
            shows them.
        calibrated: True if `overhead` includes what providers reported beyond the local count.
        protected: Cost of the items that no trim drops, as they are in the log.
        removed: The items that the request's first line counts; None if it has no such line.
        usage_noted_after: Id of the item after which the line about usage stands; None if there is no such line.
        state_note: The note that restates the state of the work; None if there is none.
        definitions: The definitions of the tools that requests carry, the largest first. Their tokens are part of the overhead.
    """

    decisions: tuple[Decision, ...]
    budget: int
    overhead_before: int
    overhead: int
    breaks: frozenset[str] = frozenset()
    ends: frozenset[str] = frozenset()
    summary_places: Mapping[str, int] = field(default_factory=dict)
    calibrated: bool = False
    protected: int = 0
    removed: Removed | None = None
    usage_noted_after: str | None = None
    state_note: Note | None = None
    definitions: tuple[ToolDefinition, ...] = ()

    @property
    def before(self) -> int:
        """Cost of the request without a trim: the total of a usage report. `never_sent` is not in it."""
        return self.overhead_before + sum(decision.before for decision in self.decisions if decision.reason not in NEVER_SENT)

    @property
    def after(self) -> int:
        """Cost of the request with the view."""
        return self.overhead + sum(decision.after for decision in self.decisions)

    @property
    def note_tokens(self) -> int:
        """Tokens of the note that restates the state of the work. They are part of the overhead."""
        return 0 if self.state_note is None else self.state_note.tokens

    @property
    def over_budget(self) -> bool:
        """True if the view does not fit although nothing more could be taken."""
        return self.after > self.budget

    @property
    def is_tight(self) -> bool:
        """True if overhead and protected items leave less than a tenth of the budget, so that nearly everything else is taken out."""
        return bool(self.changes) and (self.overhead + self.protected) * 10 > self.budget * 9

    @property
    def smallest_budget(self) -> int:
        """The smallest sensible budget for the overhead and the protected items."""
        return smallest_budget(self.overhead + self.protected)

    @property
    def culprits(self) -> list[Decision]:
        """The kept items, largest first: the reason why a view does not fit."""
        return sorted((decision for decision in self.decisions if decision.after), key=lambda decision: -decision.after)

    @property
    def changes(self) -> list[Decision]:
        """The decisions that take something out."""
        return [decision for decision in self.decisions if decision.action is not Action.KEEP]

    @property
    def never_sent(self) -> list[Decision]:
        """The items that are in no request, trimmed or not: a summary or a config update replaces them, or they answer no call."""
        return [decision for decision in self.decisions if decision.reason in NEVER_SENT]

    @property
    def trims(self) -> list[Decision]:
        """The changes other than those of `never_sent`: what the trim changes in the request."""
        return [decision for decision in self.changes if decision.reason not in NEVER_SENT]

    @property
    def freed(self) -> int:
        """Tokens that the request costs less than without a trim."""
        return self.before - self.after

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as JSON values, with every decision."""
        from .plan_text import values

        return values(self)

    def __str__(self) -> str:
        from .plan_text import text

        return text(self)

    def _repr_html_(self) -> str:
        from ..display.plan import plan_draw
        from ..display.render import html_of

        return html_of(plan_draw(self))

    def __iter__(self) -> Iterator[Decision]:
        return iter(self.decisions)

    def __getitem__(self, index: int) -> Decision:
        """Return the decision about an item by its position in the log."""
        return self.decisions[index]

    def __len__(self) -> int:
        return len(self.decisions)
