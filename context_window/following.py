"""A session followed: what is new in it is measured and folded, and the view kept ready. Decides nothing itself.

A view costs what has changed since the last one: under the trigger, the appended items alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import nlargest
from typing import TypeAlias

from session.items import Compaction, Item, Message
from session.session import Session
from session.units import HELD, NONE, PRIORITY, SUMMARY

from .counting.measure import Measurer
from .errors import Culprit
from .trimming.apply import shape
from .trimming.fold import Fold
from .trimming.limits import Limits
from .trimming.plan import Action, Cut, Decision, Plan, Reason
from .usage import describe

Form: TypeAlias = tuple[bool, tuple[int, ...], Cut | None]
AS_IT_WAS: Form = (False, (), None)


class Following:
    """One session, as far as it has been folded.

    Attributes:
        fold: The state of its view.
        message_count: Messages in the log.
        log_tokens: What all items of the log cost, in tokens.
    """

    def __init__(self, session: Session, limits: Limits, measurer: Measurer, *, one_shot: bool = False) -> None:
        """
        Args:
            session: What is followed.
            limits: What its views may hold.
            measurer: What counts.
            one_shot: Whether to decide at the end alone.
        """
        self._lineage = session.lineage
        self.message_count = 0
        self.log_tokens = 0
        self._items = session.items
        self._measurer = measurer
        self.fold = Fold(limits, self, settled=len(session.items) + 1 if one_shot else session.settled)
        self._view: list[Item] = []  # shared with the views given out, each of which sees its own length of it
        self._view_version = NONE
        self._viewed = 0
        self._last = NONE
        self._breaks: frozenset[str] = frozenset()
        self._shapes: dict[int, tuple[Form, Item]] = {}

    # What the fold asks

    def cleared(self, place: int) -> int:
        """Tokens of an output once cleared."""
        return self._measurer.cleared(self._items[place])

    def shortened(self, place: int, limit: int) -> Cut:
        """The longest cut of an output with at most `limit` tokens."""
        return self._measurer.shortened(self._items[place], limit)

    # Following

    def follows(self, session: Session) -> bool:
        """Whether the session has only grown since: after any other edit the fold is void."""
        return session.lineage is self._lineage

    def catch_up(self, session: Session) -> None:
        """Folds what the session has gained, and decides as if the model were called now."""
        self._items = session.items
        fold, measure, breaks = self.fold, self._measurer.measured, session.response_breaks
        for place, item in enumerate(self._items[len(fold) :], len(fold)):
            replaces: list[int] = []
            if isinstance(item, Compaction):
                found = map(session.position, item.replaces)
                replaces = [earlier for earlier in found if earlier is not None and earlier < place]
            measured = measure(item)
            fold.add(item, measured, breaks=bool(breaks) and item.id in breaks, replaces=replaces)
            self.log_tokens += measured.tokens
            self.message_count += isinstance(item, Message)
        fold.conclude()

    def view(self, session: Session) -> Session:
        """The view of the session as it was when `catch_up` was last called; the session itself where all of it is shown."""
        if not self.fold.tally.altered:
            return session
        self._update_view()
        return Session.showing(session, self._view, breaks=self._breaks, settled=len(self._view))

    def plan(self) -> Plan:
        """What became of each item, and why."""
        if self.fold.tally.altered:
            self._update_view()
        return Plan(
            tuple(self._decision(place) for place in range(len(self.fold))),
            budget=self.fold.limits.budget,
            overhead_before=self.fold.limits.overhead,
            overhead=self.fold.overhead,
            breaks=self._breaks,
        )

    @property
    def freed(self) -> int:
        """Tokens that the view costs less than all items of the log."""
        return self.log_tokens - self.fold.tally.total

    def culprits(self, most: int = 5) -> list[Culprit]:
        """The largest items of the view, and why each is kept."""
        fold = self.fold
        largest = nlargest(most, fold.shown, key=fold.tokens)
        return [
            Culprit(self._items[place].id, describe(self._items[place]), fold.tokens(place), self._kept(place).value) for place in largest
        ]

    def _update_view(self) -> None:
        """Brings the view's items up to date: new ones at the end, all of them anew where something before has changed."""
        fold, groups = self.fold, self.fold.groups
        places: Sequence[int] = range(self._viewed, len(fold))
        if self._view_version != fold.version:
            places = fold.shown
            self._view, self._breaks, self._last = [], frozenset(), NONE
            self._shapes = {place: known for place, known in self._shapes.items() if fold.gone(place) is None}
        breaks = []
        for place in places:
            if fold.gone(place) is not None:
                continue
            ours, before = groups.response[place], groups.response[self._last] if self._last != NONE else NONE
            if ours != before and NONE not in (ours, before):
                breaks.append(self._items[place].id)
            self._view.append(self._shape(place))
            self._last = place
        if breaks:
            self._breaks = self._breaks.union(breaks)
        self._view_version = fold.version
        self._viewed = len(fold)

    def _shape(self, place: int) -> Item:
        """The item as the view shows it: the same object at every turn, for as long as its form is the same."""
        fold = self.fold
        form = (fold.is_cleared(place), fold.replaced_images(place), fold.cut(place))
        if form == AS_IT_WAS:
            return self._items[place]
        known = self._shapes.get(place)
        if known is None or known[0] != form:
            known = self._shapes[place] = (form, shape(self._items[place], self._action(place), form[1], form[2]))
        return known[1]

    def _action(self, place: int) -> Action:
        fold = self.fold
        if fold.gone(place) is not None:
            return Action.DROP
        if fold.is_cleared(place):
            return Action.CLEAR
        if fold.cut(place) is not None:
            return Action.TRUNCATE
        return Action.REPLACE_IMAGES if fold.replaced_images(place) else Action.KEEP

    def _decision(self, place: int) -> Decision:
        fold, item = self.fold, self._items[place]
        action = self._action(place)
        cleared = action in (Action.CLEAR, Action.DROP)
        return Decision(
            item.id,
            describe(item),
            PRIORITY[fold.groups.rank[place]],
            action,
            fold.gone(place) or fold.why(place) or self._kept(place),
            before=self._measurer.measured(item).tokens,
            after=fold.tokens(place),
            images=() if cleared else fold.replaced_images(place),
            cut=None if cleared else fold.cut(place),
        )

    def _kept(self, place: int) -> Reason:
        """Why an item is in the view unchanged."""
        groups, item = self.fold.groups, self._items[place]
        if not self.fold.is_protected(place):
            return Reason.FITS
        if item.pinned:
            return Reason.PINNED
        if groups.own[place] == HELD:
            return Reason.SYSTEM
        if groups.own[place] == SUMMARY:
            return Reason.SUMMARY
        return Reason.PINNED if groups.held[groups.head[place]] else Reason.FRONTIER
