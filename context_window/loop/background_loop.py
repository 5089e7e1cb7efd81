"""Run coroutines for callers that do not await: one shared event loop, in a thread of its own.

The loop must be the same for every call. A client's open connections belong to the loop that opened them, so with a new loop per call
a summariser's second request would fail.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Coroutine
from threading import Lock, Thread, current_thread
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

T = TypeVar("T")


def run_blocking(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run the coroutine in the shared loop and return its result. A caller that is interrupted, as by Ctrl-C, cancels it."""
    import asyncio

    if current_thread() is _BACKGROUND.thread:  # a hook that calls a hook: the shared loop is waiting for this very call
        return _run_in_new_loop(coroutine)
    future = asyncio.run_coroutine_threadsafe(coroutine, _BACKGROUND.loop())
    try:
        return future.result()
    finally:
        future.cancel()


def _run_in_new_loop(coroutine: Coroutine[Any, Any, T]) -> T:
    import asyncio
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1, thread_name_prefix="interceptor") as threads:
        return threads.submit(asyncio.run, coroutine).result()


class _BackgroundLoop:
    """An event loop and its thread, started on first use."""

    def __init__(self) -> None:
        self.thread: Thread | None = None
        self._loop: AbstractEventLoop | None = None
        self._lock = Lock()

    def loop(self) -> AbstractEventLoop:
        """Return the loop, running."""
        import asyncio

        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self.thread = Thread(target=self._loop.run_forever, name="interceptor", daemon=True)
                self.thread.start()
            return self._loop

    def reset_after_fork(self) -> None:
        """Forget the loop in a child process: its thread runs in the parent only."""
        self.__init__()  # type: ignore[misc]

    def close(self) -> None:
        """Stop the thread and close the loop before the program ends."""
        loop, thread = self._loop, self.thread
        if loop is None or thread is None:
            return
        loop.call_soon_threadsafe(loop.stop)
        thread.join(1.0)  # one second for a summariser that never awaits
        if not thread.is_alive():
            loop.close()


_BACKGROUND = _BackgroundLoop()
atexit.register(_BACKGROUND.close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_BACKGROUND.reset_after_fork)
