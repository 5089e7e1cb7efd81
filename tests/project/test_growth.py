"""Work grows linearly with a log: hostile patterns at four sizes, measured in executed lines of Python, not in seconds.

The patterns are those of `python -m benchmarks.growth`, here at small sizes. The tests run some of those that
once grew faster, with `--long` all of these and a few others of each kind; the command runs all patterns.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

from context_window import ContextWindow, ContextWindowManager
from session import Session

growth: Any = import_module("benchmarks.growth")

pytestmark = pytest.mark.no_cover  # the measurement needs Python's only trace function

READS = [name for name in growth.PATTERNS if name.startswith("read ")]
APPENDS = [
    "append and process: calls in one response",
    "append and process: calls in one response, with a report",
    "append and process: late answers",
    "append and process: late answers to thoughts",
    "append and process: users' messages",
    "append and process: pinned messages",
    "append and process: system messages among turns",
    "append and process: pinned messages among turns",
    "append and process: images among turns",
    "append and process: compactions",
]
OTHERS = [
    "to Anthropic: late answers",
    "to OpenAI chat: compactions",
    "to OpenAI Responses: handoffs among turns",
    "to Google: late answers",
    "usage after every item: turns",
    "fork after every item: turns",
    "pin after every item: turns",
    "manage after every item: turns",
    "compacting turn: turns",
    "compacting turn: pinned messages among turns",
    "plan after every item: turns",
    "plan after every item: pinned messages among turns",
    "saved and loaded: compactions",
    "stored after every item: turns",
    "merged with a fork: one call id",
]


QUICK = [*READS[::3], *APPENDS[::3], *OTHERS[::3]]


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in QUICK else pytest.mark.long) for name in [*READS, *APPENDS, *OTHERS]]
)
def test_work_grows_with_the_log_and_not_with_its_square(name: str, request: pytest.FixtureRequest) -> None:
    is_anew = name.startswith(growth.ANEW)  # these look at the whole log at every item
    smallest = 60 if request.config.getoption("--long") else 12 if is_anew else 40
    amounts = growth.measure(name, smallest, growth.count_lines)
    assert growth.exponent(amounts) <= growth.bound_of(name), [round(amount) for amount in amounts]


def test_a_turn_that_fits_costs_the_same_whatever_the_session_holds() -> None:
    lines = []
    for turns in (50, 50, 800):  # the first one imports
        manager = ContextWindowManager("gpt-5", token_counter=growth.characters, context_window=ContextWindow(max_tokens=10**9))
        session, work = Session(), growth.Work()
        for item in growth.turns(session, turns):
            session.append(item)
        manager.process_session(session)
        session.add_message("user", "question")
        with growth.count_lines(work):
            manager.process_session(session)
        lines.append(work.amount)
    assert lines[2] <= 1.2 * lines[1], lines


def test_quadratic_growth_is_detected() -> None:
    """A check of the measurement itself: twice the log, four times the work."""

    def square(n: int) -> float:
        work = growth.Work()
        with growth.count_lines(work):
            for _ in range(n * n):
                Session()
        return float(work.amount)

    amounts = [square(5 * step) for step in growth.STEPS]
    assert growth.exponent(amounts) == pytest.approx(2, abs=0.1)


def test_linear_growth_is_accepted() -> None:
    assert growth.exponent([10, 20, 40, 80]) == 1
    assert growth.exponent([10, 20, 80, 320]) == 2
