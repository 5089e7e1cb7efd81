"""Which lines of some units stay in a view that has room for only a part of them. Decides; changes nothing.

1. Every line has a price, its tokens with a gap, and a gain: the sum of the values of its terms (`terms.py`) which the view does
   not show yet. So of two lines that say the same, the second is worth nothing. The tokens are the line's part of the item's, by its
   characters. Terms of the state of the work (`working_state.py`) count three times. Lines that repeat others gain nothing
   (`TermIndex.is_repeated`), nor does a unit that has no other lines.
2. The first line of an item costs its heading in the digest besides, and a gap after the last line.
3. A unit is shown whole or not at all if it has no lines, or if the headings of its items would cost as much as the unit. Its price is
   its tokens, and its gain is that of all its terms. If so many lines of another unit were taken that these cost as much as the unit, it
   stays whole, too.
4. Greedy: the line or unit with the highest gain per token is taken, again and again, until the one whose turn it is does not fit any
   more, or gains nothing. Of equal ones, the newest item's first line goes first.
5. What was not taken leaves: items without a line, and reasoning, which is never parted from what it led to.

Gains only fall while lines are taken, and prices do when the first line of an item is. So a heap whose entries are computed again when
they come to the top gives the same choice as computing all of them at each step. An item that is opened gets new entries, and its old
ones no longer count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush, heapreplace
from typing import TypeAlias

from session.units import KIND_OUTPUT

from .edits import LinePrice
from .extracts import texts_of, uncut_lines
from .terms import Term, TermIndex
from .view import View
from .working_state import state_lines

Excerpts: TypeAlias = Mapping[int, tuple[tuple[int, ...], int]]
"""What a digest shows of items: by position the numbers of its lines, in rising order, and the tokens of these with their heading."""
STATE = 3
"""Factor of the value of terms that belong to the state of the work (`working_state.py`)."""
WHOLE = -1
"""Stands for a line: all of a unit."""
Entry: TypeAlias = tuple[float, int, int, bool]
"""A line in the heap: minus its gain per token, minus the position of its item, its number, and if its item was open."""


@dataclass(slots=True)
class Candidate:
    """A unit to choose from.

    Attributes:
        tokens: Its tokens in the view.
        terms: The terms that it shows, if it is shown whole or not at all.
        lines: By position of an item, the numbers of the lines to choose from; empty if it is shown whole or not at all.
        is_whole: True if it stays whole.
    """

    tokens: int = 0
    terms: dict[Term, None] = field(default_factory=dict)
    lines: dict[int, Sequence[int]] = field(default_factory=dict)
    is_whole: bool = False


def choose_lines(view: View, heads: Sequence[int], room: int) -> dict[int, Excerpts]:
    """Return the units of which something stays, by head, and what stays of their items, by position.

    A unit that stays whole has no positions. Of other units, items that are missing leave.
    """
    log, visible = view.log, view.visible()
    read_terms(view, visible)
    candidates = {head: _candidate(view, head) for head in heads}
    choice = _LineChoice(view, visible, candidates)
    choice.take(room)
    remaining: dict[int, Excerpts] = {}
    for head, candidate in candidates.items():
        lines = {at: tuple(sorted(choice.chosen[at])) for at in candidate.lines if at in choice.chosen}
        excerpts = {at: (numbers, log.section_tokens(at, numbers)) for at, numbers in lines.items()}
        is_in_digest = any(view.edit(at).lines is not None for at in lines)
        is_worthwhile = is_in_digest or sum(tokens for _, tokens in excerpts.values()) < candidate.tokens
        if lines or candidate.is_whole:
            remaining[head] = excerpts if is_worthwhile else {}
    return remaining


def choose_within(view: View, index: int, kept: Sequence[int], room: int) -> list[int]:
    """Return the numbers of the lines of one item that stay, in rising order: those that are kept in any case, and the most valuable ones.

    What the rest of the view shows does not make a line worth less: these lines stand alone.
    """
    head = view.log.groups.head[index]
    numbers = _unrepeated(view, index, range(len(view.log.terms[index].lines)))
    choice = _LineChoice(view, (), {head: Candidate(lines={index: numbers})})
    choice.keep(index, kept)
    choice.take(room)
    return sorted(choice.chosen[index])


def read_terms(view: View, visible: Iterable[int]) -> None:
    """Read the terms of the log that are new, and keep those of the items at these positions."""
    log = view.log
    log.terms.read(log.items, [tokens + log.free.get(at, 0) for at, tokens in enumerate(log.tokens)], log.calls, visible)


def _candidate(view: View, head: int) -> Candidate:
    """Return a unit with its lines that the view shows."""
    candidate, log, indices = Candidate(), view.log, view.members(head)
    shown = {at: numbers for at in indices if not log.summarised[at] and (numbers := shown_lines(view, at))}
    lines = {at: unrepeated for at, numbers in shown.items() if (unrepeated := _unrepeated(view, at, numbers))}
    candidate.tokens = sum(map(view.costs.__getitem__, indices))
    if shown and not lines:
        return candidate  # worth nothing
    if lines and sum(log.section_tokens(at, ()) for at in lines) < candidate.tokens:
        candidate.lines = lines
    else:
        candidate.terms = dict.fromkeys(term for at in indices for term in shown_terms(view, at))
    return candidate


def shown_lines(view: View, index: int) -> Sequence[int]:
    """Return the numbers of the lines that the view shows of an item."""
    edit = view.edit(index)
    if edit.gone is not None or edit.is_cleared:
        return ()
    if edit.lines is not None:
        return edit.lines
    lines = view.log.terms[index].lines
    return range(len(lines)) if edit.cut is None else uncut_lines(view.log.items[index], lines, edit.cut)


def _unrepeated(view: View, index: int, numbers: Sequence[int]) -> Sequence[int]:
    """Return those of an item's lines that are worth something (`TermIndex.is_repeated`)."""
    texts, (lines, _, _), terms = texts_of(view.log.items[index]), view.log.terms[index], view.log.terms
    return [number for number in numbers if not terms.is_repeated(index, texts[(line := lines[number])[0]][line[1] : line[2]])]


