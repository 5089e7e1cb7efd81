"""The local work of a manager's calls about a session: analyse it, make a view, plan, report."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from session.session import Session

from ..calibration.reports import LocalCount
from ..errors import BudgetError, ContextOverflowError
from ..events.definitions import CalibrationReset, Event, Trimmed
from ..events.item_kinds import kinds_of
from ..settings.active_settings import ActiveSettings
from ..settings.context_window import ContextWindow
from ..settings.resolved import Settings
from ..settings.usage_snapshot import SessionContents, UsageFigures
from ..trimming.plan import Plan
from ..usage.analysis import ReportSums, stats_on
from ..usage.report import SessionStats, UsageReport
from ..usage.usage_reports import UsageReports
from ..views.session_state import SentView, SessionState, hides_more
from ..views.tracker import SessionTracker
from ..views.trackers import SessionTrackers
from ..views.view_figures import ViewFigures, figures_of
from .provider_check import PendingCall, question_about

if TYPE_CHECKING:
    from ..timeline.matches import LogReports
    from ..timeline.points import Timeline
    from ..timeline.walk import WindowWalk
    from ..timeline.why import Why


BATCH = 128
"""Items that `count_items` counts between two reports of its progress."""


class SessionCalls:
    """Does what a call can do without the network, records the usage figures, and returns the rest as a `PendingCall`."""

    def __init__(self, window: ContextWindow, active: ActiveSettings, trackers: SessionTrackers, reports: UsageReports) -> None:
        self._window = window
        self._active = active
        self._trackers = trackers
        self._reports = reports
        self._sums: WeakKeyDictionary[SessionTracker, ReportSums] = WeakKeyDictionary()
        self._walks: WeakKeyDictionary[Session, tuple[WindowWalk, SessionTracker, Settings]] = WeakKeyDictionary()
        self._frozen: tuple[Settings | None, SessionTracker | None] = None, None  # the census of the last report, if its session was gone
        self._lock = Lock()

    def analysis(self, session: Session) -> PendingCall[SessionStats]:
        """Return the statistics of the whole session, pending the provider's count."""
        stats, settings, figures = self._analyze(session)
        is_refused = bool(self._trackers.refused_parts(session).since)  # the provider would refuse the untrimmed log at every call
        question = None if settings.provider is None or is_refused else settings.provider.count_request(session)

        def result(provider_tokens: int | None) -> SessionStats:
            return SessionStats(**{**stats, "provider_tokens": provider_tokens})

        return PendingCall(session.id, figures, result, [], settings, question=question)

    def view(self, session: Session) -> PendingCall[Session]:
        """Return the session's view, pending the provider's count."""
        state = self._trackers.state(session)
        with state.lock:
            settings = self._active.current
            tracker = self._trackers.view(session, state, settings)
            view, has_hidden_more, was_reset = tracker.view(session), tracker.take_has_hidden_more(), tracker.take_was_reset()
            if state.previous_view is not None:
                was_reset = state.previous_view.report_feed.is_anchored and not tracker.report_feed.is_anchored
                has_hidden_more, state.previous_view = hides_more(state.previous_view, tracker, session), None
            call = self._conclude(view, tracker, state, settings, has_hidden_more=has_hidden_more)
            if was_reset:
                total, budget = tracker.fold.total, settings.budget.tokens
                call.events.append(CalibrationReset(view.id, total, budget, "other tools, instructions, agent or model"))
            return call

    def one_shot_view(self, session: Session, preserve_recency: object) -> PendingCall[Session]:
        """Return the view after a single trim of the whole session, pending the provider's count.

        Raises:
            BudgetError: `preserve_recency` is not a boolean.
        """
        if not isinstance(preserve_recency, bool):
            raise BudgetError("preserve_recency", preserve_recency, "pass True to take the oldest first, or False for the newest")
        state, settings = self._trackers.state(session), self._active.current
        tracker = self._trackers.one_shot(session, settings, newest_first=not preserve_recency)
        view = tracker.view(session)
        with state.lock:
            state.use(settings)
            return self._conclude(view, tracker, state, settings, has_hidden_more=None, one_shot=True)

    def plan(self, session: Session, *, one_shot: bool) -> Plan:
        """Return the decisions of the next view, or of a one-shot trim, item by item."""
        state = self._trackers.state(session)
        if one_shot:
            return self._trackers.one_shot(session, self._active.current).plan()
        with state.lock:
            return self._trackers.view(session, state, self._active.current).plan()

    def latest_view(self, session: Session) -> ViewFigures | None:
        """Return the figures of the session's latest view; None before the first one, and after the settings have changed."""
        state = self._trackers.state(session)
        with state.lock:
            return None if state.view is None else figures_of(state.view)

    def count_items(self, session: Session, on_counted: Callable[[int], object]) -> None:
        """Count the session's items, and pass on the number of items after each batch."""
        measurer, items = self._active.current.measurer, session.items
        for start in range(0, len(items), BATCH):
            batch = items[start : start + BATCH]
            measurer.measure_all(batch)
            on_counted(len(batch))

    def figures(self, session: Session | None) -> tuple[Settings, UsageFigures]:
        """Return the figures of an untrimmed session, or the latest ones, with the settings they were counted under."""
        return self._active.figures() if session is None else self._analyze(session)[1:]

    def usage_report(self, session: Session | None, title: str) -> UsageReport:
        """Return a report on an untrimmed session, or on whatever was counted last.

        If the session has changed since it was counted, the report is about its contents at that time.
        """
        settings, figures = self.figures(session)
        contents = figures.contents
        live = None if contents is None else contents.session()
        if contents is not None and live is not None:
            state = self._trackers.state(live)
            with state.lock:
                census = self._trackers.census(live, state, settings)
                if census.lineage is contents.lineage and len(census.fold) == len(contents.items):
                    return self._report(live, census, settings, figures, title)
        frozen = Session() if contents is None else contents.frozen()
        with self._lock:  # while it changes, no other thread has it
            (previous, earlier), self._frozen = self._frozen, (None, None)
        if earlier is not None and previous is settings and earlier.can_update(frozen) and len(earlier.fold) <= len(frozen.items):
            earlier.reopen(frozen.settled)  # the contents have only grown since the last report
        else:
            earlier = None
        census = self._trackers.updated(earlier, frozen, settings.limits.boundless(), settings)
        report = self._report(frozen, census, settings, figures, title)
        self._frozen = settings, census
        return report

    def timeline(self, session: Session, reports: LogReports) -> Timeline:
        """Return the window of an untrimmed session at each of its requests. Its last point has the figures of `usage_report`."""
        from ..timeline.build import timeline_of

        walk, settings = self._walk(session)
        return timeline_of(session, walk, reports, settings.budget)

    def why(self, session: Session, reports: LogReports) -> Why:
        """Return the reasons for the cost of a session's requests, and what views of it would have cost."""
        from ..timeline.build import events_of, timeline_of
        from ..timeline.savings import ViewWalk, savings_of
        from ..timeline.why import why_of

        walk, settings = self._walk(session)
        views = ViewWalk(len(session.items))
        self._trackers.walk_views(session, settings, views.on_request)
        events = list(events_of(session, walk, reports))
        savings = savings_of(events, walk.states, views, settings.budget.tokens)
        return why_of(session, timeline_of(session, walk, reports, settings.budget), walk, events, savings)

    def _walk(self, session: Session) -> tuple[WindowWalk, Settings]:
        """Return the walk over an untrimmed session, at its end, and the settings that it was counted under."""
        from ..timeline.walk import WindowWalk

        state = self._trackers.state(session)
        with state.lock:
            settings = self._active.current
            last_walk = self._walks.pop(session, None)
            if last_walk is not None and not (last_walk[2] is settings and self._trackers.can_walk_on(last_walk[1], session, state)):
                last_walk = None
            walk, tracker = (WindowWalk(), None) if last_walk is None else last_walk[:2]
            census = self._trackers.walk(session, state, settings, walk.on_request, tracker)
            walk.end(census.fold)
            self._walks[session] = walk, census, settings
        return walk, settings

    def _analyze(self, session: Session) -> tuple[SessionStats, Settings, UsageFigures]:
        state = self._trackers.state(session)
        with state.lock:
            settings = self._active.current
            census = self._trackers.census(session, state, settings)
            contents = SessionContents(session, census.items, census.lineage)
            return stats_on(census, settings.budget), settings, self._record(census, contents, settings)

    def _report(self, session: Session, census: SessionTracker, settings: Settings, figures: UsageFigures, title: str) -> UsageReport:
        self._walks.pop(session, None)  # the sums take the changes that a walk would have to see
        sums = self._sums.get(census)
        if sums is None:
            sums = self._sums[census] = ReportSums(settings.measurer)
        sums.update(census)
        return sums.report(session, census, figures, budget=settings.budget, shares=self._window.shares, title=title)

    def _conclude(
        self,
        view: Session,
        tracker: SessionTracker,
        state: SessionState,
        settings: Settings,
        *,
        has_hidden_more: bool | None,
        one_shot: bool = False,
    ) -> PendingCall[Session]:
        """Record the view's cost, and collect its events, the overflow error and the question for the provider."""
        fold, total, budget = tracker.fold, tracker.fold.total, settings.budget.tokens
        # If the view is the session itself, that may have grown since.
        contents = SessionContents(view, *((tracker.items, tracker.lineage) if tracker.shows_all else (view.items, view.lineage)))
        figures = self._record(tracker, contents, settings)
        local_count = LocalCount(fold.counted, settings.budget.counter.name)
        self._reports.note_view(state, len(fold), SentView(local_count, settings.budget.model, one_shot), contents)
        events = _events_of(
            view.id, tracker, state, settings, has_hidden_more=has_hidden_more, one_shot=one_shot, overhead=figures.rows.overhead
        )
        is_overflow = total > budget and self._window.strict
        overflow = ContextOverflowError(total, budget, tracker.culprits(), fold.overhead + fold.correction) if is_overflow else None
        return PendingCall(view.id, figures, lambda _: view, events, settings, overflow, question_about(view, total, settings))

    def _record(self, tracker: SessionTracker, contents: SessionContents, settings: Settings) -> UsageFigures:
        fold, feed = tracker.fold, tracker.report_feed
        figures = UsageFigures(tuple(fold.tally.tokens), fold.overhead, fold.correction, contents, feed.reported, feed.saved_total)
        self._active.record(figures, settings)
        with self._lock:
            census = self._frozen[1]
            if census is not None and census.lineage is not contents.lineage:
                self._frozen = None, None  # it must not keep the items of another session
        return figures


def _events_of(
    session_id: str,
    tracker: SessionTracker,
    state: SessionState,
    settings: Settings,
    *,
    has_hidden_more: bool | None,
    one_shot: bool,
    overhead: int,
) -> list[Event]:
    """Return the events about a view that listeners have not received yet."""
    fold, budget = tracker.fold, settings.budget.tokens
    trimmed = Trimmed(session_id, fold.total, budget, tracker.reduced_items, tracker.freed)
    changes = state.changes.events(
        trimmed,
        settings.thresholds,
        has_hidden_more=has_hidden_more,
        one_shot=one_shot,
        kinds=lambda: kinds_of(tracker.reduced),
        overhead=overhead,
    )
    unusable = state.media.events_of_one_shot if one_shot else state.media.events
    return [*changes, *unusable(tracker, session_id, budget)]
