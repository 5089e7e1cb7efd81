"""Logs whose lines differ in value, strategies that choose lines, and the slow form of the choice, written from its prose."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import sqrt
from typing import TYPE_CHECKING, TypeVar

from hypothesis import strategies as st

from context_window import Choice, Extraction, MeasuredUnit, Strategy, StrategyBudget, keep_lines
from context_window.strategies import DropOldest, Extract, SlidingWindow
from session.items import Compaction, FunctionCall, FunctionCallOutput, Item, Message, MessageCategory, parts_of_item
from session.json_strings import change_strings, string_values
from session.parts import Image, Part, Text
from session.session import Session
from tests.support.engine import (
    GAP,
    Cut,
    command_of,
    cut_to_lines,
    form_of,
    lines_of,
    names_error,
    names_in,
    rule_in,
    section,
    shows_texts,
    state_lines,
    texts_of,
    uncut_lines,
    weight_of,
)
from tests.support.strategies import sessions
from tests.support.twin import cost

if TYPE_CHECKING:
    from tests.support.strategic import StrategicTwin

T = TypeVar("T")

# Logs


@st.composite
def coded_sessions(draw: st.DrawFn, *, max_steps: int = 24) -> Session:
    """Random logs in which texts are lines of code, with rules and errors, and calls edit files, run commands and write plans."""
    log = draw(sessions(max_steps=max_steps))
    seed = draw(st.integers(0, 9))
    coded = Session([_coded(item, position + seed) for position, item in enumerate(log.items)], id=log.id)
    coded.restore_seams(log.response_breaks, 0)
    return coded


def _coded(item: Item, seed: int) -> Item:
    if isinstance(item, FunctionCall):
        kind, path = seed % 6, f"src/m{seed % 2}.py"
        if kind == 0:
            edit = {"path": path, "old_string": code(30, seed - 1), "new_string": code(len(item.arguments), seed)}
            return replace(item, name="edit", arguments=json.dumps(edit))
        if kind == 1:
            return replace(item, name="bash", arguments=json.dumps({"command": f"pytest {path}"}))
        if kind == 2:
            return replace(item, name="mcp__files__read", arguments=json.dumps({"path": f"/work/{path}"}))
        if kind == 3:
            return replace(item, name="todo_write", arguments=json.dumps({"todos": [{"content": code(len(item.arguments) // 2, seed)}]}))
        return replace(item, arguments=change_strings(item.arguments, lambda text: code(len(text), seed) if len(text) > 9 else text))
    if isinstance(item, Message | FunctionCallOutput):
        parts: tuple[Part, ...] = tuple(
            Text(code(len(part.text), seed + position)) if isinstance(part, Text) else part
            for position, part in enumerate(parts_of_item(item))
        )
        if isinstance(item, FunctionCallOutput):
            return replace(item, output=parts, name="recall" if seed % 7 == 6 else item.name)
        return replace(item, content=parts)
    return item


def code(size: int, seed: int) -> str:
    """Lines with about this number of characters in all, a few of them blank, equal, or long enough to be cut into pieces."""
    lines: list[str] = []
    number = seed
    while sum(map(len, lines)) < size:
        number += 1
        name, path = f"get_{'abcdefg'[number * 5 % 7]}", f"src/m{number * 3 % 5}.py"
        lines.append(
            (
                f"{name} = {path}:{number % 4 * 111}",
                f"{number}\treturn {name}(row_{number % 6})",
                "plain words only",
                "",
                f"from {path} import {name}, Row{number % 3}",
                f"You must never call {name}",
                f"E   ValueError: {path}:{number}",
                f"tests/test_{name}.py PASSED [{number} %]",
                f'{{"{name}": "{path}", ' * 16,
            )[(number * number + seed) % (9 if size > 800 else 8)]
        )
    return "\n".join(lines)[:size]


def without_images(item: Item) -> Item:
    parts = tuple(part for part in parts_of_item(item) if not isinstance(part, Image))
    if isinstance(item, FunctionCallOutput):
        return replace(item, output=parts)
    return replace(item, content=parts) if isinstance(item, Message) else item


# Strategies


def lines_of_old_turns(units: Sequence[MeasuredUnit], budget: StrategyBudget) -> list[Extraction]:
    """A plain function, as users write them."""
    return [keep_lines([unit for unit in units if unit.free and unit.age > 0], tokens=budget.target // 4)]


def lines_of_results(units: Sequence[MeasuredUnit], budget: StrategyBudget) -> list[Choice | Extraction]:
    """Two choices of lines, and other choices about the same units after them."""
    free = [unit for unit in units if unit.free]
    results = [unit for unit in free if unit.outputs]
    return [
        keep_lines(results[:-2], budget.target // 3),
        keep_lines([unit for unit in free if not unit.outputs], budget.target // 5),
        *(unit.clear() for unit in results),
        *(unit.drop() for unit in free),
    ]


PARTS = st.sampled_from((0.0, 0.15, 0.3, 0.5, 0.8, 1.0))
EXTRACTS = st.one_of(st.just(Extract()), st.builds(Extract, PARTS, PARTS, PARTS))
EXTRACTING: st.SearchStrategy[Strategy] = st.one_of(
    EXTRACTS,
    st.sampled_from([lines_of_old_turns, lines_of_results, SlidingWindow(9, 2) | Extract(), Extract() | DropOldest()]),
)


# The slow choice


class SlowChoice:
    """The lines that stay of some units, found by computing every gain again at every step."""

    def __init__(self, twin: StrategicTwin, units: Sequence[Sequence[int]]) -> None:
        self.twin = twin
        self.units = [[position for position in unit if position in twin.in_view()] for unit in units]
        self.costs = {position: twin.cost(position) for unit in self.units for position in unit}
        self.shown = {name for position in twin.in_view() if position not in self.costs for name in self.names_shown(position)}
        self.summarised = twin.summarised()
        self.is_open = False
        self.whole: list[list[int]] = []
        self.chosen: dict[int, list[int]] = {}

    def cost(self, position: int) -> int:
        """Tokens of an item when the choice began."""
        return self.costs[position]

    def cut_within(self, position: int, room: int) -> Cut | None:
        """The cut of an output to its first lines and its last ones, each in a quarter of the room, and the best of the others.

        None if it has no lines."""
        item = self.twin.items[position]
        assert isinstance(item, FunctionCallOutput)
        lines = lines_of(texts_of(item))
        if not lines:
            return None
        self.units, self.shown, self.summarised, self.is_open = [[position]], set(), set(), True
        self.chosen[position] = []
        prices = [self.price([position], position, number) for number in range(len(lines))]
        kept: set[int] = set()
        for numbers in (range(len(lines)), range(len(lines) - 1, -1, -1)):
            left = room // 4
            for number in numbers:
                left -= prices[number]
                if left < 0 or number in kept:
                    break
                kept.add(number)
        self.chosen[position] = sorted(kept)
        self.shown = {name for number in kept for name in self.names_of_line(position, number)}
        self.take(room - sum(prices[number] for number in kept))
        return cut_to_lines(item, lines, sorted(self.chosen[position]))

    def take(self, room: int) -> None:
        """Take the line or unit with the highest gain per token, again and again, until it does not fit."""
        while True:
            steps = [(unit, position, number) for unit in self.units for position, number in self.steps(unit)]
            gains = [(self.gain(*step), self.price(*step), step) for step in steps]
            useful = [(-gain / price, -step[1], step[2], step[0], price) for gain, price, step in gains if gain]
            if not useful:
                return
            _, newness, number, unit, price = min(useful)
            if price > room:
                return
            room -= price
            self.shown.update(self.names_added(unit, -newness, number))
            if number < 0:
                self.whole.append(unit)
            else:
                self.shown.update(self.others(-newness))
                self.chosen.setdefault(-newness, []).append(number)

    def steps(self, unit: list[int]) -> list[tuple[int, int]]:
        """The lines that may be taken now, or -1 for all of the unit."""
        if not self.is_open and self.is_all_or_nothing(unit):
            return [] if unit in self.whole else [(self.twin.units()[unit[0]][0], -1)]
        places = [position for position in unit if position not in self.summarised]
        return [
            (position, number) for position in places for number in self.new_lines(position) if number not in self.chosen.get(position, [])
        ]

    def is_all_or_nothing(self, unit: list[int]) -> bool:
        """True if no item of it has lines, or the headings alone would cost as much; or a call has no output yet.

        Items that summaries stand for do not count.
        """
        answered = self.twin.answers().values()
        if any(isinstance(self.twin.items[position], FunctionCall) and position not in answered for position in unit):
            return True
        if self.is_worthless(unit):
            return False
        with_lines = [position for position in unit if self.new_lines(position) and position not in self.summarised]
        return not with_lines or sum(map(self.heading, with_lines)) >= sum(map(self.cost, unit))

    def gain(self, unit: list[int], position: int, number: int) -> float:
        total = 0.0
        for name in self.names_added(unit, position, number):
            if name not in self.shown:
                total += self.value(name)
        return total

    def names_added(self, unit: list[int], position: int, number: int) -> list[str]:
        if number >= 0:
            return self.names_of_line(position, number)
        return list(dict.fromkeys(name for member in unit for name in self.names_shown(member)))

    def price(self, unit: list[int], position: int, number: int) -> int:
        if number < 0:
            return max(1, sum(map(self.cost, unit)))
        item = self.twin.items[position]
        tokens = self.once("without images", position, lambda: cost(without_images(item)))
        part = len(self.line(position, number)) * tokens // sum(map(len, texts_of(item)))
        return len(GAP) + part + (0 if position in self.chosen else self.heading(position))

    def heading(self, position: int) -> int:
        return len(section(self.twin.items[position], (), self.twin.call_of(position)))

    def is_worthless(self, unit: list[int]) -> bool:
        """True if all of its lines repeat others."""
        places = [position for position in unit if self.lines(position) and position not in self.summarised]
        return bool(places) and not any(map(self.new_lines, places))

    # Lines and names

    def new_lines(self, position: int) -> list[int]:
        """The lines that the view shows of an item, without those that repeat others: the output of a command that ran again later, and
        lines which at least three outputs of commands have in the same form but for numbers. Lines that name an error never do."""
        outputs = self.commands()
        command = outputs.get(position)
        ran_again = command is not None and any(later > position and command == other for later, other in outputs.items())
        printed, item = self.printed(), self.twin.items[position]
        if isinstance(item, FunctionCallOutput) and item.name == "recall":
            return []
        return [
            number
            for number in self.lines(position)
            if names_error(line := self.line(position, number))
            or not (ran_again or (position in printed and sum(form_of(line) in self.forms(other) for other in printed) >= 3))
        ]

    def commands(self) -> dict[int, str]:
        """The outputs of commands, each with its command."""
        calls = {position: self.twin.call_of(position) for position in range(self.twin.length)}
        return {position: command for position, call in calls.items() if call is not None and (command := command_of(call)) is not None}

    def printed(self) -> list[int]:
        """What calls printed that do not show texts of others, or in a log without calls what follows an answer."""
        twin = self.twin
        return [
            position
            for position in range(twin.length)
            if ((call := twin.call_of(position)) is not None and not shows_texts(call)) or (call is None and self.is_result(position))
        ]

    def forms(self, position: int) -> set[str]:
        texts = self.once("texts", position, lambda: texts_of(self.twin.items[position]))
        return self.once("forms", position, lambda: {form_of(texts[text][start:end]) for text, start, end in lines_of(texts)})

    def lines(self, position: int) -> list[int]:
        """The lines that the view shows of an item."""
        twin = self.twin
        if position in twin.cleared:
            return []
        if position in twin.extracts:
            return list(twin.extracts[position])
        item, cut = twin.items[position], twin.cuts.get(position)
        spans = self.once("spans", position, lambda: lines_of(texts_of(item)))
        return list(range(len(spans))) if cut is None else uncut_lines(item, spans, cut)

    def line(self, position: int, number: int) -> str:
        texts = self.once("texts", position, lambda: texts_of(self.twin.items[position]))
        text, start, end = self.once("spans", position, lambda: lines_of(texts))[number]
        return texts[text][start:end]

    def names_of_line(self, position: int, number: int) -> list[str]:
        line, item = self.line(position, number), self.twin.items[position]
        may_rule = self.is_user(position) or (isinstance(item, Message) and item.category is MessageCategory.CONTEXT)
        rule = rule_in(line) if may_rule else None
        return list(dict.fromkeys(filter(weight_of, [*names_in(line), *([rule] if rule else [])])))

    def names_shown(self, position: int) -> list[str]:
        is_cleared = position in self.twin.cleared and isinstance(self.twin.items[position], FunctionCallOutput)
        return [
            *([] if is_cleared else self.others(position)),
            *(name for number in self.lines(position) for name in self.names_of_line(position, number)),
        ]

    def others(self, position: int) -> list[str]:
        """The names that no extract of the item takes away."""
        item = self.twin.items[position]
        texts: list[str] = []
        if isinstance(item, FunctionCall):
            texts = [item.name] if texts_of(item) else [item.name, *string_values(item.arguments)]
        elif isinstance(item, Compaction):
            texts = [item.summary]
        return [name for text in texts for line in text.split("\n") for name in filter(weight_of, names_in(line))]

    def names(self, position: int) -> list[str]:
        """All names of an item, each once."""

        def compute() -> list[str]:
            lines = range(len(lines_of(texts_of(self.twin.items[position]))))
            return list(dict.fromkeys([*self.others(position), *(name for line in lines for name in self.names_of_line(position, line))]))

        return self.once("names", position, compute)

    def value(self, name: str) -> float:
        twin = self.twin
        holders = [position for position in range(twin.length) if name in self.names(position)]
        items = [twin.items[position] for position in holders]
        by_call = any(isinstance(item, FunctionCall) for item in items)
        by_user = any(self.is_user(position) for position in holders)
        uses = sum(isinstance(item, FunctionCall) or (isinstance(item, Message) and item.role == "assistant") for item in items)
        age = sum(twin.form(position)[1] for position in range(holders[-1] + 1, twin.length))
        crowd = len(self.names(holders[-1]))
        state = {known for line in state_lines(twin.items[: twin.length]) for known in names_in(line)}
        weight = weight_of(name) * (1 + by_user) * (1 + by_call) * (3 if name in state else 1)
        return weight * (1 + uses) / sqrt((1 + 10 * age / max(1, twin.limits.trigger)) * (1 + crowd))

    def is_user(self, position: int) -> bool:
        """True for a user's message, but not for a result of a command in a log without calls."""
        item = self.twin.items[position]
        return isinstance(item, Message) and item.role == "user" and not self.is_result(position)

    def is_result(self, position: int) -> bool:
        """True for what follows an answer in a log without calls."""
        items = self.twin.items
        before = items[position - 1] if position else None
        is_answered = isinstance(before, FunctionCall) or (isinstance(before, Message) and before.role == "assistant")
        return is_answered and position > 2 and not any(isinstance(other, FunctionCall) for other in items[:position])

    def once(self, name: str, position: int, compute: Callable[[], T]) -> T:
        return self.twin.fact((name, position), compute)
