"""A progress bar with the time left on the terminal, for work that takes longer than a second. Prints nothing anywhere else."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock, Timer
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from session.session import Session

    from ..manager import ContextWindowManager

PATIENCE = 1.0
"""Seconds before the bar appears."""


_SHOWN: list[str] = []
"""The work that has a bar now."""


class _Bar:
    """A bar that appears late. rich draws it in a thread of its own, so that it moves while we count."""

    def __init__(self, description: str, total: int | None) -> None:
        self._description = description
        self._total = total
        self._completed = 0
        self._lock = Lock()
        self._is_over = False
        self._bar: tuple[Progress, TaskID] | None = None

    def appear(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

        with self._lock:
            if self._is_over:
                return
            columns = (TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
            progress = Progress(*columns, console=Console(file=sys.stderr), transient=True)
            self._bar = progress, progress.add_task(self._description, total=self._total, completed=self._completed)
            progress.start()

    def advance(self, amount: int) -> None:
        self._completed += amount
        if self._bar is not None:
            progress, task = self._bar
            progress.update(task, completed=self._completed)

    def vanish(self) -> None:
        with self._lock:
            self._is_over = True
            if self._bar is not None:
                self._bar[0].stop()


@contextmanager
def progress_bar(description: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
    """Show a bar while the block runs, if it takes longer than a second and standard error is a terminal. A bar within it is not shown.

        with progress_bar("reading log.jsonl", size) as advance:
            for block in blocks:
                advance(len(block))

    Args:
        description: The work, in a word or two.
        total: Amount of work, in the unit of `advance`; None if unknown.
    """
    if _SHOWN or sys.stderr is None or not sys.stderr.isatty():
        yield lambda _: None
        return
    _SHOWN.append(description)
    bar = _Bar(description, total)
    timer = Timer(PATIENCE, bar.appear)
    timer.daemon = True
    timer.start()
    try:
        yield bar.advance
    finally:
        _SHOWN.clear()
        timer.cancel()
        bar.vanish()


def count_with_bar(manager: ContextWindowManager, session: Session) -> None:
    """Count a session's items under a bar. What a command then asks the manager takes little time."""
    with progress_bar("counting tokens", len(session.items)) as advance:
        manager.count_items(session, advance)
