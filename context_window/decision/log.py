"""`Log`: what a log says of itself, whatever a view shows of it: units, costs, which items a summary stands for. It only grows."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field

from session.items import FunctionCall, FunctionCallOutput, Item, parts_of_item
from session.parts import Text
from session.providers.native_compaction import is_native
from session.units import CONTEXT, HELD, KIND_CALL, KIND_ORPHAN, KIND_OUTPUT, KIND_REASONING, KIND_USER, NONE, Grouping

from .edits import Measured, Measures
from .limits import Limits
from .terms import TermIndex
from .tool_rules import RuledResults


@dataclass(frozen=True, slots=True)
class NewItem:
    """The next item of a log, and what the session says about it.

    Attributes:
        item: The item as the model sees it: with notes in place of parts that the provider refused.
        measured: Its cost.
        breaks: True if it begins a response of its own in any case.
        ends: True if it is an answer after which a request ended.
        replaces: The positions that it stands for, if it is a compaction.
        is_summarised: True if a summary before it stands for it, as in a view.
    """

    item: Item
    measured: Measured
    breaks: bool = False
    ends: bool = False
    replaces: Sequence[int] = ()
    is_summarised: bool = False


@dataclass(slots=True)
class Arrival:
    """What a new item changed about earlier ones, by their positions.

    `reranked` has each with its old rank, `summarised` those that a summary stands for now and did not before, `replaced_prompts`
    instructions that it replaced. `answered` is the call that it answers; -1 if it is no output, or answers none. `freed` has items whose
    thinking costs nothing from now on, each with the tokens of that.
    """

    reranked: Sequence[tuple[int, int]] = ()
    summarised: Sequence[int] = ()
    replaced_prompts: Sequence[int] = ()
    answered: int = NONE
    freed: Sequence[tuple[int, int]] = ()


@dataclass
class Log:
    """The items of a log so far. Lists are indexed by position.

    Attributes:
        limits: The limits under which the log is read.
        measures: The costs of items.
        had_note: True if the log is a view that came with a line about removed items.
        items: The items as the model sees them.
        groups: Their units.
        tokens: Their tokens; 0 for reasoning of earlier turns, where the provider leaves that out of the prompt (rule 10).
        free: What such reasoning cost, by position.
        total: The sum of `tokens`.
        images: Their images, by position.
        media: Positions of items with images or documents.
        summarised: 1 if a summary stands for the item.
        replaced: Number of these items.
        calls: By position of an output, the call that it answers.
        moved: Summaries that are shown before another position than their own (rule 8), each with that position.
        turn_start: Position of the user's message that ended the last turn, if reasoning is dropped with its turn.
        terms: The terms of the log. Read when lines are first chosen.
        results: The results that single tools have rules for.
    """

    limits: Limits
    measures: Measures
    had_note: bool = False
    items: list[Item] = field(default_factory=list)
    groups: Grouping = field(default_factory=Grouping)
    tokens: array[int] = field(default_factory=lambda: array("q"))
    free: dict[int, int] = field(default_factory=dict)
    total: int = 0
    images: dict[int, tuple[tuple[int, int], ...]] = field(default_factory=dict)
    media: list[int] = field(default_factory=list)
    summarised: bytearray = field(default_factory=bytearray)
    replaced: int = 0
    calls: dict[int, FunctionCall] = field(default_factory=dict)
    moved: dict[int, int] = field(default_factory=dict)
    turn_start: int = NONE
    terms: TermIndex = field(default_factory=lambda: TermIndex())  # noqa: PLW0108 - benchmarks put another class here
    results: RuledResults = field(default_factory=RuledResults)
    _thinking: list[tuple[int, int]] = field(default_factory=list)  # thinking of the turn, if it will cost nothing in later ones
    _last_tool_item: int = NONE

    def __len__(self) -> int:
        return len(self.tokens)

    def copy(self) -> Log:
        """Return a log that grows by itself, with the same items."""
        shared = (self.limits, self.measures, *self.items)
        return deepcopy(self, {id(value): value for value in shared})

    def append(self, new: NewItem, *, starts: bool) -> Arrival:
        """Take the next item; `starts` is true if it begins a response."""
        groups, position, item = self.groups, len(self), new.item
        before = self._shown_before(new.replaces) if new.replaces and not is_native(item) else NONE
        if before != NONE:
            self.moved[position] = before
        replaced = len(groups.replaced)
        arrival = Arrival(reranked=groups.feed(item, starts, ends=new.ends, is_moved=before != NONE))
        self.items.append(item)
        self.tokens.append(new.measured.tokens)
        self.total += new.measured.tokens
        self.summarised.append(0)
        if new.measured.images:
            self.images[position] = new.measured.images
        if any(type(part) is not Text for part in parts_of_item(item)):
            self.media.append(position)
        if new.replaces or new.is_summarised:
            own = [position] if new.is_summarised and groups.kind[position] != KIND_ORPHAN else []
            arrival.summarised = [at for at in dict.fromkeys((*new.replaces, *own)) if not self.summarised[at]]
            for at in arrival.summarised:
                self.summarised[at] = 1
            self.replaced += len(arrival.summarised)
        arrival.replaced_prompts = groups.replaced[replaced:]
        if groups.kind[position] == KIND_OUTPUT:
            arrival.answered = groups.last_answered
            call = self.items[arrival.answered]
            assert isinstance(call, FunctionCall)
            self.calls[position] = call
            self._take_result(arrival.answered, position)
        if self.limits.drops_thinking:
            arrival.freed = self._end_turn(position, new.measured.thinking)
        return arrival

    def section_tokens(self, index: int, lines: Sequence[int]) -> int:
        """Return the tokens of what a digest shows of an item if it shows these lines."""
        return self.measures.section_tokens(self.items[index], lines, self.calls.get(index))

    def request_index(self, index: int) -> int:
        """Return the position at which a request shows a change of this item. Outputs stand right after the calls of their response."""
        groups = self.groups
        if index in self.moved:
            return self.moved[index] - 1
        return groups.last_call[groups.head[index]] if groups.kind[index] in (KIND_CALL, KIND_OUTPUT) else index

    def response_or_own(self, index: int) -> int:
        """Return the position of the first item of the item's response, or its own if it is in none."""
        response = self.groups.response[index]
        return index if response == NONE else response

    def in_frontier(self, head: int) -> bool:
        """True if an item of the unit is in the frontier (rule 5)."""
        groups = self.groups
        return groups.last[head] >= groups.frontier or (groups.last_user != NONE and groups.head[groups.last_user] == head)

    def is_waiting(self, head: int) -> bool:
        """True if a call of the unit has no output yet."""
        groups = self.groups
        return head in groups.last_call and any(groups.kind[at] == KIND_CALL and not groups.answered[at] for at in groups.members(head))

    def is_summarised(self, head: int) -> bool:
        """True if summaries stand for the whole unit. Its reasoning does not count: it may leave for another reason."""
        groups = self.groups
        marks = [(self.summarised[at], groups.kind[at] == KIND_REASONING) for at in groups.members(head)]
        return any(mark for mark, _ in marks) and all(mark or is_reasoning for mark, is_reasoning in marks)

    def keeps_images(self, index: int) -> bool:
        """True if the item's images are never replaced, whatever follows."""
        groups = self.groups
        return bool(groups.protection[index]) or groups.unit_protection[groups.head[index]] == HELD

    def _shown_before(self, replaces: Sequence[int]) -> int:
        """Return the position before which views show a summary of these items; -1 if they show it where the log has it."""
        groups = self.groups
        first = min((self.moved.get(at, at) for at in replaces if groups.protection[at] != HELD), default=NONE)
        return first if first == NONE else self.response_or_own(first)

    def _take_result(self, call: int, output: int) -> None:
        """Note a result that rules for tools are about."""
        if self.limits.clears_by_age:
            return
        made, answer = self.items[call], self.items[output]
        assert isinstance(made, FunctionCall)
        assert isinstance(answer, FunctionCallOutput)
        self.results.add(call, made, output, answer, self.limits.tool_rules, clear_superseded=self.limits.clear_superseded)

    def _end_turn(self, position: int, thinking: int) -> list[tuple[int, int]]:
        """Make the turn's thinking free if the item ends the turn, and return the items that it is of with its tokens (rule 10)."""
        groups, kind = self.groups, self.groups.kind[position]
        if thinking:
            self._thinking.append((position, thinking))
        if kind in (KIND_CALL, KIND_OUTPUT):
            self._last_tool_item = position
        is_prompt = kind == KIND_USER and groups.rank[position] != CONTEXT
        if not (is_prompt and groups.response_starts and self._last_tool_item < groups.response_starts[-1]):
            return []
        self.turn_start = position
        freed, self._thinking = self._thinking, []
        for at, tokens in freed:
            self.free[at] = tokens
            self.tokens[at] -= tokens
            self.total -= tokens
        return freed
