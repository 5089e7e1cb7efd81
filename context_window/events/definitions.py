"""The events that a manager emits, and how they reach listeners.

Events contain no content: only ids, numbers, and for a refusal a known phrase of the provider's message.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from inspect import iscoroutinefunction
from sys import modules
from traceback import extract_tb
from typing import ClassVar, Literal, TypeAlias

from session.usage import Usage

from ..decision.plan import smallest_budget
from ..errors import FEWER_TOOLS, OUTSIDE_ITEMS, ArgumentError
from ..model_errors import PartKind

logger = logging.getLogger(__name__)

Stage: TypeAlias = Literal["count", "compact", "trim", "request", "response"]
"""The steps of a turn: count tokens, summarise older turns, trim the view, make the request, record the answer."""

Kind: TypeAlias = Literal["message", "call", "output", "reasoning", "summary", "handoff", "config update"]
"""The kinds of items."""
Kinds: TypeAlias = tuple[tuple[Kind, int], ...]
"""Number of items of each kind. Kinds without items are left out."""


@dataclass(frozen=True, slots=True)
class WindowEvent:
    """The base class of all events.

    Attributes:
        session_id: The session's id.
        tokens: Tokens of the request.
        budget: Tokens that it may cost.
        stage: The step of the turn in which the event happens.
    """

    stage: ClassVar[Stage] = "count"
    session_id: str
    tokens: int
    budget: int

    def __str__(self) -> str:
        percent = 100 * self.tokens // self.budget
        return f"context window at {percent}% capacity ({self.tokens:,}/{self.budget:,} tokens)"


@dataclass(frozen=True, slots=True)
class ThresholdCrossed(WindowEvent):
    """Usage rose above one of the thresholds in `warn_at`. Emitted once, until usage has been at or below the threshold again.

    Attributes:
        threshold: The threshold, as a part of the budget.
    """

    threshold: float

    def __str__(self) -> str:
        return f"{WindowEvent.__str__(self)}, above {100 * self.threshold:g}%"


@dataclass(frozen=True, slots=True)
class Trimmed(WindowEvent):
    """The view dropped or shortened items since the previous view, or left out new ones.

    For a one-shot trim, and for the first view after an in-place edit of the log, only the figures are compared with the previous ones:
    the event is emitted if more is taken out. The figures cover everything taken out so far, not only the latest trim. Items that a summary
    replaced do not count: `Compacted` is about them.

    Attributes:
        items: Items that are missing from the view or shown in a smaller form, for which no summary stands.
        freed: Tokens by which the view is smaller than with all of them.
        kinds: The items by kind; empty if they were not counted.
    """

    stage: ClassVar[Stage] = "trim"
    items: int
    freed: int
    kinds: Kinds = ()

    @property
    def before(self) -> int:
        """Tokens that the request would cost with everything that was taken out."""
        return self.tokens + self.freed

    def __str__(self) -> str:
        kinds = [_count(number, "reasoning item" if kind == "reasoning" else kind) for kind, number in self.kinds]
        out = " and ".join(part for part in (", ".join(kinds[:-1]), *kinds[-1:]) if part) or _count(self.items, "item")
        return f"{WindowEvent.__str__(self)}, trimmed {out}: {_count(self.freed, 'token')} freed"


@dataclass(frozen=True, slots=True)
class OverBudget(WindowEvent):
    """The view does not fit although everything unprotected was taken out. Emitted for every such view.

    Attributes:
        overhead: Tokens of the request outside its items: tools, instructions, and any excess of the provider's reports over the local
            count.
    """

    stage: ClassVar[Stage] = "trim"
    overhead: int = 0

    def __str__(self) -> str:
        kept_tokens = self.tokens - self.overhead
        cause, advice = f"the items that must be kept take {kept_tokens:,}", "Shorten or unpin some of them"
        if self.overhead > kept_tokens:
            cause, advice = f"the overhead is {self.overhead:,} of them ({OUTSIDE_ITEMS})", FEWER_TOOLS
        excess = _count(self.tokens - self.budget, "token")
        return (
            f"{WindowEvent.__str__(self)}, over budget by {excess}: {cause}. {advice}, or allow more tokens: "
            f"the smallest sensible budget is {smallest_budget(self.tokens):,} tokens"
        )


@dataclass(frozen=True, slots=True)
class ProviderOverBudget(WindowEvent):
    """By the provider's count the view exceeds its budget, although it fits by the local count. `tokens` is the provider's count.

    The view is sent unchanged, since views depend on the log and on local counts only. To make it smaller, set a smaller budget.

    Attributes:
        local: Tokens by the local count.
    """

    stage: ClassVar[Stage] = "request"
    local: int

    def __str__(self) -> str:
        return f"{WindowEvent.__str__(self)} by the provider's count, {self.local:,} by the local count: set a smaller budget"


@dataclass(frozen=True, slots=True)
class PartRefused(WindowEvent):
    """The provider refused an image or a document, and views now show a note in its place. `tokens` includes the note.

    Attributes:
        item_id: The item that holds it. The log is unchanged.
        part: Its index among the item's parts. The recall id is `item_id#part`.
        kind: `image` or `document`.
        why: The known phrase of the provider's message, such as "Could not process image"; empty without one. The rest of the message is
            left out, since it may quote the request.
    """

    stage: ClassVar[Stage] = "request"
    item_id: str
    part: int
    kind: PartKind
    why: str

    def __str__(self) -> str:
        why = f" ({self.why})" if self.why else ""
        return f"{WindowEvent.__str__(self)}, {self.kind} {self.item_id}#{self.part} replaced by a note: the provider refused it{why}"


@dataclass(frozen=True, slots=True)
class CounterFellBack(WindowEvent):
    """The preferred counter failed; `tokens` comes from the fallback.

    Attributes:
        why: The reason, without content.
        counter: The name of the fallback.
    """

    why: str
    counter: str

    def __str__(self) -> str:
        return f"{WindowEvent.__str__(self)}, counted with {self.counter}: {self.why}"


@dataclass(frozen=True, slots=True)
class Compacted(WindowEvent):
    """Older items were summarised: a `Compaction` stands for them in the view. `tokens` includes the summary.

    Attributes:
        items: Number of items that the summary stands for.
        before: Tokens of these items.
        after: Tokens of the summary.
        usage: Reported usage of the requests that wrote it; zero without a report.
        seconds: How long it took.
    """

    stage: ClassVar[Stage] = "compact"
    items: int
    before: int
    after: int
    usage: Usage = field(default_factory=Usage)
    seconds: float = field(default=0.0, compare=False)

    def __str__(self) -> str:
        change = f"summarised {_count(self.items, 'item')}: {self.before:,} tokens became {self.after:,}"
        return f"{WindowEvent.__str__(self)}, {change}{_cost(self.usage)}"


@dataclass(frozen=True, slots=True)
class CompactionFailed(WindowEvent):
    """Summarising older items failed. The log is unchanged, and the view is trimmed without a summary.

    Attributes:
        why: The reason, without content.
        usage: Reported usage of the requests that wrote no usable summary; zero without a report. An answer that comes too late is
            missing here, but not in `manager.summary_usage`.
        seconds: How long it took.
    """

    stage: ClassVar[Stage] = "compact"
    why: str
    usage: Usage = field(default_factory=Usage)
    seconds: float = field(default=0.0, compare=False)

    def __str__(self) -> str:
        return f"{WindowEvent.__str__(self)}, not compacted: {self.why}{_cost(self.usage)}"


@dataclass(frozen=True, slots=True)
class CalibrationReset(WindowEvent):
    """Earlier usage reports no longer apply, and calibration restarts. `tokens` is the local count without them.

    Attributes:
        why: The change that caused it, without content.
    """

    stage: ClassVar[Stage] = "response"
    why: str

    def __str__(self) -> str:
        return f"{WindowEvent.__str__(self)}, calibration restarts: {self.why}"


@dataclass(frozen=True, slots=True)
class PartUnusable(WindowEvent):
    """An image or a document in the view is damaged. The model gets a note in its place, since providers would refuse the request.

    Emitted once for each such part. The log is unchanged.

    Attributes:
        item_id: The item that holds it.
        part: Its index in the item's content or output.
        kind: `image` or `document`.
        problem: The defect, such as "damaged: it ends in the middle", without content.
    """

    stage: ClassVar[Stage] = "request"
    item_id: str
    part: int
    kind: Literal["image", "document"]
    problem: str

    def __str__(self) -> str:
        return f"{WindowEvent.__str__(self)}, part {self.part} of item {self.item_id} is not sent: {self.kind} {self.problem}"


Event: TypeAlias = (
    ThresholdCrossed
    | Trimmed
    | OverBudget
    | ProviderOverBudget
    | PartRefused
    | CounterFellBack
    | Compacted
    | CompactionFailed
    | CalibrationReset
    | PartUnusable
)
Listener: TypeAlias = Callable[[Event], None]

SERIOUS = (OverBudget, ProviderOverBudget, PartRefused, PartUnusable, CounterFellBack, CompactionFailed)
"""Events that are logged as warnings."""


def _cost(usage: Usage) -> str:
    """Return what a summary cost, for the end of a sentence; an empty text without a report."""
    return "" if usage == Usage() else f"; the summariser read {usage.total_input:,} tokens and wrote {usage.output_tokens:,}"


def _count(number: int, noun: str) -> str:
    """Return a number with its noun: `1 item`, `1,200 tokens`, `2 summaries`."""
    ending = "" if number == 1 else "ies" if noun.endswith("y") else "s"
    return f"{number:,} {noun.removesuffix('y') if ending == 'ies' else noun}{ending}"


def check_listener(on_event: object) -> None:
    """Raise ArgumentError unless this is a synchronous callable or None."""
    if on_event is not None and (not callable(on_event) or iscoroutinefunction(on_event)):
        raise ArgumentError("on_event", on_event, "pass a plain function that takes an event; an async one would never run")


def emit(events: Iterable[Event], listener: Listener | None, model: str | None = None) -> None:
    """Log the events, export them to OpenTelemetry, and call the listener with each.

    An exception of the listener is logged: its bug must not cost the user a turn.
    """
    for event in events:
        logger.log(logging.WARNING if isinstance(event, SERIOUS) else logging.DEBUG, "%s", event)
        if "opentelemetry" in modules:  # otherwise it cannot have been configured
            from .telemetry import export

            export(event, model)
        if listener is None:
            continue
        try:
            listener(event)
        except Exception as error:  # noqa: BLE001 - see the docstring
            origin = extract_tb(error.__traceback__)[-1]  # neither the message nor the traceback, which may hold content
            names = type(event).__name__, type(error).__name__
            logger.error("a listener failed on %s: %s at %s:%s", *names, origin.filename, origin.lineno)  # noqa: TRY400
