"""Several threads at once, for tests of shared state."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Barrier

SECONDS = 120
"""No test may wait longer: a deadlock must fail, not hang, also on a busy machine."""


@contextmanager
def turns_often() -> Iterator[None]:
    """Threads take turns far more often than usual, so that they meet in the middle of things."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        yield
    finally:
        sys.setswitchinterval(interval)


def together(*calls: Callable[[], object]) -> None:
    """Runs them at once, and raises their exceptions."""
    start = Barrier(len(calls))

    def run(call: Callable[[], object]) -> None:
        start.wait(SECONDS)
        call()

    pool = ThreadPoolExecutor(len(calls))
    try:
        for future in [pool.submit(run, call) for call in calls]:
            future.result(SECONDS)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
