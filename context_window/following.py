"""A session followed: what is new in it is measured and folded, and the view kept ready. Decides nothing itself.

A view costs what has changed since the last one: under the trigger, the appended items alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from heapq import nlargest

from session.items import AgentConfigUpdate, Compaction, Item, Message
from session.session import Session
from session.units import HELD, NONE, PRIORITY, SUMMARY

from .calibration import Reports
from .counting.measure import Measurer
from .errors import Culprit
from .events import Kind
from .folded_items import FoldedItems
from .hearing import Hearing
from .shown import ShownItems, action_of
from .trimming.fold import Fold
from .trimming.limits import BOUNDLESS, Limits
from .trimming.plan import Action, Decision, Plan, Reason
from .trimming.refused import NONE_REFUSED, RefusedParts
from .usage import describe


class Following:
    """One session, as far as it has been folded.

    Attributes:
        fold: The state of its view.
        items: The log as it was when `catch_up` was last called.
        lineage: The log's token: another one after an edit that is no growth.
        message_count: Messages in the log, those that a summary stands for too.
        log_tokens: What all items of the log cost, in tokens, with notes in place of refused parts.
        refused: What the provider has refused.
    """

    def __init__(
        self,
        session: Session,
        limits: Limits,
        measurer: Measurer,
        *,
        one_shot: bool = False,
        reports: Reports | None = None,
        refused: RefusedParts = NONE_REFUSED,
    ) -> None:
        """
        Args:
            session: What is followed.
            limits: What its views may hold.
            measurer: What counts.
            one_shot: Whether to decide at the end alone.
            reports: What providers reported that is not in the log; None for nothing, of any model.
            refused: As the attribute.
        """
        self.lineage = session.lineage
        self.message_count = 0
        self.log_tokens = 0
        self.items = session.items
        self._measurer = measurer
        self.refused = refused
        self._folded = FoldedItems(self.items, measurer, refused)
        self.fold = Fold(limits, self._folded, settled=BOUNDLESS if one_shot else session.settled)
        self.hearing = Hearing(self.fold, reports if reports is not None else Reports())
        self._sound = True
        self._shown = ShownItems(self.fold)
        self._has_lost: bool | None = None
        self._resets: int | None = None

    def follows(self, session: Session) -> bool:
        """Whether this can go on: not after an edit of the session that is no growth, nor after a call that broke off."""
        return self._sound and session.lineage is self.lineage

    def catch_up(self, session: Session, guide: Callable[[], Fold] | None = None) -> None:
        """Folds what the session has gained, and decides as if the model were called now.

        Args:
            session: What is followed.
            guide: Gives another fold of it, whose reports to go by: of the view that was sent, which this one is not.

        What it raises is the counter's, which may fail in the middle of a trim: `follows` says no from then on.
        """
        self._sound = False
        self.items = self._folded.items = session.items
        last_settled = NONE if session.settled_tokens is None else session.settled - 1
        hearing, recorded = self.hearing, self.hearing.reports.recorded()
        fold, measure, breaks = self.fold, self._measurer.measured, session.response_breaks
        for place, item in enumerate(self.items[len(fold) :], len(fold)):
            if self.refused.since:
                self._note_edits(self._folded.edits_before(place))
                item = self._folded.take(place)  # noqa: PLW2901 - what is folded instead
            replaces: list[int] = []
            if isinstance(item, Compaction):
                found = map(session.position, item.replaces)
                replaces = [earlier for earlier in found if earlier is not None and earlier < place]
            measured = measure(item)
            fold.add(item, measured, breaks=bool(breaks) and item.id in breaks, replaces=replaces)
            self.log_tokens += measured.tokens
            self.message_count += isinstance(item, Message)
            if recorded or item.usage is not None:
                hearing.hear(item, self.items[place - 1] if place else None, session.metadata)
            if isinstance(item, AgentConfigUpdate):
                hearing.configure(item)
            if place == last_settled:
                hearing.go_on_from(session.settled_tokens)
        self._note_edits(self._folded.edits_before())
        if guide is not None and self.hearing.any:
            fold.go_by(guide())
        fold.conclude()
        self._sound = True

    def _note_edits(self, places: Sequence[int]) -> None:
        """Apply to the fold that requests have notes here from now on: reasoning after them is bound to what stood there."""
        if not places:
            return
        for place in places:
            self.fold.edited(self.fold.wire_place(place))
        self.fold.settle()

    def view(self, session: Session) -> Session:
        """The view of the session as it was when `catch_up` was last called; the session itself where all of it is shown."""
        self._update_view()
        shown = self._shown
        if shown.is_whole:
            return session
        tokens = None if self.fold.anchor is None else self.fold.total
        return Session.showing(session, shown.items, breaks=shown.breaks, settled=len(shown.items), settled_tokens=tokens)

    @property
    def reduced(self) -> Mapping[Kind, int]:
        """Return by kind how many of the log's items the last view lacked or had in a smaller form."""
        return self._shown.reduced

    def has_lost(self) -> bool | None:
        """True if any view since the last call hid something that the one before it showed. None on the first call."""
        lost, self._has_lost = self._has_lost, False
        return lost

    @property
    def shows_all(self) -> bool:
        """True if the last view was the session itself."""
        return self._shown.is_whole

    @property
    def rebuilds(self) -> int:
        """How often an earlier part of the view has changed: between two equal figures it has only grown."""
        return self._shown.rebuilds

    def refused_parts(self) -> list[tuple[Item, int]]:
        """Return the refused parts that the view shows as notes: each item of the log, with the place of the part in it."""
        visible = (place for place in self._folded.noted if self.fold.gone(place) is None and not self.fold.is_cleared(place))
        return [(self.items[place], part) for place in visible for part in self._folded.noted[place]]

    def plan(self) -> Plan:
        """What became of each item, and why."""
        self._update_view()
        decisions = tuple(self._decision(place) for place in range(len(self.fold)))
        never = (Reason.ORPHAN, Reason.COMPACTED)  # neither is in a request with the whole log
        return Plan(
            decisions,
            budget=self.fold.limits.budget,
            overhead_before=self.fold.overhead_of({place: one.before for place, one in enumerate(decisions) if one.reason not in never}),
            overhead=self.fold.overhead + self.fold.correction,
            breaks=self._shown.breaks,
            calibrated=self.fold.anchor is not None,
        )

    def was_reset(self) -> bool:
        """Whether reports have been forgotten since this was last asked."""
        before, self._resets = self._resets, self.fold.resets
        return before is not None and self.fold.resets > before

    @property
    def freed(self) -> int:
        """Tokens that the view costs less than all items of the log."""
        return self.log_tokens - self.fold.tally.total

    def culprits(self, most: int = 5) -> list[Culprit]:
        """The largest items of the view, and why each is kept."""
        fold = self.fold
        largest = nlargest(most, fold.shown, key=fold.tokens)
        return [
            Culprit(self.items[place].id, describe(self.items[place]), fold.tokens(place), self._kept(place).value) for place in largest
        ]

    def _update_view(self) -> None:
        self._sound = False
        if self._shown.update(self._folded, has_notes=bool(self._folded.noted)) and self._has_lost is not None:
            self._has_lost = True
        self._sound = True

    def _decision(self, place: int) -> Decision:
        fold, item = self.fold, self.items[place]
        action = action_of(fold, place)
        if action is Action.KEEP and place in self._folded.noted:
            action = Action.REPLACE_REFUSED
        cleared = action in (Action.CLEAR, Action.DROP)
        reason = fold.gone(place) or fold.why(place) or (Reason.PROVIDER_REFUSED if place in self._folded.noted else self._kept(place))
        return Decision(
            item.id,
            describe(item),
            PRIORITY[fold.groups.rank[place]],
            action,
            reason,
            before=self._measurer.measured(item).tokens,
            after=fold.tokens(place),
            images=() if cleared else fold.replaced_images(place),
            cut=None if cleared else fold.cut(place),
            refused=() if cleared else self._folded.noted.get(place, ()),
        )

    def _kept(self, place: int) -> Reason:
        """Why an item is in the view unchanged."""
        groups, item = self.fold.groups, self.items[place]
        if not self.fold.is_protected(place):
            return Reason.NOT_BY_STRATEGY if self.fold.limits.final else Reason.FITS
        if item.pinned:
            return Reason.PINNED
        if groups.own[place] == HELD:
            return Reason.SYSTEM
        if groups.own[place] == SUMMARY:
            return Reason.SUMMARY
        head = groups.head[place]
        if groups.held[head] == HELD:
            return Reason.SYSTEM if groups.firm.isdisjoint(groups.members(head)) else Reason.PINNED
        return Reason.FRONTIER
