"""A plan told: sums by action and category, runs of like decisions, one line, one text, JSON values. Pure.

The numbers are made here, once; displays only lay them out.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from session.items import MessageCategory

from ..errors import BESIDE, overhead_leads
from ..printable import printable
from .plan import Action, Decision, Plan, Reason

DONE = {
    Action.KEEP: "kept",
    Action.REPLACE_IMAGES: "images replaced",
    Action.REPLACE_REFUSED: "refused parts replaced",
    Action.TRUNCATE: "truncated",
    Action.CLEAR: "cleared",
    Action.SUMMARISE: "summarised",
    Action.DROP: "dropped",
}
"""Each action as what has happened."""

KINDS_NAMED = 3
"""Kinds of items that a run's text names."""


@dataclass(frozen=True, slots=True)
class Tally:
    """What was done in one category in one way. Amounts are tokens.

    Attributes:
        action: What was done.
        category: To what.
        items: To how many.
        before: What they cost in the log.
        after: What they cost in the view.
    """

    action: Action
    category: MessageCategory
    items: int
    before: int
    after: int

    @property
    def freed(self) -> int:
        """What the view costs less for it."""
        return self.before - self.after


@dataclass(frozen=True, slots=True)
class Run:
    """Changes that follow each other in the log and are of one kind; kept items may stand between them. Amounts are tokens.

    Attributes:
        action: What was done.
        category: To what.
        reason: Why.
        first: Where it begins in the log, counted from 1.
        last: Where it ends.
        kinds: What the items are, and how many of each; the most frequent first.
        before: What they cost in the log.
        after: What they cost in the view.
    """

    action: Action
    category: MessageCategory
    reason: Reason
    first: int
    last: int
    kinds: tuple[tuple[str, int], ...]
    before: int
    after: int

    @property
    def items(self) -> int:
        """How many items it holds."""
        return sum(count for _, count in self.kinds)

    @property
    def places(self) -> str:
        """Where it is in the log: `7` or `7-31`."""
        return f"{self.first:,}" if self.first == self.last else f"{self.first:,}-{self.last:,}"

    @property
    def what(self) -> str:
        """What the items are: `30 Read outputs, 2 Bash outputs`; a single item without its number."""
        if self.items == 1:
            return printable(self.kinds[0][0])
        named = [f"{count:,} {_plural(printable(kind)) if count > 1 else printable(kind)}" for kind, count in self.kinds[:KINDS_NAMED]]
        others = sum(count for _, count in self.kinds[KINDS_NAMED:])
        return ", ".join([*named, f"{others:,} more"] if others else named)

    @property
    def told(self) -> str:
        """What was done to what: `cleared 30 Read outputs`."""
        return f"{DONE[self.action]}{' in' if self.action in (Action.REPLACE_IMAGES, Action.REPLACE_REFUSED) else ''} {self.what}"


def _plural(kind: str) -> str:
    if kind.endswith("summary"):
        return f"{kind[:-1]}ies"
    return kind if kind == "reasoning" else f"{kind}s"


def tallies(plan: Plan) -> list[Tally]:
    """Sums by action, the gravest first, and category, the lowest first. With the overhead they make up the plan's totals."""
    sums: dict[tuple[Action, MessageCategory], list[int]] = defaultdict(lambda: [0, 0, 0])
    for decision in plan:
        row = sums[decision.action, decision.category]
        row[0] += 1
        row[1] += decision.before
        row[2] += decision.after
    order = [(action, category) for action in reversed(Action) for category in reversed(MessageCategory)]
    return [Tally(*key, *sums[key]) for key in order if key in sums]


def runs(plan: Plan) -> list[Run]:
    """The changes in the log's order, like ones that follow each other put together."""
    found: list[Run] = []
    run: list[tuple[int, Decision]] = []
    for place, decision in enumerate(plan, 1):
        if decision.action is Action.KEEP:
            continue
        if run and _likeness(run[0][1]) != _likeness(decision):
            found.append(_run(run))
            run = []
        run.append((place, decision))
    return [*found, _run(run)] if run else found


def _likeness(decision: Decision) -> tuple[Action, MessageCategory, Reason]:
    return decision.action, decision.category, decision.reason


def _run(members: list[tuple[int, Decision]]) -> Run:
    kinds = Counter(decision.what for _, decision in members)
    return Run(
        *_likeness(members[0][1]),
        first=members[0][0],
        last=members[-1][0],
        kinds=tuple(kinds.most_common()),
        before=sum(decision.before for _, decision in members),
        after=sum(decision.after for _, decision in members),
    )


def headline(plan: Plan) -> str:
    """The plan in one line: `14 of 212 items changed (9 cleared, 5 dropped): 48,120 -> 15,904 tokens of 16,000`."""
    counts = Counter(decision.action for decision in plan.changes)
    if not counts:
        return f"none of {len(plan):,} items changed: {plan.after:,} tokens of {plan.budget:,}"
    names = DONE | {action: f"with {DONE[action]}" for action in (Action.REPLACE_IMAGES, Action.REPLACE_REFUSED)}
    done = ", ".join(f"{counts[action]:,} {names[action]}" for action in reversed(Action) if counts[action])
    return f"{counts.total():,} of {len(plan):,} items changed ({done}): {plan.before:,} -> {plan.after:,} tokens of {plan.budget:,}"


def text(plan: Plan) -> str:
    """The plan as plain text: one line in all, and one for each run of changes."""
    return "\n".join([headline(plan), *_told(plan)])


def _told(plan: Plan) -> Iterator[str]:
    for run in runs(plan):
        where = f"item {run.places}" if run.first == run.last else f"items {run.places}"
        yield f"  {where}: {run.told} ({run.reason.value}): {run.before:,} -> {run.after:,} tokens"
    if plan.over_budget:
        yield f"  over budget by {plan.after - plan.budget:,} tokens; the largest of what is kept:"
        if overhead_stands_out(plan):
            yield f"    overhead: {plan.overhead:,} tokens ({BESIDE})"
        for one in plan.culprits[:KINDS_NAMED]:
            yield f"    {printable(one.what)} {printable(one.item_id)}: {one.after:,} tokens ({one.reason.value})"


def overhead_stands_out(plan: Plan) -> bool:
    """Whether the request beside its items costs more than any item that is kept."""
    culprits = plan.culprits
    return overhead_leads(plan.overhead, culprits[0].after if culprits else 0)


def values(plan: Plan) -> dict[str, Any]:
    """The plan as JSON values, with every decision."""
    return {
        "budget": plan.budget,
        "before": plan.before,
        "after": plan.after,
        "freed": plan.freed,
        "over_budget": plan.over_budget,
        "overhead_before": plan.overhead_before,
        "overhead": plan.overhead,
        "items": len(plan),
        "changed": len(plan.changes),
        "decisions": [
            {
                "id": one.item_id,
                "what": one.what,
                "category": one.category.value,
                "action": one.action.value,
                "reason": one.reason.value,
                "before": one.before,
                "after": one.after,
                "images": list(one.images),
                "refused": list(one.refused),
                "cut": None if one.cut is None else {"head": one.cut.head, "tail": one.cut.tail},
            }
            for one in plan
        ],
    }