def shown_terms(view: View, index: int) -> Iterable[Term]:
    """Return the terms that the view shows of an item."""
    terms = view.log.terms[index]
    rest = () if view.edit(index).is_cleared and view.log.groups.kind[index] == KIND_OUTPUT else terms.rest
    return [*rest, *(term for number in shown_lines(view, index) for term in terms.of_lines[number])]


class _LineChoice:
    """A choice that is being made: by position of an item, the numbers of its lines that were taken."""

    def __init__(self, view: View, visible: Sequence[int], candidates: Mapping[int, Candidate]) -> None:
        self.chosen: dict[int, list[int]] = {}
        self._log = view.log
        self._index: TermIndex = view.log.terms
        self._window = max(1, view.limits.trigger)
        self._candidates = candidates
        self._heads = head = view.log.groups.head
        self._prices: dict[int, tuple[LinePrice, int]] = {}  # by position: of the lines of the item, and of its heading
        self._state = {term for line in state_lines(view.log.items) for term in self._index.terms_of(line)}
        unchosen = (at for at in visible if head[at] not in candidates)
        self._values = dict.fromkeys((term for at in unchosen for term in shown_terms(view, at)), 0.0)  # of terms in view: 0

    def keep(self, at: int, numbers: Sequence[int]) -> None:
        """Take these lines of an item, whatever they cost."""
        self.chosen[at] = list(numbers)
        self._values.update(dict.fromkeys((term for number in numbers for term in self._index[at].of_lines[number]), 0.0))

    def take(self, room: int) -> None:
        """Take lines until the next one does not fit."""
        heap = [entry for head, candidate in self._candidates.items() for entry in self._entries_of(head, candidate)]
        heapify(heap)
        while heap:
            _, newness, number, was_open = heap[0]
            at = -newness
            entry = self._entry(at, number) if was_open == (at in self.chosen) else None
            if entry is None:
                heappop(heap)  # its line has another entry since the item was opened, or gains nothing any more
                continue
            heapreplace(heap, entry)
            if heap[0] < entry:
                continue
            heappop(heap)
            price = self._price(at, number)
            if price > room:
                return
            room -= price
            self._take(heap, at, number)

    def _take(self, heap: list[Entry], at: int, number: int) -> None:
        """Take a line, or a whole unit."""
        candidate = self._candidates[self._heads[at]]
        if number == WHOLE:
            candidate.is_whole = True
            self._values.update(dict.fromkeys(candidate.terms, 0.0))
            return
        self._values.update(dict.fromkeys(self._index[at].of_lines[number], 0.0))
        if at in self.chosen:
            self.chosen[at].append(number)
            return
        self.chosen[at] = [number]
        self._values.update(dict.fromkeys(self._index[at].rest, 0.0))
        for entry in self._entries(at, candidate.lines[at]):
            heappush(heap, entry)

    def _entries_of(self, head: int, candidate: Candidate) -> Iterator[Entry]:
        """Yield the first entries of a unit."""
        if candidate.lines:
            for at, numbers in candidate.lines.items():
                yield from self._entries(at, numbers)
        elif (entry := self._entry(head, WHOLE)) is not None:
            yield entry

    def _entries(self, at: int, numbers: Iterable[int]) -> Iterator[Entry]:
        """Yield the entries of an item's lines that gain something and were not taken."""
        lines, of_lines, _ = self._index[at]
        (price, heading), chosen = self._price_of_lines(at), self.chosen.get(at)
        frame, is_open = (heading, False) if chosen is None else (0, True)
        for number in numbers:
            if (terms := of_lines[number]) and not (chosen and number in chosen) and (gain := self._gain(terms)):
                _, start, end = lines[number]
                yield (-gain / max(1, frame + price.of(end - start)), -at, number, is_open)

    def _entry(self, at: int, number: int) -> Entry | None:
        """Return the entry that a line or a whole unit has now; None if it gains nothing."""
        terms = self._candidates[at].terms if number == WHOLE else self._index[at].of_lines[number]
        gain = self._gain(terms)
        return (-gain / self._price(at, number), -at, number, at in self.chosen) if gain else None

    def _gain(self, terms: Iterable[Term]) -> float:
        """Return the sum of the values of these terms."""
        values, gain = self._values, 0.0
        for term in terms:
            value = values.get(term)
            if value is None:
                value = values[term] = self._index.value(term, self._window) * (STATE if term in self._state else 1)
            gain += value
        return gain

    def _price(self, at: int, number: int) -> int:
        """Return the price of a line, or of a whole unit."""
        if number == WHOLE:
            return max(1, self._candidates[at].tokens)
        _, start, end = self._index[at].lines[number]
        price, heading = self._price_of_lines(at)
        return max(1, price.of(end - start) + (0 if at in self.chosen else heading))

    def _price_of_lines(self, at: int) -> tuple[LinePrice, int]:
        """Return what the lines of an item cost, and its heading."""
        known = self._prices.get(at)
        if known is None:
            log = self._log
            known = self._prices[at] = log.measures.line_price(log.items[at]), log.section_tokens(at, ())
        return known
