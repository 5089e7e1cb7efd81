"""`Compactor`: decides when a session's older part is summarised, has the summary written, and appends it to the log.

The package's charter (`__init__.py`) lists the steps. The selection of units is in `unit_selection.py`, the writing in
`summary_writer.py`, the checks in `summary_check.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from threading import Lock
from time import monotonic
from typing import TypeAlias
from weakref import WeakKeyDictionary

from session.items import Compaction
from session.providers.native_compaction import sum_usage
from session.read_only import ReadOnlySession
from session.session import Session
from session.summarizers import ModelSummarizer, Summarizer, Summarizing
from session.summary import check_summarizer, summary_request
from session.usage import Usage

from ..decision.limits import Limits
from ..decision.strategy import to_summarise
from ..decision.view import View
from ..errors import ArgumentError, CompactionError
from ..events.definitions import Compacted, CompactionFailed, Listener, emit
from ..sessions import Sessions
from ..settings.active_settings import ActiveSettings
from ..settings.context_window import ContextWindow
from ..strategies import is_final, summarize_of
from ..view_tools import compaction_wish
from .session_compaction import SessionCompaction
from .summary_check import (
    SummaryPlan,
    check_room,
    check_units_unchanged,
    checked_summary,
    limits_less,
    limits_without_trims,
)
from .summary_writer import SummaryTask, Wording, prepare_task, prompt_size, room_of, sum_up_in_place, write_summary
from .unit_selection import WORTHWHILE_PARTS, SelectionRule, can_append_summary, loses_more_than_results, select_units

AnySummarizer: TypeAlias = Summarizer | Summarizing
"""A summariser: a function from a prompt to a text, or a loop's model."""
MAX_CHECKS = 3
"""Times that a summary is checked if the log grows during the checks."""


