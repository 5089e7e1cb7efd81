"""A strategy is a stranger: what it gives wrong is an error that says so, and the session and the manager are as before."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from context_window import (
    Action,
    BudgetError,
    Chain,
    Choice,
    ContextWindow,
    ContextWindowError,
    ContextWindowManager,
    DropOldest,
    ModelConfig,
    NeverTrim,
    Reason,
    Reasoning,
    Session,
    SlidingWindow,
    StrategyError,
    Summarize,
)
from tests.support.counting import Letters
from tests.support.managing import ids, manager, session_of
from tests.support.numpy_like import Whole


def free(units: Any) -> list[Any]:
    return [unit for unit in units if unit.free]


def raises(units: Any, budget: Any) -> Any:
    raise KeyError(units[0], budget)


def raises_later(units: Any, _budget: Any) -> Iterator[Choice]:
    yield free(units)[0].drop()
    raise RecursionError


class Unreadable:
    """What cannot even be looked at."""

    def __iter__(self) -> Any:
        raise ValueError("no")

    def __eq__(self, other: object) -> bool:
        raise ValueError("no")

    __hash__ = object.__hash__


CASES: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "raises": (raises, "raised KeyError when it was asked"),
    "raises after a choice": (raises_later, "raised RecursionError when it was asked"),
    "gives nothing": (lambda _units, _budget: None, "gave a NoneType"),
    "gives a number": (lambda _units, _budget: 5, "gave a int"),
    "gives a text": (lambda _units, _budget: "drop them", "gave a str for a choice"),
    "gives the units": (lambda units, _budget: units, "gave a MeasuredUnit for a choice"),
    "gives what cannot be read": (lambda _units, _budget: Unreadable(), "raised ValueError when it was asked"),
    "gives what looks like a choice": (lambda units, _budget: [replace(free(units)[0]).__class__], "gave a type for a choice"),
    "drops a system message": (
        lambda units, _budget: [units[0].drop()],
        "chose to drop unit 0, which is protected (system items are always",
    ),
    "drops what the model reads": (lambda units, _budget: [units[-1].drop()], "which is protected (the model is about to read it"),
    "clears what the model reads": (lambda units, _budget: [units[-1].clear(always=True)], "which is protected"),
    "summarises a system message": (lambda units, _budget: [units[0].summarise()], "which is protected"),
    "drops a unit that is not there": (lambda _units, _budget: [Choice(10**9, Action.DROP)], "chose a unit that is not in the view"),
    "drops the middle of a unit": (lambda _units, _budget: [Choice(3, Action.DROP)], "chose a unit that is not in the view"),
    "counts from the end": (lambda _units, _budget: [Choice(-1, Action.DROP)], "chose a unit that is not in the view"),
    "names a unit by a text": (lambda _units, _budget: [Choice("u0", Action.DROP)], "chose a unit that is not in the view"),  # type: ignore[arg-type]
    "names a unit by what cannot be hashed": (lambda _units, _budget: [Choice([], Action.DROP)], "chose a unit that is not in"),  # type: ignore[arg-type]
    "names a unit by True": (lambda _units, _budget: [Choice(True, Action.DROP)], "chose a unit that is not in the view"),
    "keeps": (lambda units, _budget: [Choice(free(units)[0].head, Action.KEEP)], "its action must be one of CLEAR, SUMMARISE, DROP"),
    "truncates": (lambda units, _budget: [Choice(free(units)[0].head, Action.TRUNCATE)], "its action must be one of"),
    "does what cannot be compared": (lambda units, _budget: [Choice(free(units)[0].head, Unreadable())], "its action must be"),  # type: ignore[arg-type]
    "gives another's reason": (lambda units, _budget: [free(units)[0].drop(Reason.PINNED)], "its reason one of BY_STRATEGY, OUT_OF_WINDOW"),
    "gives a reason of its own": (lambda units, _budget: [free(units)[0].drop("old")], "its reason one of"),
    "is not sure": (lambda units, _budget: [free(units)[0].drop(always=1)], "makes no sense"),
    "chooses twice": (lambda units, _budget: [free(units)[0].drop()] * 2, "chose to drop unit 1 twice"),
    "never ends": (lambda units, _budget: (free(units)[0].drop() for _ in itertools.count()), "chose to drop unit 1 twice"),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_no_choice_is_an_error_that_names_the_strategy(name: str) -> None:
    wrong, told = CASES[name]
    wrong.__name__ = "tidy_up"
    keeper, session = manager(1000, strategy=wrong), session_of(6)
    before = session.to_dict()
    for call in (keeper.process_session, keeper.trim_session, keeper.plan_session, keeper.process_session):
        with pytest.raises(StrategyError) as caught:
            call(session)
        assert caught.value.strategy == "tidy_up"
        assert str(caught.value).startswith("the strategy 'tidy_up' ")
        assert told in str(caught.value)
        assert isinstance(caught.value, ContextWindowError)
    assert session.to_dict() == before
    assert keeper.process_session(session_of(1)).items, "it is not asked where everything fits"
    assert keeper.analyze_session(session)["total_tokens"] > 1000, "what needs no strategy works"


@dataclass(frozen=True)
class TakesSystem:
    """One that may drop system messages, and drops whatever is protected by this.

    Attributes:
        reason: What protects it.
    """

    reason: Reason
    takes_system: bool = True

    def __call__(self, units: Any, _budget: Any, /) -> list[Choice]:
        return [unit.drop(always=True) for unit in units if unit.protected is self.reason]


@pytest.mark.parametrize("reason", [Reason.PINNED, Reason.FRONTIER, Reason.SUMMARY])
def test_who_may_drop_system_messages_may_drop_nothing_else_that_is_protected(reason: Reason) -> None:
    session = session_of(6)
    session.pin("u1")
    session.add_message("assistant", "so far", "summary", extra={"summary": True})
    session.add_message("user", "and?", "last")
    with pytest.raises(StrategyError, match=r"^the strategy 'TakesSystem' chose to drop unit \d+, which is protected"):
        manager(1000, strategy=TakesSystem(reason)).trim_session(session)


def test_a_system_message_that_goes_takes_all_reasoning_with_it_that_a_model_binds_to_it() -> None:
    """A system prompt stands before everything, wherever in the log it is."""
    session = Session(id="s")
    session.add_message("user", "go", "go")
    session.append(Reasoning("hm", signature="s", id="thought"))
    session.add_message("assistant", "so", "so")
    session.add_message("system", "x" * 300, "rules")
    session.add_message("user", "and?", "and")
    session.add_message("assistant", "fine", "fine")
    for binds in (True, False):
        keeper = ContextWindowManager(
            ModelConfig(max_tokens=300, binds_thinking=binds),
            token_counter=Letters(),
            context_window=ContextWindow(strategy=TakesSystem(Reason.SYSTEM)),
        )
        changes = {one.item_id: one.reason for one in keeper.plan_session(session, one_shot=True).changes}
        assert changes == {"rules": Reason.BY_STRATEGY} | ({"thought": Reason.BOUND_REASONING} if binds else {})


def test_a_strategy_that_recovers_gives_what_it_would_have_given_at_once() -> None:
    state = {"broken": True}

    def moody(units: Any, _budget: Any) -> list[Choice]:
        choices = [unit.drop() for unit in free(units)]
        if state["broken"]:
            choices.append(units[-1].drop())
        return choices

    keeper, session = manager(1000, strategy=moody), session_of(6)
    for _ in range(2):
        with pytest.raises(StrategyError):
            keeper.process_session(session)
    state["broken"] = False
    recovered = keeper.process_session(session)
    assert ids(recovered) == ids(manager(1000, strategy=moody).process_session(session))


def test_forged_units_change_no_number() -> None:
    """A choice is of a unit; what the strategy believes that it costs is nobody's concern."""

    def forges(units: Any, _budget: Any) -> list[Choice]:
        return [replace(unit, tokens=-(10**9), category=None, places=()).drop() for unit in free(units)]

    def honest(units: Any, _budget: Any) -> list[Choice]:
        return [unit.drop() for unit in free(units)]

    session = session_of(6)
    plans = [manager(1000, strategy=strategy).plan_session(session) for strategy in (forges, honest)]
    assert plans[0] == plans[1]
    assert plans[0].after < plans[0].before


