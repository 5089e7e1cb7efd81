"""Hooks for other people's loops: called before and after each call of the model, with or without `await`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from inspect import isawaitable
from operator import or_
from typing import Any

from session.session import Session
from session.summary import check_summarizer

from ..compaction import AnySummarizer
from ..errors import ArgumentError
from ..manager import ContextWindowManager
from ..usage.usage_reports import usage_from
from .background_loop import run_blocking
from .model import Answer, Model, OnText, check_answer


class Interceptor:
    """Hooks around each call of the model. `first | second` nests two of them.

    Subclasses override the async hooks. The plain hooks run the async ones to completion, in an event loop that all interceptors share
    and that has a thread of its own.
    """

    async def abefore_model_call(self, session: Session) -> Session:
        """Return the session to show the model. The default returns it unchanged."""
        return session

    async def aafter_model_call(self, session: Session, usage: object = None) -> None:
        """Handle the usage that the provider reported for the call. The default does nothing."""

    def before_model_call(self, session: Session) -> Session:
        """`abefore_model_call` for loops that do not await."""
        return run_blocking(self.abefore_model_call(session))

    def after_model_call(self, session: Session, usage: object = None) -> None:
        """`aafter_model_call` for loops that do not await."""
        run_blocking(self.aafter_model_call(session, usage))

    def __or__(self, other: Interceptor) -> Interceptor:
        """Nest two interceptors: this one runs first before the call and last after it."""
        return _NestedInterceptors(self, other) if isinstance(other, Interceptor) else NotImplemented


class TurnInterceptor(Interceptor):
    """Adds a manager to any loop.

        interceptor = TurnInterceptor(manager)
        view = interceptor.before_model_call(session)  # or: await interceptor.abefore_model_call(session)
        answer = client.messages.create(…)
        interceptor.after_model_call(session, answer.usage)

    Attributes:
        manager: The manager that makes the views.
        llm: The summariser to use if the window has no `summary_llm`; None for none.
    """

    def __init__(self, manager: ContextWindowManager, llm: AnySummarizer | None = None) -> None:
        """
        Args:
            manager: The manager that makes the views.
            llm: Writes summaries if the window has no `summary_llm`: a `Model`, or an async function from a prompt to a text. Without both,
                views are only trimmed: an interceptor does not know the loop's model.

        Raises:
            ArgumentError: `manager` is not a `ContextWindowManager`.
            FormatError: `llm` is neither a function nor a model.
        """
        if not isinstance(manager, ContextWindowManager):
            raise ArgumentError("manager", type(manager), "pass a ContextWindowManager")
        if llm is not None:
            check_summarizer(llm)
        self.manager = manager
        self.llm = llm

    async def abefore_model_call(self, session: Session) -> Session:
        """Return the view to send (`manager.manage`). A summary is written only by `llm` or the window's `summary_llm`.

        Raises:
            ContextOverflowError: The protected items alone exceed the budget, and the window is `strict`.
            CountingError: The token counter returned something that is not a count.
        """
        return await self.manager.manage(session, self.llm)

    async def aafter_model_call(self, session: Session, usage: object = None) -> None:
        """Pass the reported usage of the sent view to the manager. A report of zero input tokens is ignored.

        Args:
            session: The session that was passed to `before_model_call`.
            usage: The report of the provider's client, or a `Usage`. None if there is no report, or if the items of the answer carry
                it.

        Raises:
            ArgumentError: `usage` is not a usage report.
        """
        if usage is not None and usage_from(usage).total_input:
            self.manager.record_usage(usage, session)


class _NestedInterceptors(Interceptor):
    """Two interceptors, the first one around the second."""

    def __init__(self, outer: Interceptor, inner: Interceptor) -> None:
        self._outer, self._inner = outer, inner

    async def abefore_model_call(self, session: Session) -> Session:
        return await self._inner.abefore_model_call(await self._outer.abefore_model_call(session))

    async def aafter_model_call(self, session: Session, usage: object = None) -> None:
        await self._inner.aafter_model_call(session, usage)
        await self._outer.aafter_model_call(session, usage)


class InterceptedModel:
    """A model with interceptors around each of its calls."""

    def __init__(self, model: Model, interceptor: Interceptor) -> None:
        self._model, self._interceptor = model, interceptor

    async def answer(
        self, view: Session, tools: Sequence[Mapping[str, Any]], *, allow_tools: bool, on_text: OnText | None = None
    ) -> Answer:
        """Return the model's answer to the session that the interceptors show it, and pass them the reported usage."""
        shown_view = await self._interceptor.abefore_model_call(view)
        pending: object = self._model.answer(shown_view, tools, allow_tools=allow_tools, on_text=on_text)
        answer = check_answer(await pending if isawaitable(pending) else pending, self._model)
        await self._interceptor.aafter_model_call(view, answer.usage)
        return answer


def with_interceptors(model: Model, interceptors: Iterable[Interceptor]) -> Model:
    """Return the model with these interceptors around each call, the first one outermost; the model itself if there are none.

    Raises:
        ArgumentError: One of them is not an `Interceptor`.
    """
    if isinstance(interceptors, Interceptor) or not isinstance(interceptors, Iterable):
        raise ArgumentError("interceptors", type(interceptors), "pass a list of interceptors")
    listed = list(interceptors)
    for interceptor in listed:
        if not isinstance(interceptor, Interceptor):
            raise ArgumentError("interceptors", type(interceptor), "pass objects of a subclass of Interceptor")
    return InterceptedModel(model, reduce(or_, listed)) if listed else model
