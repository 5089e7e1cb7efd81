"""How far off counts are along sessions, with and without calibration: against what the provider reported for each request.

    python benchmarks/session_accuracy.py [--json] [--svg FILE] [PATH ...]

A path is a log that `session.transcripts` reads, or a folder of them; without one, the recorded transcripts are read. Three ways of
saying what the next request costs are compared, for each counter:

- cold: all of the log is counted, and nothing is known of earlier requests;
- anchored: the last reported request, and what was counted since;
- calibrated: the same, with what earlier steps of the session were off by: a likeliest total and an upper bound.

The calibrated figures are the library's own. The steps come from `session_steps.py`, the drawing is in `session_accuracy_plot.py`.
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
from typing import NamedTuple

from accuracy import at_most
from session_steps import COUNTERS, OURS, Step, measure, recorded

UNKNOWABLE = """\
What cannot be known from a transcript, and is in these figures:

- The system prompt and the tools are mostly not in a log: a cold count lacks them, in agents' logs 5,000 to 40,000 tokens. An anchor
  has them.
- What a tool adds to a request and does not log (Claude Code: lists of skills and tools, reminders; up to 10,000 tokens at once) is in
  no count of the log. Such steps are here, and are most of what is not covered. Whoever builds the requests knows what is in them.
- Reported output tokens are unreliable in Claude Code's logs (often those of the first part of an answer): the larger of these and
  the local count is taken. Reasoning is in them, and goes out of the prompt later without a trace.
- Where less was reported than for the request before, something was taken out that the log still has. Such steps are left out, as
  are those with a compaction: after the first the bound holds, from an anchor that is too high; the second begins anew.
"""


class Way(NamedTuple):
    """One way to say what a request costs.

    Attributes:
        name: What it is called.
        difference: By it, what was added since the request before, in tokens.
        total: By it, the whole request, in tokens.
        bound: What it says the request does not exceed, in tokens.
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
    """What is to be said of some steps, said one way.

    Attributes:
        steps: How many.
        difference: The median error of what was added, in tokens.
        relative: The same in percent of what was added.
        total: The median error of the whole request, in percent of it.
        total_p95: What 95 in 100 of these errors are at most.
        covered: The part of the requests that did not exceed the bound.
        slack: The mean of what the bound has more than the request, in percent of it; 0 where it has less.
    """

    steps: int
    difference: float
    relative: float
    total: float
    total_p95: float
    covered: float
    slack: float


def figures_of(steps: Sequence[Step], way: Way) -> Figures | None:
    """What is to be said of the steps; None of none."""
    if not steps:
        return None
    differences = [abs(way.difference(step) - (step.reported - step.anchor)) for step in steps]
    totals = [100 * abs(way.total(step) - step.reported) / step.reported for step in steps]
    return Figures(
        steps=len(steps),
        difference=statistics.median(differences),
        relative=statistics.median(100 * off / max(1, step.reported - step.anchor) for off, step in zip(differences, steps, strict=True)),
        total=statistics.median(totals),
        total_p95=at_most(totals, 95),
        covered=sum(way.bound(step) >= step.reported for step in steps) / len(steps),
        slack=statistics.fmean(100 * max(0, way.bound(step) - step.reported) / step.reported for step in steps),
    )


def rows(steps: Sequence[Step]) -> Iterator[tuple[str, str, str, str, Figures]]:
    """Grouping, group, counter, way and figures: of every counter in every way for all steps; for the groups, ours calibrated."""
    for counter in COUNTERS:
        of_counter = [step for step in steps if step.counter == counter]
        for way in WAYS:
            if (found := figures_of(of_counter, way)) is not None:
                yield "all", "all", counter, way.name, found
    ours = [step for step in steps if step.counter == OURS]
    for grouping, group_of in GROUPINGS:
        for group in sorted(set(map(group_of, ours))):
            if (found := figures_of([step for step in ours if group_of(step) == group], CALIBRATED)) is not None:
                yield grouping, group, OURS, CALIBRATED.name, found


