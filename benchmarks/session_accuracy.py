"""Measure how accurate token counts are along sessions, with and without calibration, against the reported usage of each request.

    python benchmarks/session_accuracy.py [--json] [--svg FILE] [PATH ...]

A path is a log that `session.transcripts` reads, or a folder of logs; the default is the recorded transcripts. Three ways to estimate the
next request are compared, for each counter:

- cold: the whole log is counted, without any reported usage;
- anchored: the last reported request, plus the count of the items since;
- calibrated: the same, corrected by the errors of earlier steps of the session: a likeliest total and an upper bound.

The calibrated figures are the library's own. The steps come from `session_steps.py`; the plot is in `session_accuracy_plot.py`.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import NamedTuple

from accuracy import percentile
from session_steps import COUNTERS, OURS, FirstRequest, Step, first_requests, log_files, measure

UNKNOWABLE = """\
What cannot be known from a transcript, and affects these figures:

- Most logs do not contain the system prompt and the tools. A cold count lacks them: 5,000 to 40,000 tokens in agents' logs. An
  anchored count includes them.
- Some tools add text to a request without logging it (Claude Code: lists of skills and tools, reminders; up to 10,000 tokens at
  once). No count of the log includes it. These steps are in the tables, and they are most of the requests that are not covered. An
  application that builds its own requests does not have this problem.
- Reported output tokens are unreliable in Claude Code's logs (often those of the first part of an answer), so the larger of the
  report and the local count is used. Output includes reasoning, which leaves the prompt later without a trace in the log.
- If a request reports less than the one before, something was removed that the log still has. Such steps are left out: the bound
  holds, but its anchor is too high. Steps with a compaction are left out too: calibration starts over after them.
"""


class Way(NamedTuple):
    """One way to estimate a request. Functions of a step, in tokens.

    Attributes:
        name: Its name in the tables.
        difference: Tokens added since the request before.
        total: Tokens of the whole request.
        bound: Upper bound of the whole request.
    """

    name: str
    difference: Callable[[Step], int]
    total: Callable[[Step], int]
    bound: Callable[[Step], int]


WAYS = (
    Way("cold", lambda step: step.added, lambda step: step.cold, lambda step: step.cold),
    Way("anchored", lambda step: step.added, lambda step: step.anchor + step.added, lambda step: step.anchor + step.added),
    Way("calibrated", lambda step: step.point - step.anchor, lambda step: step.point, lambda step: step.bound),
)
CALIBRATED = WAYS[-1]


@dataclass(frozen=True, slots=True)
class Figures:
    """Accuracy of one way over some steps.

    Attributes:
        steps: Number of steps.
        difference: Median error of the added tokens, in tokens.
        relative: The same in percent of the added tokens.
        total: Median error of the whole request, in percent of it.
        total_p95: 95th percentile of these errors.
        covered: Fraction of the requests that did not exceed the bound.
        slack: Mean excess of the bound over the request, in percent of the request; 0 if the bound was too low.
        over: Fraction of the requests whose bound was more than a fifth too high.
    """

    steps: int
    difference: float
    relative: float
    total: float
    total_p95: float
    covered: float
    slack: float
    over: float


def figures_of(steps: Sequence[Step], way: Way) -> Figures | None:
    """Return the accuracy of one way over the steps; None if there are no steps."""
    if not steps:
        return None
    differences = [abs(way.difference(step) - (step.reported - step.anchor)) for step in steps]
    totals = [100 * abs(way.total(step) - step.reported) / step.reported for step in steps]
    return Figures(
        steps=len(steps),
        difference=statistics.median(differences),
        relative=statistics.median(
            100 * error / max(1, step.reported - step.anchor) for error, step in zip(differences, steps, strict=True)
        ),
        total=statistics.median(totals),
        total_p95=percentile(totals, 95),
        covered=sum(way.bound(step) >= step.reported for step in steps) / len(steps),
        slack=statistics.fmean(100 * max(0, way.bound(step) - step.reported) / step.reported for step in steps),
        over=sum(5 * way.bound(step) > 6 * step.reported for step in steps) / len(steps),
    )


def intervals(steps: Sequence[Step], way: Way) -> str:
    """Return where coverage and slack lie in 95 of 100 draws of as many sessions: how far other people's sessions may differ."""
    sessions: dict[str, list[Step]] = {}
    for step in steps:
        sessions.setdefault(step.id, []).append(step)
    if len(sessions) < 3:
        return "too few sessions"
    random = Random(0)
    draws = [
        figures_of([step for steps in random.choices(list(sessions.values()), k=len(sessions)) for step in steps], way) for _ in range(400)
    ]
    covered, slack = (sorted(getattr(draw, name) for draw in draws) for name in ("covered", "slack"))
    return f"{covered[10]:.1%} to {covered[-11]:.1%}, {slack[10]:.2f} to {slack[-11]:.2f} %"


def rows(steps: Sequence[Step]) -> Iterator[tuple[str, str, str, str, Figures]]:
    """Yield grouping, group, counter, way and figures: every counter and way for all steps, then ours, calibrated, for each group."""
    for counter in COUNTERS:
        of_counter = [step for step in steps if step.counter == counter]
        for way in WAYS:
            if (figures := figures_of(of_counter, way)) is not None:
                yield "all", "all", counter, way.name, figures
    ours = [step for step in steps if step.counter == OURS]
    for grouping, group_of in GROUPINGS:
        for group in sorted(set(map(group_of, ours))):
            if (figures := figures_of([step for step in ours if group_of(step) == group], CALIBRATED)) is not None:
                yield grouping, group, OURS, CALIBRATED.name, figures


