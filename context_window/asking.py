"""Where a manager may touch the network: what it has found is checked against the provider's own count, and told.

Each call is made once, as a `Step`; the call that waits and its async twin differ in how they ask, and in nothing else.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from session.session import Session

from .counting.provider import Counted, Question
from .errors import ContextOverflowError
from .events import CounterFellBack, Event, Listener, ProviderOverBudget, tell
from .ledger import Ledger, Noted
from .settings import Settings
from .threads import in_thread
from .usage import SessionStats

T = TypeVar("T")

NEAR = (3, 4)
"""A view is checked from this part of the budget on: 99 of 100 documents that were measured cost at most 4/3 of their local count."""


@dataclass(frozen=True, slots=True)
class Step(Generic[T]):
    """A call, done but for what the provider has to say.

    Attributes:
        session_id: The session.
        noted: What was noted of it.
        result: What the call gives, of the provider's count (None where there is none).
        events: What is to be told.
        settings: What it went by.
        overflow: What is to be raised.
        question: What to ask the provider; None for nothing.
    """

    session_id: str
    noted: Noted
    result: Callable[[int | None], T]
    events: list[Event]
    settings: Settings
    overflow: ContextOverflowError | None = None
    question: Question | None = None


class Asking(ABC):
    """The part of a manager that asks the provider, and the async twins of the calls that do.

    The provider's count is shown and told, and decides nothing: else the same log would give another view where the network fails.
    """

    _ledger: Ledger
    _on_event: Listener | None

    @abstractmethod
    def _analysis(self, session: Session) -> Step[SessionStats]: ...

    @abstractmethod
    def _processing(self, session: Session) -> Step[Session]: ...

    @abstractmethod
    def _trimming(self, session: Session, preserve_recency: bool) -> Step[Session]: ...

    async def aanalyze_session(self, session: Session) -> SessionStats:
        """As `analyze_session`, and the event loop goes on meanwhile: counting is done in a thread."""
        return await self._afinished(lambda: self._analysis(session))

    async def aprocess_session(self, session: Session) -> Session:
        """As `process_session`, and the event loop goes on meanwhile: counting is done in a thread.

        Raises:
            ContextOverflowError: What must be kept does not fit, and the window is `strict`.
            CountingError: The token counter gave something that is no count.
        """
        return await self._afinished(lambda: self._processing(session))

    async def atrim_session(self, session: Session, preserve_recency: bool = True) -> Session:
        """As `trim_session`, and the event loop goes on meanwhile: counting is done in a thread.

        Args:
            session: The session; it is not changed.
            preserve_recency: True takes the oldest first, False the newest.

        Raises:
            ContextOverflowError: What must be kept does not fit, and the window is `strict`.
            CountingError: The token counter gave something that is no count.
        """
        return await self._afinished(lambda: self._trimming(session, preserve_recency))

    def _question(self, view: Session, total: int, settings: Settings) -> Question | None:
        """What to ask the provider of a view with so many local tokens: nothing where it fits for sure, or does not."""
        (part, whole), budget = NEAR, settings.budget.tokens
        if settings.provider is None or not part * budget <= whole * total <= whole * budget:
            return None
        return settings.provider.question(view)

    def _finished(self, step: Step[T]) -> T:
        provider = step.settings.provider
        return self._told(step, None if provider is None or step.question is None else provider.ask(step.question))

    async def _afinished(self, work: Callable[[], Step[T]]) -> T:
        import asyncio

        done: list[Step[T]] = []
        try:
            await in_thread(lambda: done.append(work()))
            (step,) = done
            provider = step.settings.provider
            counted = None if provider is None or step.question is None else await provider.aask(step.question)
        except asyncio.CancelledError:
            for step in done:  # it was decided and noted: no later call tells of it
                self._tell(step, None)
            raise
        return self._told(step, counted)

    def _told(self, step: Step[T], counted: Counted | None) -> T:
        """Tells what there is to tell, and gives the call's result or raises what it must."""
        self._tell(step, counted)
        if step.overflow is not None:
            raise step.overflow
        return step.result(None if counted is None else counted.tokens)

    def _tell(self, step: Step[T], counted: Counted | None) -> None:
        events = [*step.events, *self._news(step, counted)]
        if counted is not None and counted.tokens is not None:
            self._ledger.note_provider(step.noted, counted.tokens)
        # Outside every lock: a listener may wait for another thread that wants one.
        tell(events, self._on_event, step.settings.budget.model)

    def _news(self, step: Step[T], counted: Counted | None) -> list[Event]:
        settings = step.settings
        local, budget, counter = step.noted.total, settings.budget.tokens, settings.budget.counter.name
        news: list[Event] = []
        while settings.untold:  # told once: it lasts as long as the settings
            news.append(CounterFellBack(step.session_id, local, budget, settings.untold.pop(), counter))
        if counted is not None and counted.tokens is None:
            news.append(CounterFellBack(step.session_id, local, budget, f"the provider was asked in vain: {counted.why}", counter))
        elif counted is not None and counted.tokens is not None and counted.tokens > budget >= local:
            news.append(ProviderOverBudget(step.session_id, counted.tokens, budget, local))
        return news
