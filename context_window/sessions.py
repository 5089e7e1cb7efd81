"""What a manager remembers of each session: its last view, what was sent, and what the provider refused. It goes with the session."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock, RLock
from weakref import WeakKeyDictionary

from session.items import FunctionCallOutput, Item
from session.read_only import source_of
from session.session import Session
from session.units import is_answer

from .calibration.report_feed import ReportFeed
from .calibration.reports import Calibration, LocalCount, Reports
from .decision.limits import Limits, portion
from .decision.refused_parts import NONE_REFUSED, RefusedParts
from .decision.replay import SessionReplay
from .decision.view import View
from .errors import ArgumentError
from .events.unusable_media import UnusableMedia
from .events.view_changes import ViewChanges
from .recall import as_shown
from .settings.budget import Budget, limits_of
from .settings.resolved import Settings

VIEWS_REMEMBERED = 8
"""Views whose local counts are remembered: a usage report may arrive some items after its request."""


@dataclass(frozen=True, slots=True)
class SentView:
    """A view that was returned and has probably been sent: its local count, the model's name if known, and True for `trim_session`'s."""

    local_count: LocalCount
    model: str | None
    one_shot: bool


@dataclass(frozen=True, slots=True)
class LoweredBudget:
    """The smaller budget of one session, by the local count, after the provider refused a prompt as too long.

    `budget` proved too large. After a switch to another model the lowered one no longer applies.
    """

    tokens: int
    budget: Budget


@dataclass(slots=True)
class SessionState:
    """The replays of one session, the events emitted so far, and the provider's refusals.

    Attributes:
        lock: Held while any other attribute is used. Reentrant: a counter or a finaliser may call the manager about the same session.
        settings: The settings under which the replays decide; None before the first call.
        view: The replay of the view.
        census: A replay that trims nothing. It has the cost of the whole session.
        previous_view: The view's replay under the previous settings, until there is a view under the current ones.
        media: The unusable images and documents that were reported.
        changes: The figures of the latest views, so that no event is emitted twice.
        sent: The latest views returned, by the length of the log at that time.
        lowered: The budget after a refused prompt; None if none was refused.
        refused: The images and documents that the provider refused.
    """

    lock: RLock = field(default_factory=RLock)
    settings: Settings | None = None
    view: SessionReplay | None = None
    census: SessionReplay | None = None
    previous_view: SessionReplay | None = None
    media: UnusableMedia = field(default_factory=UnusableMedia)
    changes: ViewChanges = field(default_factory=ViewChanges)
    sent: dict[int, SentView] = field(default_factory=dict)
    lowered: LoweredBudget | None = None
    refused: RefusedParts = NONE_REFUSED

    def note_sent(self, length: int, view: SentView) -> None:
        """Remember the view returned for a log of this length. A one-shot view never overwrites a processed one."""
        previous = self.sent.get(length)
        if previous is not None and view.one_shot and not previous.one_shot:
            return
        self.sent.pop(length, None)
        self.sent[length] = view
        if len(self.sent) > VIEWS_REMEMBERED:
            del self.sent[next(iter(self.sent))]

    def request_length(self, items: Sequence[Item]) -> int:
        """Return the number of log items in the last request.

        That is the length of the most recent known view, if only responses and tool outputs follow it; else everything before the
        response at the end.
        """
        length = len(items)
        while length and (is_answer(items[length - 1]) or (length not in self.sent and isinstance(items[length - 1], FunctionCallOutput))):
            length -= 1
        return length if length in self.sent else length_before_answer(items)

    def use(self, settings: Settings) -> None:
        """Switch to these settings, and drop the replays if the old ones led to other decisions. The caller holds the lock."""
        if self.settings is not None and not settings.counts_as(self.settings):
            self.changes.recount()
        if self.settings is not None and not settings.decides_as(self.settings):
            self.previous_view, self.view, self.census = self.previous_view or self.view, None, None
        self.settings = settings

    def refused_parts(self, log: Session) -> RefusedParts:
        """Return the refused parts of the log, moved to where they stand if it was edited since."""
        if self.refused.since and self.refused.lineage is not log.lineage:
            self.refused = self.refused.rebased(log)
        return self.refused


def check_session(session: object) -> None:
    """Raise ArgumentError unless this is a session."""
    if not isinstance(session, Session):
        raise ArgumentError("session", type(session), "pass a Session; Session.from_openai(…) and from_anthropic(…) make one of messages")


def log_of(session: Session) -> Session:
    """Return the log behind a session: of a view, the log that it was made of."""
    session = source_of(session)
    return session if session.origin is None or not session.is_view else source_of(session.origin)


def length_before_answer(items: Sequence[Item]) -> int:
    """Return the number of items before the response at the end, or of all items if there is none."""
    length = len(items)
    while length and is_answer(items[length - 1]):
        length -= 1
    return length


class Sessions:
    """Keeps a `SessionState` for each session and brings its replays up to date.

    A state lives as long as its session. Its replays start over after an edit that is more than an append, after a call that broke
    off, and when recorded usage reports are replaced.
    """

    def __init__(self, calibration: Calibration) -> None:
        self._calibration = calibration
        self._states: WeakKeyDictionary[Session, SessionState] = WeakKeyDictionary()
        self._lock = Lock()

    def state(self, session: Session) -> SessionState:
        """Return the state of a session, or of the session behind a read-only one. Raises ArgumentError if this is not a session."""
        check_session(session)
        session = source_of(session)
        with self._lock:
            state = self._states.get(session)
            if state is None:
                state = self._states[session] = SessionState()
            return state

    def view(self, session: Session, state: SessionState, settings: Settings) -> SessionReplay:
        """Return the replay of the session's view, up to date. The caller holds the state's lock."""
        state.use(settings)
        limits, refused = self.limits_for(session, settings), state.refused_parts(source_of(session))
        state.view = self.updated(state.view, session, limits, settings, refused=refused)
        return state.view

    def census(self, session: Session, state: SessionState, settings: Settings) -> SessionReplay:
        """Return the replay that trims nothing, up to date; it has the cost of the whole session. The caller holds the state's lock."""
        state.use(settings)
        limits, sent = settings.limits.boundless(), self._feed_of(session, settings)
        state.census = self.updated(state.census, session, limits, settings, sent)
        return state.census

    def walk(
        self, session: Session, settings: Settings, on_request: Callable[[View, int], object], *, trims: bool = False
    ) -> SessionReplay:
        """Read the whole session once. `on_request` is called as in `SessionReplay.update`; `trims` applies the limits of views."""
        limits = settings.limits if trims else settings.limits.boundless()
        replay = SessionReplay(session, limits, settings.measurer, reports=self._reports(session, settings), shown_as=as_shown)
        replay.update(session, on_request=on_request)
        if not trims:
            replay.update(session, self._feed_of(session, settings))
        return replay

    def _feed_of(self, session: Session, settings: Settings) -> Callable[[], ReportFeed]:
        """Return a function that returns the reports of the session's view: the one that was sent."""

        def feed() -> ReportFeed:
            state = self.state(session)
            with state.lock:
                return self.view(session, state, settings).feed

        return feed

    def one_shot(self, session: Session, settings: Settings, *, newest_first: bool = False) -> SessionReplay:
        """Return a new replay that trims the whole session once, to the budget or to a lowered one."""
        limits = limits_of(settings.budget, settings.window, settings.overhead, settings.tools, one_shot=True, newest_first=newest_first)
        lowered = self._lowered_tokens(session, settings)
        if lowered is not None:
            limits = replace(limits, budget=lowered, trigger=lowered, target=lowered)
        refused = self.refused_parts(session)
        replay = SessionReplay(
            session, limits, settings.measurer, one_shot=True, reports=self._reports(session, settings), refused=refused, shown_as=as_shown
        )
        replay.update(session, self._feed_of(session, settings))
        return replay

    def cost(self, session: Session, settings: Settings) -> int:
        """Return the tokens of a request with the session's view."""
        state = self.state(session)
        with state.lock:
            return self.view(session, state, settings).decided.total

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
        replay: SessionReplay | None,
        session: Session,
        limits: Limits,
        settings: Settings,
        sent: Callable[[], ReportFeed] | None = None,
        refused: RefusedParts = NONE_REFUSED,
    ) -> SessionReplay:
        """Bring a replay up to date, or start a new one if there is none or it cannot go on, and return it.

        `sent` returns the reports of the view that was sent, if that is another one: reports are about that view.
        """
        is_valid = replay is not None and replay.feed.reports.version == self._calibration.version and replay.refused is refused
        if replay is None or not is_valid or not replay.can_update(session):
            replay = SessionReplay(
                session, limits, settings.measurer, reports=self._reports(session, settings), refused=refused, shown_as=as_shown
            )
        replay.use_limits(limits)
        replay.update(session, sent)
        return replay

    def _lowered_tokens(self, session: Session, settings: Settings) -> int | None:
        lowered = self.state(session).lowered
        return lowered.tokens if lowered is not None and lowered.budget is settings.budget else None

    def _reports(self, session: Session, settings: Settings) -> Reports:
        return self._calibration.reports(session.id, settings.budget.counter.name, settings.budget.speaks_for)