GROUPINGS: tuple[tuple[str, Callable[[Step], str]], ...] = (
    ("log", lambda step: step.tool),
    ("model", lambda step: step.provider if step.family == step.provider else f"{step.provider} {step.family}"),
)


def tables(title: str, steps: Sequence[Step]) -> str:
    """Return the figures of the steps as Markdown tables."""
    lines = [f"## {title}"]
    heading = ""
    group_of = dict(GROUPINGS)["log"]
    for grouping, group, counter, way, figures in rows(steps):
        label = f"{counter} | {way}" if grouping == "all" else group
        names = "counter | way" if grouping == "all" else grouping
        if names != heading:
            heading = names
            columns = f"| {names} | steps | added: error, tokens | of it | total: error | p95 | covered | slack | over |"
            columns += " covered and slack, between sessions |" if grouping == "log" else ""
            lines += ["", columns, "|" + "---|" * (names.count("|") + 1) + "--:|" * (8 + (grouping == "log"))]
        lines.append(
            f"| {label} | {figures.steps:,} | {figures.difference:,.0f} | {figures.relative:,.1f} % | {figures.total:,.2f} % "
            f"| {figures.total_p95:,.2f} % | {figures.covered:.1%} | {figures.slack:,.2f} % | {figures.over:.1%} |"
        )
        if grouping == "log":
            lines[-1] += f" {intervals([step for step in steps if step.counter == counter and group_of(step) == group], CALIBRATED)} |"
    return "\n".join(lines)


def first_table(requests: Sequence[FirstRequest]) -> str:
    """Return the errors of first requests by tool, without and with the estimate of what the log lacks, as a Markdown table."""
    lines = [
        "## First requests of logs",
        "",
        "| log | sessions | error, cold | with the estimate | in the interval |",
        "|---|--:|--:|--:|--:|",
    ]
    for is_held_out, name in ((True, "held out"), (False, "others")):
        side = [request for request in requests if request.held_out == is_held_out]
        for tool in sorted({request.tool for request in side}):
            of_tool = [request for request in side if request.tool == tool]
            cold, estimated = (
                statistics.median(
                    100 * abs(request.cold + part * request.unlogged - request.reported) / request.reported for request in of_tool
                )
                for part in (0, 1)
            )
            inside = sum(request.least <= request.reported - request.cold <= request.most for request in of_tool)
            lines.append(f"| {tool}, {name} | {len(of_tool)} | {cold:.1f} % | {estimated:.1f} % | {inside} |")
    return "\n".join(lines)


def report(steps: Sequence[Step], left_out: Counter[str]) -> str:
    """Return the printed report."""
    held_out, fitted = split(steps)
    reasons = "".join(f"- {number}: {reason}\n" for reason, number in left_out.most_common())
    return "\n".join(
        (
            tables(f"Held out: {sessions_of(held_out)} sessions on which nothing was fitted", held_out),
            "",
            tables(f"The other two thirds: {sessions_of(fitted)} sessions", fitted),
            "",
            "Errors are medians of absolute values. `slack` is the mean excess of the bound, in percent of the whole request, 0 if the",
            "request is not covered; `over` is the share of bounds that are more than 20 % too high. A cold or anchored count is its own",
            "bound. The tables by log and by model are for this library's counter, calibrated. ctok, if installed, counts for Claude's",
            "models only.",
            "",
            f"Left out, {left_out.total()}:\n{reasons}",
            UNKNOWABLE,
        )
    )


def split(steps: Sequence[Step]) -> tuple[list[Step], list[Step]]:
    """Return the held-out steps and the others."""
    return [step for step in steps if step.held_out], [step for step in steps if not step.held_out]


def sessions_of(steps: Sequence[Step]) -> int:
    """Return the number of sessions in the steps."""
    return len({step.id for step in steps})


def as_json(steps: Sequence[Step], left_out: Counter[str]) -> str:
    """Return the tables and all steps as JSON."""
    names = ("grouping", "group", "counter", "way")
    sides = dict(zip(("held_out", "fitted"), split(steps), strict=True))
    tables_by_side = {
        side: [{**dict(zip(names, row, strict=False)), **asdict(row[4])} for row in rows(side_steps)] for side, side_steps in sides.items()
    }
    all_steps = [{**asdict(step), "held_out": step.held_out} for step in steps]
    return json.dumps({"tables": tables_by_side, "left_out": dict(left_out), "steps": all_steps}, indent=1)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return the exit code."""
    parser = argparse.ArgumentParser(description="Accuracy of token counts along sessions, with and without calibration.")
    parser.add_argument("paths", nargs="*", type=Path, metavar="PATH", help="logs with reported usage: files, or folders of them")
    parser.add_argument("--json", action="store_true", help="print JSON with all steps")
    parser.add_argument("--svg", type=Path, metavar="FILE", help="write a plot of the bounds to a file")
    options = parser.parse_args(arguments)
    if missing := [path for path in options.paths if not path.exists()]:
        print(f"there is no {missing[0]}; name a log or a folder of logs", file=sys.stderr)
        return 2
    steps, left_out = measure(log_files(options.paths))
    if not steps:
        print("there is no session with two reported requests here; name a log or a folder of logs", file=sys.stderr)
        return 2
    if options.svg is not None:
        from session_accuracy_plot import plot  # in the script's own folder, from which Python imports

        options.svg.write_text(plot(steps), encoding="utf-8")
    if options.json:
        print(as_json(steps, left_out))
    else:
        print(report(steps, left_out))
        print(first_table(first_requests(log_files(options.paths))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
