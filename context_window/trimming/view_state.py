"""Every change to a view. A trim's changes can be provisional: then they can be undone.

How items come in is in `fold.py`; what to take is decided in `trim.py`.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any

from session.units import HELD, KIND_CALL, KIND_OUTPUT, NONE

from .digests import Excerpt
from .limits import Limits
from .plan import Cut, Reason
from .terms import TermIndex
from .totals import Totals
from .view_contents import REASON_CODES, TOLD, ViewContents
from .view_totals import Measures, Tally

_ABSENT = ...  # stays the same object in a copy of the view


class ViewState(ViewContents):
    """The view of a log so far, and what a trim can do to it.

    Attributes:
        terms: The terms of the log. Read when lines are first chosen.
    """

    def __init__(self, limits: Limits, measures: Measures, totals: Totals, *, had_note: bool = False) -> None:
        super().__init__(limits, measures, totals, had_note=had_note)
        self._just_hidden: list[int] = []  # since `refresh_visible`
        self._changed: set[int] = set()
        self._hidden_provisionally: set[int] = set()
        self._final_tally: Tally | None = None  # the sums before a provisional trim
        self._journal: list[tuple[Any, int, Any]] = []  # changes of a provisional trim: container, position, old value
        self.terms = TermIndex()

    def drop(self, head: int, reason: Reason) -> None:
        """Take the unit out of the view."""
        members = [member for member in self.groups.members(head) if not self._hidden[member]]
        for member in members:
            self._hide(member, reason)
        place = self.request_place(members[0]) if members[0] in self.moved or self.digests.has(members[0]) else members[0]
        self.note_edit(self.place_of_loss(place, REASON_CODES[reason]))

    def place_of_loss(self, place: int, code: int) -> int:
        """Return the position at which the request changes if this item leaves or returns: its beginning if its first line tells of it."""
        return NONE if self.limits.note_removed and TOLD[code] else place

    def clear(self, place: int, reason: Reason) -> None:
        """Put a placeholder for the output's content, or for each long value in the call's arguments."""
        if place in self._images:
            self.tally.images -= len(self.visible_images(place))
        self._alter(place, self.cleared_tokens(place), reason)
        self._set(self._cleared, place, 1)
        if self.results is not None:
            self.results.note_gone(place)

    def keep_only(self, head: int, places: Mapping[int, Excerpt]) -> None:
        """Take all items of the unit but these out of the view: no lines of them stay."""
        self.leave([place for place in self.groups.members(head) if place not in places and not self._hidden[place]])

    def leave(self, leaving: Sequence[int]) -> None:
        """Take these items out of the view: nothing is left of what they belong to, or only lines."""
        if leaving:
            edited = min(self.digests.before.get(place, place + 1) - 1 for place in leaving)
            for place in leaving:
                self._hide(place, Reason.NO_LINES)
            self.note_edit(edited)

    def put_into_digest(self, excerpts: Mapping[int, Excerpt], reason: Reason) -> None:
        """Show these lines of items in one digest, which stands before the first of them or its response (rule 16).

        Their images and documents are taken out.
        """
        digests, response = self.digests, self.groups.response
        before = min(place if response[place] == NONE else response[place] for place in excerpts)
        changed = [
            place
            for place, excerpt in sorted(excerpts.items())
            if (excerpt.lines, before) != (digests.lines.get(place), digests.before.get(place))
        ]
        if not changed:
            return
        edited = min(before, *(digests.before.get(place, before) for place in changed)) - 1
        for place in changed:
            if place in self._images:
                self.tally.images -= len(self.visible_images(place))
            self._resize(place, excerpts[place].tokens, reason)
            if self.digests.has(place):
                self._take_out_of_digest(place)
            digests.put(place, excerpts[place].lines, before, self._set)
            self.tally.digests += digests.sizes[before] == 1
            if self.results is not None:
                self.results.note_gone(place)
        number = digests.enter(before)
        for tally in (self.tally, self.final_tally):
            tally.first_digest = min(tally.first_digest, number)
        self.note_edit(edited)

    def _take_out_of_digest(self, place: int) -> None:
        before = self.digests.before[place]
        self.digests.take_out(place, self._set)
        self.tally.digests -= not self.digests.sizes[before]

    def replace_image(self, place: int, part: int, saved: int, reason: Reason) -> None:
        """Put a placeholder for one image of the item."""
        self._alter(place, self._tokens[place] - saved, Reason.LAST_RESORT if place in self._cuts else reason)
        self._set(self._replaced, place, (*self.replaced_images(place), part))
        self.tally.images -= 1

    def truncate(self, place: int, cut: Cut) -> None:
        """Take out the middle of the item's text."""
        self._alter(place, cut.tokens - self.saved_by_images(place), Reason.LAST_RESORT)
        self._set(self._cuts, place, cut)

    def move(self, place: int, before: int) -> None:
        """Show a new summary before another position than its own (rule 11)."""
        self.moved[place] = before
        at = bisect_right(self._moved_in_order, (before, place))
        self._moved_in_order.insert(at, (before, place))
        for tally in (self.tally, self.final_tally):
            tally.first_moved = min(tally.first_moved, at)

    def note_edit(self, place: int) -> None:
        """Note that the request changes at this position. If reasoning is bound to what precedes it, all reasoning after it is dropped."""
        self.tally.edits += 1
        thoughts = self.tally.thoughts
        if thoughts and thoughts[-1] > place:
            count = bisect_right(thoughts, place)
            self.tally.thoughts = thoughts[:count]
            for thought in thoughts[count:]:
                if not self._hidden[thought] and self.groups.protection[thought] != HELD:
                    self._hide(thought, Reason.BOUND_REASONING)

    def note_usage(self) -> None:
        """Add the line about usage to the end of the request, if it is due and not there yet (rule 17)."""
        tally = self.tally
        if tally.usage_noted == NONE and self.groups.is_followed and self.speaks_before(len(self)):
            tally.usage_noted = len(self) if self.total >= self.limits.usage_noted_from else NONE

    def withdraw_usage_note(self) -> None:
        """Take the line about usage away after a trim, if it is no longer due. If all before it has gone, it moves to the end (rule 17)."""
        tally, place = self.tally, self.tally.usage_noted
        if place == NONE:
            return
        if self.total < self.limits.usage_noted_from:
            tally.usage_noted = NONE
        elif not self.speaks_before(place):
            tally.usage_noted = NONE
            self.note_usage()
        if tally.usage_noted != place < len(self):
            self.note_edit(place - 1)

    def request_place(self, place: int) -> int:
        """Return the position at which a request shows a change of this item.

        Outputs stand right after the calls of their response, a summary or digest before the position that it is shown before.
        """
        groups = self.groups
        if place in self.moved:
            return self.moved[place] - 1
        if self.digests.has(place):
            return self.digests.before[place] - 1
        if groups.kind[place] not in (KIND_CALL, KIND_OUTPUT):
            return place
        return groups.last_call[groups.head[place]]

    def _alter(self, place: int, tokens: int, reason: Reason) -> None:
        """Change the cost of a visible item, which changes the request there."""
        self._resize(place, tokens, reason)
        self.note_edit(place if self.groups.kind[place] == KIND_CALL else self.request_place(place))

    def _resize(self, place: int, tokens: int, reason: Reason) -> None:
        """Change the cost of a visible item."""
        self.tally.altered += not self.is_altered(place)
        self._count(self.tally, place, tokens - self._tokens[place], 0)
        self._set(self._tokens, place, tokens)
        self._set(self._change_reasons, place, reason)
        self._changed.add(place)

    def _hide(self, place: int, reason: Reason) -> None:
        tally, groups = self.tally, self.groups
        if place in self._images:
            tally.images -= len(self.visible_images(place))
        tally.altered += not self.is_altered(place)
        self._set(self._hidden, place, REASON_CODES[reason])
        if self.results is not None:
            self.results.note_gone(place)
        tally.removed += TOLD[REASON_CODES[reason]]
        self._count(tally, place, -self._tokens[place], -1)
        if self._summarised[place]:
            tally.summarised += self.log_form_tokens(place)
            tally.summarised_items += 1
        tally.unanswered -= groups.kind[place] == KIND_CALL and not groups.answered[place]
        if self.digests.has(place):
            self._take_out_of_digest(place)
        self._just_hidden.append(place)
        if self._final_tally is not None:
            self._hidden_provisionally.add(place)
        self._changed.add(place)

    def _count(self, tally: Tally, place: int, tokens: int, items: int) -> None:
        """Add to the sums of an item's category."""
        tally.count(self.groups.rank[place], tokens, items)
        if place >= self.mark:
            tally.newer += tokens

    def set_mark(self, place: int) -> None:
        """Sum the items from this position on apart from those before it. Not while a trim is provisional."""
        self.mark = place
        self.tally.newer = sum(map(self.tokens, range(place, len(self)))) if place else self.tally.total
        self.tokens_at_mark = self.tally.total - self.tally.newer

    # Provisional changes

    @property
    def final_tally(self) -> Tally:
        """The sums without a provisional trim."""
        return self.tally if self._final_tally is None else self._final_tally

    def begin(self) -> None:
        """Make changes provisional from here on."""
        self._final_tally = copy(self.tally)

    def commit(self) -> None:
        """Make provisional changes final."""
        self._final_tally = self.exhausted = None
        self._hidden_provisionally.clear()
        self._journal.clear()

    def roll_back(self) -> None:
        """Undo provisional changes."""
        if self._final_tally is None:
            return
        self.tally, self._final_tally, self.exhausted = self._final_tally, None, None
        self._hidden_provisionally.clear()
        if self.results is not None:
            self.results.note_undone()
        for container, place, old in reversed(self._journal):
            self._changed.add(place)
            if old is _ABSENT:
                del container[place]
            else:
                container[place] = old
        self._journal.clear()

    def _set(self, container: Any, place: int, value: Any) -> None:
        """Assign `container[place] = value` and remember the old value while changes are provisional."""
        if self._final_tally is not None:
            old = container.get(place, _ABSENT) if isinstance(container, dict) else container[place]
            self._journal.append((container, place, old))
        container[place] = value

    # For readers

    def take_changed(self) -> set[int]:
        """Return the positions at which the view may have changed since the last call, except for new items."""
        changed, self._changed = self._changed, set()
        return changed

    def refresh_visible(self) -> None:
        """Bring `visible` up to date after items have left."""
        if not self._just_hidden:
            return
        before = array("q", self.visible) if self.tally.visible is None else self.tally.visible
        visible = array("q")
        done = 0
        for place in sorted(set(self._just_hidden)):
            at = bisect_left(before, place, done)
            if self._hidden[place] and at < len(before) and before[at] == place:
                visible += before[done:at]
                done = at + 1
        self.tally.visible = visible + before[done:]
        self._just_hidden.clear()
