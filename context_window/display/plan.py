"""A plan drawn: before and after, sums by action and category, then the changes in the log's order, with their reasons."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..errors import BESIDE, FEWER_TOOLS
from ..trimming.plan import Action, Plan
from ..trimming.summary import DONE, Run, overhead_stands_out, runs, tallies
from .cells import length_bar
from .glyphs import BAD, OVERHEAD, QUIET, STRONG, STYLES, Glyphs
from .lines import Column, Line, Span, fitted, flow, table, width_of, wrapped
from .usage import MINIMAL, WIDEST, heading

COLOURS = {
    Action.KEEP: "green",
    Action.REPLACE_IMAGES: "blue",
    Action.REPLACE_REFUSED: "blue",
    Action.TRUNCATE: "cyan",
    Action.CLEAR: "yellow",
    Action.SUMMARISE: "magenta",
    Action.DROP: "red",
}

MOST = 15
"""Runs of changes that are listed unless more are asked for."""
AT_MOST = "upper bound"
"""What the overhead is where the provider's reports are gone by: so is the total, and the items are as counted here."""
MARGIN = "The overhead has a margin: what was taken out may have cost less than was counted for it."
"""Why a bound on the overhead grows with a trim."""
CULPRITS = 5
"""Items that are named where the view does not fit."""


@dataclass(frozen=True, slots=True)
class PlanTold:
    """A plan, and what else is said with it.

    Attributes:
        plan: The plan.
        title: What it is a plan for.
        notes: Lines for the end: the budget's source, the counter.
        most: Runs of changes that are listed; None for all.
        brief: Whether to leave out the list of changes.
    """

    plan: Plan
    title: str = ""
    notes: tuple[str, ...] = ()
    most: int | None = MOST
    brief: bool = False


def draw_plan(told: PlanTold, width: int, glyphs: Glyphs) -> list[Line]:
    """The lines of the plan, none of them wider than `width` columns."""
    plan, width = told.plan, min(width, WIDEST)
    lines = [*heading(told.title, "", width, glyphs), *flow(_headline(plan, glyphs), width, glyphs), []]
    if width >= MINIMAL:
        bars = _bars(plan, width, glyphs)
        lines += [*bars, []] if bars else []
    lines += _sums(plan, width, glyphs)
    if plan.calibrated and plan.overhead > plan.overhead_before:
        lines += [[], *_wrapped(MARGIN, width, glyphs, QUIET)]
    changes = runs(plan)
    if changes and not told.brief:
        shown = changes if told.most is None else changes[: told.most]
        lines += [[], *_changes(shown, width, glyphs)]
        if more := len(changes) - len(shown):
            lines += _wrapped(f"{glyphs.ellipsis} and {more:,} more like these", width, glyphs, QUIET)
    if plan.over_budget:
        lines += [[], *_culprits(plan, width, glyphs)]
    notes = [line for note in told.notes for line in _wrapped(note, width, glyphs, QUIET)]
    return [*lines, [], *notes] if notes else lines


def _headline(plan: Plan, glyphs: Glyphs) -> Iterator[Span]:
    changed = len(plan.changes)
    if not changed:
        yield Span(f"nothing changes in {len(plan):,} items", STRONG)
        yield Span(f"{plan.after:,} tokens of {plan.budget:,}")
    else:
        yield Span(f"{changed:,} of {len(plan):,} items change", STRONG)
        yield Span(f"{plan.before:,} {glyphs.arrow} {plan.after:,} tokens of {plan.budget:,}")
        yield Span(f"{plan.freed:,} freed")
    if plan.over_budget:
        yield Span(f"over budget by {plan.after - plan.budget:,}", BAD)


def _bars(plan: Plan, width: int, glyphs: Glyphs) -> list[Line]:
    """The request before and after as lengths, with a mark where the budget ends."""
    amounts = {"before": plan.before, "after": plan.after}
    most = max(*amounts.values(), plan.budget)
    numbers = max(len(f"{amount:,}") for amount in amounts.values())
    room = width - len("before") - 4 - numbers
    if room < 4:
        return []
    lines: list[Line] = []
    for name, amount in amounts.items():
        drawn = length_bar(amount, most, plan.budget, room, glyphs)
        lines.append([Span(f"{name:<6}  ", QUIET), *drawn, Span(f"  {amount:>{numbers},}")])
    return lines


