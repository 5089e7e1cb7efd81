"""The items of a view, their forms, and their costs. Nothing here changes a view: that is in `view_state.py`.

Arrays are indexed by position in the log. Sums are kept up to date, never recomputed:
`tests/properties/test_accounts.py` recounts them.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from itertools import chain, compress
from operator import not_

from session.units import FREE, HELD, KIND_CALL, KIND_NOTE, KIND_REASONING, KIND_SILENT, KIND_USER, NONE, PRIORITY, Grouping

from .digests import Digests
from .limits import Limits
from .plan import Cut, Reason
from .results_by_rule import ResultsByRule
from .totals import Totals
from .view_totals import Measures, Tally

IN_VIEW = 0
_REASONS: tuple[Reason | None, ...] = (None, *Reason)
REASON_CODES = {reason: code for code, reason in enumerate(_REASONS) if reason is not None}
"""Each reason as a number from 1, for an array of bytes. 0 is `IN_VIEW`."""
_UNTOLD = (None, Reason.ORPHAN, Reason.COMPACTED, Reason.REPLACED_PROMPT, Reason.BOUND_REASONING, Reason.NO_LINES)
"""The line about removed items does not tell of these: no call has them, something else stands for them, they are bound to what the model
does not see, or extracts stand around them."""
TOLD = bytes(code < len(_REASONS) and _REASONS[code] not in _UNTOLD for code in range(256))
"""By code: 1 if the line about removed items tells of them."""

KEY_BITS = 32
UNMOVED = (1 << KEY_BITS) - 1
"""The lower half of the order key of an item that is shown where the log has it. Summaries shown before it have their position there."""


def place_of(order_key: int) -> int:
    """Return the position in the log of the item with this order key."""
    moved_place = order_key & UNMOVED
    return order_key >> KEY_BITS if moved_place == UNMOVED else moved_place


class ViewContents:
    """The view of a log so far.

    Attributes:
        limits: The limits of the view.
        measures: Gives the costs of the forms that an item might take.
        totals: Corrects the local count of a request.
        had_note: True if the log is a view that came with a line about removed items.
        groups: The units of the log.
        log_tokens: Tokens of all items of the log, with notes in place of refused parts.
        tally: The sums of the view.
        results: The results that do not go by their age alone; None if the limits have no rules for them.
        turn_start: Position of the user's message that ended the last turn, if reasoning is dropped with its turn (rule 13).
        mark: A position in the log. `tally.newer` sums the items from it on; `totals` sets it.
        tokens_at_mark: Tokens of the items before the mark when it was set.
        queues: By rank, positions in the order of completion. A position stands for its unit if nothing has extended the unit since.
        moved: Positions of summaries, each with the position before which the view shows it (rule 11).
        digests: The digests of the view (rule 16).
        exhausted: Length of the log at a provisional trim that took everything that can be taken, else None.
        passed_below: Ranks that the last trim took below their share.
        is_filled: True if the items that the last trim could not take exceeded the trigger on their own.
    """

    def __init__(self, limits: Limits, measures: Measures, totals: Totals, *, had_note: bool = False) -> None:
        self.limits = limits
        self.had_note = had_note
        self.measures = measures
        self.totals = totals
        self.groups = Grouping()
        self.log_tokens = 0
        self.tally = Tally()
        self.results = None if limits.clears_by_age else ResultsByRule(self)
        self.mark = self.tokens_at_mark = 0
        self.queues = [array("q") for _ in PRIORITY]
        self.moved: dict[int, int] = {}
        self._moved_in_order: list[tuple[int, int]] = []  # (shown before, position) of the summaries
        self.exhausted: int | None = None
        self.passed_below: frozenset[int] = frozenset()
        self.is_filled = False
        self._tokens = array("q")
        self.turn_start = NONE
        self._free: dict[int, int] = {}  # reasoning of earlier turns that costs nothing, and what it cost
        self._hidden = bytearray()  # IN_VIEW, or the code of the reason why the item is not in the view
        self.digests = Digests(self._hidden)
        self._cleared = bytearray()
        self._summarised = bytearray()  # 1 if a summary stands for the item
        self._cuts: dict[int, Cut] = {}
        self._replaced: dict[int, tuple[int, ...]] = {}
        self._images: dict[int, tuple[tuple[int, int], ...]] = {}
        self._change_reasons: dict[int, Reason] = {}

    def __len__(self) -> int:
        return len(self._tokens)

    # Costs

    def tokens(self, place: int) -> int:
        """Return the tokens of the item in the view, 0 if it is not there."""
        return 0 if self._hidden[place] else self._tokens[place]

    def form_tokens(self, place: int) -> int:
        """Return the tokens of the item in the form it has or had last, in the view or not, and free or not."""
        return self._tokens[place] + self.free_tokens(place)

    def log_form_tokens(self, place: int) -> int:
        """Return the tokens of the item as the log has it; 0 if it is free."""
        return self.measures.unchanged(place) - self.free_tokens(place)

    def free_tokens(self, place: int) -> int:
        """Return what reasoning of an earlier turn cost while it was in the prompt; 0 for any other item."""
        return self._free.get(place, 0)

    @property
    def overhead(self) -> int:
        """Tokens of the request besides the items of the view, by the local count. What converters must add is included."""
        limits = self.limits
        opening = limits.note if self.has_note else limits.preamble if self._needs_preamble() else 0
        closing = limits.closing if self.needs_closing else 0
        usage_note = limits.usage_note if self.tally.usage_noted != NONE else 0
        repeated = limits.synthetic * self.tally.unanswered + limits.digest * self.tally.digests
        return limits.overhead + opening + closing + usage_note + repeated

    @property
    def needs_closing(self) -> bool:
        """True if the request ends with a closing line. The line about usage, if it stands there, takes its place."""
        return self.groups.needs_closing and self.tally.usage_noted <= self.groups.response_starts[-1]

    @property
    def has_note(self) -> bool:
        """True if the request begins with a line about removed items."""
        return self.had_note or (self.limits.note_removed and self.tally.removed > 0)

    @property
    def counted(self) -> int:
        """Tokens of the request with this view, by the local count."""
        return self.overhead + self.tally.total

    @property
    def total(self) -> int:
        """Tokens of the request with this view: the local count and its correction."""
        tally = self.tally
        correction = self.totals.correction(self, tally.newer, self.tokens_at_mark - tally.total + tally.newer)
        return max(0, self.overhead + tally.total + correction)

    @property
    def correction(self) -> int:
        """Tokens that the request costs beyond the local count; 0 if nothing but the local count is known."""
        return self.total - self.counted

    @property
    def removed(self) -> int:
        """Tokens taken from the items before the mark since it was set; negative if some came back."""
        return self.tokens_at_mark - (self.tally.total - self.tally.newer)

    @property
    def first_moved(self) -> tuple[int, int] | None:
        """The first summary of the view that is not where the log has it: the position that it is shown before, and its own."""
        order, at = self._moved_in_order, self.tally.first_moved
        while at < len(order) and self._hidden[order[at][1]]:
            at += 1
        self.tally.first_moved = at
        return order[at] if at < len(order) else None

    def order_key(self, place: int) -> int:
        """Return a number that rises with the place of an item in the view. `place_of` is its inverse.

        The first item of a digest stands for it. The others of it are not shown by themselves.
        """
        before = self.moved.get(place, self.digests.before.get(place))
        return place << KEY_BITS | UNMOVED if before is None else before << KEY_BITS | place

    @property
    def first_digest(self) -> int | None:
        """The position before which the view's first digest stands; None if there is none."""
        self.tally.first_digest = self.digests.first_from(self.tally.first_digest)
        return self.digests.at(self.tally.first_digest)

    def _needs_preamble(self) -> bool:
        """True if the first item of the view that becomes a message is not the user's."""
        first, kind = self._first_spoken(), self.groups.kind
        summary, digest = self.first_moved, self.first_digest if self.tally.digests else None
        if digest is not None and digest <= first and (summary is None or self._is_before(digest, summary)):
            return False
        if summary is not None and summary[0] <= first:
            return True
        return first < len(kind) and kind[first] not in (KIND_USER, KIND_NOTE)

    def _is_before(self, digest: int, summary: tuple[int, int]) -> bool:
        """True if a digest stands before a summary. At the same position the log's order counts."""
        return (digest, self.digests.items(digest)[0]) < summary

    def speaks_before(self, place: int) -> bool:
        """True if an item of the view that becomes a message stands before this position."""
        summary, digest = self.first_moved, self.first_digest if self.tally.digests else None
        is_moved_before = any(before is not None and before < place for before in (summary and summary[0], digest))
        return is_moved_before or self._first_spoken() < place

    def _first_spoken(self) -> int:
        """Return the position of the view's first item that becomes a message, without those that are shown elsewhere."""
        hidden, kind, digested = self._hidden, self.groups.kind, self.digests.before
        first = self.tally.first
        while first < len(hidden) and (hidden[first] or kind[first] == KIND_SILENT or first in digested):
            first += 1
        self.tally.first = first
        return first

    # Contents

    @property
    def visible(self) -> Sequence[int]:
        """The positions in the view, in order."""
        return range(len(self)) if self.tally.visible is None else self.tally.visible

    def hidden_reason(self, place: int) -> Reason | None:
        """Return why the item is not in the view; None if it is."""
        return _REASONS[self._hidden[place]]

    def visible_among(self, places: Sequence[int]) -> list[int]:
        """Return those of the positions that are in the view."""
        return list(compress(places, map(not_, map(self._hidden.__getitem__, places))))

    @property
    def removed_range(self) -> tuple[int, int]:
        """The positions of the first and the last item that the line about removed items counts; (-1, -1) if there is none."""
        flags = self._hidden.translate(TOLD)
        return flags.find(1), flags.rfind(1)

    def change_reason(self, place: int) -> Reason | None:
        """Return why an item is in the view in a smaller form; None if it is unchanged."""
        return self._change_reasons.get(place)

    def is_cleared(self, place: int) -> bool:
        """True if placeholders stand for the output's content, or for the long values of the call's arguments."""
        return bool(self._cleared[place])

    def response(self, place: int) -> int:
        """Return the position at which the response of an item begins, -1 if it is in none. A digest is in none."""
        return NONE if self.digests.has(place) else self.groups.response[place]

    def is_shortened(self, place: int) -> bool:
        """True if a placeholder or lines stand for the item's content."""
        return bool(self._cleared[place]) or self.digests.has(place)

    def cleared_tokens(self, place: int) -> int:
        """Return the tokens that the output or call would have if it were cleared now."""
        return self.measures.cleared(place, self._cuts.get(place) if self.groups.kind[place] == KIND_CALL else None)

    def cut(self, place: int) -> Cut | None:
        """Return how the item is truncated, if it is."""
        return self._cuts.get(place)

    def replaced_images(self, place: int) -> tuple[int, ...]:
        """Return the parts of the item that are placeholders of images."""
        return self._replaced.get(place, ())

    def visible_images(self, place: int) -> list[tuple[int, int]]:
        """Return the images of the item that are in the view: the part of each, and the tokens that a placeholder would save."""
        if self._hidden[place] or self.is_shortened(place):
            return []
        replaced = self.replaced_images(place)
        return [image for image in self._images.get(place, ()) if image[0] not in replaced]

    def saved_by_images(self, place: int) -> int:
        """Return the tokens that the placeholders of the item's images save."""
        replaced = self.replaced_images(place)
        return sum(saved for part, saved in self._images.get(place, ()) if part in replaced)

    def is_altered(self, place: int) -> bool:
        """True if the view hides or changes the item."""
        return bool(self._hidden[place] or self.is_shortened(place) or place in self._replaced or place in self._cuts)

    def is_replaced(self, place: int) -> bool:
        """True if the item is not in the view because a summary stands for it, whether or not a trim hid it before."""
        return bool(self._hidden[place] and self._summarised[place])

    def has_summary(self, place: int) -> bool:
        """True if a summary stands for the item, in the view or not."""
        return bool(self._summarised[place])

    def is_visible(self, head: int) -> bool:
        """True if at least one item of the unit is in the view."""
        hidden = self._hidden
        return not hidden[head] or not all(hidden[member] for member in self.groups.members(head))

    def is_summarised(self, head: int) -> bool:
        """True if summaries stand for the whole unit. Its reasoning does not count: it may leave for another reason."""
        kind, is_any = self.groups.kind, False
        for member in self.groups.members(head):
            if self._summarised[member]:
                is_any = True
            elif kind[member] != KIND_REASONING:
                return False
        return is_any

    def in_frontier(self, head: int) -> bool:
        """True if an item of the unit is in the frontier (rule 6)."""
        groups = self.groups
        return groups.last[head] >= groups.frontier or (groups.last_user != NONE and groups.head[groups.last_user] == head)

    @property
    def first_message(self) -> int:
        """The position of the first user message in the view if it is kept, -1 otherwise. Those of category CONTEXT do not count."""
        if not self.limits.keep_first_message:
            return NONE
        messages, at = self.groups.user_messages, self.tally.first_message
        while at < len(messages) and self._hidden[messages[at]]:
            at += 1
        self.tally.first_message = at
        return messages[at] if at < len(messages) else NONE

    def is_spared(self, head: int) -> bool:
        """True if the unit is not dropped while there is anything else: it is in the frontier, is the first message, or a rule keeps it."""
        if self.in_frontier(head) or head == self.first_message:
            return True
        return self.results is not None and self.results.has_kept(head)

    def is_protected(self, place: int) -> bool:
        """True if no trim could drop the item now. The first message counts: it goes only after everything else."""
        head = self.groups.head[place]
        return bool(self.groups.unit_protection[head]) or self.is_spared(head)

    def keeps_images(self, place: int) -> bool:
        """True if the item's images are never replaced, whatever follows."""
        groups = self.groups
        return groups.protection[place] != FREE or groups.unit_protection[groups.head[place]] == HELD

    def protected_places(self) -> Iterator[int]:
        """Yield the visible items that no trim could take now, in no particular order but always the same."""
        groups, tally = self.groups, self.tally
        if len(groups.protected) - tally.protected_to > len(tally.protected):  # not at every trim: the cost is their number
            candidates = chain(tally.protected, groups.protected[tally.protected_to :])
            tally.protected = [place for place in candidates if not self._hidden[place]]
            tally.protected_to = len(groups.protected)
        by_rule = () if self.results is None else self.results.kept()
        users = (place for place in (groups.last_user, self.first_message) if place != NONE)
        newest = (groups.protected[at] for at in range(tally.protected_to, len(groups.protected)))
        heads: set[int] = set()
        for place in chain(users, range(groups.frontier, len(self)), by_rule, tally.protected, newest):
            head = groups.head[place]
            if head in heads or (self._hidden[place] and place < groups.frontier):
                continue
            heads.add(head)
            yield from (member for member in groups.members(head) if not self._hidden[member])
