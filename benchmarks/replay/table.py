"""Sums over sessions as Markdown tables, with bootstrap intervals by session."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import fmean
from typing import NamedTuple, TypeVar

from .metric import Tally
from .outcomes import PARTS
from .replay import Outcome

Value = TypeVar("Value")
SAMPLES = 1_000
"""Bootstrap samples of an interval."""


class Estimate(NamedTuple):
    """A figure with its 95 % interval."""

    value: float
    low: float
    high: float


class Figures(NamedTuple):
    """What a policy does under one window, over some sessions.

    Attributes:
        recall: Mean recall over the mean limit.
        verbatim: Mean verbatim recall over its mean limit.
        cost: Mean cost, in parts of the cost without a window.
        whole: As `recall`, of whole items only. At most 1 if no request is over the window.
        over: Part of the requests that are over the window.
        taskless: Part of the requests without the first user message.
        blind: Part of the edits that are blind; None without edits.
        pathless: Part of the calls with a known path that the view lacks; None without such calls.
        reread: Part of repeated lines that the view lacks; None without repetitions.
    """

    recall: Estimate
    verbatim: Estimate
    cost: Estimate
    whole: float
    over: float
    taskless: float
    blind: float | None
    pathless: float | None
    reread: float | None


def figures_of(outcomes: Sequence[Outcome], policy: str) -> Figures:
    """Return the figures of a policy over the outcomes, at least one, all of the same window."""
    tallies = [outcome.tallies[policy] for outcome in outcomes]
    recalls = [(tally.recall, outcome.limit, tally.steps) for outcome, tally in zip(outcomes, tallies, strict=True)]
    verbatims = [(tally.verbatim, outcome.verbatim_limit, tally.verbatim_steps) for outcome, tally in zip(outcomes, tallies, strict=True)]
    wholes = [(tally.whole, outcome.limit, tally.steps) for outcome, tally in zip(outcomes, tallies, strict=True)]
    return Figures(
        _estimate(recalls, _ratio_of_means),
        _estimate(verbatims, _ratio_of_means),
        _estimate([tally.cost for tally in tallies], fmean),
        _ratio_of_means(wholes),
        _pooled(tallies, "over", "requests") or 0.0,
        _pooled(tallies, "taskless", "requests") or 0.0,
        _pooled(tallies, "blind", "edits"),
        _pooled(tallies, "pathless", "path_calls"),
        _pooled(tallies, "reread", "repeats"),
    )


def _ratio_of_means(sums: Sequence[tuple[float, float, int]]) -> float:
    """Return the mean of the first over the mean of the second, both per step. A session without a counted step says nothing."""
    return sum(kept / steps for kept, _, steps in sums if steps) / (sum(limit / steps for _, limit, steps in sums if steps) or 1.0)


def _pooled(tallies: Sequence[Tally], part: str, whole: str) -> float | None:
    total: int = sum(getattr(tally, whole) for tally in tallies)
    parts: float = sum(getattr(tally, part) for tally in tallies)
    return parts / total if total else None


def _estimate(values: Sequence[Value], figure: Callable[[Sequence[Value]], float]) -> Estimate:
    """Return the figure of the values, with an interval from samples of them drawn with replacement."""
    chance = random.Random(17)
    figures = sorted(figure(chance.choices(values, k=len(values))) for _ in range(SAMPLES))
    return Estimate(figure(values), figures[SAMPLES * 25 // 1000], figures[SAMPLES * 975 // 1000 - 1])


def tables(outcomes: Sequence[Outcome], labels: Mapping[str, str]) -> str:
    """Return all tables: per window one of all policies, then one by tool.

    Args:
        outcomes: The outcomes.
        labels: The policies: their names in the outcomes, and in the tables.
    """
    return "\n".join((*_tables_by_window(outcomes, labels), *_table_by_tool(outcomes, labels)))


def _tables_by_window(outcomes: Sequence[Outcome], labels: Mapping[str, str]) -> Iterator[str]:
    for percent in sorted({outcome.percent for outcome in outcomes}):
        of_window = [outcome for outcome in outcomes if outcome.percent == percent]
        requests = sum(next(iter(outcome.tallies.values())).requests for outcome in of_window)
        yield f"### W = {percent} % of the session: {len(of_window)} sessions, {requests:,} requests\n"
        yield "| policy | ρ | F | cost | whole | blind | paths | reread | task | over |\n|---|---|---|---|--:|--:|--:|--:|--:|--:|"
        for name, label in labels.items():
            figures = figures_of(of_window, name)
            estimates = (_interval(figures.recall), _interval(figures.verbatim), _interval(figures.cost))
            parts = (figures.blind, figures.pathless, figures.reread, figures.taskless, figures.over)
            yield f"| {label} | {' | '.join(estimates)} | {_short(figures.whole)} | {' | '.join(map(_percent, parts))} |"
        yield ""
        yield from _needs_table(of_window, labels)


def _needs_table(of_window: Sequence[Outcome], labels: Mapping[str, str]) -> Iterator[str]:
    """Yield the table of what an agent needs (`outcomes.py`): means of sessions. Blind edits are of all."""
    yield f"| policy | {' | '.join(PARTS)} | blind, of edits | whole bill |\n|---|{'---|' * (len(PARTS) + 2)}"
    for name, label in labels.items():
        parts = [
            _mean_in_words([part for outcome in of_window if (part := outcome.needs[name].part(measure)) is not None]) for measure in PARTS
        ]
        tallies = [outcome.tallies[name] for outcome in of_window]
        blind = f"{_percent(_pooled(tallies, 'blind', 'edits'))} of {sum(tally.edits for tally in tallies):,}"
        bill = _interval(mean_of_sessions([outcome.needs[name].whole_bill for outcome in of_window]))
        yield f"| {label} | {' | '.join(parts)} | {blind} | {bill} |"
    yield ""


def _mean_in_words(values: Sequence[float]) -> str:
    return f"{_interval(mean_of_sessions(values))} ({len(values)})" if values else "–"


def mean_of_sessions(values: Sequence[float]) -> Estimate:
    """Return the mean of figures of sessions, of which there is at least one."""
    return _estimate(values, fmean)


def sentence(outcomes: Sequence[Outcome], policy: str, other: str, percent: int) -> str | None:
    """Return what a window keeps in one sentence, comparing two policies; None if these were not replayed in it."""
    of_window = [outcome for outcome in outcomes if outcome.percent == percent and {policy, other} <= outcome.needs.keys()]
    if not of_window:
        return None
    at_hand, at_hand_of_other = (fmean(outcome.needs[name].part("at hand") or 0.0 for outcome in of_window) for name in (policy, other))
    bill = fmean(outcome.needs[policy].whole_bill for outcome in of_window)
    return (
        f"With a window of {percent} % of the session, in {100 * at_hand:.0f} of 100 requests everything the agent used again was in view "
        f"(dropping the oldest: {100 * at_hand_of_other:.0f}), for {bill:.0%} of the bill."
    )


def _table_by_tool(outcomes: Sequence[Outcome], labels: Mapping[str, str]) -> Iterator[str]:
    percents = sorted({outcome.percent for outcome in outcomes})
    percent = 25 if 25 in percents else percents[0]
    of_window = [outcome for outcome in outcomes if outcome.percent == percent]
    groups = {tool: [outcome for outcome in of_window if outcome.tool == tool] for tool in sorted({outcome.tool for outcome in of_window})}
    yield f"### By the tool that wrote the log, W = {percent} %: ρ / F / cost\n"
    yield f"| policy | {' | '.join(f'{tool} ({len(group)})' for tool, group in groups.items())} |"
    yield f"|---|{'---|' * len(groups)}"
    for name, label in labels.items():
        cells = (figures_of(group, name) for group in groups.values())
        yield f"| {label} | {' | '.join(' / '.join(_short(estimate.value) for estimate in cell[:3]) for cell in cells)} |"
    yield ""


def _interval(estimate: Estimate) -> str:
    return f"{_short(estimate.value)} [{_short(estimate.low)}, {_short(estimate.high)}]"


def _short(value: float) -> str:
    return f"{value:.3f}".removeprefix("0")


def _percent(part: float | None) -> str:
    return "–" if part is None else f"{part:.0%}"
