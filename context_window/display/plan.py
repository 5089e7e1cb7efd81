"""A plan as lines: totals before and after, a table by action and category, then the changes in log order with their reasons."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..decision.plan import Action, Plan
from ..decision.plan_text import (
    DONE,
    RESTATED,
    Run,
    action_totals,
    definition_words,
    never_sent_lines,
    overhead_stands_out,
    runs,
    tight_budget,
)
from ..errors import FEWER_TOOLS, OUTSIDE_ITEMS
from ..settings.usage_snapshot import rows_of
from .charts import length_bar
from .glyphs import BAD, OVERHEAD, QUIET, STRONG, STYLES, Glyphs
from .lines import Column, Line, Span, fit, flow, table, width_of, wrapped
from .render import Draw, Drawing, text_of
from .usage import MINIMAL, WIDEST, heading

COLOURS = {
    Action.KEEP: "green",
    Action.RESTORE: "green",
    Action.REPLACE_IMAGES: "blue",
    Action.REPLACE_REFUSED: "blue",
    Action.TRUNCATE: "cyan",
    Action.EXTRACT: "cyan",
    Action.CLEAR: "yellow",
    Action.SUMMARISE: "magenta",
    Action.DROP: "red",
}

RUNS_LISTED = 15
"""Runs of changes that are listed by default."""
UPPER_BOUND = "upper bound"
"""Marks the overhead if the total is based on the provider's reports. The items have our own counts, so the bound is in the overhead."""
MARGIN = "The overhead includes a margin: the removed items may have cost less than we counted for them."
"""Why a bound on the overhead grows with a trim."""
EXAMPLE_LINES = 12
"""Lines of an extract that are shown."""
CULPRITS = 5
"""Items that are named if the view does not fit."""


@dataclass(frozen=True, slots=True)
class PlanDisplay:
    """A plan and how to display it.

    Attributes:
        plan: The plan.
        title: Name of the session that it is a plan for.
        footnotes: Lines printed at the end: the budget's source, the counter.
        most: Maximum number of runs of changes to list; None for all.
        brief: True to leave out the list of changes.
        example: An extract as the model sees it; empty for none.
    """

    plan: Plan
    title: str = ""
    footnotes: tuple[str, ...] = ()
    most: int | None = RUNS_LISTED
    brief: bool = False
    example: str = ""


def plan_lines(display: PlanDisplay, width: int, glyphs: Glyphs) -> list[Line]:
    """Return the lines of the plan, none wider than `width` columns."""
    plan, width = display.plan, min(width, WIDEST)
    lines = [*heading(display.title, "", width, glyphs), *flow(_headline(plan, glyphs), width, glyphs), []]
    if plan.is_tight:
        text = tight_budget(plan)
        lines += [*_wrapped(f"{text[0].upper()}{text[1:]}.", width, glyphs, BAD), []]
    if width >= MINIMAL:
        bars = _bars(plan, width, glyphs)
        lines += [*bars, []] if bars else []
    lines += _totals(plan, width, glyphs)
    if plan.calibrated and plan.overhead - plan.note_tokens > plan.overhead_before:
        lines += [[], *_wrapped(MARGIN, width, glyphs, QUIET)]
    if never_sent := "; ".join(never_sent_lines(plan)):
        lines += [[], *_wrapped(f"Not counted: {never_sent}.", width, glyphs, QUIET)]
    if plan.state_note is not None:
        lines += [[], *_wrapped(f"The note restates {RESTATED}.", width, glyphs, QUIET)]
    if words := definition_words(plan.definitions):
        lines += [[], *_wrapped(f"In each request: {'; '.join(words)}.", width, glyphs, QUIET)]
    changes = runs(plan)
    if changes and not display.brief:
        listed = changes if display.most is None else changes[: display.most]
        lines += [[], *_changes(listed, width, glyphs)]
        if omitted := len(changes) - len(listed):
            lines += _wrapped(f"{glyphs.ellipsis} and {omitted:,} more", width, glyphs, QUIET)
    if plan.over_budget:
        lines += [[], *_culprits(plan, width, glyphs)]
    if display.example:
        example = display.example.split("\n")
        rows = [*example[:EXAMPLE_LINES], *([glyphs.ellipsis] if len(example) > EXAMPLE_LINES else [])]
        lines += [[], [Span("The largest extract, as the model sees it:", STRONG)]]
        lines += [[Span("  " + fit(glyphs.safe(row), max(4, width - 2), glyphs), QUIET)] for row in rows]
    footnotes = [line for footnote in display.footnotes for line in _wrapped(footnote, width, glyphs, QUIET)]
    return [*lines, [], *footnotes] if footnotes else lines


def _headline(plan: Plan, glyphs: Glyphs) -> Iterator[Span]:
    changed, items = len(plan.trims), len(plan) - len(plan.never_sent)
    if not changed:
        yield Span(f"no changes to {items:,} item{'s' * (items != 1)}", STRONG)
        yield Span(f"{plan.after:,} tokens of {plan.budget:,}")
    else:
        yield Span(f"{changed:,} of {items:,} items change", STRONG)
        yield Span(f"{plan.before:,} {glyphs.arrow} {plan.after:,} tokens of {plan.budget:,}")
        yield Span(f"{plan.freed:,} freed")
    if plan.over_budget:
        yield Span(f"over budget by {plan.after - plan.budget:,}", BAD)


