"""Work done in a thread for a caller who awaits: the caller is never parted from it, so what it made is in somebody's hands."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def in_thread(work: Callable[[], T]) -> T:
    """What the work gives, done in a thread in the caller's context; the event loop goes on meanwhile.

    A thread cannot be stopped. A caller who is cancelled waits until it has ended, and is cancelled then: what the work shares with
    others is at rest by the time that they are asked next.

    Args:
        work: What is to be done.
    """
    import asyncio
    from contextvars import copy_context

    # A future and no task: a loop that ends cancels its tasks, and would not know of the thread any more.
    running = asyncio.get_running_loop().run_in_executor(None, copy_context().run, work)
    cancelled: asyncio.CancelledError | None = None
    while not running.done():
        try:
            await asyncio.wait([running])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        running.exception()  # else it is logged as one that nobody asked for
        raise cancelled
    return running.result()
