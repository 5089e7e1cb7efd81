"""A plan as text and as figures: totals by action and category, runs of similar decisions, one line, JSON values. Pure.

All figures are computed here; displays only lay them out.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from session.items import MessageCategory

from ..errors import OUTSIDE_ITEMS, is_overhead_largest
from ..printable import printable
from .plan import NEVER_SENT, Action, Cut, Decision, Plan, Reason, ToolDefinition

DONE = {
    Action.KEEP: "kept",
    Action.RESTORE: "restored",
    Action.REPLACE_IMAGES: "images replaced",
    Action.REPLACE_REFUSED: "refused parts replaced",
    Action.TRUNCATE: "truncated",
    Action.EXTRACT: "extracted",
    Action.CLEAR: "cleared",
    Action.SUMMARISE: "summarised",
    Action.DROP: "dropped",
}
"""Each action as a past participle."""

NEVER_SENT_WORDS = {
    Reason.COMPACTED: (
        "item ({tokens:,} tokens) replaced by a summary in the log",
        "items ({tokens:,} tokens) replaced by summaries in the log",
    ),
    Reason.REPLACED_PROMPT: (
        "system message ({tokens:,} tokens) replaced by a config update",
        "system messages ({tokens:,} tokens) replaced by config updates",
    ),
    Reason.ORPHAN: ("tool output ({tokens:,} tokens) has no call in the log", "tool outputs ({tokens:,} tokens) have no call in the log"),
}
"""By reason, in words for one item and for several: why they are in no request."""

RESTATED = "the plan, the last failure and the files under edit, as far as the view lacks them"
"""What the note about the work has."""
KINDS_NAMED = 3
"""Number of kinds of items that the text of a run names."""


@dataclass(frozen=True, slots=True)
class ActionTotals:
    """The items of one category with one action: their number, and their tokens without a trim and in the view."""

    action: Action
    category: MessageCategory
    items: int
    before: int
    after: int

    @property
    def freed(self) -> int:
        """Tokens that the view costs less."""
        return self.before - self.after


@dataclass(frozen=True, slots=True)
class Run:
    """Successive changes with the same action, category and reason. Kept items may stand between them. Amounts are tokens.

    `first` and `last` are numbers of items in the log, counted from 1; `kinds` are those of the items, the most frequent first; `before`
    and `after` what they cost in the log and in the view; `superseded_by` the ids of the outputs that supersede them, each once.
    """

    action: Action
    category: MessageCategory
    reason: Reason
    first: int
    last: int
    kinds: tuple[tuple[str, int], ...]
    before: int
    after: int
    superseded_by: tuple[str, ...] = ()

    @property
    def items(self) -> int:
        """Number of changed items."""
        return sum(count for _, count in self.kinds)

    @property
    def places(self) -> str:
        """The numbers of its items in the log: `7` or `7-31`."""
        return f"{self.first:,}" if self.first == self.last else f"{self.first:,}-{self.last:,}"

    @property
    def what(self) -> str:
        """The kinds of the items: `30 Read outputs, 2 Bash outputs`; a single item without a number."""
        if self.items == 1:
            return printable(self.kinds[0][0])
        names = [f"{count:,} {_plural(printable(kind)) if count > 1 else printable(kind)}" for kind, count in self.kinds[:KINDS_NAMED]]
        rest = sum(count for _, count in self.kinds[KINDS_NAMED:])
        return ", ".join([*names, f"{rest:,} more"] if rest else names)

    @property
    def why(self) -> str:
        """The reason, with the items that supersede these: `its file was read again or written later: o7, o9`."""
        names = [printable(id) for id in self.superseded_by[:KINDS_NAMED]]
        rest = len(self.superseded_by) - len(names)
        return f"{self.reason.value}: {', '.join([*names, *([f'{rest:,} more'] if rest else [])])}" if names else self.reason.value

    @property
    def text(self) -> str:
        """The change in words: `cleared 30 Read outputs`."""
        return f"{DONE[self.action]}{' in' if self.action in (Action.REPLACE_IMAGES, Action.REPLACE_REFUSED) else ''} {self.what}"


def _plural(kind: str) -> str:
    if kind.endswith("summary"):
        return f"{kind[:-1]}ies"
    return kind if kind == "reasoning" else f"{kind}s"


def action_totals(plan: Plan) -> list[ActionTotals]:
    """Return totals by action, the gravest first, and category, the lowest first. With the overhead they sum to the plan's totals."""
    sums: dict[tuple[Action, MessageCategory], list[int]] = defaultdict(lambda: [0, 0, 0])
    for decision in plan:
        if decision.reason in NEVER_SENT:
            continue
        row = sums[decision.action, decision.category]
        row[0] += 1
        row[1] += decision.before
        row[2] += decision.after
    order = [(action, category) for action in reversed(Action) for category in reversed(MessageCategory)]
    return [ActionTotals(*key, *sums[key]) for key in order if key in sums]


