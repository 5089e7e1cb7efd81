"""Compares what libraries take to trim a conversation, and if the result can be sent. benchmarks/README.md has the results.

bash benchmarks/peers/env.sh /tmp/peers                              # the libraries, in an environment of their own
python -m benchmarks.peers --peers /tmp/peers/bin/python --svg docs/speed.svg
python -m benchmarks.peers                                           # this library's rows
python -m benchmarks.peers --quick                                   # in seconds; fails if a ratio is broken
"""

from __future__ import annotations

import argparse
import platform
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import repeat
from pathlib import Path

from .check import broken_ratios, quick_runs
from .figures import GROWN, LABELS, OURS, REQUESTS, SIZES, Run, bare_seconds, grow, time_size
from .plot import plot
from .processes import Process

PACKAGES = (
    "langchain-core",
    "litellm",
    "llama-index-core",
    "penguin-ai",
    "agent-framework-core",
    "summarization-pydantic-ai",
    "pydantic-ai-harness",
    "tiktoken",
)
SLOW = 2.0
"""Seconds from which a conversation is timed only once."""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description="Compare libraries on equal conversations.")
    parser.add_argument("--peers", metavar="PYTHON", help="interpreter of the environment that benchmarks/peers/env.sh makes")
    parser.add_argument("--svg", type=Path, metavar="FILE", help="write the plot of the times")
    parser.add_argument("--quick", action="store_true", help="only this library, in seconds; fail if a ratio is broken")
    parser.add_argument("--passes", type=int, default=3, metavar="N", help="processes in which each is timed; the smallest times count")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="processes at a time; times are processor time, but best with 1")
    options = parser.parse_args(arguments)
    if options.quick:
        sentences = broken_ratios(*quick_runs())
        print("\n".join(sentences) or "all ratios hold")
        return 1 if sentences else 0
    pythons = {name: sys.executable if name in OURS else options.peers for name in LABELS}
    pythons = {name: python for name, python in pythons.items() if python}
    with ThreadPoolExecutor(options.jobs) as pool:
        runs = [run for runs in pool.map(_measured, pythons, pythons.values(), repeat(options.passes)) for run in runs]
    versions = {"context-window": version("context-window")}
    if options.peers:
        with Process(options.peers) as process:
            versions |= process.ask({"versions": PACKAGES}) or {}
    print(f"{datetime.now(UTC):%Y-%m-%d}, Python {platform.python_version()}, {', '.join(map(' '.join, versions.items()))}.\n")
    print(times_table(runs, list(pythons), [bare_seconds(size) for size in SIZES]))
    print()
    print(requests_table([run for run in runs if run.size == GROWN]))
    if options.svg:
        options.svg.write_text(plot([run for run in runs if run.size in SIZES]), "utf-8", newline="\n")
    return 0


def _measured(name: str, python: str, passes: int) -> list[Run]:
    """Return a library's figures: for the growing conversation first, then by size without those for which it takes too long."""
    best: dict[int, Run] = {}
    for _ in range(passes):
        with Process(python) as process:
            sizes = (size for size in (GROWN, *SIZES) if size not in best or (size > GROWN and best[size].cold < SLOW))
            for size in sizes:
                if (run := grow(process, name) if size == GROWN else time_size(process, name, size)) is None:
                    return list(best.values())
                best[size] = best.get(size, run).faster(run)
                print(f"{name}, {size} messages: {run.cold:.3f} s, {run.live * 1e3:.2f} ms", file=sys.stderr, flush=True)
    return list(best.values())


def times_table(runs: Sequence[Run], names: Sequence[str], bare: Sequence[float]) -> str:
    """Return the times as Markdown.

    Args:
        runs: The runs.
        names: The libraries, in order.
        bare: Seconds that encoding the texts takes alone, by size.
    """
    by_place = {(run.peer, run.size): run for run in runs}
    heads = [
        f"cold, ms: {SIZES[0]:,}",
        *(f"{size:,}" for size in SIZES[1:]),
        f"live, ms: {SIZES[0]:,}",
        *(f"{size:,}" for size in SIZES[1:]),
    ]
    lines = [f"| | {' | '.join(heads)} | tokens kept | over |", f"|---|{'--:|' * (len(heads) + 2)}"]
    cells = " | ".join(f"{seconds * 1e3:,.0f}" for seconds in bare)
    lines.append(f"| bare `encode_ordinary` of all texts | {cells} |{' |' * (len(SIZES) + 2)}")
    for name in names:
        of_sizes = [by_place.get((name, size)) for size in SIZES]
        cold = [f"{run.cold * 1e3:,.0f}" if run else "–" for run in of_sizes]
        live = [f"{run.live * 1e3:,.2f}" if run else "–" for run in of_sizes]
        last = next((run for run in reversed(of_sizes) if run), None)
        counts = (
            [f"{last.tokens:,}", f"{sum(run.over for run in of_sizes if run)} of {sum(run.views for run in of_sizes if run)}"]
            if last
            else ["–"] * 2
        )
        lines.append(f"| {LABELS[name]} | {' | '.join((*cold, *live, *counts))} |")
    return "\n".join(lines)


def requests_table(grown: Sequence[Run]) -> str:
    """Return what became of a growing conversation as Markdown."""
    lines = [f"| of {REQUESTS} requests | orphaned | over | no system prompt | cache lost | tokens kept |", "|---|--:|--:|--:|--:|--:|"]
    for run in grown:
        cells = (LABELS[run.peer], run.orphaned, run.over, run.promptless, run.lost, f"{run.tokens:,}")
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


if __name__ == "__main__":
    raise SystemExit(main())
