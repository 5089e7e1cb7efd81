"""Cancelled calls: the events of their decisions are emitted once, before the cancellation propagates."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from types import SimpleNamespace
from typing import Any

import pytest

from context_window import ContextWindow, ContextWindowManager, Session
from context_window.events.definitions import Event, ThresholdCrossed, Trimmed
from tests.support.counting import Letters
from tests.support.managing import session_of

Call = Callable[[ContextWindowManager, Session], Coroutine[Any, Any, Session]]
SOON = 0.05


class _Slow(Letters):
    """A counter that runs a function once, before it counts."""

    def __init__(self) -> None:
        super().__init__()
        self.before: Callable[[], object] | None = None

    def count_text(self, text: str) -> int:
        if self.before is not None:
            before, self.before = self.before, None
            before()
        return super().count_text(text)


def make_manager(events: list[Event], **arguments: Any) -> tuple[ContextWindowManager, _Slow]:
    counter = _Slow()
    window = ContextWindow(max_tokens=1_000)
    return ContextWindowManager(token_counter=counter, context_window=window, on_event=events.append, **arguments), counter


@pytest.mark.parametrize("call", [ContextWindowManager.aprocess_session, ContextWindowManager.atrim_session], ids=["process", "trim"])
def test_a_cancel_while_it_is_decided_loses_no_event(call: Call) -> None:
    events, expected = list[Event](), list[Event]()
    (event, counter), (other, _) = make_manager(events), make_manager(expected)
    session = session_of(6)
    asyncio.run(call(other, session))

    async def scene() -> None:
        loop = asyncio.get_running_loop()
        task = asyncio.ensure_future(call(event, session))

        def cancels() -> None:
            loop.call_soon_threadsafe(task.cancel)
            time.sleep(SOON)

        counter.before = cancels
        with pytest.raises(asyncio.CancelledError):
            await task
        assert events == expected

    asyncio.run(scene())
    assert any(isinstance(event, Trimmed) for event in events)
    asyncio.run(call(event, session))
    asyncio.run(call(other, session))
    assert events == expected


def test_a_cancel_while_the_provider_is_asked_loses_no_event() -> None:
    manager = asyncio.Event()

    async def count_tokens(**_: Any) -> Any:
        manager.set()
        await asyncio.sleep(60)

    events, session = list[Event](), Session()
    session.add_message("user", "q" * 900)
    client: Any = SimpleNamespace(messages=SimpleNamespace(count_tokens=count_tokens), with_options=lambda **_: client)
    event, _ = make_manager(events, model_config="claude-sonnet-4-5", api_client=client)

    async def scene() -> None:
        task = asyncio.ensure_future(event.aprocess_session(session))
        await asyncio.wait_for(manager.wait(), 10)
        assert events == []
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert events
        assert {type(event) for event in events} == {ThresholdCrossed}

    asyncio.run(scene())
