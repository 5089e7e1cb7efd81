"""One event loop for those who do not await: in a thread of its own, the same at every call. What runs there is others' business.

A client with open connections belongs to the loop that opened them: with a new loop for each call, a summariser's second call would fail.
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


def completed(work: Coroutine[Any, Any, T]) -> T:
    """What the coroutine gives. The caller waits; one who gives up, as at Ctrl-C, has it cancelled."""
    import asyncio

    if current_thread() is _KEPT.thread:  # a hook that calls a hook: the loop is waiting for this very call
        return _by_itself(work)
    running = asyncio.run_coroutine_threadsafe(work, _KEPT.loop())
    try:
        return running.result()
    finally:
        running.cancel()


def _by_itself(work: Coroutine[Any, Any, T]) -> T:
    import asyncio
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1, thread_name_prefix="interceptor") as threads:
        return threads.submit(asyncio.run, work).result()


class _Kept:
    """The loop and its thread, made when they are first wanted."""

    def __init__(self) -> None:
        self.thread: Thread | None = None
        self._loop: AbstractEventLoop | None = None
        self._lock = Lock()

    def loop(self) -> AbstractEventLoop:
        """The loop, running."""
        import asyncio

        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self.thread = Thread(target=self._loop.run_forever, name="interceptor", daemon=True)
                self.thread.start()
            return self._loop

    def forget(self) -> None:
        """After a fork: the thread is the parent's."""
        self.__init__()  # type: ignore[misc]

    def end(self) -> None:
        """Before the program ends: the loop is closed."""
        loop, thread = self._loop, self.thread
        if loop is None or thread is None:
            return
        loop.call_soon_threadsafe(loop.stop)
        thread.join(1.0)  # a second for a summariser that never awaits
        if not thread.is_alive():
            loop.close()


_KEPT = _Kept()
atexit.register(_KEPT.end)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_KEPT.forget)
