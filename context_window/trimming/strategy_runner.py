"""Asks a strategy, checks its choices and applies them. `trim.py` makes sure afterwards that the view fits.

A strategy is somebody else's code: nothing is taken before all of its choices have been checked, and only the engine's numbers count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NoReturn

from ..errors import StrategyError
from .digests import Excerpt
from .limits import Limits
from .line_choice import choose_lines
from .plan import Action, Reason
from .strategy_api import CHOICES, STRATEGY_REASONS, Adviser, Choice, Extraction, StrategyBudget
from .strategy_units import UnitsInView, budget_of, clearable_in
from .view_state import ViewState

EXAMPLE = "such as [unit.drop() for unit in units if unit.free]"


def consult(view: ViewState, adviser: Adviser) -> None:
    """Ask the strategy and apply its choices, if the view exceeds a limit or the strategy's own number of units.

    Raises:
        StrategyError: It raised, or returned an invalid choice.
    """
    limits, items = view.limits, sum(view.tally.items)
    exceeds = view.total > limits.trigger or (limits.items_max is not None and items > limits.items_max)
    if not exceeds and (adviser.above_units is None or items <= adviser.above_units):
        return  # there are at most as many units as items, so units need not be counted
    view.tally.decided_to = len(view)
    budget = budget_of(view, limits)
    if _is_asked(adviser, budget):
        _apply(view, choices_of(view, adviser, budget), budget)


def to_summarise(view: ViewState, limits: Limits) -> list[int]:
    """Return the positions of the items that the strategies want summarised, in order. Empty while the view is within the limits.

    Args:
        view: The view that is too large: the log without limits, or a view that is not trimmed yet.
        limits: The limits it must fit, and the strategies.

    Raises:
        StrategyError: One of them raised, or returned an invalid choice.
    """
    budget = budget_of(view, limits)
    heads = {
        choice.head
        for adviser in limits.advisers
        if _is_asked(adviser, budget)
        for choice in choices_of(view, adviser, budget)
        if isinstance(choice, Choice) and choice.action is Action.SUMMARISE
    }
    return sorted(place for head in heads for place in view.groups.members(head) if view.hidden_reason(place) is None)


def _is_asked(adviser: Adviser, budget: StrategyBudget) -> bool:
    return budget.over or (adviser.above_units is not None and budget.units > adviser.above_units)


# Asking


def choices_of(view: ViewState, adviser: Adviser, budget: StrategyBudget) -> list[Choice | Extraction]:
    """Return the strategy's choices, all of them checked.

    Raises:
        StrategyError: It raised, or returned an invalid choice.
    """
    units = UnitsInView(view)
    chosen: set[tuple[int, Action]] = set()
    choices = []
    for choice in _ask(adviser, units, budget):
        _check(choice, adviser)
        for head in choice.heads if isinstance(choice, Extraction) else (choice.head,):
            _check_unit(head, choice.action, units, adviser)
            if (head, choice.action) in chosen:  # this also stops a strategy that yields choices without end
                _fail(adviser, f"chose to {choice.action.value} unit {head} twice; it must choose an action for a unit once")
            chosen.add((head, choice.action))
        choices.append(choice)
        if len(choices) > len(Action) * (len(units) + 1):
            _fail(adviser, "chose the lines of no units again and again; it must return a finite number of choices")
    return choices


def _ask(adviser: Adviser, units: UnitsInView, budget: StrategyBudget) -> Iterator[Choice | Extraction]:
    """Yield the strategy's choices. Any exception of the strategy becomes a StrategyError."""
    try:
        choices = adviser.strategy(units, budget)
    except Exception as error:
        raise StrategyError(adviser.name, _raised_text(error)) from error
    if not isinstance(choices, Iterable):
        _fail(adviser, f"returned a {type(choices).__name__}; it must return choices, {EXAMPLE}")
    try:
        yield from choices
    except Exception as error:
        raise StrategyError(adviser.name, _raised_text(error)) from error


