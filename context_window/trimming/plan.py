"""What a trim decided: one `Decision` an item, in the log's order, and the `Plan` they make. Data only."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

from session.items import MessageCategory


class Action(Enum):
    """What becomes of an item in the view."""

    KEEP = "keep"
    REPLACE_IMAGES = "replace images"
    REPLACE_REFUSED = "replace refused parts"
    TRUNCATE = "truncate"
    CLEAR = "clear"
    SUMMARISE = "summarise"  # only strategies choose it, and `manage` carries it out: in a plan it is a DROP, since a summary stands for it
    DROP = "drop"


class Reason(Enum):
    """Why. The value reads after the action: "dropped: over budget"."""

    FITS = "fits"
    SYSTEM = "system items are always kept"
    PINNED = "pinned"
    SUMMARY = "stands for earlier items"
    FRONTIER = "the model is about to read it, or to answer it"
    OVER_SHARE = "over budget, and its category over its share"
    OVER_BUDGET = "over budget"
    TOO_MANY_ITEMS = "more items than allowed"
    TOO_MANY_IMAGES = "newer images take its place"
    OUT_OF_WINDOW = "older than the strategy's window"
    BY_STRATEGY = "the strategy gives it up"
    NOT_BY_STRATEGY = "the strategy keeps it"
    LAST_RESORT = "what must be kept is larger than the budget"
    COMPACTED = "a summary stands for it"
    ORPHAN = "an output without a call before it"
    PROVIDER_REFUSED = "the provider refused it"
    BOUND_REASONING = "the model refuses reasoning after an edited place"


@dataclass(frozen=True, slots=True)
class Cut:
    """How a text is truncated in the middle.

    Attributes:
        head: Characters kept at the beginning.
        tail: Characters kept at the end.
        tokens: What the whole item then costs, its images uncut.
    """

    head: int
    tail: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Decision:
    """What becomes of one item.

    Attributes:
        item_id: The item.
        what: What it is, without its content: `Read output`.
        category: What it counts for, which is its unit's category.
        action: What becomes of it.
        reason: Why.
        before: Tokens in the log.
        after: Tokens in the view.
        images: The places among its parts of the images that became placeholders.
        cut: Where its text was truncated.
        refused: The places among its parts of the images and documents that are notes because the provider refused them.
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


@dataclass(frozen=True, slots=True)
class Plan:
    """What the model would be shown, and why. Amounts are tokens.

    Attributes:
        decisions: One an item of the log, in its order.
        budget: What the request may cost.
        overhead_before: What the request with the whole log costs beside its items.
        overhead: What the request with the view costs beside its items, converters' additions included.
        breaks: Items of the view that begin a response although the one before them belongs to another.
        calibrated: Whether `overhead` holds what the provider's reports say beyond the local count.
    """

    decisions: tuple[Decision, ...]
    budget: int
    overhead_before: int
    overhead: int
    breaks: frozenset[str] = frozenset()
    calibrated: bool = False

    @property
    def before(self) -> int:
        """What the request with the whole log costs."""
        return self.overhead_before + sum(decision.before for decision in self.decisions)

    @property
    def after(self) -> int:
        """What the request with the view costs."""
        return self.overhead + sum(decision.after for decision in self.decisions)

    @property
    def over_budget(self) -> bool:
        """Whether the view does not fit: all that could go is gone."""
        return self.after > self.budget

    @property
    def culprits(self) -> list[Decision]:
        """The kept items, largest first: what stands in the way when the view does not fit."""
        return sorted((one for one in self.decisions if one.after), key=lambda one: -one.after)

    @property
    def changes(self) -> list[Decision]:
        """The decisions that take something out."""
        return [one for one in self.decisions if one.action is not Action.KEEP]

    @property
    def freed(self) -> int:
        """What the request costs less for it."""
        return self.before - self.after

    def to_dict(self) -> dict[str, Any]:
        """The plan as JSON values, with every decision."""
        from .summary import values

        return values(self)

    def __str__(self) -> str:
        from .summary import text

        return text(self)

    def __iter__(self) -> Iterator[Decision]:
        return iter(self.decisions)

    def __len__(self) -> int:
        return len(self.decisions)
