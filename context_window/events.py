"""What the manager tells its listeners, and when. No content is in an event, only ids, numbers and, of a refusal, the provider's words."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from inspect import iscoroutinefunction
from sys import modules
from traceback import extract_tb
from typing import ClassVar, Literal, TypeAlias

from .errors import BudgetError, overhead_told
from .model_errors import PartKind

logger = logging.getLogger(__name__)

Stage: TypeAlias = Literal["count", "compact", "trim", "request", "response"]
"""Where in a turn something happens: tokens are counted, older turns summed up, the view trimmed, the request made, the answer recorded."""

Kind: TypeAlias = Literal["message", "call", "output", "reasoning", "summary", "handoff", "config update"]
"""What an item is."""
Kinds: TypeAlias = tuple[tuple[Kind, int], ...]
"""How many items of each kind there are; kinds without any are left out."""


@dataclass(frozen=True, slots=True)
class WindowEvent:
    """What every event has.

    Attributes:
        session_id: The session it is about.
        tokens: What the request now costs.
        budget: What it may cost.
        stage: Where in a turn it happens.
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
    """Usage has gone above one of `warn_at`. Told once, until usage has been at or below it again.

    Attributes:
        threshold: The part of the budget.
    """

    threshold: float

    def __str__(self) -> str:
        return f"{WindowEvent.__str__(self)}, above {100 * self.threshold:g}%"


@dataclass(frozen=True, slots=True)
class Trimmed(WindowEvent):
    """Something is out of a view that was in the view before it, or is new in the log and never came in.

    A one-shot trim, and the first view after an edit of the log in place, is compared with the last of its kind by its sums:
    it is told of when more is out. The figures are of all that is out, not of what went last.

    Attributes:
        items: How many items are out of the view, or in it in a smaller form.
        freed: Tokens that all of them would cost more.
        kinds: How many of each kind the items are; empty where that was not counted.
    """

    stage: ClassVar[Stage] = "trim"
    items: int
    freed: int
    kinds: Kinds = ()

    def __str__(self) -> str:
        kinds = [_many(number, "reasoning item" if kind == "reasoning" else kind) for kind, number in self.kinds]
        out = " and ".join(part for part in (", ".join(kinds[:-1]), *kinds[-1:]) if part) or _many(self.items, "item")
        return f"{WindowEvent.__str__(self)}, trimmed {out}: {_many(self.freed, 'token')} freed"


@dataclass(frozen=True, slots=True)
class OverBudget(WindowEvent):
    """A view does not fit although all that could go is gone. Told of every such view.

    Attributes:
        overhead: Tokens among them that are in no item: tools, instructions, and what the provider's reports say beyond the local count.
    """

    stage: ClassVar[Stage] = "trim"
    overhead: int = 0

    def __str__(self) -> str:
        beside = f" (with {overhead_told(self.overhead)})" if self.overhead else ""
        too_large = f"what must be kept{beside} is {_many(self.tokens - self.budget, 'token')} too large"
        return f"{WindowEvent.__str__(self)}, over budget: {too_large}"


@dataclass(frozen=True, slots=True)
class ProviderOverBudget(WindowEvent):
    """The provider counts more for a view than its budget, although by the local count it fits. `tokens` is the provider's count.

    The view stays as it is: it depends on the log and on local counts alone. Who needs it smaller sets a smaller budget.

    Attributes:
        local: Tokens by the local count.
    """

    stage: ClassVar[Stage] = "request"
    local: int

    def __str__(self) -> str:
        return f"{WindowEvent.__str__(self)} as the provider counts; counted here as {self.local:,}: set a smaller budget"


