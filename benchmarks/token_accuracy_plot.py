"""The plot of `token_accuracy.py`: one dot per request, its reported tokens against the error of its estimate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from accuracy_plot import Chart, Dot

if TYPE_CHECKING:
    from token_accuracy import Record

CHART = Chart(
    title="Estimated against reported tokens of whole requests",
    caption="Estimate less report, percent of the report",
    lowest=-50,
    highest=50,
    step=25,
    decades=(1, 5),
)


def plot(records: Sequence[Record]) -> str:
    """Return the plot as SVG."""
    return CHART.svg(
        Dot(record.reported, 100 * (record.estimated - record.reported) / record.reported, record.provider, record.held_out)
        for record in records
        if record.is_direct
    )
