"""`SessionCompaction`: compaction state of one session. It is never saved, because the log contains everything that must last."""

from __future__ import annotations

from threading import Lock

from session.errors import FormatError
from session.providers.native_compaction import sum_usage
from session.session import Session
from session.usage import Usage

from ..counting.item_tokens import Measurer
from ..decision.limits import Limits
from ..decision.refused_parts import RefusedParts
from ..decision.replay import SessionReplay
from ..decision.view import View
from ..errors import ArgumentError
from ..recall import as_shown
from ..usage.usage_reports import usage_from

MAX_REQUESTS_TO_WAIT = 64
"""Most requests that pass between two attempts."""
GROWTH_PARTS = 16
"""A log with nothing to summarise is checked again when it has grown by 1/16 of a limit, or in the next turn."""


class SessionCompaction:
    """Compaction state of one session: its replay without trimming, its locks and its retry back-off.

    `lock` is held while the replay is used, `writing_lock` by the call that works on a summary: other calls do not wait for it. `usage` is
    that of all summaries that were written for the session.
    """

    __slots__ = ("_failed_at", "_failures", "_limits", "_measurer", "_not_due_at", "_replay", "lock", "usage", "writing_lock")

    def __init__(self) -> None:
        self.lock = Lock()
        self.writing_lock = Lock()
        self.usage = Usage()
        self._not_due_at: tuple[int, int, int] | None = None  # last user message, tokens and length of a log with nothing to summarise
        self._replay: SessionReplay | None = None
        self._limits: Limits | None = None
        self._measurer: Measurer | None = None
        self._failures = 0
        self._failed_at = 0

    def replay(self, session: Session, limits: Limits, measurer: Measurer, refused: RefusedParts) -> SessionReplay:
        """Return the session's replay under these limits, up to date. The caller holds `lock`."""
        replay = self._replay
        is_same_setup = replay is not None and measurer is self._measurer and limits == self._limits and replay.refused is refused
        if replay is None or not is_same_setup or not replay.can_update(session):
            replay = SessionReplay(session, limits, measurer, refused=refused, shown_as=as_shown)
            self._not_due_at = None
        self._replay, self._limits, self._measurer = replay, limits, measurer
        replay.update(session)
        return replay

    def is_still_not_due(self, view: View, limits: Limits) -> bool:
        """True if the log had nothing to summarise and has hardly grown since. A long turn has many requests, and a check reads the log."""
        if self._not_due_at is None:
            return False
        last_user, tokens, length = self._not_due_at
        has_grown = view.counted - tokens > limits.trigger // GROWTH_PARTS
        has_more_items = limits.items_max is not None and len(view) - length > limits.items_max // GROWTH_PARTS
        return last_user == view.log.groups.last_user and not (has_grown or has_more_items)

    def record_not_due(self, view: View) -> None:
        """Note that this log has nothing to summarise."""
        self._not_due_at = (view.log.groups.last_user, view.counted, len(view))

    def may_try(self, requests: int) -> bool:
        """True if it is time for an attempt: after failures, 1, 2, 4 … requests pass without one.

        A log that was rewritten since has fewer responses than at the last failure.
        """
        requests_to_wait = min(2 ** (self._failures - 1), MAX_REQUESTS_TO_WAIT) if self._failures else -1
        return requests > self._failed_at + requests_to_wait or requests < self._failed_at

    def record_usage(self, reported: object) -> Usage:
        """Add what a provider reported for one answer of the summariser, and return it: nothing if it is no report."""
        try:
            usage = usage_from(reported)
        except (ArgumentError, FormatError):
            return Usage()
        self.usage = sum_usage([self.usage, usage])
        return usage

    def record_failure(self, requests: int) -> None:
        """Note an attempt that failed when the log had so many responses."""
        self._failures = min(self._failures + 1, MAX_REQUESTS_TO_WAIT)
        self._failed_at = requests

    def record_success(self) -> None:
        """Note that a summary was appended."""
        self._failures = self._failed_at = 0