def _bars(plan: Plan, width: int, glyphs: Glyphs) -> list[Line]:
    """Return the tokens before and after as lengths, with a mark where the budget ends."""
    amounts = {"before": plan.before, "after": plan.after}
    maximum = max(*amounts.values(), plan.budget)
    digits = max(len(f"{amount:,}") for amount in amounts.values())
    room = width - len("before") - 4 - digits
    if room < 4:
        return []
    lines: list[Line] = []
    for name, amount in amounts.items():
        cells = length_bar(amount, maximum, plan.budget, room, glyphs)
        lines.append([Span(f"{name:<6}  ", QUIET), *cells, Span(f"  {amount:>{digits},}")])
    return lines


def _totals(plan: Plan, width: int, glyphs: Glyphs) -> list[Line]:
    rows = action_totals(plan)
    note = [plan.note_tokens] if plan.note_tokens else []
    before = rows_of([*(row.before for row in rows), *(0 for _ in note)], 0, plan.overhead_before)  # as in the report on usage
    after = rows_of([*(row.after for row in rows), *note], 0, plan.overhead - plan.note_tokens)
    befores, afters = [*before.tokens, before.overhead, plan.before], [*after.tokens, after.overhead, plan.after]
    freed = [one - other for one, other in zip(befores, afters, strict=True)]
    styles = [""] * (len(rows) + len(note) + 1) + [STRONG]

    def numbers(amounts: list[int]) -> list[Span]:
        return [Span(f"{amount:,}", style) for amount, style in zip(amounts, styles, strict=True)]

    categories = [Span(row.category.value, STYLES[row.category.value]) for row in rows]
    columns = [
        Column(
            "",
            [
                *(Span(DONE[row.action], COLOURS[row.action]) for row in rows),
                *(Span("note about the work") for _ in note),
                Span(f"{OVERHEAD}, {UPPER_BOUND}" if plan.calibrated else OVERHEAD),
                Span("total", STRONG),
            ],
            is_left=True,
            is_elastic=True,
            is_last_resort=True,
        ),
        Column("", [*categories, *(Span("") for _ in note), Span(""), Span("")], is_left=True, is_elastic=True, is_last_resort=True),
        Column(
            "items",
            [
                *(Span(f"{row.items:,}") for row in rows),
                *(Span("") for _ in note),
                Span(""),
                Span(f"{len(plan) - len(plan.never_sent):,}", STRONG),
            ],
            priority=3,
        ),
        Column("before", numbers(befores), priority=2),
        Column("after", numbers(afters)),
        Column("freed", numbers(freed), priority=1),
    ]
    return table(columns, width, glyphs)


def _changes(changes: list[Run], width: int, glyphs: Glyphs) -> list[Line]:
    """Return two lines per run: the places, the change and the tokens; then the reason."""
    places_width = max(width_of(run.places) for run in changes) if width >= MINIMAL else 0
    columns = [
        Column("items" if places_width else "", [Span(run.places if places_width else "", QUIET) for run in changes], priority=2),
        Column("change", [Span(glyphs.safe(run.text), COLOURS[run.action]) for run in changes], is_left=True, is_elastic=True),
        Column("before", [Span(f"{run.before:,}") for run in changes], priority=1),
        Column("after", [Span(f"{run.after:,}") for run in changes], priority=3),
    ]
    head, *rows = table(columns, width, glyphs)
    indent = " " * (max(places_width, len("items")) + 2 if places_width else 0)
    lines = [head]
    last_reason = ""
    for run, row in zip(changes, rows, strict=True):
        lines.append(row)
        if run.why != last_reason:  # printed once for runs with the same reason
            lines += [[Span(indent + line, QUIET)] for line in wrapped(glyphs.safe(run.why), max(10, width - len(indent)), glyphs)]
        last_reason = run.why
    return lines


def _culprits(plan: Plan, width: int, glyphs: Glyphs) -> list[Line]:
    rows = [(item.what, item.after, item.reason.value, item.item_id) for item in plan.culprits[:CULPRITS]]
    is_overhead_large = overhead_stands_out(plan)
    if is_overhead_large:
        rows.insert(0, (OVERHEAD, plan.overhead, OUTSIDE_ITEMS, ""))
    columns = [
        Column("Cannot be removed", [Span(glyphs.safe(name)) for name, *_ in rows], is_left=True, is_elastic=True),
        Column("tokens", [Span(f"{tokens:,}") for _, tokens, *_ in rows]),
        Column("kept because", [Span(glyphs.safe(reason), QUIET) for _, _, reason, _ in rows], is_left=True, is_elastic=True, priority=2),
        Column("id", [Span(fit(id, 24, glyphs), QUIET) for *_, id in rows], is_left=True, is_elastic=True, priority=1),
    ]
    summary = f"Over budget by {plan.after - plan.budget:,} tokens, and nothing more can be removed."
    lines = [*_wrapped(summary, width, glyphs, BAD), *(table(columns, width, glyphs) if rows else [])]
    return [*lines, *_wrapped(f"{FEWER_TOOLS}, or allow more tokens.", width, glyphs, "")] if is_overhead_large else lines


def _wrapped(text: str, width: int, glyphs: Glyphs, style: str) -> list[Line]:
    return [[Span(line, style)] for line in wrapped(text, width, glyphs)]


def plan_text(plan: Plan | PlanDisplay, width: int | None = None) -> str:
    """Return the plan as plain text. `width` is that of `usage_text`."""
    return text_of(plan_draw(plan), width)


def plan_renderable(plan: Plan | PlanDisplay) -> Drawing:
    """Return the plan as a rich renderable, for a console of any width."""
    return Drawing(plan_draw(plan))


def plan_draw(plan: Plan | PlanDisplay) -> Draw:
    """Return a function that draws the plan."""
    display = plan if isinstance(plan, PlanDisplay) else PlanDisplay(plan)
    return lambda width, glyphs: plan_lines(display, width, glyphs)
