"""Usage that providers reported outside the log: `record_usage`, and the notes that let an answer's items carry it themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from session.items import AgentConfigUpdate, Item
from session.read_only import source_of
from session.session import Session
from session.usage import Usage

from ..calibration.report_feed import has_request_usage
from ..calibration.reports import Calibration, Report
from ..decision.replay import SessionReplay
from ..errors import ArgumentError
from ..sessions import SentView, Sessions, SessionState, length_before_answer, log_of
from ..settings.active_settings import ActiveSettings
from ..settings.usage_snapshot import SessionContents

ADVICE = (
    "pass answer.usage of the provider's client, with its input_tokens, prompt_tokens or prompt_token_count, or a Usage(input_tokens=…)"
)


class UsageReports:
    """Matches reported usage to the request that it is about, and hands it to the session's replay."""

    def __init__(self, calibration: Calibration, active: ActiveSettings, sessions: Sessions) -> None:
        self._calibration = calibration
        self._active = active
        self._sessions = sessions
        self._last_view: SessionContents | None = None

    def remember_view(self, state: SessionState, length: int, view: SentView, contents: SessionContents) -> None:
        """Remember a view that is returned to the caller, who holds the state's lock. The log has so many items."""
        self._last_view = contents
        state.note_sent(length, view)

    def record(self, usage: object, session: Session | None = None) -> None:
        """Apply reported usage to the last request of a session; None stands for the session of the last view.

        Raises ArgumentError if the report has no input tokens, or there is no view yet.
        """
        reported = usage_from(usage)
        if not reported.total_input:
            raise ArgumentError("usage", reported, f"it reports no input tokens: {ADVICE}")
        log, session_id, last_id = self._request(session)
        length = None if log is None else _length_up_to(log, last_id)
        view = None if log is None or length is None else self._sent_view(log, length)
        local_count, model = (None, self._active.current.budget.model) if view is None else (view.local_count, view.model)
        report = Report(reported, model, local_count)
        if self._calibration.record(session_id, last_id, report) and log is not None:
            self._apply(log, length, report)

    def answer_notes(self, session: Session) -> dict[str, Any]:
        """Return notes for `extra` of the answer's first item, which carries its `usage`: the model, and the request's local count."""
        log = log_of(session)
        view = self._sent_view(log, len(log.items))
        model = self._active.current.budget.model if view is None else view.model
        return {**({} if model is None else {"model": model}), **({} if view is None else {"counted": view.local_count.to_dict()})}

    def _request(self, session: Session | None) -> tuple[Session | None, str, str]:
        """Return the log of the reported request (None if it is gone), the session's id, and the id of the request's last item."""
        if session is None:
            contents = self._last_view
            if contents is None:
                raise ArgumentError("session", session, "nothing was processed yet: pass the session")
            live = contents.session()
            last_id = _last_id(contents.items, length_before_answer(contents.items))
            return None if live is None else log_of(live), contents.session_id, last_id
        if not isinstance(session, Session):
            raise ArgumentError("session", type(session), "pass the Session that was sent, or its log")
        log, items = log_of(session), session.items
        if log is not source_of(session):
            return log, session.id, _last_id(items, length_before_answer(items))
        state = self._sessions.state(log)
        with state.lock:
            return log, session.id, _last_id(items, state.request_length(items))

    def _sent_view(self, log: Session, length: int) -> SentView | None:
        """Return the view that was returned when the log had this length."""
        state = self._sessions.state(log)
        with state.lock:
            return state.sent.get(length)

    def _apply(self, log: Session, length: int | None, report: Report) -> None:
        """Give the report to the view's replay if that has already seen the answer."""
        state = self._sessions.state(log)
        with state.lock:
            if state.census is not None:
                state.census.feed.has_reports = True
            replay = state.view
            if replay is None or length is None or length >= len(replay.view) or has_request_usage(replay.items[length]):
                return
            if replay.can_update(log) and _is_unchanged_since(replay, length):
                replay.use_report(report, replay.items[length].agent_id)
            else:
                state.view = None


def _is_unchanged_since(replay: SessionReplay, length: int) -> bool:
    """True if a report applied now has the same effect as one applied when the response to this request arrived."""
    view = replay.view
    if view.log.groups.response_starts[-1:] != [length] or not replay.feed.takes_report(view):
        return False
    return not any(isinstance(item, AgentConfigUpdate) for item in replay.items[length : len(view)])


def _last_id(items: Sequence[Item], length: int) -> str:
    """Return the id of the last of the first `length` items; empty if that is none."""
    return items[length - 1].id if length else ""


def _length_up_to(log: Session, last_id: str) -> int | None:
    """Return the number of log items up to the one with this id; None if the log no longer has it."""
    position = log.position(last_id) if last_id else -1
    return None if position is None else position + 1


def usage_from(reported: object) -> Usage:
    """Return the usage in a provider client's object, its JSON values, or a `Usage`.

    Raises ArgumentError if it holds none, FormatError if one of its numbers cannot be a number of tokens.
    """
    if isinstance(reported, Usage):
        return reported
    from session.transcripts.usage import usage_of

    values = reported.model_dump() if hasattr(reported, "model_dump") else reported
    counts = usage_of(values)
    if counts is None:
        raise ArgumentError(
            "usage", list(values) if isinstance(values, dict) else type(reported), f"none of it is a count of tokens: {ADVICE}"
        )
    return Usage(*counts)
