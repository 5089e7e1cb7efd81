"""The items in a session's window at each of its requests, with the files and commands that they are about and what each costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from session.session import Session
from session.units import PRIORITY

from .build import RequestEvent
from .points import Timeline
from .reasons import subjects_of
from .walk import WindowWalk
from .why import ItemCost, lifetimes_of, money_of


@dataclass(frozen=True, slots=True)
class WindowContents:
    """A session's timeline, and the items behind each of its points.

    Attributes:
        timeline: The session's requests.
        items: The log's items, each with its tokens when it came and its lifetime cost so far.
        changes: For each state of the window the items that have other tokens since the state before, by position; -1 if it left.
        states: For each point of the timeline the number of its state.
    """

    timeline: Timeline
    items: tuple[ItemCost, ...]
    changes: tuple[tuple[tuple[int, int], ...], ...]
    states: tuple[int, ...]

    def at(self, number: int) -> list[tuple[int, ItemCost]]:
        """Return the items in the window at a request that cost tokens, each with these, in the order of the log.

        They sum to the point's tokens: where the provider reported a smaller prompt than was counted, items are smaller in proportion.

        Args:
            number: Number of the point, from 1.
        """
        window: dict[int, int] = {}
        for changes in self.changes[: self.states[number - 1] + 1]:
            window.update(changes)
        found = [(position, tokens) for position, tokens in sorted(window.items()) if tokens > 0]
        counted, total = sum(tokens for _, tokens in found), sum(self.timeline.points[number - 1].tokens)
        ends = [end * total // counted for end in accumulate((tokens for _, tokens in found), initial=0)] if found else []
        return [(end - start, self.items[position]) for (position, _), (start, end) in zip(found, pairwise(ends), strict=True)]


def contents_of(session: Session, walk: WindowWalk, events: Sequence[RequestEvent], timeline: Timeline) -> WindowContents:
    """Return the items in the window at each request.

    Args:
        session: The session.
        walk: The walk over it, at its end.
        events: Its requests.
        timeline: Its timeline.
    """
    assert walk.final is not None
    lifetimes, _ = lifetimes_of(walk, events)
    items, states = session.items, [*walk.states, walk.final]
    starts = [0, *(state.length for state in states)]
    changes = tuple(
        (*((position, walk.tokens[position]) for position in range(start, state.length)), *state.changes)
        for start, state in zip(starts, states, strict=False)
    )
    costs = tuple(
        ItemCost(
            item.id,
            what,
            PRIORITY[walk.ranks[position]].value,
            walk.tokens[position],
            lifetimes.requests[position],
            money_of(lifetimes.costs[position]),
        )
        for position, (item, what) in enumerate(zip(items, subjects_of(items, with_words=True), strict=True))
    )
    return WindowContents(timeline, costs, changes, (*(event.state for event in events), len(states) - 1))
