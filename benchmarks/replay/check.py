"""Ratios that no change may break, whatever the machine's speed: checked by `--quick`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .replay import Outcome
from .table import figures_of

OURS = ("default", "target-90", "extract", "arrivals", "drop-oldest", "sliding-window")
KEEPS_MORE = {"default": "drop-oldest", "extract": "oldest-first"}
"""Policies of ours, each with one that must not keep more. Oldest first fills the window at every request, at twice the cost."""
ROUNDING = 1e-6


def broken_ratios(outcomes: Sequence[Outcome]) -> list[str]:
    """Return a sentence for each ratio that is broken; none if all is well."""
    return [sentence for percent in sorted({outcome.percent for outcome in outcomes}) for sentence in _broken(outcomes, percent)]


def _broken(outcomes: Sequence[Outcome], percent: int) -> Iterator[str]:
    of_window = [outcome for outcome in outcomes if outcome.percent == percent]
    figures = {name: figures_of(of_window, name) for name in of_window[0].tallies}
    at = f"W = {percent} %:"
    for name in figures.keys() & set(OURS):
        if figures[name].over:
            yield f"{at} {figures[name].over:.1%} of the requests of {name} are over the window"
    for outcome in of_window:
        for name, tally in outcome.tallies.items():
            if not tally.over and tally.whole > outcome.limit + ROUNDING:
                yield f"{at} {name} keeps {tally.whole:.3f} of {outcome.name} in whole items, above the limit, {outcome.limit:.3f}"
    for name, other in KEEPS_MORE.items():
        if name in figures and other in figures and figures[name].verbatim.value < figures[other].verbatim.value:
            yield f"{at} F of {name} is {figures[name].verbatim.value:.3f}, that of {other} {figures[other].verbatim.value:.3f}"
        if name in figures and "oldest-first" in figures and figures[name].cost.value > figures["oldest-first"].cost.value:
            yield f"{at} {name} costs {figures[name].cost.value:.3f}, oldest first {figures['oldest-first'].cost.value:.3f}"