@dataclass(frozen=True, slots=True)
class PartRefused(WindowEvent):
    """The provider has refused an image or a document, and views show a note in its place. `tokens` is what the request costs with it.

    Attributes:
        item_id: The item that holds it; the log still has it.
        part: Its place among the item's parts, from 0: with `#` between, the two are its recall id.
        kind: `image` or `document`.
        why: The phrase of its message that is known, such as "Could not process image"; empty if none is. The rest may quote the request.
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
    """What was to count could not, and `tokens` is the count of what counted in its place.

    Attributes:
        why: What was in the way; names no content.
        counter: What counted.
    """

    why: str
    counter: str

    def __str__(self) -> str:
        return f"{WindowEvent.__str__(self)}, counted with {self.counter}: {self.why}"


@dataclass(frozen=True, slots=True)
class Compacted(WindowEvent):
    """Older items are summed up: a `Compaction` stands for them in the view. `tokens` is what the request costs with it.

    Attributes:
        items: How many items the summary stands for.
        before: Tokens that they cost.
        after: Tokens that the summary costs.
    """

    stage: ClassVar[Stage] = "compact"
    items: int
    before: int
    after: int

    def __str__(self) -> str:
        return f"{WindowEvent.__str__(self)}, summed up {_many(self.items, 'item')}: {self.before:,} tokens became {self.after:,}"


@dataclass(frozen=True, slots=True)
class CompactionFailed(WindowEvent):
    """Older items were to be summed up and are not. The log is as it was, and trimming goes on without.

    Attributes:
        why: What was in the way; names no content.
    """

    stage: ClassVar[Stage] = "compact"
    why: str

    def __str__(self) -> str:
        return f"{WindowEvent.__str__(self)}, not compacted: {self.why}"


@dataclass(frozen=True, slots=True)
class CalibrationReset(WindowEvent):
    """What was learned from the provider's own figures no longer holds, and learning begins anew. `tokens` is by the cold count.

    Attributes:
        why: What has changed; names no content.
    """

    stage: ClassVar[Stage] = "response"
    why: str

    def __str__(self) -> str:
        return f"{WindowEvent.__str__(self)}, calibration begins anew: {self.why}"


@dataclass(frozen=True, slots=True)
class PartUnusable(WindowEvent):
    """A view shows an image or a document that is damaged: a note goes to the model in its place, since providers would refuse the request.

    Told once for each such part. The log keeps it as it is.

    Attributes:
        item_id: The item that holds it.
        part: Its place in the item's content or output, from 0.
        kind: Which of the two it is.
        problem: What is wrong with it, such as "damaged: it ends in the middle"; names no content.
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


def _many(number: int, what: str) -> str:
    plural = "" if number == 1 else "ies" if what.endswith("y") else "s"
    return f"{number:,} {what.removesuffix('y') if plural == 'ies' else what}{plural}"


def check_listener(on_event: object) -> None:
    """Raises BudgetError where this cannot be told of events."""
    if on_event is not None and (not callable(on_event) or iscoroutinefunction(on_event)):
        raise BudgetError("on_event", on_event, "pass a plain function that takes an event; one that is async would never run")


def tell(events: Iterable[Event], listener: Listener | None, model: str | None = None) -> None:
    """Logs the events, hands them to OpenTelemetry, and tells the listener of them.

    What a listener raises is logged: its fault must not cost the user a turn.

    Args:
        events: The events.
        listener: Who is told.
        model: The model in use, where its name is known: for OpenTelemetry.
    """
    for event in events:
        logger.log(logging.WARNING if isinstance(event, SERIOUS) else logging.DEBUG, "%s", event)
        if "opentelemetry" in modules:  # else nobody can have configured it
            from .telemetry import export

            export(event, model)
        if listener is None:
            continue
        try:
            listener(event)
        except Exception as error:  # noqa: BLE001 - as said above
            where = extract_tb(error.__traceback__)[-1]  # neither the message nor the traceback: they may hold content
            told = (type(event).__name__, type(error).__name__, where.filename, where.lineno)
            logger.error("a listener failed on %s: %s at %s:%s", *told)  # noqa: TRY400
