"""Calls that are cancelled: what they have decided is told all the same, once, and by the time that they are over."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from types import SimpleNamespace
from typing import Any

import pytest

from context_window import ContextWindow, ContextWindowManager, Session
from context_window.events import Event, ThresholdCrossed, Trimmed
from tests.support.counting import Letters
from tests.support.managing import session_of

Call = Callable[[ContextWindowManager, Session], Coroutine[Any, Any, Session]]
SOON = 0.05


class _Slow(Letters):
    """A counter that does something once, before it counts."""

    def __init__(self) -> None:
        super().__init__()
        self.before: Callable[[], object] | None = None

    def count_text(self, text: str) -> int:
        if self.before is not None:
            before, self.before = self.before, None
            before()
        return super().count_text(text)


def manager(told: list[Event], **more: Any) -> tuple[ContextWindowManager, _Slow]:
    counter = _Slow()
    window = ContextWindow(max_tokens=1_000)
    return ContextWindowManager(token_counter=counter, context_window=window, on_event=told.append, **more), counter


@pytest.mark.parametrize("call", [ContextWindowManager.aprocess_session, ContextWindowManager.atrim_session], ids=["process", "trim"])
def test_a_cancel_while_it_is_decided_loses_no_event(call: Call) -> None:
    told, expected = list[Event](), list[Event]()
    (one, counter), (other, _) = manager(told), manager(expected)
    session = session_of(6)
    asyncio.run(call(other, session))

    async def scene() -> None:
        loop = asyncio.get_running_loop()
        task = asyncio.ensure_future(call(one, session))

        def cancels() -> None:
            loop.call_soon_threadsafe(task.cancel)
            time.sleep(SOON)

        counter.before = cancels
        with pytest.raises(asyncio.CancelledError):
            await task
        assert told == expected

    asyncio.run(scene())
    assert any(isinstance(event, Trimmed) for event in told)
    asyncio.run(call(one, session))
    asyncio.run(call(other, session))
    assert told == expected


def test_nor_does_a_loop_that_ends_meanwhile() -> None:
    told, expected = list[Event](), list[Event]()
    (one, counter), (other, _) = manager(told), manager(expected)
    session = session_of(6)
    other.process_session(session)

    async def scene() -> None:
        loop, begun = asyncio.get_running_loop(), asyncio.Event()

        def tells() -> None:
            loop.call_soon_threadsafe(begun.set)
            time.sleep(SOON)

        counter.before = tells
        tasks.append(asyncio.ensure_future(one.aprocess_session(session)))
        await asyncio.wait_for(begun.wait(), 10)

    tasks: list[asyncio.Future[Session]] = []
    asyncio.run(scene())
    assert tasks[0].cancelled()
    assert told == expected


def test_nor_does_one_while_the_provider_is_asked() -> None:
    asked = asyncio.Event()

    async def count_tokens(**_: Any) -> Any:
        asked.set()
        await asyncio.sleep(60)

    told, session = list[Event](), Session()
    session.add_message("user", "q" * 900)
    client: Any = SimpleNamespace(messages=SimpleNamespace(count_tokens=count_tokens), with_options=lambda **_: client)
    one, _ = manager(told, model_config="claude-sonnet-4-5", api_client=client)

    async def scene() -> None:
        task = asyncio.ensure_future(one.aprocess_session(session))
        await asyncio.wait_for(asked.wait(), 10)
        assert told == []
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert told
        assert {type(event) for event in told} == {ThresholdCrossed}

    asyncio.run(scene())


def test_of_a_call_that_fails_as_it_is_cancelled_nothing_is_told_and_the_next_one_tells() -> None:
    told, session = list[Event](), session_of(6)
    one, counter = manager(told)

    async def scene() -> None:
        loop = asyncio.get_running_loop()
        task = asyncio.ensure_future(one.aprocess_session(session))

        def fails() -> None:
            loop.call_soon_threadsafe(task.cancel)
            time.sleep(SOON)
            raise OSError

        counter.before = fails
        with pytest.raises(asyncio.CancelledError):
            await task
        assert told == []

    asyncio.run(scene())
    one.process_session(session)
    assert any(isinstance(event, Trimmed) for event in told)
