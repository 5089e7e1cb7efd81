"""A progress bar with the time left on the terminal, for work that takes longer than a second. Prints nothing anywhere else."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from time import monotonic
from typing import TYPE_CHECKING

from ..display.glyphs import glyphs_for
from ..display.lines import fit
from ..display.render import screen_width
from .output import draw_over

if TYPE_CHECKING:
    from session.session import Session

    from ..manager import ContextWindowManager

PATIENCE = 1.0
"""Seconds before the bar appears."""
PACE = 0.1
"""Seconds between two drawings of it."""
LENGTH = 40
"""Columns of a whole bar."""

_SHOWN: list[str] = []
"""The work that has a bar now."""


class _Bar:
    """A bar that appears late. A thread of its own draws it, so that it moves while we count."""

    def __init__(self, description: str, total: int | None) -> None:
        self._description = description
        self._total = total
        self._completed = 0
        self._begun = monotonic()
        self._over = Event()
        self._drawing = Thread(target=self._draw, daemon=True)
        self._drawing.start()

    def advance(self, amount: int) -> None:
        self._completed += amount

    def vanish(self) -> None:
        self._over.set()
        self._drawing.join()

    def _draw(self) -> None:
        if self._over.wait(PATIENCE):
            return
        while True:
            draw_over(self._line())
            if self._over.wait(PACE):
                break
        draw_over("")

    def _line(self) -> str:
        """Return what is drawn: the work, and if its amount is known how much is done and the time left."""
        glyphs, width, spent = glyphs_for(sys.stderr.encoding), screen_width() - 1, monotonic() - self._begun
        if not self._total:
            return fit(f"{self._description} {_minutes(spent)}", width, glyphs)
        done = min(1.0, self._completed / self._total)
        left = _minutes(spent / done - spent) if done else "-:--"
        end = f" {done:4.0%} {left}"
        length = min(LENGTH, width // 3)
        name = fit(self._description, max(1, width - length - len(end) - 1), glyphs)
        return fit(f"{name} {(glyphs.block * int(done * length)).ljust(length)}{end}", width, glyphs)


def _minutes(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


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
    try:
        yield bar.advance
    finally:
        _SHOWN.clear()
        bar.vanish()


def count_with_bar(manager: ContextWindowManager, session: Session) -> None:
    """Count a session's items under a bar. What a command then asks the manager takes little time."""
    with progress_bar("counting tokens", len(session.items)) as advance:
        manager.count_items(session, advance)
