"""What a manager keeps of one session: it goes when the session goes."""

from __future__ import annotations

from threading import RLock

from .calibration import Counted
from .events import Watch
from .following import Following
from .kinds import KindsOut
from .settings import Settings

REMEMBERED = 8
"""Views whose counts are kept: a report may come some items after its request."""


class Kept:
    """The folds of one session, and what listeners were told of it.

    Attributes:
        lock: Held by whoever looks at the rest.
        settings: What the folds go by.
        view: The fold of the view.
        census: The fold without limits.
        kinds: The kinds of its items.
        before: The view's fold by other settings, until there is a view by these.
        watch: What was told.
        sent: The local counts of the views given out last, by how many items the log had.
    """

    __slots__ = ("before", "census", "kinds", "lock", "sent", "settings", "view", "watch")

    def __init__(self, settings: Settings) -> None:
        self.lock = RLock()  # a counter, or a finaliser at any time, may ask about the session that is being folded
        self.settings = settings
        self.view: Following | None = None
        self.census: Following | None = None
        self.before: Following | None = None
        self.kinds = KindsOut()
        self.watch = Watch()
        self.sent: dict[int, Counted] = {}

    def note_sent(self, length: int, counted: Counted) -> None:
        """A view of so many items of the log is given out."""
        self.sent.pop(length, None)
        self.sent[length] = counted
        if len(self.sent) > REMEMBERED:
            del self.sent[next(iter(self.sent))]

    def go_by(self, settings: Settings) -> None:
        """Lets go of what was decided by other settings. The caller holds the lock."""
        if not settings.counts_as(self.settings):
            self.watch.recount()
        if not settings.decides_as(self.settings):
            self.before, self.view, self.census = self.before or self.view, None, None
        self.settings = settings
