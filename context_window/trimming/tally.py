"""What a view sums to, and what it is told of items. Numbers only; what changes them is in `state.py`."""

from __future__ import annotations

from array import array
from typing import NamedTuple, Protocol

from session.units import PRIORITY

from .plan import Cut


class Measured(NamedTuple):
    """What an item costs, in tokens.

    Attributes:
        tokens: The item as it is in the log.
        images: Its image parts: the place among the parts, and the tokens that a placeholder saves (may be negative).
    """

    tokens: int
    images: tuple[tuple[int, int], ...] = ()


class Exhausted(NamedTuple):
    """A trim that took all there is to take, and left the outputs that may be cut as small as they get. Amounts are tokens.

    What comes next changes nothing of that, as a rule; `Fold` says when.

    Attributes:
        length: Items of the log then.
        tokens: What the outputs cost before they were cut.
        least: What they cost at the least.
        saved: What the cuts took.
    """

    length: int
    tokens: int
    least: int
    saved: int


class Measures(Protocol):
    """What is asked only when needed: the cost of forms that an item might take. Places are positions in the log."""

    def cleared(self, place: int) -> int:
        """Tokens of an output with a placeholder for content. No less than it has now where it may not be cleared."""

    def shortened(self, place: int, limit: int) -> Cut:
        """The longest cut of an output that makes it cost at most `limit` tokens, else the shortest there is."""


class Tally:
    """The sums of a view and the marks that go with them: small, so that it can be copied before a provisional trim.

    Attributes:
        tokens: By rank: tokens in the view.
        items: By rank: items in the view.
        total: All of `tokens`.
        images: Image parts in the view.
        unanswered: Calls in the view without an output.
        altered: Items of the log that are not in the view, or not as they were.
        first: Every position before this is silent or out of the view.
        cleared_to: How far the queue of outputs has been cleared.
        dropped_to: By rank: how far the queue of units has been dropped.
        aside: Units that `dropped_to` passed over because they were protected then.
        shown: The positions in the view; None while all are.
        pictured: Items with images in the view, and some that had; without those before all others whose images stay for good.
        kept: Items in the view that no trim may take, and some that were; of the first `kept_to` of all that there ever were.
        kept_to: How far the log's own have been looked at.
        thoughts: Reasoning that may have to go: what of it is in the view, and some that left with its unit.
        compacted: Items that a summary stands for and that are still to go.
        fresh: Tokens in the view that are not in the request that was reported last.
        said: Those of them that belong to the response to that request.
        removed: Tokens that were in that request and have been taken out since.
        edits: How often the request was changed before its end.
    """

    __slots__ = (
        "altered",
        "aside",
        "cleared_to",
        "compacted",
        "dropped_to",
        "edits",
        "first",
        "fresh",
        "images",
        "items",
        "kept",
        "kept_to",
        "pictured",
        "removed",
        "said",
        "shown",
        "thoughts",
        "tokens",
        "total",
        "unanswered",
    )

    def __init__(self) -> None:
        self.tokens = [0] * len(PRIORITY)
        self.items = [0] * len(PRIORITY)
        self.total = self.images = self.unanswered = self.altered = self.first = self.cleared_to = 0
        self.dropped_to = [0] * len(PRIORITY)
        self.aside: tuple[int, ...] = ()
        self.shown: array[int] | None = None
        self.pictured: list[int] = []
        self.thoughts: list[int] = []
        self.compacted: list[int] = []
        self.kept: list[int] = []
        self.kept_to = 0
        self.fresh = self.said = self.removed = self.edits = 0

    def __copy__(self) -> Tally:
        """A twin whose sums are its own. The lists of positions are shared: trims replace them, and never change them."""
        twin = Tally.__new__(Tally)
        for name in Tally.__slots__:
            setattr(twin, name, getattr(self, name))
        twin.tokens, twin.items, twin.dropped_to = self.tokens[:], self.items[:], self.dropped_to[:]
        return twin

    def count(self, rank: int, tokens: int, items: int) -> None:
        """Adds to a category."""
        self.tokens[rank] += tokens
        self.total += tokens
        self.items[rank] += items
