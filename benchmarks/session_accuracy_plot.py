"""The plot of `session_accuracy.py`: one dot per request, its reported tokens against the excess of its upper bound."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from accuracy_plot import Chart, Dot
from session_steps import OURS

if TYPE_CHECKING:
    from session_steps import Step

CHART = Chart(
    title="Calibrated upper bounds against reported tokens, along sessions",
    caption="Bound less report, percent of the report; below 0 the bound was too low",
    lowest=-10,
    highest=20,
    step=5,
    decades=(3, 6),
)


def plot(steps: Sequence[Step]) -> str:
    """Return the plot as SVG, for the steps counted with this library's counter."""
    return CHART.svg(
        Dot(step.reported, 100 * (step.bound - step.reported) / step.reported, step.provider, step.held_out)
        for step in steps
        if step.counter == OURS
    )
