"""The trackers of all sessions that a manager serves: which one answers a question, and when one has to start over."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from threading import Lock
from weakref import WeakKeyDictionary

from session.read_only import source_of
from session.session import Session
from session.session_log import parent_of

from ..calibration.report_feed import ReportFeed
from ..calibration.reports import Calibration, Reports
from ..errors import BudgetError
from ..settings.budget import limits_of
from ..settings.resolved import Settings
from ..trimming.fold import Fold
from ..trimming.limits import Limits, portion
from ..trimming.refused_parts import NONE_REFUSED, RefusedParts
from .session_state import SessionState
from .tracker import SessionTracker
from .tracker_copies import copied_for_fork


def check_session(session: object) -> None:
    """Raise BudgetError unless this is a session."""
    if not isinstance(session, Session):
        raise BudgetError("session", type(session), "pass a Session; Session.from_openai(…) and from_anthropic(…) make one of messages")


class SessionTrackers:
    """Keeps a `SessionState` for each session and brings its trackers up to date.

    A state lives as long as its session. Its trackers start over after an edit that is more than an append, after a call that broke
    off, and when recorded usage reports are replaced.
    """

    def __init__(self, calibration: Calibration) -> None:
        """
        Args:
            calibration: The recorded usage reports.
        """
        self._calibration = calibration
        self._states: WeakKeyDictionary[Session, SessionState] = WeakKeyDictionary()
        self._lock = Lock()

    def state(self, session: Session) -> SessionState:
        """Return the state of a session, or of the session behind a read-only one.

        Raises:
            BudgetError: This is not a session.
        """
        check_session(session)
        session = source_of(session)
        with self._lock:
            state = self._states.get(session)
            if state is None:
                state = self._states[session] = SessionState()
            return state

    def view(self, session: Session, state: SessionState, settings: Settings) -> SessionTracker:
        """Return the tracker of the session's view, up to date. The caller holds the state's lock."""
        state.use(settings)
        limits, refused = self.limits_for(session, settings), state.refused_parts(source_of(session))

        def copied() -> SessionTracker | None:
            return self._copied(session, state, limits, settings)

        tracker = state.view = self.updated(state.view, session, limits, settings, refused=refused, copied=copied)
        return tracker

    def census(self, session: Session, state: SessionState, settings: Settings) -> SessionTracker:
        """Return the tracker that trims nothing, up to date; it has the cost of the whole session. The caller holds the state's lock."""
        state.use(settings)
        limits = settings.limits.boundless()

        def view_feed() -> ReportFeed:
            return self.view(session, state, settings).report_feed

        def copied() -> SessionTracker | None:
            return self._copied(session, state, limits, settings, is_census=True)

        tracker = state.census = self.updated(state.census, session, limits, settings, view_feed, copied=copied)
        return tracker

    def walk(
        self,
        session: Session,
        state: SessionState,
        settings: Settings,
        on_request: Callable[[Fold, int], object],
        tracker: SessionTracker | None = None,
    ) -> SessionTracker:
        """Read the whole session once, and return its census as `census` does. The caller holds the state's lock.

        Args:
            session: The session.
            state: Its state.
            settings: The settings in use.
            on_request: Called at each request, as in `SessionTracker.update`. The fold trims nothing.
            tracker: The census of an earlier walk, from which to go on; `can_walk_on` must be true of it. Default: a new one.
        """
        state.use(settings)
        if tracker is None:
            tracker = SessionTracker(session, settings.limits.boundless(), settings.measurer, reports=self._reports(session, settings))
        tracker.update(session, on_request=on_request)
        state.census = tracker
        return self.census(session, state, settings)

    def can_walk_on(self, tracker: SessionTracker, session: Session, state: SessionState) -> bool:
        """True if the session has only grown since this census of it was walked, and no report was recorded since."""
        is_valid = tracker.report_feed.reports.version == self._calibration.version
        return state.census is tracker and is_valid and tracker.can_update(session)

    def walk_views(self, session: Session, settings: Settings, on_request: Callable[[Fold, int], object]) -> None:
        """Read the whole session once under the limits of its views.

        Args:
            session: The session.
            settings: The settings in use.
            on_request: Called at each request, as in `SessionTracker.update`.
        """
        tracker = SessionTracker(session, settings.limits, settings.measurer, reports=self._reports(session, settings))
        tracker.update(session, on_request=on_request)

    def one_shot(self, session: Session, settings: Settings, *, newest_first: bool = False) -> SessionTracker:
        """Return a new tracker that trims the whole session once, to the budget or to a lowered one.

        Args:
            session: The session.
            settings: The settings in use.
            newest_first: True to take the newest items first.
        """
        limits = limits_of(settings.budget, settings.window, settings.overhead, one_shot=True, newest_first=newest_first)
        lowered = self._lowered_tokens(session, settings)
        if lowered is not None:
            limits = replace(limits, budget=lowered, trigger=lowered, target=lowered)
        state = self.state(session)
        refused = state.refused_parts(source_of(session))
        reports = self._reports(session, settings)
        tracker = SessionTracker(session, limits, settings.measurer, one_shot=True, reports=reports, refused=refused)

        def view_feed() -> ReportFeed:
            with state.lock:
                return self.view(session, state, settings).report_feed

        tracker.update(session, view_feed)
        return tracker

    def cost(self, session: Session, settings: Settings) -> int:
        """Return the tokens of a request with the session's view."""
        state = self.state(session)
        with state.lock:
            return self.view(session, state, settings).fold.total

    def limits_for(self, session: Session, settings: Settings) -> Limits:
        """Return the limits of the session's views: those of the settings, or lower ones after a refused prompt."""
        tokens = self._lowered_tokens(session, settings)
        if tokens is None:
            return settings.limits
        trigger, target = settings.window.ratios
        return replace(settings.limits, budget=tokens, trigger=portion(trigger, tokens), target=portion(target, tokens))

    def refused_parts(self, session: Session) -> RefusedParts:
        """Return the session's images and documents that the provider refused."""
        return self.state(session).refused_parts(source_of(session))

    def updated(
        self,
        tracker: SessionTracker | None,
        session: Session,
        limits: Limits,
        settings: Settings,
        view_feed: Callable[[], ReportFeed] | None = None,
        refused: RefusedParts = NONE_REFUSED,
        copied: Callable[[], SessionTracker | None] | None = None,
    ) -> SessionTracker:
        """Bring a tracker up to date, or start a new one if it cannot go on, and return it.

        Args:
            tracker: The tracker; None to start one.
            session: The session.
            limits: The limits of its views.
            settings: The settings in use.
            view_feed: Returns the reports of the view that was sent, if that is another one: reports are about that view.
            refused: The images and documents that the provider refused.
            copied: Returns a copy of another session's tracker to go on from, or None; called if there is no tracker yet.
        """
        if tracker is None and copied is not None:
            tracker = copied()
        is_valid = tracker is not None and tracker.report_feed.reports.version == self._calibration.version and tracker.refused is refused
        if tracker is None or not is_valid or not (tracker.can_update(session) or tracker.follow_pin(session)):
            tracker = SessionTracker(session, limits, settings.measurer, reports=self._reports(session, settings), refused=refused)
        elif tracker.fold.limits != limits:  # the budget was lowered after a refusal
            tracker.fold.change_limits(limits)
        tracker.update(session, view_feed)
        return tracker

    def _copied(
        self, session: Session, state: SessionState, limits: Limits, settings: Settings, *, is_census: bool = False
    ) -> SessionTracker | None:
        """Return a copy of the tracker of the session that this one is a fork of; None if there is none to go on from."""
        fork = source_of(session)
        parent = parent_of(fork)
        if parent is None:
            return None
        parent = source_of(parent)
        of_parent = self.state(parent)
        if not of_parent.lock.acquire(blocking=False):  # waiting could be a deadlock: its holder may wait for this session
            return None
        try:
            tracker = of_parent.census if is_census else of_parent.view
            if tracker is None or of_parent.settings is not settings:
                return None
            copied = copied_for_fork(tracker, parent, fork, limits, self._reports(fork, settings))
            if copied is not None and not is_census:
                state.media.go_on_from(of_parent.media, tracker, copied)
            return copied
        finally:
            of_parent.lock.release()

    def _lowered_tokens(self, session: Session, settings: Settings) -> int | None:
        lowered = self.state(session).lowered
        return lowered.tokens if lowered is not None and lowered.budget is settings.budget else None

    def _reports(self, session: Session, settings: Settings) -> Reports:
        return self._calibration.reports(session.id, settings.budget.counter.name, settings.budget.speaks_for)
