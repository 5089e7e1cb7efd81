"""The errors of `token_accuracy.py` as a drawing: one dot a request, how long it is against how far off its count was."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from accuracy_plot import Chart, Dot

if TYPE_CHECKING:
    from token_accuracy import Record

CHART = Chart(
    title="Estimated against reported tokens of whole requests",
    caption="Estimate less report, percent of the report",
    least=-50,
    most=50,
    step=25,
    decades=(1, 5),
)


def plot(records: Sequence[Record]) -> str:
    """The drawing as SVG."""
    return CHART.drawn(
        Dot(record.reported, 100 * (record.estimated - record.reported) / record.reported, record.provider, record.held_out)
        for record in records
    )