class Compactor:
    """Summarises the older part of sessions. The state of a session is freed with the session."""

    def __init__(self, window: ContextWindow, active: ActiveSettings, sessions: Sessions, on_event: Listener | None) -> None:
        """`on_event` is called with `Compacted` and `CompactionFailed`."""
        self._window = window
        self._active = active
        self._sessions = sessions
        self._on_event = on_event
        self._compactions: WeakKeyDictionary[Session, SessionCompaction] = WeakKeyDictionary()
        self._lock = Lock()

    async def compact_if_due(self, session: Session, llm: AnySummarizer | None) -> None:
        """Do the first half of `ContextWindowManager.compact_if_due`, which names what this raises."""
        self._sessions.state(session)
        summariser = self._summariser(llm)
        if summariser is not None and self._is_bounded(session) and self._may_summarise(session):
            wish = compaction_wish(session)
            await self._compact(session, summariser, forced=wish is not None, focus=wish)

    async def compact(self, session: Session, llm: AnySummarizer | None, focus: str | None = None) -> Compaction | None:
        """Do what `ContextWindowManager.compact` does, and raise the same."""
        self._sessions.state(session)
        if focus is not None and not isinstance(focus, str):
            raise ArgumentError("focus", focus, "pass a text, or None")
        summariser = self._summariser(llm)
        if summariser is None:
            raise CompactionError("there is no summariser; pass llm, or ContextWindow(summary_llm=…)")
        if isinstance(session, ReadOnlySession):
            raise CompactionError("the session is read-only")
        summary, error = await self._compact(session, summariser, forced=True, focus=focus)
        if error is not None:
            raise error
        return summary

    def usage(self, session: Session) -> Usage:
        """Return the usage that was reported for all summaries written for the session."""
        state = self._compactions.get(session)
        return Usage() if state is None else state.usage

    def _summariser(self, llm: AnySummarizer | None) -> Summarizer | None:
        """Return the configured summariser, or else `llm`, which loops and integrations set to the model in use."""
        passed = None if llm is None else check_summarizer(llm)
        strategy = summarize_of(self._window.strategy)
        for configured in (self._window.summary_llm, None if strategy is None else strategy.llm):
            if configured is not None:
                return check_summarizer(configured)
        return passed

    def _is_bounded(self, session: Session) -> bool:
        """True if anything limits the size of a view."""
        settings = self._active.current
        return (
            settings.budget.bounded
            or self._window.max_context_items is not None
            or self._sessions.limits_for(session, settings) is not settings.limits  # a refusal has lowered them
        )

    def _may_summarise(self, session: Session) -> bool:
        strategy = self._window.strategy
        if not self._window.compaction or isinstance(session, ReadOnlySession):
            return False
        return summarize_of(strategy) is not None or not is_final(strategy)

    def _state_of(self, session: Session) -> SessionCompaction:
        with self._lock:
            state = self._compactions.get(session)
            if state is None:
                state = self._compactions[session] = SessionCompaction()
            return state

    async def _compact(
        self, session: Session, summariser: Summarizer, *, forced: bool = False, focus: str | None = None
    ) -> tuple[Compaction | None, CompactionError | None]:
        """Run one attempt and emit its event. Return the appended summary and the error; both None if nothing is due."""
        import asyncio

        state, begun = self._state_of(session), monotonic()
        reports: list[Usage] = []
        if not state.writing_lock.acquire(blocking=False):
            return None, CompactionError("another call is writing a summary of this session")
        summary: Compaction | None = None
        failure: CompactionError | None = None
        event: Compacted | CompactionFailed
        try:
            plan = await asyncio.to_thread(self._plan, session, state, forced)
            if plan is None:
                return None, None
            try:
                summary, event = await self._write_and_append(
                    session, state, plan, summariser, focus, on_usage=lambda reported: reports.append(state.record_usage(reported))
                )
            except CompactionError as error:
                state.record_failure(plan.requests)
                event, failure = CompactionFailed(session.id, plan.total, plan.limits.budget, error.why), error
        finally:
            state.writing_lock.release()
        event = replace(event, usage=sum_usage(reports), seconds=monotonic() - begun)
        emit([event], self._on_event, self._active.current.budget.model)
        return summary, failure

    async def _write_and_append(
        self,
        session: Session,
        state: SessionCompaction,
        plan: SummaryPlan,
        summariser: Summarizer,
        focus: str | None,
        on_usage: Callable[[object], None],
    ) -> tuple[Compaction, Compacted]:
        """Have the summary written and append it (steps 4 to 7). Return it with its event. A cancellation leaves the log unchanged.

        Raises CompactionError if there is no usable summary.
        """
        import asyncio

        count = plan.settings.budget.counter.count_text
        task = await asyncio.to_thread(self._prepare, session, plan, summariser, focus)

        async def fits(text: str, max_tokens: int) -> bool:
            return await asyncio.to_thread(count, text) <= max_tokens

        view = await asyncio.to_thread(self._known_view, session, plan, task, summariser)
        text = None
        if view is not None and isinstance(summariser, ModelSummarizer):
            text = await sum_up_in_place(task, summariser, view, plan.settings.tools, on_usage)
        if text is None:
            text = await write_summary(task, summariser, fits, on_usage)
        if len(text) > task.characters:  # checked before counting: it may be megabytes
            raise CompactionError("the summary is longer than the text it summarises")
        for _ in range(MAX_CHECKS):
            lineage, length = session.lineage, len(session.items)
            summary, event = await asyncio.to_thread(self._check_summary, session, state, plan, task, text)
            if session.lineage is lineage and len(session.items) == length:  # unchanged during the check
                session.append(summary)
                state.record_success()
                return summary, event
        raise CompactionError("the session kept changing while the summary was checked")

    # These run in a thread: they count.

    def _plan(self, session: Session, state: SessionCompaction, forced: bool) -> SummaryPlan | None:
        """Return the summary that is due (steps 1 to 3); None if none is due, or the back-off after a failure is not over."""
        view_state = self._sessions.state(session)
        with view_state.lock:
            settings = self._active.current
            limits = self._sessions.limits_for(session, settings)
            sent = self._sessions.view(session, view_state, settings).decided
            correction = sent.correction
        with state.lock:
            replay = state.replay(session, limits_without_trims(limits), settings.measurer, self._sessions.refused_parts(session))
            view = replay.decided
            total, requests = view.counted + correction, len(view.log.groups.response_starts)
            exceeded = total > limits.trigger or (limits.items_max is not None and sum(view.items) > limits.items_max)
            if not forced and not (exceeded and state.may_try(requests)):
                return None
            if not (forced or limits.advisers) and (not loses_more_than_results(sent) or state.is_still_not_due(view, limits)):
                return None
            rule = self._selection_rule(view, limits_less(limits, correction), forced=forced)
            units = select_units(view, session, rule)
            if not units and can_append_summary(view, is_response_complete=forced):
                state.record_not_due(view)
        return SummaryPlan(units, rule, settings, limits, total, requests, replay, len(view)) if units else None

    def _selection_rule(self, view: View, limits: Limits, *, forced: bool) -> SelectionRule:
        """Return the strategy's choice of units if it makes one for summaries, else the rule by turns and sizes."""
        keep_turns, min_tokens = self._window.keep_recent_turns, limits.trigger // WORTHWHILE_PARTS
        if forced:  # decide as if there were no room
            limits = replace(limits, trigger=min(limits.trigger, view.total - 1), target=min(limits.target, view.total - 1))
        chosen = frozenset(to_summarise(view, limits))
        is_chosen = bool(chosen) or summarize_of(self._window.strategy) is not None
        return SelectionRule(
            keep_turns,
            limits.trigger,
            chosen if is_chosen else None,
            min_count=1 if forced or (keep_turns == 0 and not is_chosen) else 2,
            min_tokens=min_tokens,
            items_max=limits.items_max,
            is_forced=forced,
            keep_user_messages=self._window.keep_user_messages,
        )

    def _prepare(self, session: Session, plan: SummaryPlan, summariser: Summarizer, focus: str | None) -> SummaryTask:
        """Check that a summary has room (step 4) and return the task for the summariser.

        Raises CompactionError if there is no room for any summary, or the summariser's window is too small.
        """
        view_state = self._sessions.state(session)
        with view_state.lock:
            check_room(session, self._sessions.view(session, view_state, self._active.current), plan)
        budget = plan.settings.budget
        window = prompt_size(summariser, budget, plan.limits.budget)
        wording = Wording(self._window.summary_prompt, focus)
        return prepare_task(plan.units, summariser, budget.counter.count_text, plan.max_tokens, window, wording)

    def _known_view(self, session: Session, plan: SummaryPlan, task: SummaryTask, summariser: Summarizer) -> Session | None:
        """Return the view of the last request with what was appended since, if the model in use can sum it up; None otherwise.

        It must be the model that has answered before, all units must be in the view, and it must have room for the whole.
        """
        if not isinstance(summariser, ModelSummarizer) or self._is_configured(summariser):
            return None
        room = room_of(summariser, plan.settings.budget)
        view_state = self._sessions.state(session)
        with view_state.lock:
            replay = self._sessions.view(session, view_state, plan.settings)
            view = replay.view
            tokens = view.total + plan.max_tokens + len(summary_request(task.instructions, task.lines))
            positions = session.positions([item.id for unit in task.units for item in unit.items])
            is_complete = all(at < len(view) and view.shown[at] and view.edit(at).lines is None for at in positions)
            if room is None or tokens > room or not is_complete or not view.log.groups.response_starts:
                return None
            return replay.sent_view(session)

    def _is_configured(self, summariser: ModelSummarizer) -> bool:
        """True if settings name the summariser's model: it may be another one than answers."""
        strategy = summarize_of(self._window.strategy)
        return summariser.asked_model in (self._window.summary_llm, None if strategy is None else strategy.llm)

    def _check_summary(
        self, session: Session, state: SessionCompaction, plan: SummaryPlan, task: SummaryTask, text: str
    ) -> tuple[Compaction, Compacted]:
        """Return the summary as an item, and its event, if it may be appended to the log as it is now (step 6).

        Raises CompactionError if the log has changed, or the summary saves too little.
        """
        with state.lock:
            limits = limits_without_trims(plan.limits)
            replay = state.replay(session, limits, plan.settings.measurer, self._sessions.refused_parts(session))
            check_units_unchanged(task.units, replay, session, plan)
        view_state = self._sessions.state(session)
        with view_state.lock:
            return checked_summary(session, self._sessions.view(session, view_state, self._active.current), plan, task, text)
