"""The strategies that have names on every log of up to three units, with `--long` four, against what their docstrings say."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import settings

from context_window import DropOldest, PriorityTrim, Session, SlidingWindow
from session.items import FunctionCall, FunctionCallOutput, Item, Message
from tests.support.checks import frontier
from tests.support.engine import Limits
from tests.support.harness import process, trim
from tests.support.managing import ids
from tests.support.strategic import decided_by
from tests.support.twin import cost

LARGE = 10**6
LONGEST = 4 if settings().max_examples >= 100 else 3
"""Units of the longest logs."""


def bounds(budget: int = LARGE, target: int | None = None) -> Limits:
    return Limits(budget, budget, budget if target is None else target, (Fraction(0),) * 4)


# Every small log

LETTERS = {"u": "user", "a": "assistant", "s": "system", "p": "pinned", "t": "a call and its output"}


def log_of(word: str) -> tuple[Session, list[list[int]]]:
    """A log with a unit for each letter, and the positions of each."""
    items: list[Item] = []
    units = []
    for number, letter in enumerate(word):
        if letter == "t":
            units.append([len(items), len(items) + 1])
            items += [FunctionCall("t", "{}", f"c{number}", id=f"t{number}"), FunctionCallOutput("t", "o", f"c{number}", id=f"o{number}")]
        else:
            role = {"u": "user", "p": "user", "a": "assistant", "s": "system"}[letter]
            units.append([len(items)])
            items.append(Message(role, letter * (number + 1), id=f"{letter}{number}", pinned=letter == "p"))  # type: ignore[arg-type]
    return Session(items, id=word), units


def words() -> Iterator[str]:
    for length in range(LONGEST + 1):
        for letters in product(LETTERS, repeat=length):
            yield "".join(letters)


def kept_of(word: str, log: Session, units: list[list[int]], view: Session) -> str:
    visible = {item.id for item in view.items}
    return "".join(letter for letter, unit in zip(word, units, strict=True) if log.items[unit[0]].id in visible)


def test_a_window_keeps_the_newest_units_of_every_small_log() -> None:
    for word in words():
        log, units = log_of(word)
        ahead = frontier(list(log.items), log.response_breaks)
        counted = [position for position, letter in enumerate(word) if letter != "s"]
        stay = [position for position in counted if word[position] == "p" or ahead.intersection(units[position])]
        others = [position for position in counted if position not in stay]
        for size in range(1, 4):
            room = max(0, size - len(stay))
            out = set(others[: max(0, len(others) - room)])
            expected = "".join(letter for position, letter in enumerate(word) if position not in out)
            window = SlidingWindow(size)
            strategy = (window, window | DropOldest(), PriorityTrim() | window)[(len(word) + size) % 3]
            assert kept_of(word, log, units, trim(log, decided_by(strategy, bounds())).view) == expected, (word, size)


@pytest.mark.parametrize("keep_system", [True, False])
def test_the_oldest_units_are_dropped_one_by_one_of_every_small_log(keep_system: bool) -> None:
    for word in words():
        log, units = log_of(word)
        ahead = frontier(list(log.items), log.response_breaks)
        stays = "sp" if keep_system else "p"
        free = [position for position, letter in enumerate(word) if letter not in stays and not ahead.intersection(units[position])]
        costs = [sum(cost(log.items[position]) for position in unit) for unit in units]
        for left in range(len(free) + 1):
            budget = max(1, sum(costs) - sum(costs[position] for position in free[:left]))
            expected = "".join(letter for position, letter in enumerate(word) if position not in free[:left])
            view = trim(log, decided_by(DropOldest(keep_system), bounds(budget))).view
            assert kept_of(word, log, units, view) == expected, (word, budget)
            if left and len(free[:left]) < len(free):
                more = trim(log, decided_by(DropOldest(keep_system), bounds(budget - 1))).view
                assert len(more.items) < len(view.items)


def test_with_too_many_items_and_few_tokens_no_more_goes_than_the_items_ask_for() -> None:
    log, _ = log_of("uuuuu")
    limits = replace(bounds(LARGE, target=1), items_max=4, items_target=3)
    assert ids(process(log, decided_by(DropOldest(), limits)).view) == ["u2", "u3", "u4"]
