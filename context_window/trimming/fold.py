"""`Fold`: reads a log item by item and trims the view wherever the model was called. Rules are cited by number: see `__init__.py`."""

from __future__ import annotations

from collections.abc import Sequence

from session.items import AgentConfigUpdate, AgentHandoff, FunctionCallOutput, Item, Message, MessageCategory
from session.providers.native_compaction import is_native
from session.units import (
    CONTEXT,
    KIND_CALL,
    KIND_ORPHAN,
    KIND_OTHER,
    KIND_OUTPUT,
    KIND_SILENT,
    KIND_USER,
    NONE,
    RANK,
    SYSTEM,
    is_answer,
    is_summary,
)

from .frontier import extend
from .growing_view import GrowingView
from .limits import Limits
from .plan import Reason
from .totals import LocalTotals, Totals
from .trim import trim
from .view_totals import Measured, Measures


class Fold(GrowingView):
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
        elif self._final_tally is not None:
            is_kept_trim = self.exhausted is not None and not (replaces or is_summarised) and self._keeps_trim(item, measured)
            if not is_kept_trim:
                self.roll_back()
        edits = self.tally.edits
        self._is_concluded = False
        response, replaced = groups.open_response, len(groups.replaced)
        shown_before = self._first_replaced(replaces) if replaces and not is_native(item) else NONE
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
        if len(groups.replaced) > replaced:
            for place in groups.replaced[replaced:]:
                if not self._hidden[place]:
                    self._hide(place, Reason.REPLACED_PROMPT)
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

    def can_hold(self, place: int) -> bool:
        """True if `hold` may be called for an item: no decision so far depends on whether it is protected."""
        self.reopen()
        item = self.measures[place]
        is_ordinary = self.groups.kind[place] in (KIND_USER, KIND_CALL, KIND_OUTPUT, KIND_OTHER)
        is_ordinary = is_ordinary and SYSTEM not in (RANK[item.category], self.groups.rank[place])  # that of its unit can be another
        is_ordinary = is_ordinary and not is_summary(item)
        return is_ordinary and place >= self.tally.decided_to and not (self.is_altered(place) or self.moved or 1 in self._summarised)

    def hold(self, place: int, is_held: bool) -> None:
        """Make an item a pinned one, or an unpinned one."""
        self.groups.set_held(place, is_held)
        self.tally.protected, self.tally.protected_to = [], 0

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
        else:
            self.tally.decided_to = len(self)

    def _keeps_trim(self, item: Item, measured: Measured) -> bool:
        """True if a provisional trim that took everything can stay while this item comes in (rule 8).

        A new trim would then take the same for the same reasons: what can be taken stays the same, what cannot be taken costs more, and
        nothing of the item's category was taken for a reason that depends on its amount. If that is not certain, the answer is False.
        """
        groups, thoughts = self.groups, self.final_tally.thoughts
        if self.limits.drops_thinking and isinstance(item, Message) and item.role == "user":  # it may end the turn (rule 13)
            return False
        if not groups.response_starts or self.results is not None:
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