def runs(plan: Plan) -> list[Run]:
    """Return what the trim changes, in the log's order, successive similar changes together."""
    runs: list[Run] = []
    run: list[tuple[int, Decision]] = []
    for place, decision in enumerate(plan, 1):
        if decision.action is Action.KEEP or decision.reason in NEVER_SENT:
            continue
        if run and _run_key(run[0][1]) != _run_key(decision):
            runs.append(_run(run))
            run = []
        run.append((place, decision))
    return [*runs, _run(run)] if run else runs


def _run_key(decision: Decision) -> tuple[Action, MessageCategory, Reason]:
    return decision.action, decision.category, decision.reason


def _run(members: list[tuple[int, Decision]]) -> Run:
    kinds = Counter(decision.what for _, decision in members)
    return Run(
        *_run_key(members[0][1]),
        first=members[0][0],
        last=members[-1][0],
        kinds=tuple(kinds.most_common()),
        before=sum(decision.before for _, decision in members),
        after=sum(decision.after for _, decision in members),
        superseded_by=tuple(dict.fromkeys(decision.superseded_by for _, decision in members if decision.superseded_by is not None)),
    )


def headline(plan: Plan) -> str:
    """Return the plan in one line: `14 of 212 items changed (9 cleared, 5 dropped): 48,120 -> 15,904 tokens of 16,000`."""
    counts = Counter(decision.action for decision in plan.trims)
    items = len(plan) - len(plan.never_sent)
    if not counts:
        return f"none of {items:,} items changed: {plan.after:,} tokens of {plan.budget:,}"
    names = DONE | {action: f"with {DONE[action]}" for action in (Action.REPLACE_IMAGES, Action.REPLACE_REFUSED)}
    changes = ", ".join(f"{counts[action]:,} {names[action]}" for action in reversed(Action) if counts[action])
    return f"{counts.total():,} of {items:,} items changed ({changes}): {plan.before:,} -> {plan.after:,} tokens of {plan.budget:,}"


def text(plan: Plan) -> str:
    """Return the plan as plain text: a headline, and one line for each run of changes."""
    return "\n".join([headline(plan), *_lines(plan)])


def definition_words(definitions: Sequence[ToolDefinition]) -> list[str]:
    """Return what tool definitions cost, in words: all, those of each MCP server, and those that were never called. Empty without any."""
    if not definitions:
        return []
    count, tokens = len(definitions), sum(tool.tokens for tool in definitions)
    words = [f"{count:,} tool definition{'s' if count > 1 else ''} {tokens:,} tokens"]
    servers: Counter[str] = Counter()
    for tool in definitions:
        if tool.server is not None:
            servers[tool.server] += tool.tokens
    if servers:
        words.append("by server: " + _named([f"{printable(name)} {tokens:,}" for name, tokens in servers.most_common()]))
    if unused := [tool for tool in definitions if not tool.calls]:
        words.append(f"never called {sum(tool.tokens for tool in unused):,} ({_named([printable(tool.name) for tool in unused])})")
    return words


