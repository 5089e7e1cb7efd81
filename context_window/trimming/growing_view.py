"""`GrowingView`: a view to which the log's new items are added. They count in the sums with and without a provisional trim.

When to trim is decided in `fold.py`. Rules are cited by number: see `__init__.py`.
"""

from __future__ import annotations

from array import array
from bisect import insort
from collections.abc import Collection, Sequence

from session.items import Item
from session.units import (
    CONTEXT,
    FREE,
    HELD,
    KIND_CALL,
    KIND_OUTPUT,
    KIND_REASONING,
    KIND_SILENT,
    KIND_USER,
    NONE,
    prompt_text,
)

from .limits import Limits
from .plan import Reason
from .totals import Totals
from .view_contents import IN_VIEW, REASON_CODES, TOLD
from .view_state import ViewState
from .view_totals import Measured, Measures, Tally


class GrowingView(ViewState):
    """The view of a log so far, and what a new item does to it."""

    def __init__(self, limits: Limits, measures: Measures, totals: Totals, *, had_note: bool = False) -> None:
        super().__init__(limits, measures, totals, had_note=had_note)
        self._thinking: list[int] = []  # reasoning of the turn, if it will cost nothing in later ones
        self._last_tool_item = NONE

    def _tallies(self) -> tuple[Tally, ...]:
        return (self.tally,) if self._final_tally is None else (self.tally, self._final_tally)

    def _visible_lists(self) -> list[array[int]]:
        """Return the lists of visible positions in these sums, each list once."""
        if self._final_tally is None:
            return [] if self.tally.visible is None else [self.tally.visible]
        lists = [tally.visible for tally in self._tallies() if tally.visible is not None]
        return lists[:1] if len(lists) > 1 and lists[0] is lists[1] else lists

    def _append_to_view(self, measured: Measured, rank: int) -> None:
        """Add an item to the end of the view."""
        position = len(self._tokens)
        self._add_form(measured.tokens, IN_VIEW)
        for tally in self._tallies():
            tally.count(rank, measured.tokens, 1)
            tally.newer += measured.tokens
        for visible in self._visible_lists():
            visible.append(position)
        if measured.images:
            self._images[position] = measured.images
            self.tally.images += len(measured.images)
            self.tally.with_images.append(position)

    def _leave_out_orphan(self, measured: Measured) -> None:
        """Leave out an output without a call (rule 3, step 1)."""
        position = len(self._tokens)
        self._add_form(measured.tokens, REASON_CODES[Reason.ORPHAN])
        self.tally.altered += 1
        if self.tally.visible is None:
            self.tally.visible = array("q", range(position))

    def _add_form(self, tokens: int, hidden: int) -> None:
        self._tokens.append(tokens)
        self._cleared.append(0)
        self._summarised.append(0)
        self._hidden.append(hidden)

    def _update_earlier_items(self, item: Item, position: int) -> None:
        """Apply the effects of the new item on earlier ones."""
        groups, kind = self.groups, self.groups.kind[position]
        if self.limits.drops_thinking:
            self._note_turn(position)
        if kind == KIND_CALL:
            self.tally.unanswered += 1
        elif kind == KIND_OUTPUT:
            self._note_answer(groups.last_answered)
            self.refresh_visible()
            if self.results is not None:
                self.results.add(groups.last_answered, position)
        elif kind == KIND_REASONING and self.limits.binds_thinking:
            self.tally.thoughts.append(position)
        elif kind == KIND_SILENT and prompt_text(item) is not None:
            self.note_edit(NONE)  # the system prompt stands before everything
            self.refresh_visible()
        elif position in self.moved:
            self.note_edit(self.request_place(position))
            self.refresh_visible()

    def _note_turn(self, position: int) -> None:
        """Take note of the turn's reasoning and tools, and make the reasoning free if the item ends the turn (rule 13)."""
        kind = self.groups.kind[position]
        if kind == KIND_REASONING:
            self._thinking.append(position)
        elif kind in (KIND_CALL, KIND_OUTPUT):
            self._last_tool_item = position
        elif self._ends_turn(position):
            self.turn_start = position
            if self._thinking:
                self._free_thinking()

    def _ends_turn(self, position: int) -> bool:
        """True if the item is a user's message that is not sent together with outputs of the last response."""
        groups = self.groups
        is_prompt = groups.kind[position] == KIND_USER and groups.rank[position] != CONTEXT
        return is_prompt and bool(groups.response_starts) and self._last_tool_item < groups.response_starts[-1]

    def _free_thinking(self) -> None:
        """Count the turn's reasoning as free. No trim is provisional now."""
        for place in self._thinking:
            tokens = self._free[place] = self._tokens[place]
            self._changed.add(place)
            self.log_tokens -= tokens
            if not self._hidden[place]:
                self._count(self.tally, place, -tokens, 0)
            elif self._summarised[place]:
                self.tally.summarised -= tokens
            self._tokens[place] = 0
        self._thinking.clear()
        self.tally.edits += 1

    def _recategorise(self, place: int, rank: int) -> None:
        """Count an item for its new category instead of `rank`."""
        if not self._hidden[place]:
            self.tally.count(rank, -self._tokens[place], -1)
            self.tally.count(self.groups.rank[place], self._tokens[place], 1)

    def _first_replaced(self, replaces: Sequence[int]) -> int:
        """Return the position before which a view shows a summary of these items (rule 11); -1 if it shows it where the log has it."""
        groups = self.groups
        places = [self.moved.get(place, place) for place in replaces if groups.protection[place] != HELD]
        first = min(places, default=NONE)
        return groups.response[first] if first != NONE and groups.response[first] != NONE else first

    def _mark_summarised(self, places: Collection[int]) -> None:
        """Note that a summary stands for these items. The next trim drops them, and what earlier summaries replace of their units."""
        groups, summarised = self.groups, self._summarised
        places = [place for place in places if not (self._hidden[place] and summarised[place])]  # not again what has left for a summary
        self._changed.update(places)
        for place in places:
            if self._hidden[place] and not summarised[place]:
                for tally in self._tallies():
                    tally.summarised += self.log_form_tokens(place)
                    tally.summarised_items += 1
            summarised[place] = 1
        units = {groups.head[place] for place in places}
        members = {member for head in units for member in groups.members(head) if summarised[member]}
        self.tally.compacted = sorted({*self.tally.compacted, *members})

    def _note_answer(self, call: int) -> None:
        """Note that a call has its output. If its unit was dropped, it comes back (rule 7)."""
        groups = self.groups
        if self._hidden[call]:
            self._bring_back(groups.head[call])
            return
        for tally in self._tallies():
            tally.unanswered -= 1
        if groups.response[call] != groups.response_starts[-1]:  # it takes the place of a synthetic answer
            self.note_edit(self.request_place(call))

    def _bring_back(self, head: int) -> None:
        """Return a dropped unit to the view, except for reasoning that was bound to items that have gone."""
        groups = self.groups
        returning = []
        loss, removed = head, 0
        for place in groups.members(head):
            if not self._hidden[place]:
                continue
            loss, removed = min(loss, self.place_of_loss(place, self._hidden[place])), removed + TOLD[self._hidden[place]]
            if self.limits.binds_thinking and groups.kind[place] == KIND_REASONING:
                self._hidden[place] = REASON_CODES[Reason.BOUND_REASONING]
                self._changed.add(place)
                continue
            self._hidden[place] = IN_VIEW
            returning.append(place)
        self._changed.update(returning)
        for tally in self._tallies():
            tally.removed -= removed
            for place in returning:
                self._count(tally, place, self._tokens[place], 1)
                tally.unanswered += groups.kind[place] == KIND_CALL and not groups.answered[place]
                tally.altered -= not self.is_altered(place)
                if self._summarised[place]:
                    tally.summarised -= self.log_form_tokens(place)
                    tally.summarised_items -= 1
                tally.first = min(tally.first, place)
                if groups.protection[place] != FREE:
                    tally.protected = [*tally.protected, place]
                if place in self._images:
                    tally.images += len(self.visible_images(place))
                    tally.with_images = list(filter(self.visible_images, self._images))
            if self.results is not None:
                self.results.restore(tally, returning)
        if self.results is not None:
            self.results.note_undone()
        for visible in self._visible_lists():
            for place in returning:
                insort(visible, place)
        if summarised := [place for place in groups.members(head) if self._summarised[place]]:
            self._mark_summarised(summarised)
        self.note_edit(loss)
