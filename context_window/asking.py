"""Where a manager may touch the network: what it has found is checked against the provider's own count, and told.

Each call is made once, as a `Step`; the call that waits and its async twin differ in how they ask, and in nothing else.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from session.session import Session

from .budget import Budget
from .counting.provider import AnthropicClient, Counted, ProviderCounter, Question, check_client
from .errors import ContextOverflowError
from .events import CounterFellBack, Event, Listener, ProviderOverBudget, tell
from .ledger import Ledger, Noted
from .models import describe_model
from .tools import Tool
from .usage import SessionStats

T = TypeVar("T")

NEAR = (3, 4)
"""A view is checked from this part of the budget on: 99 of 100 documents that were measured cost at most 4/3 of their local count."""
NOT_CLAUDE = "api_client is Anthropic's, and the model is none of Claude's"


@dataclass(frozen=True, slots=True)
class Step(Generic[T]):
    """A call, done but for what the provider has to say.

    Attributes:
        session_id: The session.
        noted: What was noted of it.
        result: What the call gives, of the provider's count (None where there is none).
        events: What is to be told.
        overflow: What is to be raised.
        question: What to ask the provider; None for nothing.
    """

    session_id: str
    noted: Noted
    result: Callable[[int | None], T]
    events: list[Event]
    overflow: ContextOverflowError | None = None
    question: Question | None = None


def provider_of(client: AnthropicClient | None, budget: Budget, tools: Iterable[Tool]) -> tuple[ProviderCounter | None, str]:
    """Who is asked for the provider's counts, or why a client that was given is not.

    Raises:
        BudgetError: It is no client of Anthropic's.
    """
    if client is None:
        return None, ""
    check_client(client)
    if budget.model is None or describe_model(budget.model).family != "claude":
        return None, NOT_CLAUDE
    return ProviderCounter(client, budget.model, tools), ""


class Asking(ABC):
    """The part of a manager that asks the provider, and the async twins of the calls that do.

    The provider's count is shown and told, and decides nothing: else the same log would give another view where the network fails.
    """

    _budget: Budget
    _ledger: Ledger
    _on_event: Listener | None
    _provider: ProviderCounter | None
    _problem: str

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

    def _question(self, view: Session, total: int) -> Question | None:
        """What to ask the provider of a view with so many local tokens: nothing where it fits for sure, or does not."""
        part, whole = NEAR
        if self._provider is None or not part * self._budget.tokens <= whole * total <= whole * self._budget.tokens:
            return None
        return self._provider.question(view)

    def _finished(self, step: Step[T]) -> T:
        if self._provider is None or step.question is None:
            return self._told(step, None)
        return self._told(step, self._provider.ask(step.question))

    async def _afinished(self, work: Callable[[], Step[T]]) -> T:
        import asyncio

        step = await asyncio.to_thread(work)
        if self._provider is None or step.question is None:
            return self._told(step, None)
        return self._told(step, await self._provider.aask(step.question))

    def _told(self, step: Step[T], counted: Counted | None) -> T:
        """Tells what there is to tell, and gives the call's result or raises what it must."""
        events = [*step.events, *self._news(step, counted)]
        tokens = None if counted is None else counted.tokens
        if tokens is not None:
            self._ledger.note_provider(step.noted, tokens)
        tell(events, self._on_event)  # outside every lock: a listener may wait for another thread that wants one
        if step.overflow is not None:
            raise step.overflow
        return step.result(tokens)

    def _news(self, step: Step[T], counted: Counted | None) -> list[Event]:
        local, budget, counter = step.noted.total, self._budget.tokens, self._budget.counter.name
        news: list[Event] = []
        problem, self._problem = self._problem, ""  # told once: it lasts as long as the manager
        if problem:
            news.append(CounterFellBack(step.session_id, local, budget, problem, counter))
        if counted is not None and counted.tokens is None:
            news.append(CounterFellBack(step.session_id, local, budget, f"the provider was asked in vain: {counted.why}", counter))
        elif counted is not None and counted.tokens is not None and counted.tokens > budget >= local:
            news.append(ProviderOverBudget(step.session_id, counted.tokens, budget, local))
        return news
