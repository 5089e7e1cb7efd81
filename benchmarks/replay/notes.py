"""A study for `Extract()`: what views would keep if the lines of older items stood in notes instead of in the items' places.

python -m benchmarks.replay --policies extract,benchmarks.replay.notes:notes

1. Whole stay: system prompts, the frontier, the first user message up to a fifth of the window, the newest short user messages up to
   another fifth, and a tail of the newest units.
2. When the view exceeds the window, all other whole items leave. A fifth of their tokens stays as their most valuable lines, in a note that
   stands where the last of them was. Earlier notes stay as they are, so the provider's cache holds the request up to there.
3. If that leaves too little room, lines are chosen again from all notes and items, and become one note after the first user message.
4. Lines are chosen as `Extract()` chooses them: greedily by the value of their terms per token. A line costs a token more than it has, and
   the first of an item eight more, for its heading with the id. Reasoning is not in notes.
5. If the view still exceeds the window, unread outputs are truncated, the largest first. Last the notes and the oldest units are dropped.

It is no strategy: a strategy chooses among units where they stand, and the engine cannot show a note yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush, heapreplace
from math import sqrt

from context_window.trimming.extracts import lines_of
from context_window.trimming.terms import DECAY, names_in, weight_of
from session import Session
from session.items import FunctionCall, FunctionCallOutput, Item, Message, MessageCategory, Reasoning, parts_of_item
from session.json_strings import string_values
from session.parts import Text
from session.units import NONE, Grouping

from .policies import View
from .sessions import tokens_of

TAIL, FRESH, ROOM, LEAST, FILLED, WHOLE = 0.05, 0.2, 0.5, 0.2, 0.9, 0.2
"""Parts of the window; `FRESH` is a part of the tokens of the items that leave."""
SHORT = 300
"""Tokens of a user message that stays whole."""
HEADING = 8
"""Tokens of the heading of an item in a note."""

Lines = Mapping[int, Sequence[int]]
"""By position of an item, numbers of its lines."""


@dataclass(slots=True)
class _Term:
    weight: float
    uses: int = 0
    last: int = 0
    by_user: bool = False
    by_call: bool = False


@dataclass(frozen=True, slots=True)
class _Read:
    """An item: its tokens, its lines, the terms of each, and all terms."""

    tokens: int
    lines: tuple[str, ...]
    terms: tuple[tuple[str, ...], ...]
    all: frozenset[str]

    def price(self, number: int) -> float:
        return len(self.lines[number]) * self.tokens / max(1, sum(map(len, self.lines))) + 1


class _Terms:
    """The items of a log that grows, and the value of their terms (`context_window/trimming/terms.py` has the formula)."""

    def __init__(self, window: int) -> None:
        self.items: list[_Read] = []
        self.has_calls = False
        self._window = window
        self._terms: dict[str, _Term] = {}
        self._tokens_up_to: list[int] = []
        self._follows_answer = False

    def read(self, item: Item) -> None:
        place, text = len(self.items), _text_of(item)
        lines = tuple(text[start:end] for _, start, end in lines_of([text]))
        terms = tuple(tuple(name for name in dict.fromkeys(names_in(line)) if weight_of(name)) for line in lines)
        self.items.append(read := _Read(tokens_of(item), lines, terms, frozenset().union(*terms)))
        self._tokens_up_to.append(read.tokens + (self._tokens_up_to[-1] if place else 0))
        is_call = isinstance(item, FunctionCall)
        is_answer = is_call or (isinstance(item, Message) and item.role == "assistant")
        is_result = self._follows_answer and not self.has_calls and place > 2
        for name in read.all:
            term = self._terms.setdefault(name, _Term(weight_of(name)))
            term.uses += is_answer
            term.last = place
            if _is_of_user(item) and not is_result and not term.by_user:
                term.by_user, term.weight = True, 2 * term.weight
            if is_call and not term.by_call:
                term.by_call, term.weight = True, 2 * term.weight
        self.has_calls, self._follows_answer = self.has_calls or is_call, is_answer

    def value(self, name: str) -> float:
        term = self._terms[name]
        age = self._tokens_up_to[-1] - self._tokens_up_to[term.last]
        return term.weight * (1 + term.uses) / sqrt((1 + DECAY * age / self._window) * (1 + len(self.items[term.last].all)))

    def chosen(self, candidates: Lines, room: float, shown: Iterable[str]) -> dict[int, list[int]]:
        """Return the lines that are worth most, within so many tokens, beside what is shown already."""
        values = dict.fromkeys(shown, 0.0)
        chosen: dict[int, list[int]] = {}

        def price(place: int, number: int) -> float:
            return self.items[place].price(number) + (0 if place in chosen else HEADING)

        def entry(place: int, number: int) -> tuple[float, int, int] | None:
            gain = 0.0
            for name in self.items[place].terms[number]:
                if name not in values:
                    values[name] = self.value(name)
                gain += values[name]
            return (-gain / price(place, number), -place, number) if gain else None

        heap = [made for place, numbers in candidates.items() for number in numbers if (made := entry(place, number))]
        heapify(heap)
        while heap:
            place, number = -heap[0][1], heap[0][2]
            if number in chosen.get(place, ()) or not (now := entry(place, number)):
                heappop(heap)
                continue
            heapreplace(heap, now)
            if heap[0] < now:
                continue
            heappop(heap)
            room -= price(place, number)
            if room < 0:
                break
            values.update(dict.fromkeys(self.items[place].terms[number], 0.0))
            is_open = place in chosen
            chosen.setdefault(place, []).append(number)
            for other in () if is_open else candidates[place]:
                if other != number and (made := entry(place, other)):
                    heappush(heap, made)
        return {place: sorted(chosen[place]) for place in sorted(chosen)}


def notes(window: int) -> View:
    """Return the policy for one session and a window of so many tokens."""
    return _Notes(window)


class _Notes:
    def __init__(self, window: int) -> None:
        self._window = window
        self._terms = _Terms(window)
        self._groups = Grouping()
        self._whole: list[int] = []
        self._notes: list[tuple[float, Lines, Message, int]] = []  # where it stands, its lines, the note, its tokens
        self._truncated: dict[int, tuple[Item, int]] = {}

    def __call__(self, log: Session) -> Sequence[Item]:
        for place in range(len(self._terms.items), len(log.items)):
            item = log.items[place]
            self._groups.feed(item, item.id in log.response_breaks)
            self._terms.read(item)
            self._whole.append(place)
        if self._total > self._window:
            self._trim(log.items)
        shown = [(float(place), self._truncated[place][0] if place in self._truncated else log.items[place]) for place in self._whole]
        return [item for _, item in sorted([*shown, *((at, note) for at, _, note, _ in self._notes)], key=lambda pair: pair[0])]

    @property
    def _total(self) -> int:
        return sum(map(self._tokens, self._whole)) + sum(tokens for *_, tokens in self._notes)

    def _tokens(self, place: int) -> int:
        return self._truncated[place][1] if place in self._truncated else self._terms.items[place].tokens

    def _trim(self, items: Sequence[Item]) -> None:
        window, read = self._window, self._terms.items
        first = next((place for place, item in enumerate(items) if _is_of_user(item)), NONE)
        fresh = sorted(self._older(items, first))
        leaving = set(fresh)
        self._whole = [place for place in self._whole if place not in leaving]
        base = sum(map(self._tokens, self._whole))
        noted = sum(tokens for *_, tokens in self._notes)
        shown = {name for place in self._whole for name in read[place].all}
        candidates: dict[int, Sequence[int]] = {place: range(len(read[place].lines)) for place in fresh}
        fresh_room = FRESH * sum(read[place].tokens for place in fresh)
        earlier = {place: numbers for _, lines, *_ in self._notes for place, numbers in lines.items()}
        if self._notes and base + noted + fresh_room <= FILLED * window:
            shown |= {name for place, numbers in earlier.items() for number in numbers for name in read[place].terms[number]}
            self._add_note(items, max(fresh, default=0) + 0.5, self._terms.chosen(candidates, fresh_room, shown))
        else:
            self._notes = []
            room = max(ROOM * window - base, LEAST * window)
            self._add_note(items, first + 0.5, self._terms.chosen({**earlier, **candidates}, room, shown))
        self._shrink(items, first)

    def _older(self, items: Sequence[Item], first: int) -> Iterator[int]:
        """Yield the whole items that leave."""
        groups, window = self._groups, self._window
        units: dict[int, list[int]] = {}
        for place in self._whole:
            units.setdefault(groups.head[place], []).append(place)
        tail, messages, is_tail = TAIL * window, WHOLE * window, True
        for head in sorted(units, reverse=True):
            members = units[head]
            tokens = sum(map(self._tokens, members))
            if self._is_kept(items, members) or (head == first and tokens <= WHOLE * window):
                tail -= tokens if max(members) >= groups.frontier else 0
                continue
            tail -= tokens
            is_tail = is_tail and tail >= 0
            if is_tail:
                continue
            if _is_of_user(items[head]) and tokens <= min(SHORT, messages) and (self._terms.has_calls or head <= 2):
                messages -= tokens
            else:
                yield from members

    def _is_kept(self, items: Sequence[Item], members: Sequence[int]) -> bool:
        is_system = any(items[place].category is MessageCategory.SYSTEM for place in members)
        return is_system or max(members) >= self._groups.frontier or self._groups.last_user in members

    def _add_note(self, items: Sequence[Item], at: float, lines: Lines) -> None:
        if not lines:
            return
        text = ["[extracts of earlier items]"]
        for place, numbers in lines.items():
            item, before = items[place], NONE
            text.append(f"## {getattr(item, 'role', item.type)} #{item.id[:8]}")
            for number in numbers:
                text += ["…"] * (number > before + 1) + [self._terms.items[place].lines[number]]
                before = number
        note = Message("user", "\n".join(text))
        self._notes.append((at, lines, note, tokens_of(note)))

    def _shrink(self, items: Sequence[Item], first: int) -> None:
        """Make the view fit: outputs that the model has not read are truncated, then notes and the oldest units go."""
        for place in sorted((place for place in self._whole if place >= self._groups.frontier), key=lambda place: -self._tokens(place)):
            item, excess, text, tokens = items[place], self._total - self._window, _text_of(items[place]), self._tokens(place)
            half = int(len(text) * max(100, tokens - excess - 20) / max(1, tokens) * 0.48)
            if isinstance(item, FunctionCallOutput) and excess > 0 and 2 * half < len(text):
                shorter = replace(item, output=(Text(f"{text[:half]}\n[…]\n{text[len(text) - half :]}"),))
                self._truncated[place] = shorter, tokens_of(shorter)
        if self._total > self._window:
            self._notes = []
        for place in list(self._whole):
            if self._total <= self._window:
                return
            members = [member for member in self._groups.members(self._groups.head[place]) if member in self._whole]
            if members and place != first and not self._is_kept(items, members):
                self._whole = [other for other in self._whole if other not in members]


def _is_of_user(item: Item) -> bool:
    return isinstance(item, Message) and item.role == "user"


def _text_of(item: Item) -> str:
    if isinstance(item, Reasoning):
        return ""
    if isinstance(item, FunctionCall):
        return "\n".join([item.name, *string_values(item.arguments)])
    return "\n".join(part.text for part in parts_of_item(item) if isinstance(part, Text))
