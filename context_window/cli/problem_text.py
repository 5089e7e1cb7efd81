"""Sentences about problems that several commands report: a view over budget, a request that the provider would refuse."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from session.providers import Violation

    from ..decision.plan import Plan

LISTED = 3
"""Items and broken rules that a sentence names."""


def over_budget(plan: Plan) -> str:
    """Return by how much a plan's view exceeds the budget, the overhead or the largest items, and what to do."""
    from ..decision.plan_text import overhead_stands_out
    from ..errors import FEWER_TOOLS, OUTSIDE_ITEMS

    if overhead_stands_out(plan):
        cause, advice = f"the overhead is {plan.overhead:,} of {plan.after:,} ({OUTSIDE_ITEMS})", FEWER_TOOLS
    else:
        largest = [f"{item.what} ({item.after:,} tokens: {item.reason.value})" for item in plan.culprits]
        cause, advice = f"the largest items are {'; '.join(largest[:LISTED])}", "Shorten or unpin these items"
    return (
        f"over budget by {plan.after - plan.budget:,} tokens, and nothing more can be removed: {cause}. {advice}, or allow more tokens: "
        f"the smallest sensible budget is {plan.smallest_budget:,} tokens"
    )


def refused(violations: tuple[Violation, ...]) -> str:
    """Return why a provider would refuse the request: the first violation of each rule, and how many more there are."""
    first = {violation.rule: violation for violation in reversed(violations)}
    counts = Counter(violation.rule for violation in violations)
    reasons = [
        f"{violation.where}: {violation.message}{f' (and {counts[rule] - 1} more)' if counts[rule] > 1 else ''}"
        for rule, violation in sorted(first.items())
    ]
    return f"the provider would refuse this as a request: {'; '.join(reasons[:LISTED])}{'; …' if len(reasons) > LISTED else ''}"