def _sums(plan: Plan, width: int, glyphs: Glyphs) -> list[Line]:
    rows = tallies(plan)
    overhead = (plan.overhead_before, plan.overhead)
    befores = [row.before for row in rows] + [overhead[0], plan.before]
    afters = [row.after for row in rows] + [overhead[1], plan.after]
    freed = [row.freed for row in rows] + [overhead[0] - overhead[1], plan.freed]
    styles = [""] * (len(rows) + 1) + [STRONG]

    def numbers(amounts: list[int]) -> list[Span]:
        return [Span(f"{amount:,}", style) for amount, style in zip(amounts, styles, strict=True)]

    categories = [Span(row.category.value, STYLES[row.category.value]) for row in rows]
    columns = [
        Column(
            "",
            [
                *(Span(DONE[row.action], COLOURS[row.action]) for row in rows),
                Span(f"{OVERHEAD}, {AT_MOST}" if plan.calibrated else OVERHEAD),
                Span("total", STRONG),
            ],
            left=True,
            elastic=True,
            whole=True,
        ),
        Column("", [*categories, Span(""), Span("")], left=True, elastic=True, whole=True),
        Column("items", [*(Span(f"{row.items:,}") for row in rows), Span(""), Span(f"{len(plan):,}", STRONG)], keep=3),
        Column("before", numbers(befores), keep=2),
        Column("after", numbers(afters)),
        Column("freed", numbers(freed), keep=1),
    ]
    return table(columns, width, glyphs)


def _changes(changes: list[Run], width: int, glyphs: Glyphs) -> list[Line]:
    """Two lines a run: where, what, how much; and why."""
    where = max(width_of(run.places) for run in changes) if width >= MINIMAL else 0
    columns = [
        Column("items" if where else "", [Span(run.places if where else "", QUIET) for run in changes], keep=2),
        Column("what happens", [Span(glyphs.shown(run.told), COLOURS[run.action]) for run in changes], left=True, elastic=True),
        Column("before", [Span(f"{run.before:,}") for run in changes], keep=1),
        Column("after", [Span(f"{run.after:,}") for run in changes], keep=3),
    ]
    head, *rows = table(columns, width, glyphs)
    indent = " " * (max(where, len("items")) + 2 if where else 0)
    lines = [head]
    last = None
    for run, row in zip(changes, rows, strict=True):
        lines.append(row)
        if run.reason is not last:  # said once for as long as it stays the same
            lines += [[Span(indent + line, QUIET)] for line in wrapped(run.reason.value, max(10, width - len(indent)), glyphs)]
        last = run.reason
    return lines


def _culprits(plan: Plan, width: int, glyphs: Glyphs) -> list[Line]:
    rows = [(one.what, one.after, one.reason.value, one.item_id) for one in plan.culprits[:CULPRITS]]
    leads = overhead_stands_out(plan)
    if leads:
        rows.insert(0, (OVERHEAD, plan.overhead, BESIDE, ""))
    columns = [
        Column("What stands in the way", [Span(glyphs.shown(what)) for what, *_ in rows], left=True, elastic=True),
        Column("tokens", [Span(f"{tokens:,}") for _, tokens, *_ in rows]),
        Column("kept because", [Span(glyphs.shown(why), QUIET) for _, _, why, _ in rows], left=True, elastic=True, keep=2),
        Column("id", [Span(fitted(id, 24, glyphs), QUIET) for *_, id in rows], left=True, elastic=True, keep=1),
    ]
    told = f"Over budget by {plan.after - plan.budget:,} tokens: all that could go is gone."
    lines = [*_wrapped(told, width, glyphs, BAD), *(table(columns, width, glyphs) if rows else [])]
    return [*lines, *_wrapped(f"{FEWER_TOOLS}.", width, glyphs, "")] if leads else lines


def _wrapped(text: str, width: int, glyphs: Glyphs, style: str) -> list[Line]:
    return [[Span(line, style)] for line in wrapped(text, width, glyphs)]
