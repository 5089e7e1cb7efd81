"""A strategy asked, its choices checked and carried out. Whether the view then fits is for `steps.py`.

What a strategy gives is a stranger's: nothing is taken before all of it has been checked, and only the engine's own numbers count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NoReturn

from session.units import CONTEXT, FREE, HELD, KIND_OUTPUT, KIND_SILENT, KIND_USER, NONE, PRIORITY, SUMMARY, SYSTEM

from ..errors import StrategyError
from .choices import CHOICES, GIVEN, Adviser, Choice, MeasuredUnit, StrategyBudget
from .limits import Limits, portion
from .plan import Action, Reason
from .state import ViewState

EXAMPLE = "such as [unit.drop() for unit in units if unit.free]"


def consult(view: ViewState, adviser: Adviser) -> None:
    """Takes what the strategy chooses, where it is to be asked.

    Raises:
        StrategyError: It raised, or gave what is no choice.
    """
    budget = budget_of(view, view.limits)
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
    return budget.over or (adviser.above_items is not None and budget.items > adviser.above_items)


def budget_of(view: ViewState, limits: Limits) -> StrategyBudget:
    """What there is and what the view uses of it."""
    system, context, dialog, output = (portion(share, limits.target) for share in limits.shares)
    return StrategyBudget(
        total=view.total,
        overhead=view.total - view.tally.total,
        budget=limits.budget,
        trigger=limits.trigger,
        target=limits.target,
        shares=(system, context, dialog, output),
        items=sum(view.tally.items),
        items_max=limits.items_max,
        items_target=limits.items_target,
    )


def measured_units(view: ViewState) -> tuple[MeasuredUnit, ...]:
    """The units that have something in the view, in the order in which trims take."""
    groups = view.groups
    places: dict[int, list[int]] = {}
    for place in view.shown:
        if view.gone(place) is None:
            places.setdefault(groups.head[place], []).append(place)
    heads = sorted(places, key=groups.last.__getitem__, reverse=view.limits.newest_first)
    return tuple(_measured(view, head, places[head]) for head in heads)


def clearable_in(view: ViewState, head: int) -> Iterator[int]:
    """The unit's outputs whose placeholder is smaller than they are, in order."""
    groups, measures = view.groups, view.measures
    for place in groups.members(head):
        if groups.kind[place] == KIND_OUTPUT and not view.is_cleared(place) and measures.cleared(place) < view.tokens(place):
            yield place


def _measured(view: ViewState, head: int, places: list[int]) -> MeasuredUnit:
    groups = view.groups
    rank = groups.rank[places[0]]
    protected = _protection(view, head)
    saves = 0 if protected else sum(view.tokens(place) - view.measures.cleared(place) for place in clearable_in(view, head))
    return MeasuredUnit(
        head,
        tuple(places),
        PRIORITY[rank],
        sum(map(view.tokens, places)),
        saves,
        protected,
        begins_turn=groups.kind[head] == KIND_USER and rank != CONTEXT,
    )


def _protection(view: ViewState, head: int) -> Reason | None:
    """Why no trim may take the unit; the strongest reason, of which being SYSTEM is the weakest: `takes_system` lifts it."""
    groups = view.groups
    held = groups.held[head]
    if held != FREE and not groups.firm.isdisjoint(groups.members(head)):
        return Reason.PINNED
    if held == SUMMARY:
        return Reason.SUMMARY
    if view.in_frontier(head):
        return Reason.FRONTIER
    return Reason.SYSTEM if held == HELD or groups.rank[head] == SYSTEM else None


# Asking


def choices_of(view: ViewState, adviser: Adviser, budget: StrategyBudget) -> list[Choice]:
    """What the strategy chooses, all of it checked.

    Raises:
        StrategyError: It raised, or gave what is no choice.
    """
    units = measured_units(view)
    by_head = {unit.head: unit for unit in units}
    seen: set[tuple[int, Action]] = set()
    choices = []
    for choice in _answers(adviser, units, budget):
        _check(choice, by_head, adviser)
        if (choice.head, choice.action) in seen:  # what gives choices without end is found out here, too
            _wrong(adviser, f"chose to {choice.action.value} unit {choice.head} twice; it must choose an action for a unit once")
        seen.add((choice.head, choice.action))
        choices.append(choice)
    return choices


def _answers(adviser: Adviser, units: tuple[MeasuredUnit, ...], budget: StrategyBudget) -> Iterator[Choice]:
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


def _check(choice: Choice, by_head: dict[int, MeasuredUnit], adviser: Adviser) -> None:
    """Raises StrategyError where this is no choice that can be carried out."""
    if not isinstance(choice, Choice):
        _wrong(adviser, f"gave a {type(choice).__name__} for a choice; what unit.drop(), unit.clear() or unit.summarise() gives is one")
    if type(choice.head) is not int or choice.head not in by_head:
        _wrong(adviser, "chose a unit that is not in the view; it must choose from the units that it is given")
    if not (
        any(choice.action is one for one in CHOICES) and any(choice.reason is one for one in GIVEN) and isinstance(choice.always, bool)
    ):
        actions, reasons = ", ".join(one.name for one in CHOICES), ", ".join(one.name for one in GIVEN)
        _wrong(adviser, f"made a choice that makes no sense; its action must be one of {actions}, its reason one of {reasons}")
    protected = by_head[choice.head].protected
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
    tokens_goal = limits.target if budget.total > limits.trigger else None
    items_goal = limits.items_target if limits.items_max is not None and budget.items > limits.items_max else None

    def too_many_tokens() -> bool:
        return tokens_goal is not None and view.total > tokens_goal

    def too_many_items() -> bool:
        return items_goal is not None and sum(tally.items) > items_goal

    for choice in choices:
        if choice.action is Action.CLEAR:
            for place in list(clearable_in(view, choice.head)):
                if choice.always or too_many_tokens():
                    view.clear(place, choice.reason)
        elif choice.action is Action.DROP and (choice.always or too_many_tokens() or too_many_items()):
            _drop(view, choice.head, choice.reason)


def _drop(view: ViewState, head: int, reason: Reason) -> None:
    if not view.has_left(head):  # reasoning that another drop took along
        return
    view.drop(head, reason)
    if view.groups.kind[head] == KIND_SILENT and view.groups.rank[head] == SYSTEM:
        view.edited(NONE)  # the system prompt stands before everything
