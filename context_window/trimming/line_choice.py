"""Which lines of some units stay in a view that has room for only a part of them. Decides; changes nothing.

1. Every line has a price, its tokens with a gap, and a gain: the sum of the values of its terms (`terms.py`) which the view does not show
   yet. So of two lines that say the same, the second is worth nothing.
2. A unit that is still closed must be opened for its first line. The price of that is the part of it that is then shown in any case: its
   reasoning, the markers of its extracts, and items that are not cut: calls of up to 200 tokens, and items without lines. The terms of
   these are part of the gain. A unit may also be opened without a line, for the sake of its calls.
3. Greedy: the line with the highest gain per token is taken, again and again, until the one whose turn it is does not fit any more, or
   gains nothing. Of equal ones, the newest item's first line goes first.
4. Units that were not opened are left out. In the others, an output or call without a chosen line is cleared.

Gains only fall while lines are taken, except for those of a unit that has just been opened. So a heap whose entries are computed again when
they come to the top gives the same choice as computing all of them at each step.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

from session.units import KIND_CALL, KIND_OUTPUT

from .extracts import uncut_lines
from .terms import Term, TermIndex
from .view_state import ViewState

SHORT_CALL = 200
"""Tokens of a call that is shown whole or not at all. A model might imitate a call with half of its arguments."""
OPENING = -1
"""Stands for a line: the unit is opened without one."""


@dataclass(slots=True)
class Candidate:
    """A unit to choose from.

    Attributes:
        price: Tokens that it costs to open it.
        terms: The terms that are then shown.
        lines: The lines to choose from: by position of an item, the numbers of its lines.
        is_open: True if it stays in the view.
        chosen: By position, the numbers of the chosen lines.
    """

    price: int = 0
    terms: dict[Term, None] = field(default_factory=dict)
    lines: dict[int, Sequence[int]] = field(default_factory=dict)
    is_open: bool = False
    chosen: dict[int, list[int]] = field(default_factory=dict)


def choose_lines(view: ViewState, heads: Sequence[int], room: int) -> dict[int, Mapping[int, Sequence[int]]]:
    """Return the units that stay, by head, and the numbers of the lines that stay of their items, by position, in rising order.

    An item that is missing has no lines to choose from: it stays as it is. An item with none chosen is cleared.

    Args:
        view: The view.
        heads: The units to choose from. They are in the view.
        room: Tokens that they may have together.
    """
    view.refresh_visible()
    index = view.terms
    index.read(view.measures, len(view), view.visible)
    candidates = {head: _candidate(view, head) for head in heads}
    choice = _LineChoice(view, index, candidates)
    choice.take(room)
    return {
        head: {place: sorted(candidate.chosen.get(place, ())) for place in candidate.lines}
        for head, candidate in candidates.items()
        if candidate.is_open
    }


def _candidate(view: ViewState, head: int) -> Candidate:
    """Return a unit with the price of opening it, and its lines that the view shows."""
    candidate = Candidate()
    for place in view.groups.members(head):
        if view.hidden_reason(place) is not None:
            continue
        item_terms, numbers = view.terms[place], shown_lines(view, place)
        is_short = view.groups.kind[place] == KIND_CALL and (view.tokens(place) <= SHORT_CALL or not view.limits.clear_call_inputs)
        opening = view.measures.extracted(place, ()) if numbers else 0
        if not numbers or is_short or opening >= view.tokens(place):
            candidate.price += view.tokens(place)
            candidate.terms.update(dict.fromkeys(shown_terms(view, place)))
        else:
            candidate.price += opening
            candidate.terms.update(dict.fromkeys(item_terms.rest))
            candidate.lines[place] = numbers
    return candidate


def shown_lines(view: ViewState, place: int) -> Sequence[int]:
    """Return the numbers of the lines that the view shows of an item."""
    if view.hidden_reason(place) is not None or view.is_cleared(place):
        return ()
    if (extract := view.extract_lines(place)) is not None:
        return extract
    lines, cut = view.terms[place].lines, view.cut(place)
    return range(len(lines)) if cut is None else uncut_lines(view.measures[place], lines, cut)


def shown_terms(view: ViewState, place: int) -> Iterable[Term]:
    """Return the terms that the view shows of an item."""
    terms = view.terms[place]
    rest = () if view.is_cleared(place) and view.groups.kind[place] == KIND_OUTPUT else terms.rest
    return [*rest, *(term for number in shown_lines(view, place) for term in terms.of_lines[number])]


class _LineChoice:
    """A choice that is being made."""

    def __init__(self, view: ViewState, index: TermIndex, candidates: Mapping[int, Candidate]) -> None:
        self._index = index
        self._measures = view.measures
        self._window = max(1, view.limits.trigger)
        self._candidates = candidates
        head = view.groups.head
        unchosen = (place for place in view.visible if head[place] not in candidates)
        self._shown = {term for place in unchosen for term in shown_terms(view, place)}
        self._values: dict[Term, float] = {}

    def take(self, room: int) -> None:
        """Take lines until the next one does not fit."""
        heap: list[tuple[float, int, int, int]] = []
        for head, candidate in self._candidates.items():
            heap += self._entries(head, candidate)
        heapify(heap)
        while heap:
            _, newness, number, head = heappop(heap)
            candidate = self._candidates[head]
            place = -newness
            if (number == OPENING and candidate.is_open) or number in candidate.chosen.get(place, ()):
                continue
            gain, price = self._gain(candidate, place, number)
            if not gain:
                continue
            entry = (-gain / price, newness, number, head)
            if heap and heap[0] < entry:
                heappush(heap, entry)
                continue
            if price > room:
                return
            room -= price
            self._shown.update(self._terms(candidate, place, number))
            if number != OPENING:
                candidate.chosen.setdefault(place, []).append(number)
            if not candidate.is_open:
                candidate.is_open = True
                for opened in self._entries(head, candidate):
                    heappush(heap, opened)

    def _entries(self, head: int, candidate: Candidate) -> list[tuple[float, int, int, int]]:
        """Return the entries of a unit for the heap: minus the gain per token, minus the position, the line's number, the unit."""
        places = [(place, number) for place, numbers in candidate.lines.items() for number in numbers]
        entries = []
        for place, number in places if candidate.is_open else [(head, OPENING), *places]:
            gain, price = self._gain(candidate, place, number)
            if gain:
                entries.append((-gain / price, -place, number, head))
        return entries

    def _gain(self, candidate: Candidate, place: int, number: int) -> tuple[float, int]:
        """Return the gain and the price of a line, or of opening the unit without one."""
        gain = 0.0
        for term in self._terms(candidate, place, number):
            if term not in self._shown:
                value = self._values.get(term)
                if value is None:
                    value = self._values[term] = self._index.value(term, self._window)
                gain += value
        price = 0 if candidate.is_open else candidate.price
        return gain, max(1, price + (0 if number == OPENING else self._measures.line_tokens(place)[number]))

    def _terms(self, candidate: Candidate, place: int, number: int) -> Iterable[Term]:
        """Return the terms that a line adds to the view: its own, and those of its unit if that is still closed."""
        line_terms = () if number == OPENING else self._index[place].of_lines[number]
        return line_terms if candidate.is_open else dict.fromkeys([*candidate.terms, *line_terms])