def test_a_strategy_that_names_everything_takes_no_more_than_is_needed() -> None:
    """Else than by `always`: choices are an order of preference."""

    def everything(units: Any, _budget: Any) -> list[Choice]:
        return [unit.drop() for unit in free(units)]

    session = session_of(6)
    assert manager(1000, strategy=everything).plan_session(session).after > 650 - 400
    asked = manager(1000, strategy=everything, target_ratio=1.0).plan_session(session)
    assert 1000 - 400 < asked.after <= 1000


def test_one_that_takes_nothing_is_helped_out() -> None:
    session = session_of(6)
    lazy = manager(1000, strategy=lambda _units, _budget: ()).plan_session(session)
    assert lazy == manager(1000).plan_session(session)


# Settings


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
        (None, r"^strategy=None: pass a PriorityTrim\(\)"),
        (5, r"^strategy=5: pass"),
        (lambda: (), r"^strategy=.*: pass a function that can be called with \(units, budget\)$"),
        (lambda _units: (), "pass a function that can be called with"),
        (lambda _units, _budget, _more: (), r"pass a function that can be called with \(units"),
        (waits, "pass a plain function"),
        (Waits(), "pass a plain function"),
        (Changing(), "pass one that can be hashed"),
        (Marked(above_units=-1), r"^strategy\.above_units=-1: make it None, or a whole number of 0 or more$"),
        (Marked(above_units=True), r"^strategy\.above_units=True: "),
        (Marked(final=1), r"^strategy\.final=1: make it True or False$"),
        (Marked(takes_system=None), r"^strategy\.takes_system=None: make it True or False$"),
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
        (lambda: ContextWindow(max_context_items=9, strategy=NeverTrim()), r"^max_context_items=9: the strategy lets nothing else"),
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
