"""Times of all libraries as an SVG: a panel for conversations never seen before, and one for a short message more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from math import log10

from .figures import BUDGET, LABELS, OURS, SIZES, Run

LEFT, PANEL, GAP, TOP, ROW, BOTTOM = 280, 330, 40, 58, 24, 62
PANELS = {"cold": "never seen before", "live": "one more short message"}
DECADES = {"cold": (0, 5), "live": (-1, 5)}
"""Of milliseconds, by their powers of ten."""
RADII = (3, 4.5, 6)
"""Of the sizes' circles."""
STYLE = """
.back { fill: #ffffff } .ink { fill: #222222 } .grid { stroke: #dddddd } .ours { fill: #14735a; stroke: #14735a }
.others { fill: #c2571a; stroke: #c2571a } text.ours, text.others { stroke: none } line { stroke-opacity: 0.6 }
@media (prefers-color-scheme: dark) {
  .back { fill: #0d1117 } .ink { fill: #e6edf3 } .grid { stroke: #30363d } .ours { fill: #3fb68f; stroke: #3fb68f }
  .others { fill: #f0883e; stroke: #f0883e }
}
"""


def plot(runs: Sequence[Run]) -> str:
    """Return the plot as SVG."""
    names = [name for name in LABELS if any(run.peer == name for run in runs)]
    width, height = LEFT + len(PANELS) * (PANEL + GAP), TOP + ROW * len(names) + BOTTOM
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">',
        f"<title>Processor time to trim a conversation to {BUDGET:,} tokens</title>",
        f"<style>{STYLE}</style>",
        f'<rect class="back" width="{width}" height="{height}"/>',
    ]
    for row, name in enumerate(names):
        kind = "ours" if name in OURS else "others"
        lines.append(
            f'<text class="{kind}" x="{LEFT - 12}" y="{_y(row) + 4}" text-anchor="end">{escape(LABELS[name].replace("`", ""))}</text>'
        )
    for number, field in enumerate(PANELS):
        lines += _panel(LEFT + number * (PANEL + GAP), field, names, runs)
    sizes = ", ".join(f"{size:,}" for size in SIZES)
    note = f"Small to large circles: {sizes} messages, trimmed to {BUDGET:,} tokens. No circle: more than 20 seconds."
    lines.append(f'<text class="ink" x="{LEFT - 240}" y="{height - 12}">{note}</text>')
    return "\n".join((*lines, "</svg>", ""))


def _panel(left: int, field: str, names: Sequence[str], runs: Sequence[Run]) -> Iterator[str]:
    bottom = _y(len(names)) - ROW / 2
    yield f'<text class="ink" x="{left + PANEL / 2}" y="{TOP - 30}" text-anchor="middle" font-weight="bold">{PANELS[field]}</text>'
    low, high = DECADES[field]
    for power in range(low, high + 1):
        x = _x(left, field, 10**power / 1e3)
        yield f'<line class="grid" x1="{x:.1f}" y1="{TOP - 10}" x2="{x:.1f}" y2="{bottom:.1f}"/>'
        label = f"{10**power:g} ms" if power < 3 else f"{10 ** (power - 3):g} s"
        yield f'<text class="ink" x="{x:.1f}" y="{bottom + 16:.1f}" text-anchor="middle">{label}</text>'
    for row, name in enumerate(names):
        of_name = [run for size in SIZES for run in runs if (run.peer, run.size) == (name, size)]
        places = [_x(left, field, getattr(run, field)) for run in of_name]
        kind = "ours" if name in OURS else "others"
        yield f'<line class="{kind}" x1="{min(places):.1f}" y1="{_y(row)}" x2="{max(places):.1f}" y2="{_y(row)}"/>'
        for run, x in zip(of_name, places, strict=True):
            yield f'<circle class="{kind}" cx="{x:.1f}" cy="{_y(row)}" r="{RADII[SIZES.index(run.size)]}" fill-opacity="0.8"/>'


def _x(left: int, field: str, seconds: float) -> float:
    low, high = DECADES[field]
    part = (log10(seconds * 1e3) - low) / (high - low)
    return left + PANEL * min(1.0, max(0.0, part))


def _y(row: int) -> float:
    return TOP + ROW * (row + 0.5)
