"""A bar on the terminal while work takes longer than a second; nothing anywhere else. What the work is, its callers know."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock, Timer
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

PATIENCE = 1.0
"""Seconds of work that need no explanation."""


class _Bar:
    """A bar that appears when its time has come. Drawn by a thread of its own, so that it moves while we count."""

    def __init__(self, what: str, total: int | None) -> None:
        self._what = what
        self._total = total
        self._done = 0
        self._lock = Lock()
        self._over = False
        self._drawn: tuple[Progress, TaskID] | None = None

    def appear(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

        with self._lock:
            if self._over:
                return
            columns = (TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn())
            progress = Progress(*columns, console=Console(file=sys.stderr), transient=True)
            self._drawn = progress, progress.add_task(self._what, total=self._total, completed=self._done)
            progress.start()

    def advance(self, amount: int) -> None:
        self._done += amount
        if self._drawn is not None:
            progress, task = self._drawn
            progress.update(task, completed=self._done)

    def vanish(self) -> None:
        with self._lock:
            self._over = True
            if self._drawn is not None:
                self._drawn[0].stop()


@contextmanager
def working(what: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
    """A bar for what goes on inside, if that takes longer than a second and standard error is a terminal.

        with working("reading log.jsonl", size) as done:
            for block in blocks:
                done(len(block))

    Args:
        what: The work, in a word or two.
        total: How much there is of it, in whatever unit `done` is told; None where that is not known.
    """
    if sys.stderr is None or not sys.stderr.isatty():
        yield lambda _: None
        return
    bar = _Bar(what, total)
    timer = Timer(PATIENCE, bar.appear)
    timer.daemon = True
    timer.start()
    try:
        yield bar.advance
    finally:
        timer.cancel()
        bar.vanish()
