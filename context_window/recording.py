"""The part of a manager that is told what the provider reported, where no item of the log says it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from session.items import AgentConfigUpdate, Item
from session.session import Session
from session.units import is_answer
from session.usage import Usage

from .calibration import Calibration, Counted, Report
from .errors import BudgetError
from .following import Following
from .hearing import speaks
from .kept import Kept
from .switching import Switching

ADVICE = "pass a Usage(input_tokens=…), or the usage that the provider's client gave"


class Recording(Switching, ABC):
    """What was reported beside the log."""

    calibration: Calibration

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
        reported = _usage(usage)
        if not reported.total_input:
            raise BudgetError("usage", reported, f"it reports no input tokens: {ADVICE}")
        if session is None:
            shown = self._ledger.noted.shown
            if shown is None:
                raise BudgetError("session", session, "nothing was processed yet: pass the session")
            items, session_id = shown.items, shown.session_id
            session = shown.session()
        elif isinstance(session, Session):
            session_id, items = session.id, session.items
        else:
            raise BudgetError("session", type(session), "pass the Session that was sent, or its log")
        length = _asked_at(items)
        last = items[length - 1].id if length else ""
        log = None if session is None else session.origin or session
        point = None if log is None else _point(log, last)
        counted = None if log is None or point is None else self._counted(log, point)
        report = Report(reported, self._settings.budget.model, counted)
        self.calibration.record(session_id, last, report)
        if log is not None:
            self._tell_fold(log, point, report)

    def answer_notes(self, session: Session) -> dict[str, Any]:
        """What the first item of an answer shall carry in `extra` beside its `usage`: the model, and what the request was counted as.

        With it the report says something to whoever folds the log by other limits too: another budget, or after a pin. Empty where no
        view of the session as it is was given out.

        Args:
            session: The log, before the answer is appended to it.
        """
        log = session.origin or session
        counted = self._counted(log, len(log.items))
        model = self._settings.budget.model
        return {**({} if model is None else {"model": model}), **({} if counted is None else {"counted": counted.to_dict()})}

    def _counted(self, log: Session, point: int) -> Counted | None:
        """What the request with so many items of the log was counted as."""
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


def _asked_at(items: Sequence[Item]) -> int:
    """How many items the last request had: all, or those before the answer where that is there already."""
    length = len(items)
    while length and is_answer(items[length - 1]):
        length -= 1
    return length


def _point(log: Session, last: str) -> int | None:
    """How many items of the log the request had that ended in this one; None where the log has it no more."""
    position = log.position(last) if last else -1
    return None if position is None else position + 1


def _usage(reported: object) -> Usage:
    if isinstance(reported, Usage):
        return reported
    from session.transcripts.usages import usage_of

    values = reported.model_dump() if hasattr(reported, "model_dump") else reported
    found = usage_of(values)
    if found is None:
        raise BudgetError("usage", type(reported), ADVICE)
    return found
