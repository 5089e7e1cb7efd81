"""Work grows with a log and not with its square: hostile patterns at four sizes, counted in lines of Python that run, not in seconds.

The patterns are those of `python -m benchmarks.growth`, here at small sizes. What grew before it was mended is named here, with a few
patterns of each kind beside it; the command measures all of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

from session import Session

growth: Any = import_module("benchmarks.growth")

pytestmark = pytest.mark.no_cover  # what is measured is work: it takes Python's one tracer

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
    "saved and loaded: compactions",
    "stored after every item: turns",
    "merged with a fork: one call id",
]


@pytest.mark.parametrize("name", [*READS, *APPENDS, *OTHERS])
def test_work_grows_with_the_log_and_not_with_its_square(name: str) -> None:
    amounts = growth.measured(name, 60, growth.lines_counted)
    assert growth.exponent(amounts) <= growth.BOUND, [round(amount) for amount in amounts]


def test_what_is_square_is_found_out() -> None:
    """The measure itself: twice the log, four times the work."""

    def square(n: int) -> float:
        work = growth.Work()
        with growth.lines_counted(work):
            for _ in range(n * n):
                Session()
        return float(work.amount)

    amounts = [square(5 * step) for step in growth.STEPS]
    assert growth.exponent(amounts) == pytest.approx(2, abs=0.1)


def test_what_is_no_square_is_not() -> None:
    assert growth.exponent([10, 20, 40, 80]) == 1
    assert growth.exponent([10, 20, 80, 320]) == 2
