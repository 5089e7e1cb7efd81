"""The slow twin: how a view is made, written from the prose of docs/how-it-works.md, everything computed anew at every step.

It shares with the engine only what an item looks like once cleared or cut (`placeholders`, `longest_cut`): those have
tests of their own. No state is kept but what was decided at earlier request points.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from typing import Any, TypeVar

from context_window.counting.cutting import longest_cut
from context_window.trimming.limits import Limits
from context_window.trimming.placeholders import MARK, changed, cleared, cut_text
from context_window.trimming.plan import Cut
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
from session.parts import Image
from session.providers.additions import SUMMARY_HEADER
from session.session import Session
from tests.support.counting import Letters

COUNT = Letters()
T = TypeVar("T")
Facts = dict[tuple[str, int, int], Any]
"""What a log is at each length, by name, length and place. It depends on its items and breaks alone: folds of one log may share it."""
ORDER = (MessageCategory.SYSTEM_OUTPUT, MessageCategory.DIALOG, MessageCategory.CONTEXT)


def cost(item: Item) -> int:
    """Tokens of an item: its texts and parts, 4 an item, 5 more for calls and outputs; nothing for what is not sent."""
    if isinstance(item, AgentHandoff | AgentConfigUpdate):
        return 0
    if isinstance(item, Message):
        return 4 + sum(COUNT.count_part(part) for part in item.content)
    if isinstance(item, FunctionCall):
        return 9 + len(item.name) + len(item.arguments)
    if isinstance(item, FunctionCallOutput):
        return 9 + len(item.name) + sum(COUNT.count_part(part) for part in item.output)
    if isinstance(item, Compaction):
        return 4 + len(SUMMARY_HEADER + item.summary)
    sealed = item.data or (item.signature if not item.text else None) or ""
    return 4 + len(item.text) + len(sealed) * 3 // 16


def is_summary(item: Item) -> bool:
    return isinstance(item, Compaction) or (isinstance(item, Message) and item.extra.get("summary") is True)


def is_silent(item: Item) -> bool:
    """Whether it never is a message of its own."""
    if isinstance(item, Message) and item.role == "user":
        return not any(isinstance(part, Image) or (part.text or "").strip() for part in item.content)
    return isinstance(item, AgentHandoff | AgentConfigUpdate) or is_system(item)


def is_system(item: Item) -> bool:
    return isinstance(item, Message) and item.role in ("system", "developer")


def is_answer(item: Item) -> bool:
    return isinstance(item, Reasoning | FunctionCall) or (isinstance(item, Message) and item.role == "assistant" and not is_summary(item))


def responses(items: list[Item], breaks: frozenset[str]) -> list[list[int]]:
    """Runs of answering items of one agent."""
    found: list[list[int]] = []
    for place, item in enumerate(items):
        if not is_answer(item):
            continue
        before = items[place - 1] if place else None
        goes_on = before is not None and is_answer(before) and before.agent_id == item.agent_id and item.id not in breaks
        if goes_on:
            found[-1].append(place)
        else:
            found.append([place])
    return found


def answers(items: list[Item]) -> dict[int, int | None]:
    """For each output: the last unanswered call before it with its call id, or None."""
    found: dict[int, int | None] = {}
    for place, item in enumerate(items):
        if isinstance(item, FunctionCallOutput):
            found[place] = next(
                (
                    earlier
                    for earlier in range(place - 1, -1, -1)
                    if isinstance(call := items[earlier], FunctionCall) and call.call_id == item.call_id and earlier not in found.values()
                ),
                None,
            )
    return found


def unit_of(items: list[Item], breaks: frozenset[str]) -> dict[int, list[int]]:
    """For each position: the positions it stands or falls with."""
    units: dict[int, list[int]] = {place: [place] for place in range(len(items))}
    answered = answers(items)
    for response in responses(items, breaks):
        calls = [place for place in response if isinstance(items[place], FunctionCall)]
        if calls:
            thoughts = [place for place in response if isinstance(items[place], Reasoning)]
            outputs = [place for place, call in answered.items() if call in calls]
            unit = sorted([*thoughts, *calls, *outputs])
            for place in unit:
                units[place] = unit
            continue
        run: list[int] = []
        for place in response:
            if isinstance(items[place], Reasoning):
                run.append(place)
            else:
                for member in [*run, place]:
                    units[member] = [*run, place]
                run = []
        for member in run:
            units[member] = run
    return units


def category_of(items: list[Item], unit: list[int]) -> MessageCategory:
    """A unit's category is its calls'; the highest, where they differ. Without calls it is the text's, or the first thought's."""
    calls = [items[place].category for place in unit if isinstance(items[place], FunctionCall)]
    if calls:
        return min(calls, key=list(MessageCategory).index)
    text = [items[place].category for place in unit if not isinstance(items[place], Reasoning)]
    return text[0] if text else items[unit[0]].category


@cache
def poured(room: int, least: tuple[int, ...], most: tuple[int, ...]) -> list[int]:
    """The room shared out a token at a time, each to the one that has the least and is not full; of equals, to the newest."""
    parts = list(least)
    for _ in range(room - sum(least)):
        hungry = [one for one in reversed(range(len(parts))) if parts[one] < most[one]]
        if not hungry:
            break
        parts[min(hungry, key=parts.__getitem__)] += 1
    return parts


@dataclass
class Twin:
    """The view of a log, and what was decided so far."""

    items: list[Item]
    breaks: frozenset[str]
    limits: Limits
    dropped: set[int] = field(default_factory=set)
    unthought: set[int] = field(default_factory=set)
    cleared: set[int] = field(default_factory=set)
    replaced: dict[int, tuple[int, ...]] = field(default_factory=dict)
    cuts: dict[int, Cut] = field(default_factory=dict)
    length: int = 0
    known: Facts = field(default_factory=dict)

    # What the log is so far, computed once for each length

    def once(self, name: str, compute: Callable[[], T], place: int = -1) -> T:
        key = (name, self.length, place)
        if key not in self.known:
            self.known[key] = compute()
        found: T = self.known[key]
        return found

    def log(self) -> list[Item]:
        return self.items[: self.length]

    def answers(self) -> dict[int, int | None]:
        return self.once("answers", lambda: answers(self.log()))

    def responses(self) -> list[list[int]]:
        return self.once("responses", lambda: responses(self.log(), self.breaks))

    def units(self) -> dict[int, list[int]]:
        return self.once("units", lambda: unit_of(self.log(), self.breaks))

    def category(self, place: int) -> MessageCategory:
        return self.once("category", lambda: category_of(self.items, self.units()[place]), place)

    # What is there now

    def shown(self, place: int) -> Item:
        item = self.items[place]
        if place in self.cleared:
            assert isinstance(item, FunctionCallOutput)
            return cleared(item)
        if place in self.replaced or place in self.cuts:
            return changed(item, self.replaced.get(place, ()), self.cuts.get(place))
        return item

    def cost(self, place: int) -> int:
        """Tokens of what is shown there."""
        if place in self.cleared or place in self.replaced or place in self.cuts:
            return cost(self.shown(place))
        return self.once("cost", lambda: cost(self.items[place]), place)

    def orphans(self) -> set[int]:
        return self.once("orphans", lambda: {place for place, call in self.answers().items() if call is None})

    def in_view(self) -> list[int]:
        gone = self.dropped | self.unthought | self.orphans()
        return [place for place in range(self.length) if place not in gone]

    def view(self) -> list[Item]:
        return [self.shown(place) for place in self.in_view()]

    def amounts(self, weigh: bool) -> dict[MessageCategory, int]:
        sums = dict.fromkeys(MessageCategory, 0)
        for place in self.in_view():
            sums[self.category(place)] += self.cost(place) if weigh else 1
        return sums

    def additions(self) -> int:
        answered = set(self.answers().values())
        open_calls = sum(isinstance(self.items[place], FunctionCall) and place not in answered for place in self.in_view())
        said = [self.items[place] for place in self.in_view() if not is_silent(self.items[place])]
        headless = bool(said) and not (isinstance(said[0], Message) and said[0].role == "user")
        return open_calls * self.limits.synthetic + headless * self.limits.preamble

    def total(self) -> int:
        return self.limits.overhead + self.additions() + sum(self.cost(place) for place in self.in_view())

    def total_of(self, places: list[int]) -> int:
        """The same if nothing else of the items were there."""
        return self.total() - sum(self.cost(place) for place in self.in_view() if place not in places)

    # Who may be touched

    def frontier(self) -> set[int]:
        return self.once("frontier", self._frontier)

    def _frontier(self) -> set[int]:
        log = self.log()
        users = [place for place, item in enumerate(log) if isinstance(item, Message) and item.role == "user"]
        said = [place for place in users if log[place].category is not MessageCategory.CONTEXT] or users
        found = self.responses()
        first = found[-1][0] if found else said[-1] if said else self.length
        return {*said[-1:], *range(first, self.length)}

    def held(self, place: int) -> bool:
        item = self.items[place]
        return item.category is MessageCategory.SYSTEM or item.pinned

    def protected(self, unit: list[int]) -> bool:
        return any(self.held(place) or is_summary(self.items[place]) or place in self.frontier() for place in unit) or (
            self.category(unit[0]) is MessageCategory.SYSTEM
        )

    # The log grows

    def grow(self, length: int) -> None:
        while self.length < length:
            place = self.length
            self.length += 1
            item = self.items[place]
            if is_system(item):
                self.edited(-1)
            call = self.answers().get(place)
            if call is not None:
                unit = self.units()[place]
                if call in self.dropped:
                    if self.limits.binds_thinking:
                        self.unthought |= {member for member in unit if isinstance(self.items[member], Reasoning)}
                    self.dropped -= set(unit)
                    self.edited(unit[0])
                elif call not in self.responses()[-1]:
                    self.edited(self.wire(place))

    def wire(self, place: int) -> int:
        calls = [member for member in self.units()[place] if isinstance(self.items[member], FunctionCall)]
        return max(calls) if calls and not isinstance(self.items[place], Reasoning) else place

    def edited(self, place: int) -> None:
        if self.limits.binds_thinking:
            self.unthought |= {
                later for later in self.in_view() if later > place and isinstance(self.items[later], Reasoning) and not self.held(later)
            }

    # One trim

    def trim(self) -> None:
        self.compact()
        self.images()
        limits = self.limits
        if limits.items_max is not None and len(self.in_view()) > limits.items_max:
            self.passes(self.goal(limits.items_max, limits.items_target, weigh=False), weigh=False)
        if self.total() > limits.trigger:
            self.passes(self.goal(limits.trigger, limits.target, weigh=True), weigh=True)
        if self.total() > limits.budget:
            self.truncate()

    def goal(self, most: int, target: int, *, weigh: bool) -> int:
        """The target; where what stays leaves little room, what stays and half of the target's part of the room."""
        stays = [place for place in self.in_view() if self.protected(self.units()[place])]
        floor = self.total_of(stays) if weigh else len(stays)
        return max(target, floor + int((most - floor) * Fraction(target, 2 * most))) if floor < most else target

    def compact(self) -> None:
        compactions = [item for item in self.log() if isinstance(item, Compaction)]
        log_ids = [item.id for item in self.log()]
        replaced: set[int] = set()
        for item in compactions:
            own = log_ids.index(item.id)
            replaced |= {log_ids.index(one) for one in item.replaces if one in log_ids[:own]}
        units = self.units()
        for place in sorted(replaced):
            unit = units[place]
            whole = all(member in replaced or isinstance(self.items[member], Reasoning) for member in unit)
            if place not in self.in_view() or not whole:
                continue
            if any(self.held(member) or member in self.frontier() for member in unit) or self.category(unit[0]) is MessageCategory.SYSTEM:
                continue
            self.drop(unit)

    def images(self) -> None:
        live = [
            (place, part)
            for place in self.in_view()
            if place not in self.cleared and isinstance(item := self.items[place], Message | FunctionCallOutput)
            for part, content in enumerate(item.content if isinstance(item, Message) else item.output)
            if isinstance(content, Image) and part not in self.replaced.get(place, ())
        ]
        if len(live) <= self.limits.images_max:
            return
        units = self.units()
        for place, part in live[: max(0, len(live) - self.limits.images_kept)]:
            unit_held = any(self.held(member) for member in units[place]) or self.category(place) is MessageCategory.SYSTEM
            if unit_held or is_summary(self.items[place]) or place in self.frontier():
                continue
            self.replaced[place] = (*self.replaced.get(place, ()), part)
            self.edited(self.wire(place))

    def drop(self, unit: list[int]) -> None:
        there = [place for place in unit if place in self.in_view()]
        self.dropped |= set(there)
        self.edited(there[0])

    def candidates(self, category: MessageCategory) -> list[list[int]]:
        """Units that may be dropped, in the order of dropping."""
        units = {tuple(unit): unit for unit in self.units().values()}
        shown = set(self.in_view())
        free = [
            unit for unit in units.values() if self.category(unit[0]) is category and shown.intersection(unit) and not self.protected(unit)
        ]
        return sorted(free, key=lambda unit: unit[-1], reverse=self.limits.newest_first)

    def clearable(self) -> list[int]:
        """Outputs that may be cleared, in the order of clearing."""
        found = []
        for unit in self.candidates(MessageCategory.SYSTEM_OUTPUT):
            members = [place for place in unit if place in self.in_view() and place not in self.cleared]
            for place in reversed(members) if self.limits.newest_first else members:
                item = self.items[place]
                marked = item.extra.get(MARK) == "cleared"
                if isinstance(item, FunctionCallOutput) and not marked and cost(cleared(item)) < self.cost(place):
                    found.append(place)
        return found

    def passes(self, goal: int, *, weigh: bool) -> None:
        shares = dict(zip(MessageCategory, self.limits.shares, strict=True))
        for only_over_share in (True, False):
            for category in ORDER:
                while (self.total() if weigh else len(self.in_view())) > goal:
                    if only_over_share and self.amounts(weigh)[category] <= int(Fraction(shares[category]) * goal):
                        break
                    if weigh and category is MessageCategory.SYSTEM_OUTPUT and (outputs := self.clearable()):
                        self.cleared.add(outputs[0])
                        self.edited(self.wire(outputs[0]))
                    elif units := self.candidates(category):
                        self.drop(units[0])
                    else:
                        break

    def truncate(self) -> None:
        found = self.responses()
        if not found:
            return
        shown = self.in_view()
        outputs = [
            place
            for place in range(found[-1][0], self.length)
            if isinstance(self.items[place], FunctionCallOutput) and place in shown and not self.held(place)
        ]
        most = [self.cost(place) for place in outputs]
        parts = poured(self.room(outputs), tuple(map(self.least, outputs)), tuple(most))
        for place, part, whole in zip(outputs, parts, most, strict=True):
            if whole > part:
                self.shorten(place, part)

    def room(self, outputs: list[int]) -> int:
        """What the outputs may have of the budget."""
        return self.limits.budget - self.total() + sum(self.cost(place) for place in outputs)

    def least(self, place: int) -> int:
        """What the output costs at the least."""
        item = self.items[place]
        return min(self.cost(place), cost(changed(item, self.replaced.get(place, ()), Cut(0, 0, 0))))

    def shorten(self, place: int, limit: int) -> None:
        item = self.shown(place)
        original = self.items[place]
        assert isinstance(item, FunctionCallOutput)
        assert isinstance(original, FunctionCallOutput)
        text = original.text
        rest = cost(changed(original, self.replaced.get(place, ()), Cut(0, 0, 0))) - len(cut_text(original, 0, 0))
        head, tail = longest_cut(text, limit - rest, lambda head, tail: len(cut_text(original, head, tail)), len(text))
        cut = Cut(head, tail, 0)
        if cost(changed(original, self.replaced.get(place, ()), cut)) < cost(item):
            self.cuts[place] = cut
            self.edited(self.wire(place))


def fold(session: Session, limits: Limits, known: Facts | None = None) -> Twin:
    """The view of the whole log: trimmed where the model was called, and at the end as if it were called now."""
    twin = Twin(list(session.items), session.response_breaks, limits, known={} if known is None else known)
    for response in responses(twin.items, twin.breaks):
        twin.grow(response[0])
        if response[0] >= session.settled:
            twin.trim()
    twin.grow(len(twin.items))
    twin.trim()
    return twin


def one_shot(session: Session, limits: Limits) -> Twin:
    """The view that one trim makes."""
    twin = Twin(list(session.items), session.response_breaks, limits)
    twin.grow(len(twin.items))
    twin.trim()
    return twin
