"""The slow twin: how a view is made, written from the prose of docs/how-it-works.md, everything computed again at every step.

It shares with the engine only what an item looks like once cleared or cut (`placeholders`, `longest_cut`): those have
tests of their own. The only state is the decisions at earlier request points.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Hashable, Iterator
from copy import copy
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from fractions import Fraction
from functools import cache
from math import isqrt
from typing import Any, Self, TypeVar

from context_window import ToolRule
from context_window.counting.text_truncation import longest_cut
from session.items import (
    AgentConfigUpdate,
    AgentHandoff,
    Compaction,
    FunctionCall,
    FunctionCallOutput,
    Item,
    Message,
    MessageCategory,
    Reasoning,
)
from session.json_strings import object_of
from session.parts import Image, Text
from session.providers.additions import handoff_note, summary_text
from session.removed import Removed
from session.session import Session
from tests.support.counting import Letters
from tests.support.engine import (
    MARK,
    Cut,
    DigestPart,
    FileAccess,
    Limits,
    changed,
    cleared,
    cleared_call,
    cut_text,
    digest,
    file_access,
    is_notice,
    longest_text,
    names_of_result,
    section,
    tools_loaded_by,
)

COUNT = Letters()
T = TypeVar("T")
Facts = dict[tuple[Hashable, ...], Any]
"""Values that depend on the items and breaks of a log alone, such as its units at each length. Folds of one log may share them."""
ORDER = (MessageCategory.SYSTEM_OUTPUT, MessageCategory.DIALOG, MessageCategory.CONTEXT)


def cost(item: Item) -> int:
    """Tokens of an item: its texts and parts, 4 an item, 5 more for calls and outputs; 0 for items that are never sent."""
    if isinstance(item, AgentConfigUpdate):
        return 4 + len(item.instructions) if item.instructions and item.instructions.strip() else 0
    if isinstance(item, AgentHandoff):
        return 4 + len(handoff_note(item.to_agent, item.from_agent, item.reason))
    if isinstance(item, Message):
        return 4 + sum(COUNT.count_part(part) for part in item.content)
    if isinstance(item, FunctionCall):
        return 9 + len(item.name) + len(item.arguments)
    if isinstance(item, FunctionCallOutput):
        return 9 + len(item.name) + sum(COUNT.count_part(part) for part in item.output)
    if isinstance(item, Compaction):
        return 4 + len(summary_text(item.summary))
    sealed = item.data or (item.signature if not item.text else None) or ""
    return 4 + len(item.text) + len(sealed) * 3 // 16


def is_summary(item: Item) -> bool:
    return isinstance(item, Compaction) or (isinstance(item, Message) and item.extra.get("summary") is True)


def is_blank(message: Message) -> bool:
    return all(not isinstance(part, Image) and part.text is not None and not part.text.strip() for part in message.content)


def is_silent(item: Item) -> bool:
    """True if the item never becomes a message."""
    if isinstance(item, Message) and item.role == "user":
        return is_blank(item)
    return isinstance(item, AgentConfigUpdate) or is_system(item)


def is_system(item: Item) -> bool:
    return isinstance(item, Message) and item.role in ("system", "developer")


def gives_instructions(item: Item) -> bool:
    return is_system(item) or (isinstance(item, AgentConfigUpdate) and item.instructions is not None)


def is_replaced(items: list[Item], position: int) -> bool:
    """True if a later config update replaced these instructions."""
    if not gives_instructions(items[position]) or items[position].pinned:
        return False
    for later in range(position + 1, len(items)):
        update = items[later]
        if not isinstance(update, AgentConfigUpdate) or update.instructions is None:
            continue
        handoffs = [item.to_agent for item in items[:later] if isinstance(item, AgentHandoff)]
        if update.agent_id in (None, *handoffs[-1:]) or items[position].agent_id in (None, update.agent_id):
            return True
    return False


def is_answer(item: Item) -> bool:
    return isinstance(item, Reasoning | FunctionCall) or (isinstance(item, Message) and item.role == "assistant" and not is_summary(item))


def responses(items: list[Item], breaks: frozenset[str]) -> list[list[int]]:
    """Runs of answering items of one agent."""
    runs: list[list[int]] = []
    for position, item in enumerate(items):
        if not is_answer(item):
            continue
        before = items[position - 1] if position else None
        goes_on = before is not None and is_answer(before) and before.agent_id == item.agent_id and item.id not in breaks
        if goes_on:
            runs[-1].append(position)
        else:
            runs.append([position])
    return runs


def needs_closing(items: list[Item], breaks: frozenset[str], moved: Collection[int] = (), ends: Collection[str] = ()) -> bool:
    """True if the last response says something, calls nothing, and is followed by items that neither answer nor are sent behind it.

    Args:
        items: The log.
        breaks: Its `response_breaks`.
        moved: Positions of summaries that are sent before it.
        ends: Its `request_ends`.
    """
    runs = responses(items, breaks)
    if not runs:
        return False
    answer = [items[position] for position in runs[-1]]
    rest = items[runs[-1][-1] + 1 :]
    says = any(isinstance(item, Message) and not is_blank(item) for item in answer)
    calls = any(isinstance(item, FunctionCall) for item in answer)
    asked = any(
        isinstance(item, AgentHandoff)
        or (isinstance(item, Message) and item.role == "user" and not is_blank(item))
        or (isinstance(item, Compaction) and bool(item.summary.strip()) and item not in [items[position] for position in moved])
        for item in rest
    )
    return (bool(rest) or items[-1].id in ends) and says and not calls and not asked


def answers(items: list[Item]) -> dict[int, int | None]:
    """For each output: the last unanswered call before it with its call id, or None."""
    calls_by_output: dict[int, int | None] = {}
    for position, item in enumerate(items):
        if isinstance(item, FunctionCallOutput):
            calls_by_output[position] = next(
                (
                    earlier
                    for earlier in range(position - 1, -1, -1)
                    if isinstance(call := items[earlier], FunctionCall)
                    and call.call_id == item.call_id
                    and earlier not in calls_by_output.values()
                ),
                None,
            )
    return calls_by_output


def as_call(item: Item) -> FunctionCall:
    assert isinstance(item, FunctionCall)
    return item


def as_output(item: Item) -> FunctionCallOutput:
    assert isinstance(item, FunctionCallOutput)
    return item


def never_sent(items: list[Item]) -> set[int]:
    """Outputs without a call, and replaced instructions: no view has them."""
    orphans = {position for position, call in answers(items).items() if call is None}
    return orphans | {position for position in range(len(items)) if is_replaced(items, position)}


def unit_of(items: list[Item], breaks: frozenset[str]) -> dict[int, list[int]]:
    """For each position: the positions it stands or falls with."""
    units: dict[int, list[int]] = {position: [position] for position in range(len(items))}
    calls_by_output = answers(items)
    for response in responses(items, breaks):
        calls = [position for position in response if isinstance(items[position], FunctionCall)]
        if calls:
            thoughts = [position for position in response if isinstance(items[position], Reasoning)]
            outputs = [position for position, call in calls_by_output.items() if call in calls]
            unit = sorted([*thoughts, *calls, *outputs])
            for position in unit:
                units[position] = unit
            continue
        run: list[int] = []
        for position in response:
            if isinstance(items[position], Reasoning):
                run.append(position)
            else:
                for member in [*run, position]:
                    units[member] = [*run, position]
                run = []
        for member in run:
            units[member] = run
    return units


def category_of(items: list[Item], unit: list[int]) -> MessageCategory:
    """A unit's category is its calls'; the highest, where they differ. Without calls it is the text's, or the first thought's."""
    calls = [items[position].category for position in unit if isinstance(items[position], FunctionCall)]
    if calls:
        return min(calls, key=list(MessageCategory).index)
    text = [items[position].category for position in unit if not isinstance(items[position], Reasoning)]
    return text[0] if text else items[unit[0]].category


@cache
def poured(room: int, least: tuple[int, ...], most: tuple[int, ...]) -> list[int]:
    """The room divided a token at a time: each goes to the smallest part that is not full, of equal ones to the newest."""
    parts = list(least)
    for _ in range(room - sum(least)):
        hungry = [index for index in reversed(range(len(parts))) if parts[index] < most[index]]
        if not hungry:
            break
        parts[min(hungry, key=parts.__getitem__)] += 1
    return parts


@dataclass
class Twin:
    """The view of a log, and the decisions so far."""

    items: list[Item]
    breaks: frozenset[str]
    limits: Limits
    dropped: set[int] = field(default_factory=set)
    unthought: set[int] = field(default_factory=set)
    cleared: set[int] = field(default_factory=set)
    replaced: dict[int, tuple[int, ...]] = field(default_factory=dict)
    cuts: dict[int, Cut] = field(default_factory=dict)
    extracts: dict[int, tuple[int, ...]] = field(default_factory=dict)
    digests: dict[int, int] = field(default_factory=dict)
    compacted: set[int] = field(default_factory=set)
    restored: dict[int, int] = field(default_factory=dict)
    earlier: Removed | None = None
    noted_after: str | None = None
    noted: int = -1
    ends: frozenset[str] = frozenset()
    state_note: tuple[int, Message] | None = None
    length: int = 0
    facts: Facts = field(default_factory=dict)

    def copy(self) -> Self:
        """Return a twin that goes on by itself."""
        names = ("dropped", "unthought", "cleared", "replaced", "cuts", "extracts", "digests", "compacted", "restored")
        decided = {name: copy(getattr(self, name)) for name in names}
        return replace(self, **decided)

    # The log so far, computed once for each length

    def once(self, name: str, compute: Callable[[], T], position: int = -1) -> T:
        return self.fact((name, self.length, position), compute)

    def fact(self, key: tuple[Hashable, ...], compute: Callable[[], T]) -> T:
        if key not in self.facts:
            self.facts[key] = compute()
        fact: T = self.facts[key]
        return fact

    def log(self) -> list[Item]:
        return self.items[: self.length]

    def answers(self) -> dict[int, int | None]:
        return self.once("answers", lambda: answers(self.log()))

    def responses(self) -> list[list[int]]:
        return self.once("responses", lambda: responses(self.log(), self.breaks))

    def units(self) -> dict[int, list[int]]:
        return self.once("units", lambda: unit_of(self.log(), self.breaks))

    def category(self, position: int) -> MessageCategory:
        return self.once("category", lambda: category_of(self.items, self.units()[position]), position)

    # The view as it is now

    def shown(self, position: int) -> Item:
        """The item as the view shows it."""
        return self.form_now(position)[0]

    def cost(self, position: int) -> int:
        """Tokens of the item as the view shows it."""
        if self.is_free(position):
            return 0
        return self.form_now(position)[1]

    def form_now(self, position: int) -> tuple[Item, int]:
        is_cleared, cut = position in self.cleared, self.cuts.get(position)
        if position in self.restored and not is_cleared and position not in self.digests:
            item = replace(as_output(self.items[position]), output=as_output(self.items[self.restored[position]]).output)
            return item, cost(item)
        return self.form(
            position, is_cleared=is_cleared, images=self.replaced.get(position, ()), cut=cut, lines=self.extracts.get(position)
        )

    def is_free(self, position: int) -> bool:
        """True for reasoning before the last question that was asked after the model had answered without calling anything."""
        return self.limits.drops_thinking and isinstance(self.items[position], Reasoning) and position < self.turn()

    def turn(self) -> int:
        """The position of that question; -1 if there is none."""
        return self.once("turn", self._turn)

    def _turn(self) -> int:
        log, orphans = self.log(), self.orphans()
        for position in reversed(range(len(log))):
            item = log[position]
            if not isinstance(item, Message) or item.role != "user" or is_blank(item) or item.category is MessageCategory.CONTEXT:
                continue
            starts = [response[0] for response in self.responses() if response[0] < position]
            since = range(starts[-1] if starts else 0, position)
            if not any(isinstance(log[at], FunctionCall | FunctionCallOutput) and at not in orphans for at in since):
                return position
        return -1

    def form(
        self,
        position: int,
        *,
        is_cleared: bool = False,
        images: tuple[int, ...] = (),
        cut: Cut | None = None,
        lines: tuple[int, ...] | None = None,
    ) -> tuple[Item, int]:
        """An item in one of its forms, and its tokens. Making them takes most of the time, and a form is the same in every fold."""
        lines = None if is_cleared else lines
        return self.fact(("form", position, is_cleared, images, cut, lines), lambda: self._form(position, is_cleared, images, cut, lines))

    def _form(
        self, position: int, is_cleared: bool, images: tuple[int, ...], cut: Cut | None, lines: tuple[int, ...] | None
    ) -> tuple[Item, int]:
        item = self.items[position]
        if is_cleared and isinstance(item, FunctionCallOutput):
            item = cleared(item)
        elif lines is not None:
            return item, len(section(item, lines, self.call_of(position)))
        elif images or cut is not None:
            item = changed(item, images, cut)
        if is_cleared and isinstance(item, FunctionCall):
            item = cleared_call(item)
        return item, cost(item)

    def call_of(self, position: int) -> FunctionCall | None:
        """The call that an output answers."""
        call = self.answers().get(position)
        return None if call is None else as_call(self.items[call])

    def orphans(self) -> set[int]:
        return self.once("orphans", lambda: {position for position, call in self.answers().items() if call is None})

    def instructions(self) -> set[int]:
        """Instructions that are no longer in force."""
        return self.once("instructions", lambda: {position for position in range(self.length) if is_replaced(self.log(), position)})

    def in_view(self) -> list[int]:
        gone = self.dropped | self.unthought | self.orphans() | self.instructions()
        return [position for position in range(self.length) if position not in gone]

    def in_order(self) -> list[tuple[int, Item]]:
        """The view as it is shown: a summary stands before the first item that it replaces, and a digest before its first item."""
        rows = [
            (self.shown_before(position), self.shown_before(position) == position, position, self.shown(position))
            for position in self.in_view()
            if position not in self.digests
        ]
        for before in {self.digests[position] for position in self.in_view() if position in self.digests}:
            members = [position for position in self.in_view() if self.digests.get(position) == before]
            parts = [DigestPart(self.items[position], self.extracts[position], self.call_of(position)) for position in members]
            rows.append((before, False, members[0], digest(parts)))
        if self.state_note is not None:
            rows.append((self.state_note[0], False, self.length, self.state_note[1]))
        return [(before, item) for before, _, _, item in sorted(rows, key=lambda row: row[:3])]

    def shown_before(self, position: int) -> int:
        """The position before which an item is shown, never within a response: a summary, or the digest with lines of the item.

        A provider's own compaction is shown where it is, like all other items."""
        if position in self.digests:
            return self.digests[position]
        item = self.items[position]
        if not isinstance(item, Compaction) or "anthropic_blocks" in item.extra or "openai_item" in item.extra:
            return position
        replaced = [
            self.shown_before(earlier) for earlier in range(position) if self.items[earlier].id in item.replaces and not self.held(earlier)
        ]
        if not replaced:
            return position
        first = min(replaced)
        return next((run[0] for run in self.responses() if first in run), first)

    def moved(self) -> set[int]:
        return self.once("moved", lambda: {position for position in range(self.length) if self.shown_before(position) != position})

    def view(self) -> list[Item]:
        return [item for _, item in self.in_order()]

    def amounts(self, weigh: bool) -> dict[MessageCategory, int]:
        sums = dict.fromkeys(MessageCategory, 0)
        for position in self.in_view():
            sums[self.category(position)] += self.cost(position) if weigh else 1
        return sums

    def additions(self) -> int:
        answered_calls = set(self.answers().values())
        open_calls = sum(isinstance(self.items[position], FunctionCall) and position not in answered_calls for position in self.in_view())
        messages = [item for _, item in self.in_order() if not is_silent(item)]
        is_headed = bool(messages) and (
            isinstance(messages[0], AgentHandoff) or (isinstance(messages[0], Message) and messages[0].role == "user")
        )
        headless = bool(messages) and not is_headed
        opening = headless * self.limits.preamble if self.removed_line() is None else self.limits.note
        usage_note = self.limits.usage_note if self.noted >= 0 else 0
        digests = {self.digests[position] for position in self.in_view() if position in self.digests}
        closing = self.needs_closing() * self.limits.closing
        state_note = 0 if self.state_note is None else cost(self.state_note[1])
        return open_calls * self.limits.synthetic + opening + usage_note + closing + len(digests) * self.limits.digest + state_note

    def told(self) -> list[int]:
        """The items that the line about removed items counts: dropped, and no summary stands for them."""
        return sorted(self.dropped - self.compacted) if self.limits.note_removed else []

    def removed_line(self) -> Removed | None:
        """What the line about removed items says."""
        told = self.told()
        if not told:
            return self.earlier
        newly = Removed(len(told), self.items[told[0]].id, self.items[told[-1]].id)
        return newly if self.earlier is None else self.earlier.followed_by(newly)

    def needs_closing(self) -> bool:
        """The line about usage, or the note about the state of the work, at the end, does for it."""
        is_open = self.once("closing", lambda: needs_closing(self.log(), self.breaks, self.moved(), self.ends))
        last_text = max(self.noted, -1 if self.state_note is None else self.state_note[0])
        return is_open and last_text <= self.responses()[-1][0]

    def is_request(self) -> bool:
        """True if the log does not end in a response."""
        return not self.responses() or self.length - 1 > self.responses()[-1][-1]

    def speaks_before(self, position: int) -> bool:
        """True if the view shows a message before this position."""
        return any(not is_silent(self.items[member]) and self.shown_before(member) < position for member in self.in_view())

    def note_usage(self) -> None:
        """The line about usage at the end of the request, once it uses so much."""
        if self.noted < 0 and self.is_request() and self.speaks_before(self.length) and self.total() >= self.limits.usage_noted_from:
            self.noted = self.length

    def usage_noted_after(self) -> str | None:
        """Id of the last item before the line about usage."""
        before = [item.id for before, item in self.in_order() if before < self.noted]
        return before[-1] if before else None

    def withdraw_note(self) -> None:
        """After a trim that made room, or took all before the line."""
        noted = self.noted
        if self.total() < self.limits.usage_noted_from:
            self.noted = -1
        elif not self.speaks_before(noted):
            self.noted = -1
            self.note_usage()
        if self.noted != noted < self.length:
            self.edited(noted - 1)

    def changes(self) -> object:
        """What the trims so far have taken."""
        taken = (self.dropped, self.cleared, self.replaced, self.cuts, self.extracts, self.digests, self.restored)
        return *map(copy, taken), self.state_note

    def total(self) -> int:
        return self.limits.overhead + self.additions() + sum(self.cost(position) for position in self.in_view())

    def total_of(self, places: list[int]) -> int:
        """The total of a request with these items alone."""
        return self.total() - sum(self.cost(position) for position in self.in_view() if position not in places)

    # Protection

    def frontier(self) -> set[int]:
        return self.once("frontier", self._frontier)

    def _frontier(self) -> set[int]:
        asking = self.asking()
        runs = self.responses()
        first = runs[-1][0] if runs else asking[-1] if asking else self.length
        return {*asking, *range(first, self.length)}

    def asking(self) -> list[int]:
        """The last user message."""
        log = self.log()
        users = [position for position, item in enumerate(log) if isinstance(item, Message) and item.role == "user"]
        return ([position for position in users if log[position].category is not MessageCategory.CONTEXT] or users)[-1:]

    def held(self, position: int) -> bool:
        item = self.items[position]
        return item.category is MessageCategory.SYSTEM or item.pinned

    def first_message(self) -> list[int]:
        """The first user message of the view, if it is kept."""
        if not (self.limits.keep_first_message or self.summarised()):
            return []
        users = [
            position
            for position in self.in_view()
            if isinstance(item := self.items[position], Message) and item.role == "user" and item.category is not MessageCategory.CONTEXT
        ]
        return users[:1]

    def protected(self, unit: list[int]) -> bool:
        return self.first_message() == unit or self.cannot_go(unit) or self.waits(unit) or any(map(self.kept, unit))

    def waits(self, unit: list[int]) -> bool:
        """True if a call of the unit has no output yet."""
        answered = set(self.answers().values())
        return any(isinstance(self.items[position], FunctionCall) and position not in answered for position in unit)

    def rule(self, position: int) -> ToolRule | None:
        """The rule for an output, or for a call."""
        call = self.answers().get(position, position)
        item = None if call is None else self.items[call]
        if not isinstance(item, FunctionCall):
            return None
        rules = self.limits.tool_rules
        names = [item.name] if item.name in rules else [pattern for pattern in rules if fnmatchcase(item.name, pattern)]
        return rules[names[0]] if names else None

    def tool(self, position: int) -> str | None:
        """The tool of an output, or of a call."""
        call = self.answers().get(position, position)
        item = None if call is None else self.items[call]
        return item.name if isinstance(item, FunctionCall) else None

    def kept(self, position: int) -> bool:
        """True if a rule keeps the result: all of its tool, or the newest ones that are in the view in full. Or a tool that it loaded has
        been called since."""
        wish, output = self.wish(position), self.result(position)
        if wish == "keep_in_view" and output in self.in_view() and not self.is_shortened(output):
            return True
        if wish is None and self.loads_in_use(position):
            return True
        rule = self.rule(position)
        if rule is None:
            return False
        results = [
            output
            for output, call in self.answers().items()
            if call is not None
            and self.tool(output) == self.tool(position)
            and self.items[output].extra.get(MARK) != "cleared"
            and output in self.in_view()
            and not self.is_shortened(output)
        ]
        kept = results if rule.clear == "never" else results[max(0, len(results) - rule.keep_last) :]
        return any(position in (output, self.answers()[output]) for output in kept)

    def result(self, position: int) -> int:
        """The output, or the one of this call; -1 if it is none."""
        return next((output for output, call in self.answers().items() if call is not None and position in (output, call)), -1)

    def wish(self, position: int) -> str | None:
        """The last tool with which the model named the result: to keep it, or to release it."""
        output = self.result(position)
        call = self.answers().get(output)
        if call is None or not (self.limits.tool_rules or self.limits.clear_superseded):
            return None
        names = names_of_result(as_call(self.items[call]), as_output(self.items[output]))
        wishes = [
            made.name
            for later, asked in self.answers().items()
            if later > output
            and asked is not None
            and (made := as_call(self.items[asked])).name in ("keep_in_view", "release_from_view")
            and not as_output(self.items[later]).is_error
            and (object_of(made.arguments) or {}).get("what") in names
        ]
        return wishes[-1] if wishes else None

    def loads_in_use(self, position: int) -> bool:
        """True if the output, or the one of this call, is in the view and has loaded a tool that a later output is of."""
        if not self.limits.tool_rules and not self.limits.clear_superseded:
            return False
        loader = next((output for output, call in self.answers().items() if call is not None and position in (output, call)), None)
        if loader is None or loader not in self.in_view() or self.is_shortened(loader):
            return False
        loaded = tools_loaded_by(as_output(self.items[loader]))
        return any(output > loader and call is not None and self.tool(output) in loaded for output, call in self.answers().items())

    def is_shortened(self, position: int) -> bool:
        return position in self.cleared or position in self.extracts

    def early(self, position: int) -> bool:
        """True if the output or call is cleared before others."""
        rule = self.rule(position)
        output = next((output for output, call in self.answers().items() if call is not None and position in (output, call)), None)
        if output is None:
            return False
        is_first = rule is not None and rule.clear == "first" and self.items[output].extra.get(MARK) != "cleared"
        wish = self.wish(position)
        is_first = (is_first and wish is None) or wish == "release_from_view"
        return is_first or (self.limits.clear_superseded and self.superseded(output))

    def superseded(self, output: int) -> bool:
        """True if the view shows a later output of a call that read the same file in full, or wrote it."""
        access = self.file(output)
        later = [self.file(position) for position in self.in_view() if position > output and self.answers().get(position) is not None]
        return access is not None and any(other is not None and other.replaces and other.path == access.path for other in later)

    def file(self, output: int) -> FileAccess | None:
        call, item = self.answers()[output], self.items[output]
        assert call is not None
        made = self.items[call]
        assert isinstance(made, FunctionCall)
        assert isinstance(item, FunctionCallOutput)
        return None if item.is_error else file_access(made.name, made.arguments, self.rule(call))

    def cannot_go(self, unit: list[int]) -> bool:
        return any(self.held(position) or is_summary(self.items[position]) or position in self.frontier() for position in unit) or (
            self.category(unit[0]) is MessageCategory.SYSTEM
        )

    # The log grows

    def grow(self, length: int) -> None:
        while self.length < length:
            position = self.length
            self.length += 1
            item = self.items[position]
            if item.id == self.noted_after:
                self.noted = self.length
            if gives_instructions(item):
                self.edited(-1)
            if self.shown_before(position) != position:
                self.edited(self.shown_before(position) - 1)
            call = self.answers().get(position)
            if call is not None:
                unit = self.units()[position]
                if call in self.dropped:
                    if self.limits.binds_thinking:
                        self.unthought |= {member for member in unit if isinstance(self.items[member], Reasoning)}
                    is_told = bool(set(self.told()).intersection(unit))
                    self.dropped -= set(unit)
                    self.compacted -= set(unit)
                    self.edited(-1 if is_told else unit[0])
                elif call not in self.responses()[-1]:
                    self.edited(self.wire(position))

    def wire(self, position: int) -> int:
        calls = [member for member in self.units()[position] if isinstance(self.items[member], FunctionCall)]
        return max(calls) if calls and not isinstance(self.items[position], Reasoning) else position

    def edited(self, position: int) -> None:
        if self.limits.binds_thinking:
            self.unthought |= {
                later for later in self.in_view() if later > position and isinstance(self.items[later], Reasoning) and not self.held(later)
            }

    # One trim

    def put_back(self, *, only_if_it_fits: bool) -> None:
        """What unread notices about unchanged files refer to, in the notice's place, unless the view has it whole."""
        runs = self.responses()
        for position in self.unread_outputs():
            is_edited = position in {*self.cleared, *self.cuts, *self.replaced, *self.extracts, *self.restored}
            source = None if is_edited or position < runs[-1][0] else self.refused_source(position)
            if source is None:
                continue
            item = replace(as_output(self.items[position]), output=as_output(self.items[source]).output)
            if not only_if_it_fits or self.total() + cost(item) - self.cost(position) <= self.limits.budget:
                self.restored[position] = source
                self.edited(self.wire(position))

    def refused_source(self, position: int) -> int | None:
        """The newest earlier result of an equal call that is not a notice itself, if no result or notice shows it whole."""
        if not is_notice(as_output(self.items[position])):
            return None
        asked = self.call_of(position)
        assert asked is not None
        for earlier in reversed(range(position)):
            call, item = self.call_of(earlier), self.items[earlier]
            if call is None or call.name != asked.name or object_of(call.arguments) != object_of(asked.arguments):
                continue
            if as_output(item).is_error:
                continue
            is_gone = earlier not in self.in_view() or earlier in {*self.cleared, *self.cuts, *self.extracts}
            if is_notice(as_output(item)):
                if earlier in self.restored and not is_gone and earlier not in self.replaced:
                    return None
                continue
            has_text_only = all(isinstance(part, Text) for part in as_output(item).output)
            return earlier if has_text_only and (is_gone or earlier in self.replaced) else None
        return None

    def trim(self) -> None:
        """Decide at a request, under the limits of this place."""
        limits, self.limits = self.limits, self.limits_now()
        self.decide()
        self.limits = limits

    def decide(self) -> None:
        before = self.changes()
        self.compact()
        self.put_back(only_if_it_fits=False)
        self.images()
        self.by_items()
        self.note_usage()
        self.by_tokens()
        if self.changes() != before:
            self.put_back(only_if_it_fits=True)
            if self.noted >= 0:
                self.withdraw_note()
            self.move_digests()

    def move_digests(self) -> None:
        """Each digest stands before the first item that is left in it, or before that one's response."""
        moved: dict[int, int] = {}
        for before in {self.digests[position] for position in self.in_view() if position in self.digests}:
            members = [position for position in self.in_view() if self.digests.get(position) == before]
            starts = [next((run[0] for run in self.responses() if position in run), position) for position in members]
            moved |= dict.fromkeys(members, min(starts))
        self.digests.update(moved)

    def by_items(self) -> None:
        limits = self.limits
        if limits.items_max is not None and len(self.in_view()) > limits.items_max:
            self.passes(self.goal(limits.items_max, limits.items_target, weigh=False), weigh=False)
            for unit in self.kept_units():
                if len(self.in_view()) > limits.items_max:
                    self.drop(unit)
            if len(self.in_view()) > limits.items_max:
                self.drop_first_message()

    def by_tokens(self) -> None:
        limits = self.limits
        if self.total() > limits.trigger:
            self.passes(self.goal(limits.trigger, limits.target, weigh=True), weigh=True)
            for unit in self.kept_units():
                if self.total() > limits.budget:
                    self.drop(unit)
            if self.total() > limits.budget:
                self.drop_first_message()
        if self.total() > limits.budget:
            self.shrink_frontier()

    def shrink_frontier(self) -> None:
        """What the model has not read yet, each step only while the view is over its budget."""
        for position in self.unread_context():
            if self.total() > self.limits.budget:
                self.drop([position])
        for position, part in self.unread_images():
            if self.total() > self.limits.budget:
                self.replaced[position] = (*self.replaced.get(position, ()), part)
                self.edited(self.wire(position))
        for places in (self.unread_outputs(), self.unread_calls()):
            if self.total() > self.limits.budget:
                self.truncate(places, self.room(places))
        if self.limits.clamp_messages and self.total() > self.limits.budget:
            messages = self.unread_messages()
            self.truncate(messages, self.room(messages) * self.limits.target // self.limits.budget)

    def unread_calls(self) -> list[int]:
        return [position for position in self.shrinkable() if isinstance(self.items[position], FunctionCall) and position in self.unread()]

    def unread_messages(self) -> list[int]:
        return [
            position
            for position in self.shrinkable()
            if isinstance(item := self.items[position], Message) and item.role == "user" and not is_silent(item) and not is_summary(item)
        ]

    def shrinkable(self) -> list[int]:
        visible = self.in_view()
        return [position for position in sorted({*self.unread(), *self.asking()}) if position in visible and not self.held(position)]

    def unread(self) -> set[int]:
        """All from the last response on, with the units that something of it belongs to."""
        runs = self.responses()
        first = runs[-1][0] if runs else min(self.frontier(), default=self.length)
        return {member for position in range(first, self.length) for member in self.units()[position]}

    def unread_context(self) -> list[int]:
        """Messages of category CONTEXT after the last response, or after the question that nothing was answered to."""
        runs = self.responses()
        answering = {position for run in runs for position in run}
        first = runs[-1][0] if runs else min(self.frontier(), default=self.length)
        users = self.asking()
        context = [
            position
            for position in self.in_view()
            if position >= first
            and position not in answering
            and position not in users
            and not isinstance(self.items[position], FunctionCallOutput)
            and self.category(position) is MessageCategory.CONTEXT
            and not self.held(position)
            and not is_summary(self.items[position])
            and self.cost(position)
        ]
        voices = [position for position in self.in_view() if position >= first and self.speaks(position)]
        newest = voices[-1:] if set(voices) <= set(context) else []
        return [position for position in context if position not in newest]

    def speaks(self, position: int) -> bool:
        """True if the item is a message in the user's turn: the user's or a handoff."""
        item = self.items[position]
        return isinstance(item, AgentHandoff) or (isinstance(item, Message) and item.role == "user" and not is_silent(item))

    def unread_images(self) -> list[tuple[int, int]]:
        """Images of the frontier whose placeholders are smaller, without the newest of the view."""
        live = self.live_images()
        images = []
        for position, part in live[: max(0, len(live) - self.limits.images_kept)]:
            system = self.category(position) is MessageCategory.SYSTEM
            if (
                position not in {*self.unread(), *self.asking()}
                or system
                or any(map(self.held, self.units()[position]))
                or is_summary(self.items[position])
            ):
                continue
            full_log = self.form(position, images=())[1]
            if self.form(position, images=(part,))[1] < full_log:
                images.append((position, part))
        return images

    def kept_units(self) -> list[list[int]]:
        """Units that rules keep and nothing else does, in the order in which they are dropped."""
        return [
            unit
            for category in ORDER
            for unit in self.takeable(category)
            if any(map(self.kept, unit)) and not (self.cannot_go(unit) or self.waits(unit))
        ]

    def drop_first_message(self) -> None:
        first, limits = self.first_message(), self.limits
        is_left_alone = limits.keep_first_message and not limits.clamp_messages
        if first and not self.cannot_go(first) and not is_left_alone:
            self.drop(first)

    def limits_now(self) -> Limits:
        """The limits at the end of the log, where the window is chosen by prices: the docstring of `auto_window.py`, step by step."""
        if self.limits.auto is None:
            return self.limits
        kept, log, runs = self.limits.auto.kept, self.log(), self.responses()
        base = self.total_of([position for position in self.in_view() if self.protected(self.units()[position])])
        growth = sum(map(cost, log[runs[0][0] :])) // len(runs) if runs else 0
        step = max(kept, isqrt(2 * kept * growth * self.limits.auto.rewrite // 100))
        if runs and log[-1].created_at - log[runs[-1][0]].created_at > self.limits.auto.lifetime:
            step = kept // 4
        trigger = min(self.limits.trigger, base + kept + step)
        return replace(self.limits, trigger=trigger, target=min(self.limits.target, base + kept, trigger - 1))

    def goal(self, most: int, target: int, *, weigh: bool) -> int:
        """The target; if protected items leave little room, those and half of the target's part of the room."""
        stays = [position for position in self.in_view() if self.protected(self.units()[position])]
        floor = self.total_of(stays) if weigh else len(stays)
        return max(target, floor + int((most - floor) * Fraction(target, 2 * most))) if floor < most else target

    def compact(self) -> None:
        compactions = [item for item in self.log() if isinstance(item, Compaction)]
        log_ids = [item.id for item in self.log()]
        replaced: set[int] = set()
        for item in compactions:
            replaced |= {log_ids.index(item_id) for item_id in item.replaces if item_id in log_ids and item_id != item.id}
        units = self.units()
        for position in sorted(replaced):
            unit = units[position]
            is_summarised = all(member in replaced or isinstance(self.items[member], Reasoning) for member in unit)
            if position in self.in_view() and position in self.digests and not is_summarised:
                self.leave([position])
            if position not in self.in_view() or not is_summarised:
                continue
            if any(self.held(member) or member in self.frontier() for member in unit) or self.category(unit[0]) is MessageCategory.SYSTEM:
                continue
            self.drop(unit, is_told=False)

    def live_images(self) -> list[tuple[int, int]]:
        return [
            (position, part)
            for position in self.in_view()
            if not self.is_shortened(position) and isinstance(item := self.items[position], Message | FunctionCallOutput)
            for part, content in enumerate(item.content if isinstance(item, Message) else item.output)
            if isinstance(content, Image) and part not in self.replaced.get(position, ())
        ]

    def images(self) -> None:
        """Older images: all if there are too many, else, if the request costs too much, the oldest until it is down to the goal."""
        live, limits = self.live_images(), self.limits
        is_capped = len(live) > limits.images_max
        if not is_capped and self.total() <= limits.trigger:
            return
        units, goal = self.units(), self.goal(limits.trigger, limits.target, weigh=True)
        for position, part in live[: max(0, len(live) - self.limits.images_kept)]:
            unit_held = any(self.held(member) for member in units[position]) or self.category(position) is MessageCategory.SYSTEM
            if unit_held or is_summary(self.items[position]) or position in self.frontier():
                continue
            earlier = self.replaced.get(position, ())
            saves = self.form(position, images=(*earlier, part))[1] < self.form(position, images=earlier)[1]
            if not is_capped and not (saves and self.total() > goal):
                continue
            self.replaced[position] = (*self.replaced.get(position, ()), part)
            self.edited(self.wire(position))

    def drop(self, unit: list[int], *, is_told: bool = True) -> None:
        visible = [position for position in unit if position in self.in_view()]
        self.dropped |= set(visible)
        if not is_told:
            self.compacted |= set(visible)
        shown_before = self.shown_before(visible[0])
        position = visible[0] if shown_before == visible[0] else shown_before - 1
        self.edited(-1 if is_told and self.limits.note_removed else position)

    def leave(self, places: list[int]) -> None:
        """These leave the view without a word. The rest of their unit does not, or only lines of it."""
        self.dropped |= set(places)
        self.compacted |= set(places)
        if places:
            self.edited(min(self.digests.get(position, position + 1) for position in places) - 1)

    def summarised(self) -> set[int]:
        """The items that summaries stand for."""
        ids = {item_id for item in self.log() if isinstance(item, Compaction) for item_id in item.replaces if item_id != item.id}
        return {position for position in range(self.length) if self.items[position].id in ids}

    def candidates(self, category: MessageCategory) -> list[list[int]]:
        """Units that may be dropped, in the order of dropping."""
        return [unit for unit in self.takeable(category) if not self.protected(unit)]

    def takeable(self, category: MessageCategory) -> list[list[int]]:
        """Units that may be dropped at all, in that order."""
        units = {tuple(unit): unit for unit in self.units().values()}
        visible = set(self.in_view())
        free = [
            unit
            for unit in units.values()
            if self.category(unit[0]) is category and visible.intersection(unit) and not self.cannot_go(unit)
        ]
        return sorted(free, key=lambda unit: unit[-1], reverse=self.limits.newest_first)

    def clearable(self) -> list[int]:
        """Outputs and calls that may be cleared, in the order of clearing: of each unit the outputs, then the calls."""
        places: list[int] = []
        for unit in self.takeable(MessageCategory.SYSTEM_OUTPUT):
            places += reversed(self.clearable_in(unit)) if self.limits.newest_first else self.clearable_in(unit)
        return sorted(places, key=lambda position: not self.early(position))

    def clearable_in(self, unit: list[int]) -> list[int]:
        """Of one unit: what would be smaller if it were cleared."""
        members = [position for position in unit if position in self.in_view() and not self.is_shortened(position)]
        outputs = [position for position in members if isinstance(self.items[position], FunctionCallOutput)]
        calls = [position for position in members if isinstance(self.items[position], FunctionCall) and self.limits.clear_call_inputs]
        placeholders = [position for position in outputs if self.items[position].extra.get(MARK) == "cleared"]
        free = [position for position in [*outputs, *calls] if position not in placeholders and not self.kept(position)]
        return [position for position in free if self.saved_by_clearing(position) > 0]

    def saved_by_clearing(self, position: int) -> int:
        cut = self.cuts.get(position) if isinstance(self.items[position], FunctionCall) else None
        return self.cost(position) - self.form(position, is_cleared=True, cut=cut)[1]

    def clear(self, position: int) -> None:
        self.cleared.add(position)
        self.edited(position if isinstance(self.items[position], FunctionCall) else self.wire(position))

    def passes(self, goal: int, *, weigh: bool) -> None:
        shares = dict(zip(MessageCategory, self.limits.shares, strict=True))
        for only_over_share in (True, False):
            for category in ORDER:
                while (self.total() if weigh else len(self.in_view())) > goal:
                    if only_over_share and self.amounts(weigh)[category] <= int(Fraction(shares[category]) * goal):
                        break
                    if weigh and category is MessageCategory.SYSTEM_OUTPUT and (places := self.clearable()):
                        self.clear(places[0])
                    elif units := self.candidates(category):
                        self.drop(units[0])
                    else:
                        break

    def unread_outputs(self) -> list[int]:
        return [position for position in self.shrinkable() if isinstance(self.items[position], FunctionCallOutput) and self.responses()]

    def truncate(self, places: list[int], room: int) -> None:
        most = [self.cost(position) for position in places]
        parts = poured(room, tuple(map(self.least, places)), tuple(most))
        for position, part, full in zip(places, parts, most, strict=True):
            if full > part:
                self.shorten(position, part)

    def room(self, outputs: list[int]) -> int:
        """Tokens of the budget that the outputs may have."""
        return self.limits.budget - self.total() + sum(self.cost(position) for position in outputs)

    def least(self, position: int) -> int:
        """The smallest cost of the output."""
        return min(self.cost(position), self.form_cut(position, Cut(0, 0, 0))[1])

    def form_cut(self, position: int, cut: Cut) -> tuple[Item, int]:
        """The item as it would be shown with this cut, and its cost. A placeholder stays one."""
        return self.form(position, is_cleared=position in self.cleared, images=self.replaced.get(position, ()), cut=cut)

    def shorten(self, position: int, limit: int) -> None:
        if not isinstance(self.items[position], FunctionCallOutput):
            self.shorten_middle(position, limit)
            return
        cut = self.longest(position, limit)
        if self.form_cut(position, cut)[1] < self.cost(position):
            self.cuts[position] = cut
            self.restored.pop(position, None)
            self.edited(self.wire(position))

    def longest(self, position: int, limit: int) -> Cut:
        """The longest cut of an output with which it costs at most the limit."""
        original, images = self.items[position], self.replaced.get(position, ())
        assert isinstance(original, FunctionCallOutput)
        text = original.text
        rest = self.form(position, images=images, cut=Cut(0, 0, 0))[1] - len(cut_text(original, 0, 0))
        head, tail = longest_cut(text, limit - rest, lambda head, tail: len(cut_text(original, head, tail)), len(text))
        return Cut(head, tail, 0)

    def shorten_middle(self, position: int, limit: int) -> None:
        """Each text of a message or call keeps as many characters as fit, the same number of each."""
        images = self.replaced.get(position, ())

        def cut_at(length: int) -> Cut:
            return Cut(length - length // 2, length // 2, 0)

        lengths = range(1, longest_text(self.items[position]) + 1)
        length = bisect_right(lengths, limit, key=lambda length: self.form(position, images=images, cut=cut_at(length))[1])
        if self.form_cut(position, cut_at(length))[1] < self.cost(position):
            self.cuts[position] = cut_at(length)
            self.edited(position)


def twin_of(session: Session, limits: Limits, facts: Facts | None = None) -> Twin:
    """The twin of a log that has not grown yet."""
    facts = {} if facts is None else facts
    log = list(session.items)
    return Twin(
        log,
        session.response_breaks,
        limits,
        facts=facts,
        earlier=session.removed,
        noted_after=session.usage_noted_after,
        ends=session.request_ends,
    )


def fold(session: Session, limits: Limits, facts: Facts | None = None) -> Twin:
    """The view of the whole log: trimmed where the model was called, and at the end as if it were called now."""
    twin = twin_of(session, limits, facts)
    for response in responses(twin.items, twin.breaks):
        twin.grow(response[0])
        if response[0] >= session.settled:
            twin.trim()
    twin.grow(len(twin.items))
    twin.trim()
    return twin


def folds(items: list[Item], limits: Limits, facts: Facts) -> Iterator[Twin]:
    """Yield the twin of every prefix of a log, as `fold` computes it. Decisions that are final are computed once."""
    final = Twin(items, frozenset(), limits, facts=facts)
    starts = {response[0] for response in responses(items, frozenset())}
    for length in range(1, len(items) + 1):
        if length - 1 in starts:
            final.trim()
        final.grow(length)
        twin = final.copy()
        twin.trim()
        yield twin


def one_shot(session: Session, limits: Limits) -> Twin:
    """The view that one trim makes."""
    twin = twin_of(session, limits)
    twin.grow(len(twin.items))
    twin.trim()
    return twin