def _raised_text(error: Exception) -> str:
    return f"raised {type(error).__name__} when it was asked; it must return choices, {EXAMPLE}"


def _check(choice: Choice | Extraction, adviser: Adviser) -> None:
    """Raise StrategyError unless the choice has values of the right types."""
    if not isinstance(choice, Choice | Extraction):
        makers = "unit.drop(), unit.clear() or unit.summarise(), or by keep_lines(units, tokens)"
        _fail(adviser, f"returned a {type(choice).__name__}; a choice is made by {makers}")
    if not any(choice.reason is reason for reason in STRATEGY_REASONS):
        _fail(adviser, f"made an invalid choice; its reason must be one of {', '.join(reason.name for reason in STRATEGY_REASONS)}")
    if isinstance(choice, Extraction):
        if type(choice.tokens) is not int or not isinstance(choice.heads, tuple):
            _fail(adviser, "made an invalid choice of lines; pass units and a whole number of tokens")
    elif not (any(choice.action is action for action in CHOICES) and isinstance(choice.always, bool)):
        _fail(adviser, f"made an invalid choice; its action must be one of {', '.join(action.name for action in CHOICES)}")


def _check_unit(head: object, action: Action, units: UnitsInView, adviser: Adviser) -> None:
    """Raise StrategyError unless the action may be applied to the unit."""
    unit = units.by_head(head)
    if unit is None:
        _fail(adviser, "chose a unit that is not in the view; it must choose from the units that are passed to it")
    protected = unit.protected
    is_allowed = protected is Reason.SYSTEM and adviser.takes_system and action is Action.DROP
    if protected is not None and not is_allowed:
        problem = f"chose to {action.value} unit {head}, which is protected ({protected.value})"
        _fail(adviser, f"{problem}; it must choose units with unit.free only")


def _fail(adviser: Adviser, problem: str) -> NoReturn:
    raise StrategyError(adviser.name, problem)


# Applying


def _apply(view: ViewState, choices: list[Choice | Extraction], budget: StrategyBudget) -> None:
    """Apply choices: others than `always` and those of lines only while the view is above the goal of a limit that it exceeded."""
    limits, tally = view.limits, view.tally
    tokens_goal = budget.target if budget.total > limits.trigger else None
    items_goal = budget.items_target if limits.items_max is not None and budget.items > limits.items_max else None

    def too_many_tokens() -> bool:
        return tokens_goal is not None and view.total > tokens_goal

    def too_many_items() -> bool:
        return items_goal is not None and sum(tally.items) > items_goal

    for choice in choices:
        if isinstance(choice, Extraction):
            _extract(view, choice)
        elif choice.action is Action.CLEAR:
            for place in list(clearable_in(view, choice.head)):
                if choice.always or too_many_tokens():
                    view.clear(place, choice.reason)
        elif choice.action is Action.DROP and (choice.always or too_many_tokens() or too_many_items()) and view.is_visible(choice.head):
            view.drop(choice.head, choice.reason)  # another drop may have taken reasoning with it


def _extract(view: ViewState, choice: Extraction) -> None:
    """Put the most valuable lines of the units into a digest, and drop those without any.

    A unit with a result that a rule keeps stays as it is.
    """
    rules = view.results
    heads = [head for head in choice.heads if view.is_visible(head) and not (rules is not None and rules.has_kept(head))]
    remaining = choose_lines(view, heads, choice.tokens)
    excerpts: dict[int, Excerpt] = {}
    for head in heads:
        excerpts_of_unit = remaining.get(head)
        if excerpts_of_unit is None:
            if view.is_visible(head):
                view.drop(head, Reason.NO_LINES)
        elif excerpts_of_unit:
            view.keep_only(head, excerpts_of_unit)
            excerpts |= excerpts_of_unit
    if excerpts:
        view.put_into_digest(excerpts, choice.reason)