def _named(names: Sequence[str]) -> str:
    rest = len(names) - KINDS_NAMED
    return ", ".join(names[:KINDS_NAMED]) + (f" and {rest:,} more" if rest > 0 else "")


def never_sent_lines(plan: Plan) -> Iterator[str]:
    """Yield in words, for each reason, the items that no request contains."""
    for reason, (singular, plural) in NEVER_SENT_WORDS.items():
        decisions = [decision for decision in plan.never_sent if decision.reason is reason]
        if decisions:
            words = singular if len(decisions) == 1 else plural
            yield f"{len(decisions):,} {words.format(tokens=sum(decision.before for decision in decisions))}"


def _lines(plan: Plan) -> Iterator[str]:
    yield from (f"  {line}" for line in never_sent_lines(plan))
    for run in runs(plan):
        where = f"item {run.places}" if run.first == run.last else f"items {run.places}"
        yield f"  {where}: {run.text} ({run.why}): {run.before:,} -> {run.after:,} tokens"
    if plan.state_note is not None:
        yield f"  a note of {plan.note_tokens:,} tokens restates {RESTATED}"
    if words := definition_words(plan.definitions):
        yield f"  {'; '.join(words)}"
    if plan.over_budget:
        yield f"  over budget by {plan.after - plan.budget:,} tokens; the largest of what is kept:"
        if overhead_stands_out(plan):
            yield f"    overhead: {plan.overhead:,} tokens ({OUTSIDE_ITEMS})"
        for culprit in plan.culprits[:KINDS_NAMED]:
            name = f"{printable(culprit.what)} {printable(culprit.item_id)}"
            yield f"    {name}: {culprit.after:,} tokens ({culprit.reason.value})"


def overhead_stands_out(plan: Plan) -> bool:
    """True if the overhead costs more than any item that is kept."""
    culprits = plan.culprits
    return is_overhead_largest(plan.overhead, culprits[0].after if culprits else 0)


def tight_budget(plan: Plan) -> str:
    """Return in words that the budget is too small for a sensible view, and which one is not; for a plan that `is_tight`."""
    return (
        f"the overhead of {plan.overhead:,} tokens and the items that are always kept ({plan.protected:,}) leave "
        f"{'nothing' if plan.overhead + plan.protected >= plan.budget else 'less than a tenth'} of the budget of {plan.budget:,}; "
        f"the smallest sensible budget is {plan.smallest_budget:,} tokens"
    )


def _cut_values(cut: Cut) -> dict[str, Any]:
    return {"head": cut.head, "tail": cut.tail, "between": [list(passage) for passage in cut.between]}


def values(plan: Plan) -> dict[str, Any]:
    """Return the plan as JSON values, with every decision."""
    return {
        "budget": plan.budget,
        "before": plan.before,
        "after": plan.after,
        "freed": plan.freed,
        "over_budget": plan.over_budget,
        "protected": plan.protected,
        "smallest_budget": plan.smallest_budget,
        "overhead_before": plan.overhead_before,
        "overhead": plan.overhead,
        "items": len(plan),
        "changed": len(plan.trims),
        "state_note": plan.note_tokens,
        "definitions": [tool.to_dict() for tool in plan.definitions],
        "never_sent": len(plan.never_sent),
        "never_sent_tokens": sum(decision.before for decision in plan.never_sent),
        "decisions": [
            {
                "id": decision.item_id,
                "what": decision.what,
                "category": decision.category.value,
                "action": decision.action.value,
                "reason": decision.reason.value,
                "before": decision.before,
                "after": decision.after,
                "images": list(decision.images),
                "refused": list(decision.refused),
                "superseded_by": decision.superseded_by,
                "cut": None if decision.cut is None else _cut_values(decision.cut),
                "restores": decision.restores,
                "lines": None if decision.lines is None else list(decision.lines),
            }
            for decision in plan
        ],
    }
