"""Every step of every token trim, seen as it is taken."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from context_window.trimming import steps
from context_window.trimming.limits import portion
from context_window.trimming.plan import Reason
from context_window.trimming.state import ViewState


@dataclass(frozen=True)
class Step:
    """What stood before the step, in tokens.

    Attributes:
        total: The request.
        goal: What the trim aimed at.
        category: The category that was taken from.
        share: That category's share of the goal.
        reason: Why it was taken from.
    """

    total: int
    goal: int
    category: int
    share: int
    reason: Reason


@contextmanager
def watched_steps() -> Iterator[list[Step]]:
    """The steps that are taken inside, in order."""
    seen: list[Step] = []
    take_tokens = steps.take_tokens

    def watched(view: ViewState, goal: int) -> None:
        clear, drop = view.clear, view.drop

        def note(rank: int, reason: Reason) -> None:
            seen.append(Step(view.total, goal, view.tally.tokens[rank], portion(view.limits.shares[rank], goal), reason))

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
        yield seen
    finally:
        steps.take_tokens = take_tokens
