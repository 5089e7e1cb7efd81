"""Records every step of every token trim."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from context_window.trimming import trim as steps
from context_window.decision.limits import portion
from context_window.decision.plan import Reason
from context_window.trimming.view_state import ViewState


@dataclass(frozen=True)
class Step:
    """One step of a token trim: the tokens before it, and where it takes from.

    Attributes:
        total: Tokens of the request.
        goal: Tokens that the trim aims at.
        category: The rank of the category from which items are taken.
        share: That category's share of the goal.
        reason: The reason in the plan.
    """

    total: int
    goal: int
    category: int
    share: int
    reason: Reason


@contextmanager
def watched_steps() -> Iterator[list[Step]]:
    """Record the steps inside the block, in order."""
    recorded: list[Step] = []
    take_tokens = steps.take_tokens

    def watched(view: ViewState, goal: int) -> None:
        clear, drop = view.clear, view.drop

        def note(rank: int, reason: Reason) -> None:
            recorded.append(Step(view.total, goal, view.tally.tokens[rank], portion(view.limits.shares[rank], goal), reason))

        def clear_noted(place: int, reason: Reason) -> None:
            note(view.groups.rank[place], reason)
            clear(place, reason)

        def drop_noted(head: int, reason: Reason) -> None:
            note(view.groups.rank[head], reason)
            drop(head, reason)

        view.clear, view.drop = clear_noted, drop_noted  # type: ignore[method-assign]
        try:
            take_tokens(view, goal)
        finally:
            del view.clear, view.drop

    steps.take_tokens = watched
    try:
        yield recorded
    finally:
        steps.take_tokens = take_tokens
