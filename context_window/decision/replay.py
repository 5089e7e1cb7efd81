"""`SessionReplay`: one session read item by item, with a decision wherever the model was called (rule 2).

It remembers the last view: what is appended to the session extends it. After any other edit a new replay starts from the first item.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import getitem

from session.items import AgentConfigUpdate, Compaction, Item
from session.removed import Removed
from session.session import Session
from session.session_log import recorded_total
from session.units import KIND_ORPHAN, NONE

from ..calibration.report_feed import ReportFeed
from ..calibration.reported_totals import ReportedTotals
from ..calibration.reports import Report, Reports
from .decide import TEXT_RULES, decide
from .edits import Edit, Measures, shows_less
from .limits import BOUNDLESS, Limits
from .log import Log, NewItem
from .placeholders import without_refused
from .plan import Plan
from .refused_parts import NONE_REFUSED, RefusedParts
from .shown import Shown, last_id_before, plan_of
from .view import View


class SessionReplay:
    """The view of one session, decided at each of its requests.

    Attributes:
        view: The view when the model was called last, with what was appended since.
        feed: The usage reports so far.
        items: The log as of the last `update`.
        lineage: The log's lineage token. Any edit other than an append replaces it.
        refused: The images and documents that the provider refused.
        noted: By position, the parts of an item that are shown as notes because they were refused.
        model: The model that the session's metadata named at the last `update`. Reports without a name of their own are its.
    """

    def __init__(
        self,
        session: Session,
        limits: Limits,
        measures: Measures,
        *,
        one_shot: bool = False,
        reports: Reports | None = None,
        refused: RefusedParts = NONE_REFUSED,
        shown_as: Callable[[Sequence[Item], int], Item] = getitem,
    ) -> None:
        """`one_shot` decides only once, at the end of the log; `reports` were recorded outside it.

        `shown_as` returns the item of a log at a position as views show it: it may stand for other content. It is pure.
        """
        self._shown_as, self._stands_for_more = shown_as, False
        self.lineage = session.lineage
        self.items: Sequence[Item] = session.items
        self.refused = refused
        self.noted: dict[int, tuple[int, ...]] = {}
        self.model: object = session.metadata.get("model")
        self._decides_from = BOUNDLESS if one_shot else session.settled
        totals = ReportedTotals(limits.calibration, self._decides_from)
        self.view = View(Log(limits, measures, had_note=session.removed is not None), limits, totals, TEXT_RULES)
        self.feed = ReportFeed(totals, Reports() if reports is None else reports)
        self._noted_at: dict[int, list[int]] = {}  # by length of the log at a refusal: items that became notes then
        self._awaited: set[str] = set()  # ids that summaries name and that come later: a view shows a summary before what it replaces
        self._removed_earlier = session.removed
        self._usage_noted_earlier = session.usage_noted_after
        self._usage_noted_index = session.position(self._usage_noted_earlier or "")
        self._decided: View | None = None
        self._shown: Shown | None = None
        self._edits_before: dict[int, Edit] | None = None  # at the last call of `take_has_hidden_more`
        self._version: tuple[View, int, int] | None = None
        self._resets: int | None = None
        self._is_whole = True

    def can_update(self, session: Session) -> bool:
        """True if `update` may be called: the session has only grown since the last update, and that one was not interrupted."""
        return self._is_whole and session.lineage is self.lineage and session.usage_noted_after == self._usage_noted_earlier

    def update(
        self,
        session: Session,
        sent: Callable[[], ReportFeed] | None = None,
        on_request: Callable[[View, int], object] | None = None,
    ) -> None:
        """Read the session's new items, and decide wherever the model was called.

        The token counter, or a strategy, may raise in the middle. Then `can_update` is False from then on. `sent` returns the reports of
        the view that was sent, None if this is that view. `on_request` is called before each item that begins a response, with the view
        that was decided there and the item's position.
        """
        self._is_whole = False
        self.model = session.metadata.get("model")
        self.items = session.items
        view_total, view_end = recorded_total(session), session.settled - 1
        recorded = self.feed.reports.recorded()
        for index, new in enumerate(self._new_items(session), len(self.view)):
            self._note_refusals(self._noted_at.pop(index, ()))
            starts = self.view.log.groups.starts_response(new.item, new.breaks)
            if starts:
                if on_request is not None:
                    on_request(self.decided, index)
                if index >= self._decides_from:
                    self.view = self.decided
                self.feed.totals.on_request(self.view)
            self._decided = None
            self.view.append(new, starts=starts)
            if index == self._usage_noted_index and self.view.log.groups.kind[index] != KIND_ORPHAN:
                self.view.usage_noted = index + 1
            if recorded or new.item.usage is not None:
                self.feed.read(self.view, new.item, self.items[index - 1] if index else None, session.metadata)
            if isinstance(new.item, AgentConfigUpdate):
                self.feed.configure(self.view, new.item)
            if index == view_end and view_total is not None:
                self.feed.start_from(self.view, view_total)
        for length in [*self._noted_at]:
            self._note_refusals(self._noted_at.pop(length))
        if sent is not None and self.feed.has_reports:
            self.feed.adopt(self.view, sent())
            self._decided = None
        self._is_whole = True

    def _new_items(self, session: Session) -> Iterable[NewItem]:
        """Yield the items that are new in the session, as the model sees them."""
        first, breaks, ends = len(self.view), session.response_breaks, session.request_ends
        items = [self._as_sent(index) for index in range(first, len(self.items))]
        for index, (item, measured) in enumerate(zip(items, self.view.log.measures.measure_all(items), strict=True), first):
            replaces: Sequence[int] = ()
            if isinstance(item, Compaction):
                positions = session.positions(item.replaces)
                replaces = positions[: bisect_left(positions, index)]
                if len(replaces) < len(item.replaces):
                    self._awaited.update(id for id in item.replaces if (at := session.position(id)) is None or at > index)
            yield NewItem(item, measured, item.id in breaks, item.id in ends, replaces, item.id in self._awaited)

    def _as_sent(self, index: int) -> Item:
        """Return an item with the content that it stands for, and notes in place of its refused parts."""
        item = self._shown_as(self.items, index)
        self._stands_for_more = self._stands_for_more or item is not self.items[index]
        refused = self.refused.places(item)
        if not refused:
            return item
        self.noted[index] = tuple(refused)
        length = max(refused.values())
        if index < length:
            self._noted_at.setdefault(length, []).append(index)
        return without_refused(item, self.noted[index])

    def _note_refusals(self, indices: Sequence[int]) -> None:
        """Note that requests have notes at these positions from now on. Reasoning after them was bound to the original."""
        for index in indices:
            self.view.note_change(self.view.request_index(index))
            self._decided = None

    @property
    def decided(self) -> View:
        """The view for a request at the end of the log. Nobody knows yet if the model is called there, so it is not kept."""
        if self._decided is None:
            self._is_whole, was_whole = False, self._is_whole
            self._decided = decide(self.view)
            self._is_whole = was_whole
        return self._decided

    def use_limits(self, limits: Limits) -> None:
        """Use other limits after the last request. Earlier decisions stay, because that request was sent with them."""
        if limits != self.view.limits:
            self.view.limits = limits
            self._decided = None

    def use_report(self, report: Report, agent: str | None) -> None:
        """Use a report from outside the log, of the request that the log's last response answers."""
        self.feed.use(self.view, report, agent)
        self._decided = None

    # For readers

    @property
    def shown(self) -> Shown:
        """The items of the decided view."""
        view = self.decided
        self._shown = Shown.of(view) if self._shown is None else self._shown.extended(view)
        return self._shown

    @property
    def shows_all(self) -> bool:
        """True if the view shows the session as it is."""
        view = self.decided
        has_other_line = view.usage_noted != (NONE if self._usage_noted_index is None else self._usage_noted_index + 1)
        is_changed = view.edits or view.state_note or self.noted or has_other_line or self._stands_for_more
        return not is_changed and view.first_summary is None

    def session_view(self, session: Session) -> Session:
        """Return the view as a read-only session."""
        if self.shows_all:
            return Session.view_of(session, len(self.decided))  # the session may have grown while it was counted
        return self._session_of(self.decided, self.shown, session)

    def sent_view(self, session: Session) -> Session:
        """Return the view of the last request with what was appended since, whatever that costs: what the provider's cache knows."""
        return self._session_of(self.view, Shown.of(self.view), session)

    def _session_of(self, view: View, shown: Shown, session: Session) -> Session:
        return Session.showing(
            session,
            shown.items,
            breaks=shown.breaks,
            settled=len(shown.items),
            settled_tokens=view.total if self.feed.is_anchored else None,
            ends=shown.ends,
            removed=self._removed_from(view, shown),
            usage_noted_after=self._usage_noted_in(view),
        )

    def plan(self) -> Plan:
        """Return the decision about each item, and its reason."""
        return plan_of(
            self.decided,
            self.shown,
            self.items,
            self.noted,
            calibrated=self.feed.is_anchored,
            removed=self.removed,
            usage_noted_after=self.usage_noted_after,
        )

    @property
    def removed(self) -> Removed | None:
        """The items that the view's first line counts."""
        return self._removed_from(self.decided, self.shown)

    def _removed_from(self, view: View, shown: Shown) -> Removed | None:
        ends, earlier = shown.removed, self._removed_earlier
        if not view.limits.note_removed or ends is None:
            return earlier
        newly = Removed(view.removed, self.items[ends[0]].id, self.items[ends[1]].id)
        return newly if earlier is None else earlier.followed_by(newly)

    @property
    def usage_noted_after(self) -> str | None:
        """The id of the view's last item before the line about usage; None without the line."""
        return self._usage_noted_in(self.decided)

    def _usage_noted_in(self, view: View) -> str | None:
        return None if view.usage_noted == NONE else last_id_before(view, view.usage_noted)

    def refused_parts(self) -> list[tuple[Item, int]]:
        """Return the refused parts that the view shows as notes: each as the item and the part's index in it."""
        view = self.decided
        indices = [at for at in self.noted if view.shown[at] and not view.is_shortened(at)]
        return [(self.items[at], part) for at in indices for part in self.noted[at]]

    def take_has_hidden_more(self) -> bool | None:
        """True if the view hides something that it did not at the last call of this method. None on the first call."""
        view, earlier = self.decided, self._edits_before
        version = view, view.changes, len(view.edits)
        if earlier is not None and self._version == version:
            return False
        self._edits_before, self._version = view.edits.copy(), version
        return None if earlier is None else hides_more(earlier, view)

    def take_was_reset(self) -> bool:
        """True if usage reports were forgotten since the last call of this method."""
        resets, self._resets = self._resets, self.feed.resets
        return resets is not None and self.feed.resets > resets


def hides_more(earlier: Mapping[int, Edit], view: View) -> bool:
    """True if a view shows less of an item than it did with these edits, and no summary stands for the item."""
    return any(
        edit is not earlier.get(at) and shows_less(edit, earlier.get(at)) and not (edit.gone is not None and view.log.summarised[at])
        for at, edit in view.edits.items()
    )
