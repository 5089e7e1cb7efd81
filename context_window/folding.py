"""The part of a manager that folds sessions: which fold answers what, and when one begins anew."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from threading import Lock
from weakref import WeakKeyDictionary

from session.read_only import source_of
from session.session import Session

from .budget import limits_of
from .calibration import Calibration, Reports
from .errors import BudgetError
from .following import Following
from .kept import Kept
from .requesting import Requesting
from .settings import Settings
from .trimming.fold import Fold
from .trimming.limits import Limits
from .trimming.refused import NONE_REFUSED, RefusedParts


def check_session(session: object) -> None:
    """Raises BudgetError where this is no session."""
    if not isinstance(session, Session):
        raise BudgetError("session", type(session), "pass a Session; Session.from_openai(…) and from_anthropic(…) make one of messages")


class Folding(Requesting):
    """The folds of the sessions that a manager serves."""

    calibration: Calibration
    _states: WeakKeyDictionary[Session, Kept]
    _lock: Lock

    def _state(self, session: Session) -> Kept:
        check_session(session)
        session = source_of(session)
        with self._lock:
            state = self._states.get(session)
            if state is None:
                state = self._states[session] = Kept(self._settings)
            return state

    def _follow(self, session: Session, state: Kept, settings: Settings | None = None) -> Following:
        """The session's fold by these settings, brought up to date; else by those in use. The caller holds the state's lock."""
        settings = self._settings if settings is None else settings
        state.go_by(settings)
        limits, refused = self._limits_for(session, settings), self._refused_of(session)
        following = state.view = self._caught_up(state.view, session, limits, settings, refused=refused)
        return following

    def _census(self, session: Session, state: Kept, settings: Settings | None = None) -> Following:
        """The session folded without limits: what it costs as it is."""
        settings = self._settings if settings is None else settings
        state.go_by(settings)
        limits = settings.limits.boundless()
        following = state.census = self._caught_up(
            state.census, session, limits, settings, lambda: self._follow(session, state, settings).fold
        )
        return following

    def _one_shot(self, session: Session, settings: Settings, *, newest_first: bool = False) -> Following:
        """The session, trimmed once as a whole: to the budget, or to what a refusal has lowered it to."""
        limits = limits_of(settings.budget, self.context_window, settings.overhead, one_shot=True, newest_first=newest_first)
        lowered = self._lowered_to(session, settings)
        if lowered is not None:
            limits = replace(limits, budget=lowered, trigger=lowered, target=lowered)
        reports = self._reports(session, settings)
        following = Following(session, limits, settings.measurer, one_shot=True, reports=reports, refused=self._refused_of(session))
        state = self._state(session)

        def guide() -> Fold:
            with state.lock:
                return self._follow(session, state, settings).fold

        following.catch_up(session, guide)
        return following

    def _caught_up(
        self,
        known: Following | None,
        session: Session,
        limits: Limits,
        settings: Settings,
        guide: Callable[[], Fold] | None = None,
        refused: RefusedParts = NONE_REFUSED,
    ) -> Following:
        """What follows the session, brought up to date; anew where what is known cannot go on."""
        may_go_on = known is not None and known.hearing.reports.version == self.calibration.version and known.refused is refused
        if known is None or not may_go_on or not known.follows(session):
            known = Following(session, limits, settings.measurer, reports=self._reports(session, settings), refused=refused)
        elif known.fold.limits != limits:  # a refusal has lowered them
            known.fold.go_on_by(limits)
        known.catch_up(session, guide)
        return known

    def _reports(self, session: Session, settings: Settings) -> Reports:
        return self.calibration.reports(session.id, settings.budget.counter.name, settings.budget.speaks_for)
