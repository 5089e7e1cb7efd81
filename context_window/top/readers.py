"""A thread for work that takes long. It ends with the program, whatever it is doing."""

from __future__ import annotations

from asyncio import wrap_future
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from queue import SimpleQueue
from threading import Thread
from typing import TypeVar

T = TypeVar("T")


class Reader:
    """Does one thing at a time, in the order in which it was asked."""

    def __init__(self) -> None:
        self._work: SimpleQueue[Callable[[], None]] = SimpleQueue()
        Thread(target=self._run, daemon=True).start()

    def do(self, work: Callable[[], T]) -> Awaitable[T]:
        """Return what the function returns, or raise what it raises, once the thread has called it."""
        future: Future[T] = Future()

        def run() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(work())
            except BaseException as error:  # noqa: BLE001 - whoever waits gets it
                future.set_exception(error)

        self._work.put(run)
        return wrap_future(future)

    def _run(self) -> None:
        while True:
            self._work.get()()
