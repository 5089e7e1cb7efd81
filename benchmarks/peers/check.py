"""Ratios that no change may break, whatever the machine's speed: checked by `--quick`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from .figures import Run, bare_seconds, time_size
from .worker import measure

SIZES = (150, 600)
BUDGET = 20_000
STEPS = 5
PASSES = 2
COLD = 6.0
"""Multiple of bare encoding that a conversation may take when it is first seen; 2 to 3 on a quiet machine."""
LIVE = 0.1
"""Part of that time that one more short message may take; about .01 on a quiet machine."""
GROWTH = 4.0
"""Multiple of the time of a short message that it may take in a conversation of four times the length; it should be 1."""


class Here:
    """Does the tasks of `worker.py` in this process."""

    def ask(self, task: dict[str, Any]) -> dict[str, Any] | None:
        """Return the answer to a task."""
        return measure(**task)


def quick_runs() -> tuple[list[Run], float]:
    """Return this library's runs by size, and the seconds that bare encoding takes for the largest."""
    runs = []
    for size in SIZES:
        passes = [run for _ in range(PASSES) if (run := time_size(Here(), "default", size, budget=BUDGET, steps=STEPS))]
        runs.append(passes[0].faster(passes[1]))
    return runs, bare_seconds(SIZES[-1])


def broken_ratios(runs: Sequence[Run], bare: float) -> list[str]:
    """Return a sentence for each ratio or promise that is broken; none if all is well.

    Args:
        runs: Runs of one library, by size.
        bare: Seconds that bare encoding takes for the texts of the last.
    """
    return [*_broken_ratios(runs[0], runs[-1], bare), *(sentence for run in runs for sentence in _broken_promises(run))]


def _broken_ratios(small: Run, large: Run, bare: float) -> Iterator[str]:
    if large.cold > COLD * bare:
        yield f"cold: {large.cold / bare:.1f} times bare encoding, more than {COLD}"
    if large.live > LIVE * large.cold:
        yield f"live: {large.live / large.cold:.3f} of a cold call, more than {LIVE}"
    if large.live > GROWTH * small.live:
        yield f"live: {large.live / small.live:.1f} times as long with {large.size:,} messages as with {small.size:,}, more than {GROWTH}"


def _broken_promises(run: Run) -> Iterator[str]:
    views = {"over the budget": run.over, "orphaned": run.orphaned, "without the system prompt": run.promptless}
    yield from (f"{run.size:,} messages: {number} of {run.views} views are {fault}" for fault, number in views.items() if number)
