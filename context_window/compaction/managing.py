"""`Compacting`: the part of a manager that has older turns summed up, and appends the summary.

What is due lives in `due.py`, how it is written in `writing.py`. That a summary stands for older items in a view is the fold's doing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

from session.items import Compaction
from session.read_only import ReadOnlySession
from session.session import Session
from session.summarizers import Summarizer
from session.summary import check_summarizer

from ..config import ContextWindow
from ..errors import CompactionError
from ..events import Compacted, CompactionFailed, Listener, tell
from ..following import Following
from ..settings import Settings
from ..strategies import is_final, summarize_of
from ..trimming.consult import to_summarise
from ..trimming.fold import Fold
from ..trimming.limits import Limits
from ..trimming.refused import RefusedParts
from .checking import Due, check_room, check_told, lowered, untrimmed, verified
from .due import Keep, due, may_stand
from .memory import Memory
from .writing import Task, summed_up, task

LOOKS = 3
"""How often a log that changes while it is looked at is looked at again."""

_GUARD = Lock()
"""Held while a session's memory is looked up."""


class Compacting(ABC):
    """The part of a manager that has older turns summed up."""

    context_window: ContextWindow
    _on_event: Listener | None
    _settings: Settings
    _summing: WeakKeyDictionary[Session, Memory]

    @abstractmethod
    async def aprocess_session(self, session: Session) -> Session:
        """The view to send."""

    @abstractmethod
    def _state(self, session: Session) -> Any: ...

    @abstractmethod
    def _follow(self, session: Session, state: Any) -> Following: ...

    @abstractmethod
    def _limits_for(self, session: Session, settings: Settings) -> Limits: ...

    @abstractmethod
    def _refused_of(self, session: Session) -> RefusedParts: ...

    async def manage(self, session: Session, llm: Summarizer | None = None) -> Session:
        """The view to send, as `aprocess_session` gives it; older turns are summed up first where the log has outgrown its limits.

            view = await manager.manage(session)  # before every call of the model, those after tool calls included

        Where the log, with earlier summaries in place of what they stand for, is above `max_tokens` (or what the model allows, times
        `trigger_ratio`) or `max_context_items`, and has more than `keep_recent_turns + 1` turns, all turns but the newest
        `keep_recent_turns` are summed up by `summary_llm`, or else `llm`. The summary is a `Compaction` at the end of the log: the one
        thing that is written there, here and by `compact`. What it stands for stays in the log and can be recalled; an earlier summary is
        folded into it. Then the view is trimmed, as always. With neither limit and no model known, nothing happens.

        Never summed up: SYSTEM, instructions, pinned items, the newest turns (one long turn of many tool calls is trimmed, not summed
        up), and anything while a response or its calls are unfinished (one that ends in a text is taken for finished). A strategy that
        chooses what to summarise, as `Summarize` does, is gone by instead of turns; one that never takes anything is not helped out
        with summaries.

        A summary must have at most half the tokens of what it replaces and a third of the trigger's. Whatever goes wrong with one,
        the log is as it was, `CompactionFailed` is told, and trimming alone does the work; after failures the next attempts are 1, 2, 4
        … 64 requests away. One answer may take `llm.timeout` seconds (60 where it does not say); one prompt may have `llm.window`
        tokens (100,000): longer logs are told in several, each with what was made of those before.

        Calls for one session at once ask for one summary: the others go on without. The summariser is called in the event loop, so one
        that never awaits holds it up.

        Args:
            session: The log. A `Compaction` may be appended to it, and nothing else; to a read-only one, nothing.
            llm: Who writes summaries where the window has no `summary_llm`: an async function that takes a prompt and gives a text.

        Raises:
            ContextOverflowError: What must be kept does not fit, and the window is `strict`.
            CountingError: The token counter gave something that is no count.
            StrategyError: The strategy raised, or chose what it may not.
            BudgetError: `session` is none.
            FormatError: `llm` cannot be called.
        """
        self._state(session)
        writer = self._writer(llm)
        if not self._is_bounded(session):
            return session
        if writer is not None and self._may_sum_up(session):
            await self._compact(session, writer)
        return await self.aprocess_session(session)

    async def compact(self, session: Session, llm: Summarizer | None = None) -> Compaction | None:
        """The summary of all but the newest turns, appended now, however much room there is; None where there is nothing to sum up.

        It is as `manage` makes it, and under the same conditions but the limits. The log may end in a response: it is taken to be whole.

        Args:
            session: The log.
            llm: As in `manage`.

        Raises:
            CompactionError: There is nobody to write one, or what came is of no use. The log is as it was.
            CountingError: The token counter gave something that is no count.
            StrategyError: The strategy raised, or chose what it may not.
            BudgetError: `session` is none.
            FormatError: `llm` cannot be called.
        """
        self._state(session)
        writer = self._writer(llm)
        if writer is None:
            raise CompactionError("there is nobody to write a summary; pass llm, or ContextWindow(summary_llm=…)")
        if isinstance(session, ReadOnlySession):
            raise CompactionError("the session is read-only")
        made, failed = await self._compact(session, writer, forced=True)
        if failed is not None:
            raise failed
        return made

    # Inside

    def _writer(self, llm: Summarizer | None) -> Summarizer | None:
        if llm is not None:
            check_summarizer(llm)
        own = self.context_window.summary_llm
        return llm if own is None else own

    def _is_bounded(self, session: Session) -> bool:
        """Whether anything says how large a view may be."""
        settings = self._settings
        return (
            settings.budget.bounded
            or self.context_window.max_context_items is not None
            or self._limits_for(session, settings) is not settings.limits  # a provider has refused more
        )

    def _may_sum_up(self, session: Session) -> bool:
        strategy = self.context_window.strategy
        return not isinstance(session, ReadOnlySession) and (summarize_of(strategy) is not None or not is_final(strategy))

    def _memory(self, session: Session) -> Memory:
        with _GUARD:
            memory = self._summing.get(session)
            if memory is None:
                memory = self._summing[session] = Memory()
            return memory

    async def _compact(
        self, session: Session, writer: Summarizer, *, forced: bool = False
    ) -> tuple[Compaction | None, CompactionError | None]:
        """What was appended, and what went wrong; neither where nothing is due. Tells of it."""
        import asyncio

        memory = self._memory(session)
        if not memory.busy.acquire(blocking=False):
            return None, CompactionError("another call is at a summary of this session")
        made: Compaction | None = None
        failed: CompactionError | None = None
        event: Compacted | CompactionFailed
        try:
            plan = await asyncio.to_thread(self._planned, session, memory, forced)
            if plan is None:
                return None, None
            try:
                made, event = await self._appended(session, memory, plan, writer)
            except CompactionError as error:
                memory.failed(plan.requests)
                event, failed = CompactionFailed(session.id, plan.total, plan.limits.budget, error.why), error
        finally:
            memory.busy.release()
        tell([event], self._on_event, self._settings.budget.model)
        return made, failed

    async def _appended(self, session: Session, memory: Memory, plan: Due, writer: Summarizer) -> tuple[Compaction, Compacted]:
        """The summary, written and appended, and what is told of it. A task that is cancelled in here leaves the log as it was.

        Raises:
            CompactionError: There is none that is of use.
        """
        import asyncio

        count = plan.settings.budget.counter.count_text
        asked = await asyncio.to_thread(self._prepared, session, plan, writer)

        async def fits(text: str, most: int) -> bool:
            return await asyncio.to_thread(count, text) <= most

        text = await summed_up(asked, writer, fits)
        if len(text) > asked.characters:  # before it is counted: it may be megabytes
            raise CompactionError("the summary is longer than what it sums up")
        for _ in range(LOOKS):
            lineage, length = session.lineage, len(session.items)
            summary, event = await asyncio.to_thread(self._verified, session, memory, plan, asked, text)
            if session.lineage is lineage and len(session.items) == length:  # nobody has come in between
                session.append(summary)
                memory.succeeded()
                return summary, event
        raise CompactionError("the session changes all the time")

    # In a thread

    def _planned(self, session: Session, memory: Memory, forced: bool) -> Due | None:
        """What is due, if anything is and it is time to try."""
        state = self._state(session)
        with state.lock:
            settings = self._settings
            limits = self._limits_for(session, settings)
            correction = self._follow(session, state).fold.correction
        with memory.lock:
            following = memory.follow(session, untrimmed(limits), settings.measurer, self._refused_of(session))
            fold = following.fold
            total, requests = fold.counted + correction, len(fold.groups.starts)
            items = sum(fold.tally.items)
            exceeded = total > limits.trigger or (limits.items_max is not None and items > limits.items_max)
            if not forced and not (exceeded and memory.may_try(requests)):
                return None
            if memory.idle_in == fold.groups.last_user and not (forced or limits.advisers):
                return None  # only another turn makes something due: not looked for at each of a turn's many calls
            keep = self._keep(fold, lowered(limits, correction), forced=forced)
            told = due(following, session, keep)
            if not told and may_stand(fold, following.items, ended=forced):
                memory.idle_in = fold.groups.last_user
        return Due(told, keep, settings, limits, total, requests) if told else None

    def _prepared(self, session: Session, plan: Due, writer: Summarizer) -> Task:
        """What the writer is to be asked.

        Raises:
            CompactionError: It cannot be told, or there is no room for whatever it may write.
        """
        state = self._state(session)
        with state.lock:
            following = self._follow(session, state)
            check_room(session, following.items, following.fold, plan)
        return task(plan.told, writer, plan.settings.budget.counter.count_text, plan.most)

    def _keep(self, fold: Fold, limits: Limits, *, forced: bool) -> Keep:
        """What is left as it is: by the strategy, where it has something to say of summaries; else the newest turns."""
        turns = self.context_window.keep_recent_turns
        if forced:  # as if there were no room
            limits = replace(limits, trigger=min(limits.trigger, fold.total - 1), target=min(limits.target, fold.total - 1))
        chosen = frozenset(to_summarise(fold, limits))
        if chosen or summarize_of(self.context_window.strategy) is not None:
            return Keep(turns, chosen, least=1 if forced else 2, ended=forced)
        return Keep(turns, least=1 if forced or turns == 0 else 2, ended=forced)

    def _verified(self, session: Session, memory: Memory, plan: Due, asked: Task, text: str) -> tuple[Compaction, Compacted]:
        """The summary as an item, and what is told of it, where it may be appended to the log as it is now.

        Raises:
            CompactionError: It may not, or it helps too little.
        """
        with memory.lock:
            following = memory.follow(session, untrimmed(plan.limits), plan.settings.measurer, self._refused_of(session))
            items = following.items
            check_told(asked.told, following, session, plan.keep)
        state = self._state(session)
        with state.lock:
            view = self._follow(session, state)
            return verified(session, items, view.fold, plan, asked, text)
