"""Which lines of some units stay in a view that has room for only a part of them. Decides; changes nothing.

1. Every line has a price, its tokens with a gap, and a gain: the sum of the values of its terms (`terms.py`) which the view does not show
   yet. So of two lines that say the same, the second is worth nothing. The tokens are the line's part of the item's, by its characters.
2. A unit that is still closed must be opened for its first line. The price of that is the part of it that is then shown in any case: its
   reasoning, the markers of its extracts, and items that are not cut: calls of up to 200 tokens, and items without lines. The terms of
   these are part of the gain. A unit may also be opened without a line, for the sake of its calls.
3. Greedy: the line with the highest gain per token is taken, again and again, until the one whose turn it is does not fit any more, or
   gains nothing. Of equal ones, the newest item's first line goes first.
4. Units that were not opened are left out. In the others, an output or call without a chosen line is cleared.

Gains only fall while lines are taken, except for those of a unit that has just been opened. So a heap whose entries are computed again when
they come to the top gives the same choice as computing all of them at each step. A unit that is opened gets new entries, and its old ones
no longer count.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush, heapreplace
from typing import TypeAlias

from session.units import KIND_CALL, KIND_OUTPUT

from .extracts import uncut_lines
from .terms import Term, TermIndex
from .view_state import ViewState

SHORT_CALL = 200
"""Tokens of a call that is shown whole or not at all. A model might imitate a call with half of its arguments."""
OPENING = -1
"""Stands for a line: the unit is opened without one."""
Entry: TypeAlias = tuple[float, int, int, int, bool]
"""A line in the heap: minus its gain per token, minus the position of the item, the line's number, the unit, and if the unit was open."""


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
        self._values = dict.fromkeys((term for place in unchosen for term in shown_terms(view, place)), 0.0)  # of terms in view: 0

    def take(self, room: int) -> None:
        """Take lines until the next one does not fit."""
        heap: list[Entry] = []
        for head, candidate in self._candidates.items():
            heap += self._entries(head, candidate)
        heapify(heap)
        while heap:
            _, newness, number, head, was_open = heap[0]
            candidate = self._candidates[head]
            if was_open != candidate.is_open or not (entry := self._entry(head, candidate, -newness, number)):
                heappop(heap)  # its line has another entry since the unit was opened, or gains nothing any more
                continue
            heapreplace(heap, entry)
            if heap[0] < entry:
                continue
            heappop(heap)
            price = self._price(candidate, -newness, number)
            if price > room:
                return
            room -= price
            self._open_with(heap, head, -newness, number)

    def _open_with(self, heap: list[Entry], head: int, place: int, number: int) -> None:
        """Take a line, and open its unit if it is closed."""
        candidate = self._candidates[head]
        if number != OPENING:
            candidate.chosen.setdefault(place, []).append(number)
            self._values.update(dict.fromkeys(self._index[place].of_lines[number], 0.0))
        if not candidate.is_open:
            candidate.is_open = True
            self._values.update(dict.fromkeys(candidate.terms, 0.0))
            for entry in self._entries(head, candidate):
                heappush(heap, entry)

    def _entries(self, head: int, candidate: Candidate) -> list[Entry]:
        """Return the entries of a unit. A line that adds nothing to its unit has none: opening the unit alone gains as much for less."""
        opening, closed_terms = self._opening(candidate)
        unit_price = self._unit_price(candidate)
        entries: list[Entry] = []
        if opening:
            entries.append((-opening / max(1, unit_price), -head, OPENING, head, False))
        for place, numbers in candidate.lines.items():
            lines, of_lines, _ = self._index[place]
            price, chosen = self._measures.line_price(place), candidate.chosen.get(place, ())
            for number in numbers:
                terms = of_lines[number]
                if terms and number not in chosen and (gain := self._gain(terms, opening, closed_terms)) > opening:
                    _, start, end = lines[number]
                    tokens = max(1, unit_price + price.of(end - start))
                    entries.append((-gain / tokens, -place, number, head, candidate.is_open))
        return entries

    def _entry(self, head: int, candidate: Candidate, place: int, number: int) -> Entry | None:
        """Return the entry that a line of a unit has now, or opening the unit without one; None if it gains nothing."""
        gain, closed_terms = self._opening(candidate)
        if number != OPENING:
            gain = self._gain(self._index[place].of_lines[number], gain, closed_terms)
        return (-gain / self._price(candidate, place, number), -place, number, head, candidate.is_open) if gain else None

    def _opening(self, candidate: Candidate) -> tuple[float, Mapping[Term, None]]:
        """Return the gain of opening a unit, and the terms that it then shows; nothing if the unit is open."""
        return (0.0, {}) if candidate.is_open else (self._gain(candidate.terms, 0.0, {}), candidate.terms)

    def _gain(self, terms: Iterable[Term], gain: float, without: Mapping[Term, None]) -> float:
        """Add the values of these terms to a gain."""
        values = self._values
        for term in terms:
            if without and term in without:
                continue
            value = values.get(term)
            if value is None:
                value = values[term] = self._index.value(term, self._window)
            gain += value
        return gain

    def _price(self, candidate: Candidate, place: int, number: int) -> int:
        """Return the price of a line, or of opening the unit without one."""
        price = self._unit_price(candidate)
        if number != OPENING:
            _, start, end = self._index[place].lines[number]
            price += self._measures.line_price(place).of(end - start)
        return max(1, price)

    @staticmethod
    def _unit_price(candidate: Candidate) -> int:
        return 0 if candidate.is_open else candidate.price
