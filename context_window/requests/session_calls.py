"""The local work of a manager's calls about a session: analyse it, make a view, plan, report."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from session.session import Session

from ..calibration.reports import LocalCount
from ..counting.overhead import stated_functions
from ..decision.plan import Plan
from ..decision.replay import SessionReplay, hides_more
from ..decision.shown import culprits
from ..errors import ArgumentError, ContextOverflowError
from ..events.definitions import CalibrationReset, Event, Trimmed
from ..sessions import SentView, Sessions, SessionState
from ..settings.active_settings import ActiveSettings
from ..settings.context_window import ContextWindow
from ..settings.resolved import Settings
from ..settings.usage_snapshot import SessionContents, UsageFigures
from ..usage.analysis import definitions_of, report_on, stats_on
from ..usage.report import SessionStats, UsageReport
from ..usage.stated import stated_definitions
from ..usage.usage_reports import UsageReports
from ..usage.view_figures import ViewFigures, figures_of, freed, reduced_kinds
from .provider_check import PendingCall, question_about

if TYPE_CHECKING:
    from session.transcripts.reported_requests import Request

    from ..timeline.build import RequestEvent
    from ..timeline.contents import WindowContents
    from ..timeline.matches import LogReports
    from ..timeline.points import Timeline
    from ..timeline.walk import WindowWalk
    from ..timeline.why import Why


BATCH = 128
"""Items that `count_items` counts between two reports of its progress."""


class SessionCalls:
    """Does what a call can do without the network, records the usage figures, and returns the rest as a `PendingCall`."""

    def __init__(self, window: ContextWindow, active: ActiveSettings, sessions: Sessions, reports: UsageReports) -> None:
        self._window = window
        self._active = active
        self._sessions = sessions
        self._reports = reports

    def analysis(self, session: Session) -> PendingCall[SessionStats]:
        """Return the statistics of the whole session, pending the provider's count."""
        stats, settings, figures = self._analyze(session)
        is_refused = bool(self._sessions.refused_parts(session).since)  # the provider would refuse the untrimmed log at every call
        question = None if settings.provider is None or is_refused else settings.provider.count_request(session)

        def result(provider_tokens: int | None) -> SessionStats:
            return SessionStats(**{**stats, "provider_tokens": provider_tokens})

        return PendingCall(session.id, figures, result, [], settings, question=question)

    def view(self, session: Session) -> PendingCall[Session]:
        """Return the session's view, pending the provider's count."""
        state = self._sessions.state(session)
        with state.lock:
            settings = self._active.current
            replay = self._sessions.view(session, state, settings)
            view, has_hidden_more, was_reset = replay.session_view(session), replay.take_has_hidden_more(), replay.take_was_reset()
            if (previous := state.previous_view) is not None:
                was_reset = previous.feed.is_anchored and not replay.feed.is_anchored
                has_hidden_more = hides_more(previous.decided.edits, replay.decided) if previous.can_update(session) else None
                state.previous_view = None
            call = self._conclude(view, replay, state, settings, has_hidden_more=has_hidden_more)
            if was_reset:
                total, budget = replay.decided.total, settings.budget.tokens
                call.events.append(CalibrationReset(view.id, total, budget, "other tools, instructions, agent or model"))
            return call

    def one_shot_view(self, session: Session, preserve_recency: object) -> PendingCall[Session]:
        """Return the view after a single trim of the whole session, pending the provider's count.

        Raises ArgumentError if `preserve_recency` is not a boolean.
        """
        if not isinstance(preserve_recency, bool):
            raise ArgumentError("preserve_recency", preserve_recency, "pass True to take the oldest first, or False for the newest")
        state, settings = self._sessions.state(session), self._active.current
        replay = self._sessions.one_shot(session, settings, newest_first=not preserve_recency)
        view = replay.session_view(session)
        with state.lock:
            state.use(settings)
            return self._conclude(view, replay, state, settings, has_hidden_more=None, one_shot=True)

    def plan(self, session: Session, *, one_shot: bool) -> Plan:
        """Return the decisions of the next view, or of a one-shot trim, item by item."""
        state, settings = self._sessions.state(session), self._active.current
        if one_shot:
            replay = self._sessions.one_shot(session, settings)
            return replace(replay.plan(), definitions=definitions_of(session.items, settings.budget.counter, settings.tools))
        with state.lock:
            replay = self._sessions.view(session, state, settings)
            return replace(replay.plan(), definitions=definitions_of(session.items, settings.budget.counter, settings.tools))

    def latest_view(self, session: Session) -> ViewFigures | None:
        """Return the figures of the session's latest view; None before the first one, and after the settings have changed."""
        state = self._sessions.state(session)
        with state.lock:
            return None if state.view is None else figures_of(state.view.decided)

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
        frozen = Session() if figures.contents is None else figures.contents.frozen()
        census = self._sessions.updated(None, frozen, settings.limits.boundless(), settings)
        return report_on(frozen, census, figures, settings, self._window.shares, title)

    def timeline(self, session: Session, reports: LogReports) -> Timeline:
        """Return the window of an untrimmed session at each of its requests. Its last point has the figures of `usage_report`."""
        return self._timed(session, reports)[2]

    def why(self, session: Session, reports: LogReports) -> Why:
        """Return the reasons for the cost of a session's requests, and what views of it would have cost."""
        from ..timeline.savings import ViewWalk, savings_of
        from ..timeline.why import why_of

        walk, events, timeline = self._timed(session, reports)
        settings, views = self._active.current, ViewWalk()
        self._sessions.walk(session, settings, views.on_request, trims=True)
        return why_of(session, timeline, walk, events, savings_of(events, walk.states, views, settings.budget.tokens))

    def made_up(self, session: Session, reports: LogReports) -> list[tuple[Request, Request]]:
        """Return each reported request of a session, and the same with what its prompt was made of."""
        from ..timeline.makeup import made_up

        counter, tools = self._active.current.budget.counter, stated_functions(session.metadata)
        definitions = definitions_of(session.items, counter, tools) or stated_definitions(session.items)
        return list(made_up(session, *self._timed(session, reports), definitions))

    def contents(self, session: Session, reports: LogReports) -> WindowContents:
        """Return the items in the window of an untrimmed session at each of its requests, with its timeline."""
        from ..timeline.contents import contents_of

        return contents_of(session, *self._timed(session, reports))

    def _timed(self, session: Session, reports: LogReports) -> tuple[WindowWalk, list[RequestEvent], Timeline]:
        """Return the walk over an untrimmed session, at its end, its requests, and its timeline."""
        from ..timeline.build import events_of, timeline_of
        from ..timeline.walk import WindowWalk

        walk, settings = WindowWalk(), self._active.current
        walk.end(self._sessions.walk(session, settings, walk.on_request).decided)
        events = list(events_of(session, walk, reports))
        return walk, events, timeline_of(session, walk, reports, settings.budget)

    def _analyze(self, session: Session) -> tuple[SessionStats, Settings, UsageFigures]:
        state = self._sessions.state(session)
        with state.lock:
            settings = self._active.current
            census = self._sessions.census(session, state, settings)
            contents = SessionContents(session, census.items, census.lineage)
            return stats_on(census, settings.budget), settings, self._record(census, contents, settings)

    def _conclude(
        self,
        view: Session,
        replay: SessionReplay,
        state: SessionState,
        settings: Settings,
        *,
        has_hidden_more: bool | None,
        one_shot: bool = False,
    ) -> PendingCall[Session]:
        """Record the view's cost, and collect its events, the overflow error and the question for the provider."""
        decided, budget = replay.decided, settings.budget.tokens
        total = decided.total
        contents = SessionContents(view, view.items, view.lineage)
        figures = self._record(replay, contents, settings)
        local_count = LocalCount(decided.counted, settings.budget.counter.name)
        self._reports.remember_view(state, len(decided), SentView(local_count, settings.budget.model, one_shot), contents)
        trimmed = Trimmed(view.id, total, budget, len(decided.edits) - decided.replaced, freed(decided))
        changes = state.changes.events(
            trimmed,
            settings.thresholds,
            has_hidden_more=has_hidden_more,
            one_shot=one_shot,
            kinds=lambda: reduced_kinds(decided),
            overhead=figures.rows.overhead,
        )
        events: list[Event] = [*changes, *state.media.events(decided, view.id, budget)]
        is_overflow = total > budget and self._window.strict
        overflow = ContextOverflowError(total, budget, culprits(decided), decided.overhead + decided.correction) if is_overflow else None
        return PendingCall(view.id, figures, lambda _: view, events, settings, overflow, question_about(view, total, settings))

    def _record(self, replay: SessionReplay, contents: SessionContents, settings: Settings) -> UsageFigures:
        view, feed = replay.decided, replay.feed
        figures = UsageFigures(tuple(view.tokens), view.overhead, view.correction, contents, feed.reported, feed.saved_total)
        self._active.record(figures, settings)
        return figures
