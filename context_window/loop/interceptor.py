"""Hooks for loops that are not ours: what to do before and after a call of the model, for loops with and without `await`."""

from __future__ import annotations

from session.session import Session

from ..errors import BudgetError
from ..manager import ContextWindowManager
from ..recording import reported_by
from .waiting import completed


class Interceptor:
    """What a loop calls around each call of the model. `first | second` is both, one inside the other.

    A subclass overrides the async hooks. The plain ones run those to their end, in an event loop that all of them share, in a thread.
    """

    async def abefore_model_call(self, session: Session) -> Session:
        """What the model is to be shown instead of this session. Here, the session itself."""
        return session

    async def aafter_model_call(self, session: Session, usage: object = None) -> None:
        """Takes note of what the provider reported for the call. Here, nothing is done."""

    def before_model_call(self, session: Session) -> Session:
        """As `abefore_model_call`, for a loop that does not await."""
        return completed(self.abefore_model_call(session))

    def after_model_call(self, session: Session, usage: object = None) -> None:
        """As `aafter_model_call`, for a loop that does not await."""
        completed(self.aafter_model_call(session, usage))

    def __or__(self, other: Interceptor) -> Interceptor:
        """Both: before a call this one first, after it the other one first."""
        return _Both(self, other) if isinstance(other, Interceptor) else NotImplemented


class TurnInterceptor(Interceptor):
    """Brings a manager into any loop.

        interceptor = TurnInterceptor(manager)
        view = interceptor.before_model_call(session)  # or: await interceptor.abefore_model_call(session)
        answer = client.messages.create(…)
        interceptor.after_model_call(session, answer.usage)

    Attributes:
        manager: Who decides what the model sees.
    """

    def __init__(self, manager: ContextWindowManager) -> None:
        """
        Args:
            manager: As the attribute.

        Raises:
            BudgetError: It is no manager.
        """
        if not isinstance(manager, ContextWindowManager):
            raise BudgetError("manager", type(manager), "pass a ContextWindowManager")
        self.manager = manager

    async def abefore_model_call(self, session: Session) -> Session:
        """The view to send: the session managed (`manager.manage`).

        Raises:
            ContextOverflowError: What must be kept does not fit, and the window is `strict`.
            CountingError: The token counter gave something that is no count.
        """
        return await self.manager.manage(session)

    async def aafter_model_call(self, session: Session, usage: object = None) -> None:
        """Gives the manager what the provider reported for the view that was sent. A report of no input tokens is passed over.

        Args:
            session: The session that `before_model_call` was given.
            usage: The report, as the provider's client gives it, or a `Usage`; None where there is none, or where the items of the
                answer carry it.

        Raises:
            BudgetError: It is no report.
        """
        if usage is not None and reported_by(usage).total_input:
            self.manager.record_usage(usage, session)


class _Both(Interceptor):
    """Two interceptors, the first around the second."""

    def __init__(self, first: Interceptor, second: Interceptor) -> None:
        self._first, self._second = first, second

    async def abefore_model_call(self, session: Session) -> Session:
        return await self._second.abefore_model_call(await self._first.abefore_model_call(session))

    async def aafter_model_call(self, session: Session, usage: object = None) -> None:
        await self._second.aafter_model_call(session, usage)
        await self._first.aafter_model_call(session, usage)
