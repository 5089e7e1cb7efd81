"""A strategy is somebody else's code: an invalid choice is an error that says so, and changes neither session nor manager."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from context_window import Action, Choice, ContextWindowError, Reason, StrategyError, keep_lines
from tests.support.managing import ids, make_manager, session_of


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
    "gives nothing": (lambda _units, _budget: None, "returned a NoneType"),
    "gives a number": (lambda _units, _budget: 5, "returned a int"),
    "gives a text": (lambda _units, _budget: "drop them", "returned a str"),
    "gives the units": (lambda units, _budget: units, "returned a MeasuredUnit"),
    "gives what cannot be read": (lambda _units, _budget: Unreadable(), "raised ValueError when it was asked"),
    "gives what looks like a choice": (lambda units, _budget: [replace(free(units)[0]).__class__], "returned a type"),
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
    "gives another's reason": (
        lambda units, _budget: [free(units)[0].drop(Reason.PINNED)],
        "its reason must be one of BY_STRATEGY, OUT_OF_WINDOW",
    ),
    "gives a reason of its own": (lambda units, _budget: [free(units)[0].drop("old")], "its reason must be one of"),
    "is not sure": (lambda units, _budget: [free(units)[0].drop(always=1)], "an invalid choice"),
    "chooses twice": (lambda units, _budget: [free(units)[0].drop()] * 2, "chose to drop unit 1 twice"),
    "keeps lines of one unit twice": (
        lambda units, _budget: [keep_lines(free(units)[:1], 10), keep_lines(free(units), 10)],
        "chose to extract unit 1 twice",
    ),
    "keeps lines of what is protected": (lambda units, _budget: [keep_lines(units, 10)], "which is protected"),
    "keeps lines for half a token": (lambda units, _budget: [keep_lines(free(units), 0.5)], "a whole number of tokens"),  # type: ignore[arg-type]
    "keeps lines of nothing, without end": (lambda _units, _budget: (keep_lines([], 10) for _ in itertools.count()), "again and again"),
    "never ends": (lambda units, _budget: (free(units)[0].drop() for _ in itertools.count()), "chose to drop unit 1 twice"),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_no_choice_is_an_error_that_names_the_strategy(name: str) -> None:
    wrong, message = CASES[name]
    wrong.__name__ = "tidy_up"
    keeper, session = make_manager(1000, strategy=wrong), session_of(6)
    before = session.to_dict()
    for call in (keeper.process_session, keeper.trim_session, keeper.plan_session, keeper.process_session):
        with pytest.raises(StrategyError) as caught:
            call(session)
        assert caught.value.strategy == "tidy_up"
        assert str(caught.value).startswith("the strategy 'tidy_up' ")
        assert message in str(caught.value)
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
        make_manager(1000, strategy=TakesSystem(reason)).trim_session(session)


def test_a_strategy_that_recovers_gives_what_it_would_have_given_at_once() -> None:
    state = {"broken": True}

    def moody(units: Any, _budget: Any) -> list[Choice]:
        choices = [unit.drop() for unit in free(units)]
        if state["broken"]:
            choices.append(units[-1].drop())
        return choices

    keeper, session = make_manager(1000, strategy=moody), session_of(6)
    for _ in range(2):
        with pytest.raises(StrategyError):
            keeper.process_session(session)
    state["broken"] = False
    recovered = keeper.process_session(session)
    assert ids(recovered) == ids(make_manager(1000, strategy=moody).process_session(session))


def test_forged_units_change_no_number() -> None:
    """A choice names a unit; the cost that a strategy believes in does not matter."""

    def forges(units: Any, _budget: Any) -> list[Choice]:
        return [replace(unit, tokens=-(10**9), category=None, places=()).drop() for unit in free(units)]

    def honest(units: Any, _budget: Any) -> list[Choice]:
        return [unit.drop() for unit in free(units)]

    session = session_of(6)
    plans = [make_manager(1000, strategy=strategy).plan_session(session) for strategy in (forges, honest)]
    assert plans[0] == plans[1]
    assert plans[0].after < plans[0].before


@dataclass(frozen=True)
class Eager:
    """Names all that it may, as outputs to clear or as units to drop, and is asked at every call."""

    drops: bool
    above_units: int = 0

    def __call__(self, units: Any, _budget: Any) -> list[Choice]:
        return [unit.drop(Reason.BY_STRATEGY) if self.drops else unit.clear(Reason.OUT_OF_WINDOW) for unit in free(units)]


def test_the_plan_tells_the_reason_that_a_strategy_gave() -> None:
    session = session_of(6)
    for drops, action, reason in ((True, Action.DROP, Reason.BY_STRATEGY), (False, Action.CLEAR, Reason.OUT_OF_WINDOW)):
        plan = make_manager(1900, strategy=Eager(drops)).plan_session(session)
        assert (plan.changes[0].action, plan.changes[0].reason) == (action, reason)
