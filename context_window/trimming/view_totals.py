"""The sums of a view, and the costs of items that it is given. Numbers only; `view_state.py` and `fold.py` change them."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from session.items import Item
from session.units import NONE, PRIORITY

from .plan import Cut


class Measured(NamedTuple):
    """The cost of an item, in tokens.

    Attributes:
        tokens: The unchanged item.
        images: Its images: the index of each among the item's parts, and the tokens that a placeholder saves (may be negative).
    """

    tokens: int
    images: tuple[tuple[int, int], ...] = ()


class LinePrice(NamedTuple):
    """The tokens of an item's lines, from their lengths: to count each by itself takes as long as to count the log again.

    Attributes:
        gap: Tokens of the gap that may stand before a line.
        tokens: Tokens of the item without its images.
        characters: Characters that these tokens are of, at least 1.
    """

    gap: int
    tokens: int
    characters: int

    def of(self, length: int) -> int:
        """Return the price of a line of this many characters, with a gap."""
        return self.gap + length * self.tokens // self.characters


class Measures(Protocol):
    """Gives the items, and the costs of forms that they might take, only when needed. Places are positions in the log."""

    def __getitem__(self, place: int) -> Item:
        """Return the item of the log, with notes in place of parts that the provider refused."""

    def unchanged(self, place: int) -> int:
        """Return the tokens of the item as it is in the log."""

    def cleared(self, place: int, cut: Cut | None = None) -> int:
        """Return the tokens of an output with a placeholder for its content, or of a call with placeholders for long values.

        At least its present cost if it must not be cleared.

        Args:
            place: The position of the output or call.
            cut: How the call is truncated already, if it is.
        """

    def line_price(self, place: int) -> LinePrice:
        """Return what the lines of an item cost."""

    def section(self, place: int, lines: Sequence[int]) -> int:
        """Return the tokens of what a digest shows of the item if it shows these lines; with none, a heading and a gap."""

    def shortened(self, place: int, limit: int) -> Cut:
        """Return the longest cut with which an item costs at most `limit` tokens, or the shortest cut there is."""


class Tally:
    """The sums of a view and its marks in the queues (rule 7). Small, because it is copied before each provisional trim.

    Attributes:
        tokens: By rank, the tokens in the view.
        items: By rank, the number of items in the view.
        total: The sum of `tokens`.
        images: Image parts in the view.
        unanswered: Calls in the view without an output.
        altered: Items of the log that are not in the view, or not as they were.
        removed: Items that the line about removed items counts.
        first: Every position before this one is silent or not in the view.
        first_moved: Every summary before this one of those shown elsewhere, in the view's order, is not in the view.
        first_message: Every user message before the one with this number is not in the view.
        early: Outputs and calls that are cleared before others: all that are in the view in full, and some that were.
        kept: Results of tools whose rules keep results: all that are in the view in full, and some that were.
        held_back: Places of the queue that `cleared_to` passed over because a rule kept a result of the unit then.
        cleared_to: How far the queue of outputs has been cleared.
        dropped_to: By rank, how far the queue of units has been dropped.
        decided_to: Length of the log at the last trim that had something to decide. No decision depends on a later item's protection.
        deferred: Units that `dropped_to` passed over because they were protected then.
        visible: The positions in the view; None while all of them are.
        with_images: Items with images in the view, and some that had images. Leading ones whose images are never replaced are left out.
        protected: Items that no trim may take: all that are in the view, and some that were. Covers `protected_to` of the log's.
        protected_to: How many of `Grouping.protected` have been looked at.
        thoughts: Reasoning that an edit may drop: all that is in the view, and some that left with its unit.
        compacted: Items that a summary stands for and that have not left yet.
        newer: Tokens of the view's items from `ViewContents.mark` on.
        digests: Number of digests.
        first_digest: Every digest before the one with this number, in the order of their places, is gone.
        edits: How often the request was changed before its end.
        summarised: Tokens of the items, unchanged, that a summary stands for and that are not in the view.
        summarised_items: Number of these items.
        usage_noted: The line about usage stands before the first response from this position on, or at the end; -1 if there is none.
    """

    __slots__ = (
        "altered",
        "cleared_to",
        "compacted",
        "decided_to",
        "deferred",
        "digests",
        "dropped_to",
        "early",
        "edits",
        "first",
        "first_digest",
        "first_message",
        "first_moved",
        "held_back",
        "images",
        "items",
        "kept",
        "newer",
        "protected",
        "protected_to",
        "removed",
        "summarised",
        "summarised_items",
        "thoughts",
        "tokens",
        "total",
        "unanswered",
        "usage_noted",
        "visible",
        "with_images",
    )

    def __init__(self) -> None:
        self.tokens = [0] * len(PRIORITY)
        self.items = [0] * len(PRIORITY)
        self.total = self.images = self.unanswered = self.altered = self.first = self.first_message = self.first_moved = self.cleared_to = 0
        self.decided_to = self.digests = self.first_digest = 0
        self.dropped_to = [0] * len(PRIORITY)
        self.deferred: tuple[int, ...] = ()
        self.held_back: tuple[int, ...] = ()
        self.early: list[int] = []
        self.kept: list[int] = []
        self.visible: array[int] | None = None
        self.with_images: list[int] = []
        self.thoughts: list[int] = []
        self.compacted: list[int] = []
        self.protected: list[int] = []
        self.protected_to = 0
        self.newer = self.edits = self.summarised = self.summarised_items = self.removed = 0
        self.usage_noted = NONE

    def __copy__(self) -> Tally:
        """Copy the sums. The lists of positions are shared: a trim replaces them and never changes them."""
        copied = Tally.__new__(Tally)
        for name in Tally.__slots__:
            setattr(copied, name, getattr(self, name))
        copied.tokens, copied.items, copied.dropped_to = self.tokens[:], self.items[:], self.dropped_to[:]
        return copied

    def count(self, rank: int, tokens: int, items: int) -> None:
        """Add to the sums of a category."""
        self.tokens[rank] += tokens
        self.total += tokens
        self.items[rank] += items
