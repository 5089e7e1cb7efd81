"""`SharedRefusals`: refused prompts that several workers share through a store.

No request depends on the store. Its answers change which view is made, and never whether one is made:

1. A call waits `WAIT_SECONDS` at most. A store that is away, slow or damaged is logged once, and left alone for `PAUSE_SECONDS`.
2. Meanwhile a worker uses the refusals that it has seen itself. It adds them when the store is back.
3. The store is opened by the first call, so that a worker starts without it, and so that a forked one has its own connection.
"""

from __future__ import annotations

import hashlib
import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from queue import SimpleQueue
from typing import TypeVar

from session.errors import SessionError

from ..integrations.past_refusals import PastRefusal, RefusalMemory
from .refusal_store import RefusalStore, refusal_store

T = TypeVar("T")

WAIT_SECONDS = 1.0
"""Seconds that a request waits for the store at most."""
PAUSE_SECONDS = 30.0
"""Seconds for which a store that did not answer is not asked again."""
THREADS = 4
"""Calls of the store at the same time."""
_LOGGER = logging.getLogger(__name__)


class SharedRefusals(RefusalMemory):
    """Refused prompts in a store. Thread-safe, and raises nothing."""

    def __init__(self, address: str, *, wait_seconds: float = WAIT_SECONDS, pause_seconds: float = PAUSE_SECONDS) -> None:
        """
        Args:
            address: The path of a file, which is created if it is missing, or the URL of a PostgreSQL server.
            wait_seconds: Seconds that a request waits for the store at most.
            pause_seconds: Seconds for which a store that did not answer is not asked again.
        """
        self._address, self._wait, self._pause = address, wait_seconds, pause_seconds
        self._lock = threading.Lock()
        self._store: RefusalStore | None = None
        self._calls: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._has_threads = self._is_away = False
        self._away_until = 0.0

    def known(self, start: bytes, /) -> Sequence[PastRefusal] | None:
        """Return the refusals of conversations that begin like this; None if the store did not answer."""
        return self._bounded(lambda: self._opened().known(start))

    def add(self, start: bytes, refusal: PastRefusal, /) -> None:
        """Keep a refusal. It is on the disk when this returns, unless the store did not answer."""
        self._bounded(lambda: self._opened().add(start, refusal))

    def close(self) -> None:
        """Close the store. A later call opens it again."""
        if (store := self._taken()) is not None:
            store.close()

    # Inside

    def _opened(self) -> RefusalStore:
        if (store := self._store) is not None:
            return store
        opened = refusal_store(self._address, self._wait)
        with self._lock:
            store = self._store = self._store or opened
        if store is not opened:  # another thread was faster
            opened.close()
        return store

    def _taken(self) -> RefusalStore | None:
        with self._lock:
            store, self._store = self._store, None
        return store

    def _bounded(self, work: Callable[[], T]) -> T | None:
        """Return the result of a call of the store; None if it fails or takes too long."""
        if time.monotonic() < self._away_until:
            return None
        future: Future[T] = Future()
        self._start_threads()
        self._calls.put(partial(_run, work, future))
        try:
            result = future.result(self._wait)
        except TimeoutError:
            future.cancel()
            self._leave_alone(f"it did not answer within {self._wait:g} s")
        except (SessionError, ModuleNotFoundError) as error:
            self._leave_alone(str(error))
        else:
            self._is_away = False
            return result
        return None

    def _leave_alone(self, problem: str) -> None:
        self._away_until = time.monotonic() + self._pause
        if (store := self._taken()) is not None:  # the next call opens another one: this one would go on trying
            self._calls.put(store.close)
        if not self._is_away:
            self._is_away = True
            _LOGGER.warning("the gateway goes on without its store: %s", problem)

    def _start_threads(self) -> None:
        with self._lock:
            if not self._has_threads:
                self._has_threads = True
                for _ in range(THREADS):  # daemons: a store that hangs must not keep the program from ending
                    threading.Thread(target=self._work, name="gateway store", daemon=True).start()

    def _work(self) -> None:
        while True:
            self._calls.get()()


class RefusalsOfKind(RefusalMemory):
    """Refused prompts of one kind of request. Those of another kind say nothing about it."""

    def __init__(self, refusals: RefusalMemory, kind: bytes) -> None:
        """
        Args:
            refusals: All refusals.
            kind: Hash of the settings that decide a view: the window, the model, the tools.
        """
        self._refusals, self._kind = refusals, kind

    def known(self, start: bytes, /) -> Sequence[PastRefusal] | None:
        """Return the refusals of conversations that begin like this; None if the store did not answer."""
        return self._refusals.known(self._key(start))

    def add(self, start: bytes, refusal: PastRefusal, /) -> None:
        """Keep a refusal."""
        self._refusals.add(self._key(start), refusal)

    def _key(self, start: bytes) -> bytes:
        return hashlib.sha256(self._kind + start).digest()


def _run(work: Callable[[], T], future: Future[T]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = work()
    except BaseException as error:  # noqa: BLE001 - raised where the result is awaited
        future.set_exception(error)
    else:
        future.set_result(result)
