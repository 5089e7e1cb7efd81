"""An object that is no strategy, or one that makes no sense, is refused when it is made: a `BudgetError` that names the setting."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from context_window import BudgetError, Chain, Choice, ContextWindow, DropOldest, NeverTrim, SlidingWindow, Summarize
from tests.support.numpy_like import Whole


@dataclass
class Changing:
    """A strategy that may change, so that no window can hold it."""

    count: int = 0

    def __call__(self, _units: Any, _budget: Any, /) -> tuple[()]:
        return ()


@dataclass(frozen=True)
class Marked:
    """A strategy with attributes of its own."""

    above_units: Any = None
    final: Any = False
    takes_system: Any = False
    shortens_unread: Any = False

    def __call__(self, _units: Any, _budget: Any, /) -> tuple[()]:
        return ()


async def waits(_units: Any, _budget: Any) -> list[Choice]:
    return []


@dataclass(frozen=True)
class Waits:
    """A strategy that is asked, and answers later."""

    async def __call__(self, _units: Any, _budget: Any, /) -> list[Choice]:
        return []


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ("sliding window", r"^strategy=.*: pass a PriorityTrim\(\), another .*, or a function of \(units, budget\)$"),
        (SlidingWindow, r"^strategy=.*: pass a PriorityTrim\(\)"),
        (5, r"^strategy=5: pass"),
        (lambda: (), r"^strategy=.*: pass a function that can be called with \(units, budget\)$"),
        (lambda _units: (), "pass a function that can be called with"),
        (lambda _units, _budget, _more: (), r"pass a function that can be called with \(units"),
        (waits, "pass a plain function"),
        (Waits(), "pass a plain function"),
        (Changing(), "pass a hashable one"),
        (Marked(above_units=-1), r"^strategy\.above_units=-1: make it None, or a whole number of 0 or more$"),
        (Marked(above_units=True), r"^strategy\.above_units=True: "),
        (Marked(final=1), r"^strategy\.final=1: make it True or False$"),
        (Marked(takes_system=None), r"^strategy\.takes_system=None: make it True or False$"),
        (Marked(shortens_unread=1), r"^strategy\.shortens_unread=1: make it True or False$"),
    ],
)
def test_what_is_no_strategy_is_refused_when_the_window_is_made(wrong: Any, told: str) -> None:
    with pytest.raises(BudgetError, match=told):
        ContextWindow(strategy=wrong)
    with pytest.raises(BudgetError, match=told.replace("strategy", "Chain")):
        Chain(DropOldest(), wrong)


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: SlidingWindow(0), r"^SlidingWindow\.units=0: pass a whole number of 1 or more$"),
        (lambda: SlidingWindow(2.0), r"^SlidingWindow\.units=2\.0: "),  # type: ignore[arg-type]
        (lambda: SlidingWindow(True), r"^SlidingWindow\.units=True: "),
        (lambda: SlidingWindow("4"), r"^SlidingWindow\.units='4': "),  # type: ignore[arg-type]
        (lambda: SlidingWindow(4, 0), r"^SlidingWindow\.step=0: pass a whole number of 1 or more$"),
        (lambda: SlidingWindow(4, 5), r"^SlidingWindow\.step=5: pass units=4 or less"),
        (lambda: DropOldest(1), r"^DropOldest\.keep_system=1: pass True or False$"),  # type: ignore[arg-type]
        (lambda: Summarize(-1), r"^Summarize\.keep_recent=-1: pass a whole number of 0 or more$"),
        (lambda: ContextWindow(max_context_items=9, strategy=NeverTrim()), r"^max_context_items=9: the strategy forbids all other trims"),
        (lambda: ContextWindow(max_context_items=9, strategy=DropOldest() | NeverTrim()), r"^max_context_items=9: "),
    ],
)
def test_strategies_that_make_no_sense_are_refused_when_they_are_made(make: Callable[[], object], told: str) -> None:
    with pytest.raises(BudgetError, match=told):
        make()


def test_numpys_integers_become_pythons() -> None:
    window = SlidingWindow(Whole(4), Whole(2))  # type: ignore[arg-type]
    assert (type(window.units), type(window.step), type(Summarize(Whole(4)).keep_recent)) == (int, int, int)  # type: ignore[arg-type]
    assert window == SlidingWindow(4, 2)


def test_callables_of_all_kinds_are_strategies() -> None:
    class Bound:
        def method(self, _units: Any, _budget: Any) -> tuple[()]:
            return ()

    for strategy in (Bound().method, Marked(), lambda *_: (), lambda _units, _budget, _more=None: (), max):
        assert ContextWindow(strategy=strategy).strategy is strategy or callable(strategy)  # type: ignore[arg-type]
