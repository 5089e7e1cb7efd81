"""`Fold`: reads a log item by item and trims the view wherever the model was called. Rules are cited by number: see `__init__.py`."""

from __future__ import annotations

from array import array
from bisect import insort
from collections.abc import Collection, Sequence

from session.items import AgentConfigUpdate, AgentHandoff, FunctionCallOutput, Item, Message, MessageCategory
from session.providers.native_compaction import is_native
from session.units import (
    CONTEXT,
    FREE,
    HELD,
    KIND_CALL,
    KIND_ORPHAN,
    KIND_OUTPUT,
    KIND_REASONING,
    KIND_SILENT,
    KIND_USER,
    NONE,
    RANK,
    is_answer,
    is_summary,
    prompt_text,
)

from .frontier import extend
from .limits import Limits
from .plan import Reason
from .totals import LocalTotals, Totals
from .trim import trim
from .view_contents import IN_VIEW, REASON_CODES, TOLD
from .view_state import ViewState
from .view_totals import Measured, Measures, Tally


class Fold(ViewState):
    """The view of a log that grows.

    Attributes:
        decides_from: Nothing is decided at request points before this position.
        noted_after: The position after which the log came with a line about usage; -1 if it came without one.
    """

    def __init__(
        self,
        limits: Limits,
        measures: Measures,
        totals: Totals | None = None,
        *,
        decides_from: int = 0,
        had_note: bool = False,
        noted_after: int = NONE,
    ) -> None:
        """
        Args:
            limits: The limits of the view.
            measures: Gives the costs of the forms that an item might take.
            totals: Corrects the local count of a request; None if the local count is all that is known.
            decides_from: As the attribute.
            had_note: As the attribute.
            noted_after: As the attribute.
        """
        super().__init__(limits, measures, LocalTotals() if totals is None else totals, had_note=had_note)
        self.decides_from = decides_from
        self.noted_after = noted_after
        self._is_concluded = False
        self._thinking: list[int] = []  # reasoning of the turn, if it will cost nothing in later ones
        self._last_tool_item = NONE

    def add(
        self,
        item: Item,
        measured: Measured,
        *,
        breaks: bool = False,
        ends: bool = False,
        replaces: Sequence[int] = (),
        is_summarised: bool = False,
    ) -> None:
        """Take the next item of the log.

        Args:
            item: The item.
            measured: Its cost.
            breaks: True if it begins a response of its own in any case.
            ends: True if it is an answer after which a request ended.
            replaces: The positions that it stands for, if it is a compaction.
            is_summarised: True if a summary before it stands for it, as in a view.
        """
        groups = self.groups
        position = len(groups)
        starts = groups.starts_response(item, breaks)
        is_kept_trim = False
        if starts:
            self._pass_request_point()
        elif not (is_kept_trim := not (replaces or is_summarised) and self._keeps_trim(item, measured)):
            self.roll_back()
        edits = self.tally.edits
        self._is_concluded = False
        response, replaced = groups.open_response, len(groups.replaced)
        shown_before = NONE if is_native(item) else self._first_replaced(replaces)
        if shown_before != NONE:
            self.move(position, shown_before)
        reranked = groups.feed(item, starts, ends=ends, is_moved=shown_before != NONE)
        if response not in (NONE, groups.open_response):
            for place in range(response, position):  # queued when the response is complete: until then its units may change
                self.queues[groups.rank[place]].append(place)
        for place, rank in reranked:
            self._recategorise(place, rank)
        self.log_tokens += measured.tokens
        if groups.kind[position] == KIND_ORPHAN:
            self._leave_out_orphan(measured)
            return
        self._append_to_view(measured, groups.rank[position])
        if position == self.noted_after:
            for tally in self._tallies():
                tally.usage_noted = position + 1
        if not groups.in_response:
            self.queues[groups.rank[position]].append(position)
        if replaces or is_summarised:
            self._mark_summarised([*replaces, *([position] if is_summarised else [])])
        self._update_earlier_items(item, position)
        for place in groups.replaced[replaced:]:
            if not self._hidden[place]:
                self._hide(place, Reason.REPLACED_PROMPT)
        if len(groups.replaced) > replaced:
            self.refresh_visible()
        if is_kept_trim:
            self.final_tally.edits += self.tally.edits - edits

    def conclude(self) -> None:
        """Trim provisionally, as if the model were called now (rule 4)."""
        if not self._is_concluded:
            self._trim(is_final=False)
            self._is_concluded = True

    def reopen(self) -> None:
        """Undo a provisional trim because something that it depends on has changed."""
        self.roll_back()
        self._is_concluded = False

    def change_limits(self, limits: Limits) -> None:
        """Use other limits after the last request. Earlier decisions stay, because that request was sent with them."""
        self.reopen()
        self.limits = limits

    # Request points

    def _pass_request_point(self) -> None:
        """Make the decision at this request point final (rules 2 and 4)."""
        if not self._is_concluded:
            if len(self.groups) >= self.decides_from:
                self._trim()
            else:
                self.roll_back()
        self.commit()
        self.totals.on_request(self)

    def _trim(self, *, is_final: bool = True) -> None:
        if self.exhausted is None or not extend(self, self.exhausted):
            self.roll_back()
            if not is_final:
                self.begin()
            trim(self)

    def _keeps_trim(self, item: Item, measured: Measured) -> bool:
        """True if a provisional trim that took everything can stay while this item comes in (rule 8).

        A new trim would then take the same for the same reasons: what can be taken stays the same, what cannot be taken costs more, and
        nothing of the item's category was taken for a reason that depends on its amount. If that is not certain, the answer is False.
        """
        groups, thoughts = self.groups, self.final_tally.thoughts
        if self.limits.drops_thinking and isinstance(item, Message) and item.role == "user":  # it may end the turn (rule 13)
            return False
        if self.exhausted is None or self._final_tally is None or not groups.response_starts or self.results is not None:
            return False
        if measured.images or is_answer(item) or is_summary(item) or groups.needs_closing:  # the closing line may no longer be needed
            return False
        if isinstance(item, AgentConfigUpdate) and item.instructions is not None:  # earlier instructions leave the view
            return False
        if isinstance(item, AgentHandoff):  # it speaks in the user's turn, so the last CONTEXT message there need not stay
            return False
        rank, edited = RANK[item.category], len(groups)
        if isinstance(item, FunctionCallOutput):
            call = groups.waiting_call(item.call_id)
            if call == NONE or measured.tokens < self.limits.synthetic:
                return False
            if item.pinned or item.category is MessageCategory.SYSTEM:  # then all of its unit must stay as it is
                return False
            head = groups.head[call]
            rank, edited = groups.rank[head], groups.last_call[head]
            if self._hidden[call]:
                if self.limits.note_removed or any(map(self._affects_trim, groups.members(head))):
                    return False
                edited = head
        elif isinstance(item, Message):
            question = groups.last_user
            is_ordinary = question == NONE or (
                question >= groups.frontier and groups.rank[question] != CONTEXT and groups.kind[question] != KIND_SILENT
            )
            if rank == CONTEXT or (item.role == "user" and not is_ordinary):
                return False  # a trim would drop it, or an earlier user message loses its protection
            edited = edited if item.role == "user" else NONE
        return rank not in self.passed_below and not (thoughts and thoughts[-1] > edited)

    def _affects_trim(self, place: int) -> bool:
        """True if the return of this hidden item could change what a provisional trim takes."""
        return place in self._hidden_provisionally or place in self._images or bool(self._summarised[place])

    # New items. They count in the sums with and without a provisional trim.

    def _tallies(self) -> tuple[Tally, ...]:
        return (self.tally,) if self.final_tally is self.tally else (self.tally, self.final_tally)

    def _visible_lists(self) -> list[array[int]]:
        """Return the lists of visible positions in these sums, each list once."""
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
        elif prompt_text(item) is not None:
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
