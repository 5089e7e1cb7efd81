"""Tracks one session: measures new items, adds them to the fold, and keeps the view up to date. Decides nothing itself.

The cost of an update is proportional to the changes since the last one: only the appended items, unless there was a trim.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from heapq import nlargest
from operator import is_

from session.identity import is_pinned_twin
from session.items import AgentConfigUpdate, Compaction, Item, Message
from session.removed import Removed
from session.session import Session
from session.session_log import recorded_total
from session.units import NONE

from ..calibration.report_feed import ReportFeed
from ..calibration.reported_totals import ReportedTotals
from ..calibration.reports import Reports
from ..counting.item_tokens import Measurer
from ..errors import Culprit
from ..events.definitions import Kind
from ..events.item_kinds import describe
from ..trimming.fold import Fold
from ..trimming.limits import BOUNDLESS, Limits
from ..trimming.plan import Plan
from ..trimming.refused_parts import NONE_REFUSED, RefusedParts
from .item_decisions import ItemDecisions
from .measured_items import MeasuredItems
from .view_items import ViewItems


class SessionTracker:
    """The fold of one session, and the view that it makes.

    Attributes:
        fold: The state of the view.
        report_feed: The usage reports that the fold has used.
        items: The log as of the last `update`.
        lineage: The log's lineage token. Any edit other than an append replaces it.
        message_count: Messages in the log, including those that a summary stands for.
        measurer: Measures items.
        refused: The images and documents that the provider refused.
        model: The model that the session's metadata named at the last `update`. Reports without a name of their own are its.
        had_other_model: True if it named another one at an earlier update.
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
            session: The session to track.
            limits: The limits of its views.
            measurer: Measures items.
            one_shot: True to trim only once, at the end of the log.
            reports: The usage reports recorded outside the log; None for none.
            refused: The images and documents that the provider refused.
        """
        self.lineage = session.lineage
        self.message_count = 0
        self.items = session.items
        self.measurer = measurer
        self.refused = refused
        self._measured_items = MeasuredItems(self.items, measurer, refused)
        totals = ReportedTotals(limits.calibration)
        self._removed_earlier = session.removed
        self._removed: tuple[tuple[int, int], Removed | None] = (NONE, NONE), self._removed_earlier
        decides_from = BOUNDLESS if one_shot else session.settled
        self._noted_earlier = session.usage_noted_after
        noted_after = session.position(self._noted_earlier or "")
        self.fold = Fold(
            limits,
            self._measured_items,
            totals,
            decides_from=decides_from,
            had_note=session.removed is not None,
            noted_after=NONE if noted_after is None else noted_after,
        )
        self.report_feed = ReportFeed(self.fold, totals, reports if reports is not None else Reports())
        self._awaited: set[str] = set()  # ids that summaries name and that come later: a view shows a summary before what it replaces
        self._is_consistent = True
        self._view_items = ViewItems(self.fold)
        self.had_other_model = False
        self._seams = session.response_breaks, session.request_ends
        self.begin_session(session)
        self._decisions = ItemDecisions(self.fold, self._measured_items, measurer)

    def begin_session(self, session: Session) -> None:
        """Go on with this session, of which no view was asked for yet."""
        self.model: object = session.metadata.get("model")
        self._has_hidden_more: bool | None = None
        self._resets: int | None = None

    @property
    def parts(self) -> tuple[object, ...]:
        """The objects that have the tracker's long lists, besides the fold."""
        return self, self._view_items, self._decisions, self._decisions.untrimmed

    def can_update(self, session: Session) -> bool:
        """True if `update` may be called: the session has only grown since the last update, and that one was not interrupted."""
        has_same_line = session.usage_noted_after == self._noted_earlier
        return self._is_consistent and session.lineage is self.lineage and has_same_line

    def update(
        self,
        session: Session,
        view_feed: Callable[[], ReportFeed] | None = None,
        on_request: Callable[[Fold, int], object] | None = None,
    ) -> None:
        """Add the session's new items to the fold, and decide as if the model were called now.

        The token counter may raise in the middle of a trim. Then `can_update` is False from then on.

        Args:
            session: The session.
            view_feed: Returns the reports of the view that was sent; None if this is the tracker of that view.
            on_request: Called before each item that begins a response, with the fold as it was when the model was called, and the item's
                position.
        """
        self._is_consistent = False
        self.had_other_model = self.had_other_model or self.model != session.metadata.get("model")
        self.model = session.metadata.get("model")
        self.items = self._measured_items.items = session.items
        self._seams = session.response_breaks, session.request_ends
        view_total = recorded_total(session)
        view_end = NONE if view_total is None else session.settled - 1
        feed, recorded = self.report_feed, self.report_feed.reports.recorded()
        fold, breaks, ends = self.fold, session.response_breaks, session.request_ends
        first, new = len(fold), self.items[len(fold) :]
        if self.refused.since:
            new = tuple(map(self._measured_items.take, range(first, first + len(new))))  # the items as the model sees them
        for place, (item, measured) in enumerate(zip(new, self.measurer.measure_all(new), strict=True), first):
            if self.refused.since:
                self._note_edits(self._measured_items.edits_before(place))
            replaces: list[int] = []
            if isinstance(item, Compaction):
                positions = session.positions(item.replaces)
                replaces = positions[: bisect_left(positions, place)]
                if len(replaces) < len(item.replaces):
                    self._awaited.update(id for id in item.replaces if (at := session.position(id)) is None or at > place)
            is_break = bool(breaks) and item.id in breaks
            if on_request is not None and fold.groups.starts_response(item, is_break):
                fold.conclude()
                on_request(fold, place)
            fold.add(
                item,
                measured,
                breaks=is_break,
                ends=bool(ends) and item.id in ends,
                replaces=replaces,
                is_summarised=bool(self._awaited) and item.id in self._awaited,
            )
            self.message_count += isinstance(item, Message)
            if recorded or item.usage is not None:
                feed.read(item, self.items[place - 1] if place else None, session.metadata)
            if isinstance(item, AgentConfigUpdate):
                feed.configure(item)
            if place == view_end:
                feed.start_from(view_total)
        self._note_edits(self._measured_items.edits_before())
        if view_feed is not None and feed.has_reports:
            feed.adopt(view_feed())
        fold.conclude()
        self._is_consistent = True

    def follow_pin(self, session: Session) -> bool:
        """Go on after one item of the log was pinned or unpinned. Return False if that might have led to other decisions.

        If the item is newer than the last trim, a pin changes only what may be trimmed later.
        """
        has_same_line = session.usage_noted_after == self._noted_earlier and session.settled == self.fold.decides_from == 0
        feed, length = self.report_feed, len(self.fold)
        can_follow = self._is_consistent and has_same_line and self.refused is NONE_REFUSED and not self._awaited
        if not can_follow or feed.has_recorded or feed.reports.recorded() or self.had_other_model or len(session.items) < length:
            return False
        if (session.response_breaks, session.request_ends) != self._seams:
            return False
        same = bytes(map(is_, self.items, session.items))
        place = same.find(0)
        if same.count(0) != 1 or not is_pinned_twin(self.items[place], session.items[place]) or not self.fold.can_hold(place):
            return False
        self.fold.hold(place, session.items[place].pinned)
        self._view_items.replace(place, session.items[place])
        self._decisions.note_changed([place])
        self.items = self._measured_items.items = session.items
        self.lineage = session.lineage
        return True

    def reopen(self, settled: int) -> None:
        """Undo what was decided provisionally, and decide nothing before this position: for a later view that shares its list."""
        self.fold.reopen()
        self.fold.decides_from = settled

    def _note_edits(self, places: Sequence[int]) -> None:
        """Tell the fold that requests contain notes at these positions from now on. Reasoning after them was bound to the original."""
        if not places:
            return
        for place in places:
            self.fold.note_edit(self.fold.request_place(place))
        self.fold.refresh_visible()

    def view(self, session: Session) -> Session:
        """Return the view as of the last `update`: the session itself if nothing is hidden."""
        self._update_view()
        view = self._view_items
        if view.is_log:
            return session
        tokens = self.fold.total if self.report_feed.is_anchored else None
        return Session.showing(
            session,
            view.items,
            breaks=view.breaks,
            settled=len(view.items),
            settled_tokens=tokens,
            ends=view.ends,
            removed=self._removed_items(),
            conversions=view.conversions,
            usage_noted_after=self._usage_noted_after(),
        )

    def _usage_noted_after(self) -> str | None:
        """Return the id of the view's last item before the line about usage; None without the line."""
        place = self.fold.tally.usage_noted
        return None if place == NONE else self._view_items.last_id_before(place, self.items)

    def _removed_items(self) -> Removed | None:
        """Return the items that the view's first line counts. Computed again only after the view has changed."""
        fold = self.fold
        version = (self._view_items.rebuilds, fold.tally.removed)
        if fold.limits.note_removed and self._removed[0] != version:
            removed = self._removed_earlier
            if fold.tally.removed:
                first, last = (self.items[place].id for place in fold.removed_range)
                newly = Removed(fold.tally.removed, first, last)
                removed = newly if removed is None else removed.followed_by(newly)
            self._removed = version, removed
        return self._removed[1]

    @property
    def reduced_items(self) -> int:
        """Number of items that the view hides or shows in a smaller form, without those that a summary stands for."""
        return self.fold.tally.altered - self.fold.tally.summarised_items

    @property
    def reduced(self) -> Mapping[Kind, int]:
        """`reduced_items` of the last view, by kind."""
        return self._view_items.reduced

    def take_has_hidden_more(self) -> bool | None:
        """True if a trim since the last call of this method hid something that the view before it showed. None on the first call."""
        has_hidden_more, self._has_hidden_more = self._has_hidden_more, False
        return has_hidden_more

    @property
    def shows_all(self) -> bool:
        """True if the last view was the session itself."""
        return self._view_items.is_log

    @property
    def rebuilds(self) -> int:
        """Number of changes to earlier parts of the view. If it stays the same, the view has only grown."""
        return self._view_items.rebuilds

    def refused_parts(self) -> list[tuple[Item, int]]:
        """Return the refused parts that the view shows as notes: each as the item and the part's place in it."""
        visible = (
            place for place in self._measured_items.noted if self.fold.hidden_reason(place) is None and not self.fold.is_shortened(place)
        )
        return [(self.items[place], part) for place in visible for part in self._measured_items.noted[place]]

    def plan(self) -> Plan:
        """Return the decision about each item, and its reason."""
        self._update_view()
        self._is_consistent = False
        decisions = self._decisions.update()
        self._is_consistent = True
        return Plan(
            decisions,
            budget=self.fold.limits.budget,
            overhead_before=self._decisions.untrimmed.overhead,
            overhead=self.fold.overhead + self.fold.correction,
            breaks=self._view_items.breaks,
            ends=self._view_items.ends,
            summary_places=dict(self._decisions.summary_places),
            calibrated=self.report_feed.is_anchored,
            protected=self._decisions.protected,
            removed=self._removed_items(),
            usage_noted_after=self._usage_noted_after(),
        )

    def take_was_reset(self) -> bool:
        """True if usage reports were forgotten since the last call of this method."""
        resets, self._resets = self._resets, self.report_feed.resets
        return resets is not None and self.report_feed.resets > resets

    @property
    def freed(self) -> int:
        """Tokens by which the view is smaller than all items of the log for which no summary stands in it."""
        tally = self.fold.tally
        return self.fold.log_tokens - tally.summarised - tally.total

    def culprits(self, limit: int = 5) -> list[Culprit]:
        """Return the largest items of the view, and why each is kept."""
        fold = self.fold
        largest = nlargest(limit, fold.visible, key=fold.tokens)
        return [
            Culprit(self.items[place].id, describe(self.items[place]), fold.tokens(place), self._decisions.reason_to_keep(place).value)
            for place in largest
        ]

    def _update_view(self) -> None:
        self._is_consistent = False
        is_other = bool(self._measured_items.noted) or self.fold.tally.usage_noted not in (NONE, self.fold.noted_after + 1)
        is_other = is_other or (self.fold.tally.usage_noted == NONE != self.fold.noted_after)
        changed = self.fold.take_changed()
        self._decisions.note_changed(changed)
        if self._view_items.update(self._measured_items, changed, is_other=is_other) and self._has_hidden_more is not None:
            self._has_hidden_more = True
        self._is_consistent = True
