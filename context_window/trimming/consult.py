"""A strategy asked, its choices checked and carried out. Whether the view then fits is for `steps.py`.

What a strategy gives is a stranger's: nothing is taken before all of it has been checked, and only the engine's own numbers count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NoReturn

from ..errors import StrategyError
from .choices import CHOICES, GIVEN, Adviser, Choice, StrategyBudget
from .limits import Limits
from .offered import UnitsInView, budget_of, clearable_in
from .plan import Action, Reason
from .state import ViewState

EXAMPLE = "such as [unit.drop() for unit in units if unit.free]"


def consult(view: ViewState, adviser: Adviser) -> None:
    """Takes what the strategy chooses, where it is to be asked.

    Raises:
        StrategyError: It raised, or gave what is no choice.
    """
    limits, items = view.limits, sum(view.tally.items)
    over = view.total > limits.trigger or (limits.items_max is not None and items > limits.items_max)
    if not over and (adviser.above_units is None or items <= adviser.above_units):
        return  # there are no more units than items, and those need not be counted
    budget = budget_of(view, limits)
    if _is_asked(adviser, budget):
        _carry_out(view, choices_of(view, adviser, budget), budget)


def to_summarise(view: ViewState, limits: Limits) -> list[int]:
    """The positions in the log of what the strategies want summarised, in order. None while the view is within the limits.

    Args:
        view: What is to be made smaller: the log without limits, or a view that is not trimmed yet.
        limits: What it is to fit, and the strategies.

    Raises:
        StrategyError: One of them raised, or gave what is no choice.
    """
    budget = budget_of(view, limits)
    heads = {
        choice.head
        for adviser in limits.advisers
        if _is_asked(adviser, budget)
        for choice in choices_of(view, adviser, budget)
        if choice.action is Action.SUMMARISE
    }
    return sorted(place for head in heads for place in view.groups.members(head) if view.gone(place) is None)


def _is_asked(adviser: Adviser, budget: StrategyBudget) -> bool:
    return budget.over or (adviser.above_units is not None and budget.units > adviser.above_units)


# Asking


def choices_of(view: ViewState, adviser: Adviser, budget: StrategyBudget) -> list[Choice]:
    """What the strategy chooses, all of it checked.

    Raises:
        StrategyError: It raised, or gave what is no choice.
    """
    units = UnitsInView(view)
    seen: set[tuple[int, Action]] = set()
    choices = []
    for choice in _answers(adviser, units, budget):
        _check(choice, units, adviser)
        if (choice.head, choice.action) in seen:  # what gives choices without end is found out here, too
            _wrong(adviser, f"chose to {choice.action.value} unit {choice.head} twice; it must choose an action for a unit once")
        seen.add((choice.head, choice.action))
        choices.append(choice)
    return choices


def _answers(adviser: Adviser, units: UnitsInView, budget: StrategyBudget) -> Iterator[Choice]:
    """The strategy's answer, one by one. Whatever it raises is its own fault, and is told so."""
    try:
        given = adviser.strategy(units, budget)
    except Exception as error:
        raise StrategyError(adviser.name, _raised(error)) from error
    if not isinstance(given, Iterable):
        _wrong(adviser, f"gave a {type(given).__name__}; it must give choices, {EXAMPLE}")
    try:
        yield from given
    except Exception as error:
        raise StrategyError(adviser.name, _raised(error)) from error


def _raised(error: Exception) -> str:
    return f"raised {type(error).__name__} when it was asked; it must give choices, {EXAMPLE}"


def _check(choice: Choice, units: UnitsInView, adviser: Adviser) -> None:
    """Raises StrategyError where this is no choice that can be carried out."""
    if not isinstance(choice, Choice):
        _wrong(adviser, f"gave a {type(choice).__name__} for a choice; what unit.drop(), unit.clear() or unit.summarise() gives is one")
    unit = units.by_head(choice.head)
    if unit is None:
        _wrong(adviser, "chose a unit that is not in the view; it must choose from the units that it is given")
    if not (
        any(choice.action is one for one in CHOICES) and any(choice.reason is one for one in GIVEN) and isinstance(choice.always, bool)
    ):
        actions, reasons = ", ".join(one.name for one in CHOICES), ", ".join(one.name for one in GIVEN)
        _wrong(adviser, f"made a choice that makes no sense; its action must be one of {actions}, its reason one of {reasons}")
    protected = unit.protected
    allowed = protected is Reason.SYSTEM and adviser.takes_system and choice.action is Action.DROP
    if protected is not None and not allowed:
        told = f"chose to {choice.action.value} unit {choice.head}, which is protected ({protected.value})"
        _wrong(adviser, f"{told}; it must choose units with unit.free only")


def _wrong(adviser: Adviser, problem: str) -> NoReturn:
    raise StrategyError(adviser.name, problem)


# Carrying out


def _carry_out(view: ViewState, choices: list[Choice], budget: StrategyBudget) -> None:
    """Takes what was chosen: always, or while the view is above what is aimed at of the limits it exceeded."""
    limits, tally = view.limits, view.tally
    tokens_goal = budget.target if budget.total > limits.trigger else None
    items_goal = budget.items_target if limits.items_max is not None and budget.items > limits.items_max else None

    def too_many_tokens() -> bool:
        return tokens_goal is not None and view.total > tokens_goal

    def too_many_items() -> bool:
        return items_goal is not None and sum(tally.items) > items_goal

    for choice in choices:
        if choice.action is Action.CLEAR:
            for place in list(clearable_in(view, choice.head)):
                if choice.always or too_many_tokens():
                    view.clear(place, choice.reason)
        elif choice.action is Action.DROP and (choice.always or too_many_tokens() or too_many_items()) and view.has_left(choice.head):
            view.drop(choice.head, choice.reason)  # of reasoning, another drop may have left nothing
