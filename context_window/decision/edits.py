"""What can become of an item in a view, as frozen values, and the costs of items. Decides nothing.

An item without an `Edit` is in the view as the log has it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from session.items import FunctionCall, FunctionCallOutput, Item, copy_with
from session.units import NONE

from .placeholders import changed, cleared, cleared_call
from .plan import Action, Cut, Reason

NOT_TOLD = frozenset((Reason.ORPHAN, Reason.COMPACTED, Reason.REPLACED_PROMPT, Reason.BOUND_REASONING, Reason.NO_LINES))
"""The line about removed items does not count these: no call has them, something else stands for them, they were bound to what the model
does not see, or extracts stand around them."""


class Measured(NamedTuple):
    """The cost of an item, in tokens.

    Attributes:
        tokens: The unchanged item.
        images: Its images: the index of each among the item's parts, and the tokens that a placeholder saves (may be negative).
        thinking: Those of its tokens that leave the prompt with their turn if the model drops thinking: reasoning, or what a call's
            signature holds of it.
    """

    tokens: int
    images: tuple[tuple[int, int], ...] = ()
    thinking: int = 0


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
    """Costs of items, and of the smaller forms that they might take, in tokens. `counting/item_tokens.py` implements it."""

    def measure(self, item: Item) -> Measured:
        """Return the cost of the item."""

    def measure_all(self, items: Iterable[Item]) -> Sequence[Measured]:
        """Return the cost of each item."""

    def cleared_tokens(self, item: Item, cut: Cut | None = None) -> int:
        """Return the tokens of an output or call once cleared, at least its own if it must not be; `cut` is how a call is cut already."""

    def line_price(self, item: Item) -> LinePrice:
        """Return what the lines of an item cost."""

    def section_tokens(self, item: Item, lines: Sequence[int], call: FunctionCall | None = None) -> int:
        """Return the tokens of what a digest shows of the item if it shows these lines; with none, a heading and a gap."""

    def truncated(self, item: Item, limit: int) -> Cut:
        """Return the longest cut with which an item costs at most `limit` tokens, or the shortest cut there is."""

    def cut_tokens(self, item: Item, cut: Cut) -> int:
        """Return the tokens of an item with this cut."""


class Edit(NamedTuple):
    """What became of an item.

    Attributes:
        tokens: Its tokens in this form.
        gone: Why it is not in the view; None if it is.
        reason: Why it is in a smaller form; None if it is unchanged.
        is_cleared: True if placeholders stand for the output's content, or for the long values of the call's arguments.
        images: Indexes of its parts that are placeholders of images.
        cut: How its text is truncated.
        lines: Numbers of its lines that a digest shows instead of it.
        before: Position in the log before which that digest stands; -1 without one.
        source: Position of the output whose content is shown instead of its own; -1 for its own.
    """

    tokens: int
    gone: Reason | None = None
    reason: Reason | None = None
    is_cleared: bool = False
    images: tuple[int, ...] = ()
    cut: Cut | None = None
    lines: tuple[int, ...] | None = None
    before: int = NONE
    source: int = NONE

    @property
    def action(self) -> Action:
        """The form in which the view shows the item."""
        if self.gone is not None:
            return Action.DROP
        if self.is_cleared:
            return Action.CLEAR
        if self.lines is not None:
            return Action.EXTRACT
        if self.cut is not None:
            return Action.TRUNCATE
        if self.images:
            return Action.REPLACE_IMAGES
        return Action.KEEP if self.source == NONE else Action.RESTORE

    @property
    def is_shortened(self) -> bool:
        """True if placeholders or lines stand for the item's content."""
        return self.is_cleared or self.lines is not None

    def of(self, item: Item, source: Item | None = None) -> Item:
        """Return the item in this form. Not for items that are gone, or in a digest."""
        if self.action is Action.RESTORE and isinstance(item, FunctionCallOutput) and isinstance(source, FunctionCallOutput):
            return copy_with(item, output=source.output)
        if self.is_cleared and isinstance(item, FunctionCallOutput):
            return cleared(item)
        if self.images or self.cut is not None:
            item = changed(item, self.images, self.cut)
        return cleared_call(item) if self.is_cleared and isinstance(item, FunctionCall) else item


def shows_less(edit: Edit | None, earlier: Edit | None) -> bool:
    """True if an item is shown less fully than before. A summary that stands for it counts as showing it."""
    if edit is None or edit.gone is Reason.COMPACTED:
        return False
    if earlier is None:
        return edit.action not in (Action.KEEP, Action.RESTORE)
    if edit.gone is not None or earlier.gone is not None:
        return earlier.gone is None
    if edit.is_cleared or earlier.is_cleared:
        return not earlier.is_cleared
    if edit.lines is not None or earlier.lines is not None:
        return earlier.lines is None or (edit.lines is not None and not set(earlier.lines) <= set(edit.lines))
    cut, earlier_cut = edit.cut, earlier.cut
    is_shorter = cut is not None and (earlier_cut is None or cut.kept < earlier_cut.kept)
    return is_shorter or not set(edit.images) <= set(earlier.images)
