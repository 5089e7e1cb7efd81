"""The most that whole items can show of what will be used, with the future known: a linear programme.

1. The limit of a session is the best possible recall of any view sequence that shows items whole or not at all, never brings an item back,
   always shows what must be shown (SYSTEM, pinned items and the newest), and fits the window at every request. Where what must be shown
   does not fit by itself, the limit is generous: all of the window is left for other items.
2. Variables: `y` for each use, from 0 to 1, and `x` for each item and request. A use is shown as far as the items with its term are:
   y ≤ Σ x. An item is shown no more than before: x never rises. At each request Σ tokens · x ≤ the room.
3. An item is worth room only up to its next use, so one variable stands for all requests since its use before. Uses of one request in the
   same items become one, with the sum of their weights.
4. Fractions of items are allowed, so no choice of whole items is better.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

from session.items import MessageCategory

from .metric import Step, Term, Timeline, is_verbatim_kind


class Use(NamedTuple):
    """Uses of one request in the same items.

    Attributes:
        request: The index of the request.
        places: The positions of the items with its term.
        weight: Its weight.
    """

    request: int
    places: tuple[int, ...]
    weight: float


def limits(timeline: Timeline, window: int) -> tuple[float, float]:
    """Return the limits of recall and of verbatim recall: sums over the steps, as in a tally.

    Raises:
        ImportError: scipy is not installed.
    """
    return limit(timeline, window, lambda _term: True), limit(timeline, window, is_verbatim_kind)


def limit(timeline: Timeline, window: int, counts: Callable[[Term], bool]) -> float:
    """Return the limit of recall for the terms that count."""
    forced = [_forced(timeline, step) for step in timeline.steps]
    free = 0.0
    uses: dict[tuple[int, tuple[int, ...]], float] = defaultdict(float)
    for request, step in enumerate(timeline.steps):
        terms = [term for term in step.uses if counts(term)]
        for term in terms:
            places = timeline.places[term]
            places = places[: bisect_left(places, step.start)]
            if forced[request].isdisjoint(places):
                uses[request, tuple(places)] += 1 / len(terms)
            else:
                free += 1 / len(terms)
    merged = [Use(request, places, weight) for (request, places), weight in uses.items()]
    rooms = [_room(window, sum(timeline.tokens[place] for place in places)) for places in forced]
    return free + _solved(timeline, merged, forced, rooms)


def _room(window: int, forced: int) -> int:
    """Return the tokens left for other items. What must be shown and does not fit is truncated, nobody knows how far: all is left then."""
    return window - forced if forced < window else window


def _forced(timeline: Timeline, step: Step) -> set[int]:
    """Return the positions of what every view must show at this request."""
    items = timeline.recording.items
    always = {place for place in range(step.start) if items[place].pinned or items[place].category is MessageCategory.SYSTEM}
    user = {step.last_user} if step.last_user >= 0 else set()
    return always | user | set(range(step.newest, step.start))


def _solved(timeline: Timeline, uses: Sequence[Use], forced: Sequence[set[int]], rooms: Sequence[int]) -> float:
    """Return the largest weight of uses that can be shown."""
    from scipy.optimize import linprog
    from scipy.sparse import csr_array

    if not uses:
        return 0.0
    needed: dict[int, list[int]] = {}  # by position, the requests that use it, in order
    for use in sorted(uses):
        for place in use.places:
            requests = needed.setdefault(place, [])
            if requests[-1:] != [use.request]:
                requests.append(use.request)
    columns: dict[tuple[int, int], int] = {}
    for place, requests in needed.items():
        for request in requests:
            columns[place, request] = len(columns)
    rows: list[int] = []
    cells: list[int] = []
    values: list[float] = []
    bounds: list[float] = []

    def add_row(entries: Sequence[tuple[int, float]], bound: float) -> None:
        for column, value in entries:
            rows.append(len(bounds))
            cells.append(column)
            values.append(value)
        bounds.append(bound)

    for place, requests in needed.items():
        for earlier, later in pairwise(requests):
            add_row([(columns[place, later], 1.0), (columns[place, earlier], -1.0)], 0.0)
    for number, use in enumerate(uses):
        add_row([(len(columns) + number, 1.0), *((columns[place, use.request], -1.0) for place in use.places)], 0.0)
    for request, step in enumerate(timeline.steps):
        held = []
        for place, requests in needed.items():
            if place < step.start and place not in forced[request] and (index := bisect_left(requests, request)) < len(requests):
                held.append((columns[place, requests[index]], timeline.tokens[place] / rooms[request]))
        if sum(size for _, size in held) > 1:
            add_row(held, 1.0)
    matrix = csr_array((values, (rows, cells)), shape=(len(bounds), len(columns) + len(uses)))
    goal = [0.0] * len(columns) + [-use.weight for use in uses]
    result = linprog(goal, A_ub=matrix, b_ub=bounds, bounds=(0, 1), method="highs")
    if result.status != 0:
        raise ArithmeticError(f"HiGHS found no limit for {timeline.recording.name}: {result.message}")
    return float(-result.fun)
