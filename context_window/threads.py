"""Blocking work done in a thread for an async caller. On cancellation the caller waits until the thread has ended."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def in_thread(work: Callable[[], T]) -> T:
    """Run blocking work in a thread, in the caller's context, and return its result.

    A thread cannot be stopped. A cancelled caller therefore waits for the thread before the cancellation propagates, so that nothing
    still changes shared objects afterwards.
    """
    import asyncio
    from contextvars import copy_context

    # Not a task: a loop that ends cancels its tasks, and would lose track of the thread.
    future = asyncio.get_running_loop().run_in_executor(None, copy_context().run, work)
    cancellation: asyncio.CancelledError | None = None
    while not future.done():
        try:
            await asyncio.wait([future])
        except asyncio.CancelledError as error:
            cancellation = error
    if cancellation is not None:
        future.exception()  # retrieved, or asyncio would log it as unhandled
        raise cancellation
    return future.result()