GROUPINGS: tuple[tuple[str, Callable[[Step], str]], ...] = (
    ("log", lambda step: step.tool),
    ("model", lambda step: step.provider if step.family == step.provider else f"{step.provider} {step.family}"),
)


def tables(title: str, steps: Sequence[Step]) -> str:
    """The figures of the steps as tables of Markdown."""
    lines = [f"## {title}"]
    heading = ""
    for grouping, group, counter, way, found in rows(steps):
        label = f"{counter} | {way}" if grouping == "all" else group
        names = "counter | way" if grouping == "all" else grouping
        if names != heading:
            heading = names
            columns = f"| {names} | steps | added: error, tokens | of it | total: error | p95 | covered | slack |"
            lines += ["", columns, "|" + "---|" * (names.count("|") + 1) + "--:|" * 7]
        lines.append(
            f"| {label} | {found.steps:,} | {found.difference:,.0f} | {found.relative:,.1f} % | {found.total:,.2f} % "
            f"| {found.total_p95:,.2f} % | {found.covered:.1%} | {found.slack:,.2f} % |"
        )
    return "\n".join(lines)


def report(steps: Sequence[Step], left_out: Counter[str]) -> str:
    """All that is printed."""
    held, fitted = split(steps)
    reasons = "".join(f"- {number}: {reason}\n" for reason, number in left_out.most_common())
    return "\n".join(
        (
            tables(f"Held out: {sessions_of(held)} sessions on which nothing was fitted", held),
            "",
            tables(f"The other two thirds: {sessions_of(fitted)} sessions", fitted),
            "",
            "Errors are medians without their signs. `slack` is the mean of what the bound has too much, of the whole request, 0 where the",
            "request is not covered; a cold or anchored count is its own bound. The tables by log and by model are of this library's",
            "counter, calibrated. ctok, where it is installed, counts for Claude's models alone.",
            "",
            f"Left out, {left_out.total()}:\n{reasons}",
            UNKNOWABLE,
        )
    )


def split(steps: Sequence[Step]) -> tuple[list[Step], list[Step]]:
    """The held-out steps, and the others."""
    return [step for step in steps if step.held_out], [step for step in steps if not step.held_out]


def sessions_of(steps: Sequence[Step]) -> int:
    """How many sessions the steps are of."""
    return len({step.id for step in steps})


def as_json(steps: Sequence[Step], left_out: Counter[str]) -> str:
    """The tables and every step as JSON."""
    names = ("grouping", "group", "counter", "way")
    sides = dict(zip(("held_out", "fitted"), split(steps), strict=True))
    found = {side: [{**dict(zip(names, row, strict=False)), **asdict(row[4])} for row in rows(own)] for side, own in sides.items()}
    every = [{**asdict(step), "held_out": step.held_out} for step in steps]
    return json.dumps({"tables": found, "left_out": dict(left_out), "steps": every}, indent=1)


def main(arguments: Sequence[str] | None = None) -> int:
    """Does what the command line asks for, and gives the exit code."""
    parser = argparse.ArgumentParser(description="How far off counts are along sessions, calibrated and not.")
    parser.add_argument("paths", nargs="*", type=Path, metavar="PATH", help="logs with reported usage: files, or folders of them")
    parser.add_argument("--json", action="store_true", help="print JSON, every step in it")
    parser.add_argument("--svg", type=Path, metavar="FILE", help="draw the bounds into a file")
    asked = parser.parse_args(arguments)
    if missing := [path for path in asked.paths if not path.exists()]:
        print(f"there is no {missing[0]}; name a log or a folder of logs", file=sys.stderr)
        return 2
    steps, left_out = measure(recorded(asked.paths))
    if not steps:
        print("there is no session with two reported requests here; name a log or a folder of logs", file=sys.stderr)
        return 2
    if asked.svg is not None:
        from session_accuracy_plot import plot  # beside this file: a script's folder is where it imports from

        asked.svg.write_text(plot(steps), encoding="utf-8")
    print(as_json(steps, left_out) if asked.json else report(steps, left_out))
    return 0


if __name__ == "__main__":
    sys.exit(main())
