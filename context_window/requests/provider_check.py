"""The last step of a call that may use the network: ask the provider for its own count, and emit the call's events.

A call does all its local work first and describes what remains as a `PendingCall`. The synchronous call and its async twin share that
work and differ only in how they wait for the provider.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from session.session import Session

from ..counting.provider_count import CountRequest, ProviderCount
from ..errors import ContextOverflowError, warn
from ..events.definitions import CounterFellBack, Event, Listener, OverBudget, ProviderOverBudget, emit
from ..settings.resolved import Settings
from ..settings.usage_snapshot import UsageFigures, UsageSnapshot
from ..threads import in_thread

T = TypeVar("T")

NEAR = (3, 4)
"""A view is checked from this part of the budget on: 99 of 100 measured documents cost at most 4/3 of their local count."""


@dataclass(frozen=True, slots=True)
class PendingCall(Generic[T]):
    """A call whose local work is done, with the events to emit, and the error to raise once they are out.

    `result` returns the call's result, given the provider's count of `question`, or None without one.
    """

    session_id: str
    figures: UsageFigures
    result: Callable[[int | None], T]
    events: list[Event]
    settings: Settings
    overflow: ContextOverflowError | None = None
    question: CountRequest | None = None


def question_about(view: Session, total: int, settings: Settings) -> CountRequest | None:
    """Return the request to check with the provider; None if the view fits by a wide margin, or does not fit at all."""
    (numerator, denominator), budget = NEAR, settings.budget.tokens
    if settings.provider is None or not numerator * budget <= denominator * total <= denominator * budget:
        return None
    return settings.provider.count_request(view)


class ProviderCheck:
    """Finishes pending calls: asks the provider, emits events, and returns the result or raises the overflow.

    The provider's count is displayed and emitted but never decides anything; otherwise the same log would give another view whenever
    the network fails.
    """

    def __init__(self, usage: UsageSnapshot, on_event: Listener | None) -> None:
        self._usage = usage
        self._on_event = on_event

    def finish(self, call: PendingCall[T]) -> T:
        """Finish a call. Waits for the provider if it has a question. Raises ContextOverflowError if the call ends in an overflow."""
        provider = call.settings.provider
        return self._end(call, None if provider is None or call.question is None else provider.count(call.question))

    async def afinish(self, start: Callable[[], PendingCall[T]]) -> T:
        """Do a call's local work in a thread, and finish it. Raises ContextOverflowError if the call ends in an overflow."""
        import asyncio

        calls: list[PendingCall[T]] = []
        try:
            await in_thread(lambda: calls.append(start()))
            (call,) = calls
            provider = call.settings.provider
            provider_count = None if provider is None or call.question is None else await provider.acount(call.question)
        except asyncio.CancelledError:
            for call in calls:  # its decisions are recorded, and no later call would emit its events
                self._emit(call, None)
            raise
        return self._end(call, provider_count)

    def _end(self, call: PendingCall[T], provider_count: ProviderCount | None) -> T:
        self._emit(call, provider_count)
        if call.overflow is not None:
            raise call.overflow
        return call.result(None if provider_count is None else provider_count.tokens)

    def _emit(self, call: PendingCall[T], provider_count: ProviderCount | None) -> None:
        events = [*call.events, *_counter_events(call, provider_count)]
        if provider_count is not None and provider_count.tokens is not None:
            self._usage.add_provider_count(call.figures, provider_count.tokens)
        # Outside every lock: a listener may wait for another thread that needs one.
        emit(events, self._on_event, call.settings.budget.model)
        for event in events:
            if isinstance(event, OverBudget) and self._on_event is None and call.overflow is None:  # nobody would know
                warn(f"{event}, or pass on_event=… to hear of it", event)


def _counter_events(call: PendingCall[T], provider_count: ProviderCount | None) -> list[Event]:
    """Return the events about counting itself: a counter that fell back, a provider that did not answer or counts more."""
    settings = call.settings
    local, budget, counter = call.figures.total, settings.budget.tokens, settings.budget.counter.name
    events: list[Event] = []
    while settings.problems:  # emitted once: the problem lasts as long as the settings
        events.append(CounterFellBack(call.session_id, local, budget, settings.problems.pop(), counter))
    if provider_count is not None and provider_count.tokens is None:
        events.append(CounterFellBack(call.session_id, local, budget, f"count_tokens failed: {provider_count.problem}", counter))
    elif provider_count is not None and provider_count.tokens is not None and provider_count.tokens > budget >= local:
        events.append(ProviderOverBudget(call.session_id, provider_count.tokens, budget, local))
    return events
