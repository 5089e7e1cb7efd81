"""What is in a view: which items, and in which form. Every change a trim makes is made here, and can be undone.

Arrays go by position in the log. The sums, in `tally.py`, are kept, never computed anew: `tests/properties/test_accounts.py` recounts.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right, insort
from collections.abc import Collection, Iterator, Sequence
from copy import copy
from itertools import chain
from typing import Any

from session.units import FREE, HELD, KIND_CALL, KIND_OUTPUT, KIND_REASONING, NONE, PRIORITY

from .limits import Limits
from .plan import Cut, Reason
from .tally import Exhausted, Measured, Measures, Tally
from .totals import Totals

IN_VIEW = 0
_REASONS: tuple[Reason | None, ...] = (None, *Reason)
_CODES = {reason: code for code, reason in enumerate(_REASONS) if reason is not None}
_ABSENT = ...  # the same in a copy of the view, as no other object would be


class ViewState(Totals):
    """The view of a log so far.

    Attributes:
        measures: What costs are asked of.
        queues: By rank: positions in the order of completion. One stands for its unit if nothing has extended that since.
        exhausted: Where a provisional trim has taken all there is; None otherwise.
        passed_below: The ranks from which the last trim took what was within their shares.
        is_filled: True if what the last trim could not take was above the trigger by itself.
    """

    def __init__(self, limits: Limits, measures: Measures) -> None:
        super().__init__(limits)
        self.measures = measures
        self.queues = [array("q") for _ in PRIORITY]
        self._cleared = bytearray()
        self._summarised = bytearray()  # 1 where a summary stands for the item
        self._cuts: dict[int, Cut] = {}
        self._replaced: dict[int, tuple[int, ...]] = {}
        self._images: dict[int, tuple[tuple[int, int], ...]] = {}
        self._why: dict[int, Reason] = {}
        self._hidden: list[int] = []  # what has left the view since `settle`
        self._changed: set[int] = set()
        self.exhausted: Exhausted | None = None
        self.passed_below: frozenset[int] = frozenset()
        self.is_filled = False
        self._gone_now: set[int] = set()  # what a provisional trim has hidden
        self._before: Tally | None = None  # what a provisional trim started from
        self._journal: list[tuple[Any, int, Any]] = []

    # What is in it

    @property
    def shown(self) -> Sequence[int]:
        """The positions in the view, in order."""
        return range(len(self)) if self.tally.shown is None else self.tally.shown

    def gone(self, place: int) -> Reason | None:
        """Why the item is not in the view; None where it is."""
        return _REASONS[self._gone[place]]

    def is_cleared(self, place: int) -> bool:
        """Whether the output's content is a placeholder."""
        return bool(self._cleared[place])

    def cut(self, place: int) -> Cut | None:
        """Where the output is truncated."""
        return self._cuts.get(place)

    def replaced_images(self, place: int) -> tuple[int, ...]:
        """The parts that are images' placeholders."""
        return self._replaced.get(place, ())

    def why(self, place: int) -> Reason | None:
        """Why an item in the view is not what it was."""
        return self._why.get(place)

    def live_images(self, place: int) -> list[tuple[int, int]]:
        """The images of the item that are in the view, and what a placeholder would save."""
        if self._gone[place] or self._cleared[place]:
            return []
        replaced = self.replaced_images(place)
        return [image for image in self._images.get(place, ()) if image[0] not in replaced]

    def has_left(self, head: int) -> bool:
        """Whether anything of the unit is in the view."""
        gone = self._gone
        return not gone[head] or not all(gone[member] for member in self.groups.members(head))

    def is_summarised(self, head: int) -> bool:
        """Whether summaries stand for the whole unit. Its reasoning does not count: it may go for another reason, and must not decide."""
        kind = self.groups.kind
        return all(self._summarised[member] or kind[member] == KIND_REASONING for member in self.groups.members(head))

    def in_frontier(self, head: int) -> bool:
        """Whether the unit is part of what the model is about to read, or of what that answers."""
        groups = self.groups
        return groups.last[head] >= groups.frontier or (groups.last_user != NONE and groups.head[groups.last_user] == head)

    def is_altered(self, place: int) -> bool:
        """True if the item is not in the view, or not as it is in the log."""
        return bool(self._gone[place] or self._cleared[place] or place in self._replaced or place in self._cuts)

    def take_changed(self) -> set[int]:
        """Return the positions at which the view may have changed since this was last called, those of new items aside."""
        changed, self._changed = self._changed, set()
        return changed

    def is_protected(self, place: int) -> bool:
        """Whether no trim, were it made now, could drop the item."""
        head = self.groups.head[place]
        return bool(self.groups.held[head]) or self.in_frontier(head)

    def keeps_images(self, place: int) -> bool:
        """Whether the item's images are never replaced, whatever comes."""
        groups = self.groups
        return groups.own[place] != FREE or groups.held[groups.head[place]] == HELD

    def staying(self) -> Iterator[int]:
        """The items of the view that no trim could take, were it made now; of those that are kept, the oldest first."""
        groups, tally = self.groups, self.tally
        if len(groups.kept) - tally.kept_to > len(tally.kept):  # not at every trim: looking at all of them would cost their number
            tally.kept = [place for place in chain(tally.kept, groups.kept[tally.kept_to :]) if not self._gone[place]]
            tally.kept_to = len(groups.kept)
        user = () if groups.last_user == NONE else (groups.last_user,)
        more = (groups.kept[at] for at in range(tally.kept_to, len(groups.kept)))
        heads: set[int] = set()
        for place in chain(user, range(groups.frontier, len(self)), tally.kept, more):
            head = groups.head[place]
            if head in heads or (self._gone[place] and place < groups.frontier):
                continue
            heads.add(head)
            yield from (member for member in groups.members(head) if not self._gone[member])

    # What comes in

    def tallies(self) -> tuple[Tally, ...]:
        """The sums that what comes in belongs to: where a provisional trim goes on, those from before it too."""
        return (self.tally,) if self._before is None else (self.tally, self._before)

    def _shown_lists(self) -> list[array[int]]:
        """Their lists of what is shown, each once."""
        lists = [tally.shown for tally in self.tallies() if tally.shown is not None]
        return lists[:1] if len(lists) > 1 and lists[0] is lists[1] else lists

    def enter(self, measured: Measured, rank: int) -> None:
        """An item joins the view at its end."""
        here = len(self._tokens)
        self._tokens.append(measured.tokens)
        self._cleared.append(0)
        self._summarised.append(0)
        self._gone.append(IN_VIEW)
        is_said = self.anchor is not None and self.groups.response[here] == self.anchor.place
        for tally in self.tallies():
            tally.count(rank, measured.tokens, 1)
            tally.fresh += measured.tokens
            tally.said += measured.tokens if is_said else 0
        for shown in self._shown_lists():
            shown.append(here)
        if measured.images:
            self._images[here] = measured.images
            self.tally.images += len(measured.images)
            self.tally.pictured.append(here)

    def turn_away(self, measured: Measured) -> None:
        """An output without a call never is in the view."""
        here = len(self._tokens)
        self._tokens.append(measured.tokens)
        self._cleared.append(0)
        self._summarised.append(0)
        self._gone.append(_CODES[Reason.ORPHAN])
        self.tally.altered += 1
        if self.tally.shown is None:
            self.tally.shown = array("q", range(here))

    def summarise(self, places: Collection[int]) -> None:
        """A summary stands for these items: they are to go, with what one before it stands for of the same units."""
        groups, summarised = self.groups, self._summarised
        for place in places:
            summarised[place] = 1
        units = {groups.head[place] for place in places}
        self.tally.compacted = sorted(
            {*self.tally.compacted, *(member for head in units for member in groups.members(head) if summarised[member])}
        )

    def recategorise(self, place: int, rank: int) -> None:
        """An item counts for another category than for `rank`."""
        if not self._gone[place]:
            self.tally.count(rank, -self._tokens[place], -1)
            self.tally.count(self.groups.rank[place], self._tokens[place], 1)

    def bring_back(self, head: int) -> None:
        """A dropped unit is in the view again, but for reasoning that was bound to what is there no more."""
        groups = self.groups
        back = []
        for place in groups.members(head):
            if not self._gone[place]:
                continue
            if self.limits.binds_thinking and groups.kind[place] == KIND_REASONING:
                self._gone[place] = _CODES[Reason.BOUND_REASONING]
                continue
            self._gone[place] = IN_VIEW
            back.append(place)
        self._changed.update(back)
        for tally in self.tallies():
            for place in back:
                tally.count(groups.rank[place], self._tokens[place], 1)
                self._taken(place, -self._tokens[place], tally)
                tally.unanswered += groups.kind[place] == KIND_CALL and not groups.answered[place]
                tally.altered -= not self.is_altered(place)
                tally.first = min(tally.first, place)
                if groups.own[place] != FREE:
                    tally.kept = [*tally.kept, place]
                if place in self._images:
                    tally.images += len(self.live_images(place))
                    tally.pictured = list(filter(self.live_images, self._images))
        for shown in self._shown_lists():
            for place in back:
                insort(shown, place)
        if summarised := [place for place in groups.members(head) if self._summarised[place]]:
            self.summarise(summarised)
        self.edited(head)

    # What a trim changes

    def drop(self, head: int, reason: Reason) -> None:
        """The unit leaves the view."""
        members = [member for member in self.groups.members(head) if not self._gone[member]]
        for member in members:
            self._hide(member, reason)
        self.edited(members[0])

    def clear(self, place: int, reason: Reason) -> None:
        """The output's content becomes a placeholder."""
        if place in self._images:
            self.tally.images -= len(self.live_images(place))
        self._alter(place, self.measures.cleared(place), reason)
        self._set(self._cleared, place, 1)

    def replace_image(self, place: int, part: int, saved: int) -> None:
        """An image of the item becomes a placeholder."""
        self._alter(place, self._tokens[place] - saved, Reason.LAST_RESORT if place in self._cuts else Reason.TOO_MANY_IMAGES)
        self._set(self._replaced, place, (*self.replaced_images(place), part))
        self.tally.images -= 1

    def truncate(self, place: int, cut: Cut) -> None:
        """The output loses its middle."""
        self._alter(place, cut.tokens, Reason.LAST_RESORT)
        self._set(self._cuts, place, cut)

    def edited(self, place: int) -> None:
        """The request changes at this place: where reasoning is bound to what precedes it, all reasoning after it goes."""
        self.tally.edits += 1
        thoughts = self.tally.thoughts
        if thoughts and thoughts[-1] > place:
            kept = bisect_right(thoughts, place)
            self.tally.thoughts = thoughts[:kept]
            for thought in thoughts[kept:]:
                if not self._gone[thought] and self.groups.own[thought] != HELD:
                    self._hide(thought, Reason.BOUND_REASONING)

    def wire_place(self, place: int) -> int:
        """Where a request shows a change of this item: outputs stand right after the calls of their response."""
        groups = self.groups
        if groups.kind[place] not in (KIND_CALL, KIND_OUTPUT):
            return place
        return groups.last_call[groups.head[place]]

    def settle(self) -> None:
        """Brings `shown` up to date after items have left."""
        if not self._hidden:
            return
        before = array("q", self.shown) if self.tally.shown is None else self.tally.shown
        shown = array("q")
        done = 0
        for place in sorted(set(self._hidden)):
            at = bisect_left(before, place, done)
            if self._gone[place] and at < len(before) and before[at] == place:
                shown += before[done:at]
                done = at + 1
        self.tally.shown = shown + before[done:]
        self._hidden.clear()

    def _alter(self, place: int, tokens: int, reason: Reason) -> None:
        """An item in the view costs something else from now on."""
        self.tally.altered += not self.is_altered(place)
        self.tally.count(self.groups.rank[place], tokens - self._tokens[place], 0)
        self._taken(place, self._tokens[place] - tokens, self.tally)
        self._set(self._tokens, place, tokens)
        self._set(self._why, place, reason)
        self._changed.add(place)
        self.edited(self.wire_place(place))

    def _hide(self, place: int, reason: Reason) -> None:
        tally, groups = self.tally, self.groups
        if place in self._images:
            tally.images -= len(self.live_images(place))
        tally.altered += not self.is_altered(place)
        self._set(self._gone, place, _CODES[reason])
        tally.count(groups.rank[place], -self._tokens[place], -1)
        self._taken(place, self._tokens[place], tally)
        tally.unanswered -= groups.kind[place] == KIND_CALL and not groups.answered[place]
        self._hidden.append(place)
        if self._before is not None:
            self._gone_now.add(place)
        self._changed.add(place)

    def _taken(self, place: int, tokens: int, tally: Tally) -> None:
        """So many tokens of the item have left the view; fewer than none where more have come."""
        if self.anchor is None or place >= self.anchor.place:
            tally.fresh -= tokens
        else:
            tally.removed += tokens

    # Taking back

    def begin(self) -> None:
        """From here on changes are provisional."""
        self._before = copy(self.tally)

    def commit(self) -> None:
        """Provisional changes are final."""
        self._before = self.exhausted = None
        self._gone_now.clear()
        self._journal.clear()

    def roll_back(self) -> None:
        """Provisional changes are undone."""
        if self._before is None:
            return
        self.tally, self._before, self.exhausted = self._before, None, None
        self._gone_now.clear()
        for where, place, old in reversed(self._journal):
            self._changed.add(place)
            if old is _ABSENT:
                del where[place]
            else:
                where[place] = old
        self._journal.clear()

    def _set(self, where: Any, place: int, value: Any) -> None:
        """`where[place] = value`, remembered while changes are provisional."""
        if self._before is not None:
            old = where.get(place, _ABSENT) if isinstance(where, dict) else where[place]
            self._journal.append((where, place, old))
        where[place] = value
