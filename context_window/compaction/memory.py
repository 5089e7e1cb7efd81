"""What is kept of one session's compactions: its fold, who is at it, and when to try again. Nothing of it is saved: the log is."""

from __future__ import annotations

from threading import Lock

from session.session import Session

from ..counting.measure import Measurer
from ..following import Following
from ..trimming.limits import Limits
from ..trimming.refused import RefusedParts

WAIT_MOST = 64
"""Request points that pass at the most between two attempts."""


class Memory:
    """One session's.

    Attributes:
        lock: Held by whoever looks at the fold.
        busy: Held by the call that is at a summary. Nobody waits for it: others go on without.
        idle_in: The user message of the turn in which nothing was due; None where that is not known.
    """

    __slots__ = ("_failed_at", "_failures", "_following", "_limits", "_measurer", "busy", "idle_in", "lock")

    def __init__(self) -> None:
        self.lock = Lock()
        self.busy = Lock()
        self.idle_in: int | None = None
        self._following: Following | None = None
        self._limits: Limits | None = None
        self._measurer: Measurer | None = None
        self._failures = 0
        self._failed_at = 0

    def follow(self, session: Session, limits: Limits, measurer: Measurer, refused: RefusedParts) -> Following:
        """The session's fold by these limits, brought up to date. The caller holds the lock."""
        known = self._following
        may_go_on = known is not None and measurer is self._measurer and limits == self._limits and known.refused is refused
        if known is None or not may_go_on or not known.follows(session):
            known = Following(session, limits, measurer, refused=refused)
            self.idle_in = None
        self._following, self._limits, self._measurer = known, limits, measurer
        known.catch_up(session)
        return known

    def may_try(self, requests: int) -> bool:
        """Whether it is time for an attempt: after failures 1, 2, 4 … requests have passed without one.

        Args:
            requests: How many responses the log holds; fewer than at the last failure where it was rewritten since.
        """
        waits = min(2 ** (self._failures - 1), WAIT_MOST) if self._failures else -1
        return requests > self._failed_at + waits or requests < self._failed_at

    def failed(self, requests: int) -> None:
        """An attempt has failed at this request."""
        self._failures = min(self._failures + 1, WAIT_MOST)
        self._failed_at = requests

    def succeeded(self) -> None:
        """There is a summary."""
        self._failures = self._failed_at = 0
