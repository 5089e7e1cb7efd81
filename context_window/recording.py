"""The part of a manager that is told what the provider reported, where no item of the log says it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from session.items import AgentConfigUpdate, Item
from session.read_only import source_of
from session.session import Session
from session.usage import Usage

from .calibration import Calibration, Report
from .errors import BudgetError
from .following import Following
from .hearing import speaks
from .kept import Kept, Sent, before_the_answer, log_of
from .ledger import Shown
from .switching import Switching

ADVICE = "pass a Usage(input_tokens=…), or the usage that the provider's client gave"


class Recording(Switching, ABC):
    """What was reported beside the log."""

    calibration: Calibration
    _given_out: Shown | None  # the last view

    @abstractmethod
    def _state(self, session: Session) -> Kept: ...

    def record_usage(self, usage: object, session: Session | None = None) -> None:
        """Takes what the provider reported for the last request: totals are anchored on it from now on.

            answer = client.messages.create(**manager.anthropic_request(session, …))
            manager.record_usage(answer.usage, session)

        Not needed where the items of the answer carry their `usage`. It makes no difference whether the answer has been appended by
        now. `manager.calibration.to_dict()` saves what was recorded.

        Args:
            usage: A `Usage`, or what the provider's client gives: of Anthropic, OpenAI or Google, an object or its JSON values.
            session: Whose request it was, or a view of it; where not given, of the last view.

        Raises:
            BudgetError: It reports no input tokens, or there is no view yet.
        """
        reported = reported_by(usage)
        if not reported.total_input:
            raise BudgetError("usage", reported, f"it reports no input tokens: {ADVICE}")
        log, session_id, last = self._asked_for(session)
        point = None if log is None else _point(log, last)
        sent = None if log is None or point is None else self._sent(log, point)
        counted, model = (None, self._settings.budget.model) if sent is None else (sent.counted, sent.model)
        report = Report(reported, model, counted)
        if self.calibration.record(session_id, last, report) and log is not None:
            self._tell_fold(log, point, report)

    def _asked_for(self, session: Session | None) -> tuple[Session | None, str, str]:
        """The log of the request that is reported, where it is there; its id, and that of the last item which the request had."""
        if session is None:
            shown = self._given_out
            if shown is None:
                raise BudgetError("session", session, "nothing was processed yet: pass the session")
            live = shown.session()
            return None if live is None else log_of(live), shown.session_id, _last(shown.items, before_the_answer(shown.items))
        if not isinstance(session, Session):
            raise BudgetError("session", type(session), "pass the Session that was sent, or its log")
        log, items = log_of(session), session.items
        if log is not source_of(session):
            return log, session.id, _last(items, before_the_answer(items))
        state = self._state(log)
        with state.lock:
            return log, session.id, _last(items, state.asked_at(items))

    def answer_notes(self, session: Session) -> dict[str, Any]:
        """What the first item of an answer shall carry in `extra` beside its `usage`: the model, and what the request was counted as.

        With it the report says something to whoever folds the log by other limits too: another budget, or after a pin. Empty where no
        view of the session as it is was given out.

        Args:
            session: The log, before the answer is appended to it.
        """
        log = log_of(session)
        sent = self._sent(log, len(log.items))
        model = self._settings.budget.model if sent is None else sent.model
        return {**({} if model is None else {"model": model}), **({} if sent is None else {"counted": sent.counted.to_dict()})}

    def _sent(self, log: Session, point: int) -> Sent | None:
        """The view of so many items of the log that was given out."""
        state = self._state(log)
        with state.lock:
            return state.sent.get(point)

    def _tell_fold(self, log: Session, point: int | None, report: Report) -> None:
        """Where the answer has been folded before the report came, the fold hears of it now."""
        state = self._state(log)
        with state.lock:
            if state.census is not None:
                state.census.hearing.any = True
            view = state.view
            if view is None or point is None or point >= len(view.fold) or speaks(view.items[point]):
                return
            if view.follows(log) and _is_as_asked(view, point):
                view.hearing.take(report, view.items[point].agent_id)
            else:
                state.view = None


def _is_as_asked(view: Following, point: int) -> bool:
    """Whether the fold is as if it had heard of the request with so many items when the answer came, but for the report itself."""
    fold = view.fold
    if fold.groups.starts[-1:] != [point] or fold.is_reported or not fold.is_as_asked:
        return False
    return not any(isinstance(item, AgentConfigUpdate) for item in view.items[point : len(fold)])


def _last(items: Sequence[Item], length: int) -> str:
    """The id of the last of so many items; empty where there is none."""
    return items[length - 1].id if length else ""


def _point(log: Session, last: str) -> int | None:
    """How many items of the log the request had that ended in this one; None where the log has it no more."""
    position = log.position(last) if last else -1
    return None if position is None else position + 1


def reported_by(reported: object) -> Usage:
    """What a provider's client, or a `Usage`, reports.

    Raises:
        BudgetError: It is no report.
        FormatError: It has a number that cannot be a number of tokens.
    """
    if isinstance(reported, Usage):
        return reported
    from session.transcripts.usages import usage_of

    values = reported.model_dump() if hasattr(reported, "model_dump") else reported
    counts = usage_of(values)
    if counts is None:
        raise BudgetError("usage", type(reported), ADVICE)
    return Usage(*counts)
