"""Everything the manager keeps about one session. It is dropped together with the session."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from threading import RLock

from session.items import FunctionCallOutput, Item
from session.read_only import source_of
from session.session import Session
from session.units import is_answer

from ..calibration.reports import LocalCount
from ..events.view_changes import ViewChanges
from ..settings.budget import Budget
from ..settings.resolved import Settings
from ..trimming.plan import Action, Decision, Reason
from ..trimming.refused_parts import NONE_REFUSED, RefusedParts
from .tracker import SessionTracker
from .unusable_media import UnusableMedia

VIEWS_REMEMBERED = 8
"""Views whose local counts are remembered: a usage report may arrive some items after its request."""


def log_of(session: Session) -> Session:
    """Return the log behind a session: for an unchanged view its log; a view that was appended to is a log of its own."""
    session = source_of(session)
    origin = session.origin
    return session if origin is None or len(session.items) > session.settled else source_of(origin)


@dataclass(frozen=True, slots=True)
class SentView:
    """A view that was returned to the caller and has probably been sent.

    Attributes:
        local_count: Its local token count.
        model: The model it was made for; None if its name is not known.
        one_shot: True if it came from `trim_session`.
    """

    local_count: LocalCount
    model: str | None
    one_shot: bool


@dataclass(frozen=True, slots=True)
class LoweredBudget:
    """The smaller budget of one session after the provider refused a prompt as too long.

    Attributes:
        tokens: Tokens that a view may cost, by the local count.
        budget: The budget that proved too large. After a switch to another model the lowered one no longer applies.
    """

    tokens: int
    budget: Budget


class SessionState:
    """The trackers of one session, the events emitted so far, and the provider's refusals.

    Attributes:
        lock: Held while any other attribute is used.
        settings: The settings under which the trackers decide; None before the first call.
        view: The tracker of the view.
        census: A tracker that trims nothing. It has the cost of the whole session.
        previous_view: The view's tracker under the previous settings, until there is a view under the current ones.
        media: The unusable images and documents that were reported.
        changes: The figures of the latest views, so that no event is emitted twice.
        sent: The latest views returned, by the length of the log at that time.
        lowered: The budget after a refused prompt; None if none was refused.
        refused: The images and documents that the provider refused.
    """

    __slots__ = ("census", "changes", "lock", "lowered", "media", "previous_view", "refused", "sent", "settings", "view")

    def __init__(self) -> None:
        self.lock = RLock()  # reentrant: a counter or a finaliser may call the manager about this session while it is tracked
        self.settings: Settings | None = None
        self.view: SessionTracker | None = None
        self.census: SessionTracker | None = None
        self.previous_view: SessionTracker | None = None
        self.media = UnusableMedia()
        self.changes = ViewChanges()
        self.sent: dict[int, SentView] = {}
        self.lowered: LoweredBudget | None = None
        self.refused: RefusedParts = NONE_REFUSED

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
        """Switch to these settings, and drop the trackers if the old ones led to other decisions. The caller holds the lock."""
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


def length_before_answer(items: Sequence[Item]) -> int:
    """Return the number of items before the response at the end, or of all items if there is none."""
    length = len(items)
    while length and is_answer(items[length - 1]):
        length -= 1
    return length


def hides_more(previous: SessionTracker, current: SessionTracker, session: Session) -> bool | None:
    """Return True if a view shows less than the previous one, which was decided under other settings; None if they cannot be compared.

    Compares every item; called once after a switch.
    """
    if not previous.can_update(session):
        return None
    earlier, later = previous.plan().decisions, current.plan().decisions
    dropped = [decision for decision in later[len(earlier) :] if decision.action is Action.DROP]
    return any(map(shows_less, later, earlier)) or any(decision.reason is not Reason.COMPACTED for decision in dropped)


def shows_less(decision: Decision, earlier: Decision) -> bool:
    """True if a decision to trim shows less of its item than an earlier one. A summary that stands for the item is no trim."""
    if decision.reason is Reason.COMPACTED:
        return False
    for action in (Action.DROP, Action.CLEAR):
        if earlier.action is action or decision.action is action:
            return decision.action is action and earlier.action is not action
    if decision.lines is not None or earlier.lines is not None:
        return earlier.lines is None or (decision.lines is not None and not set(earlier.lines) <= set(decision.lines))
    cut, earlier_cut = decision.cut, earlier.cut
    is_shorter = cut is not None and (earlier_cut is None or cut.head + cut.tail < earlier_cut.head + earlier_cut.tail)
    return is_shorter or not set(decision.images) <= set(earlier.images)
