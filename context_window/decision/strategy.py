"""Rule: strategies choose what to give up. Their choices are checked, then applied; `priority.py` makes sure afterwards that the view fits.

A strategy is somebody else's code: nothing is taken before all of its choices have been checked, and only the engine's numbers count.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import NoReturn, overload

from session.units import CONTEXT, FREE, HELD, KIND_USER, PRIORITY, SUMMARY, SYSTEM

from ..errors import StrategyError
from .limits import Limits, portion
from .line_choice import choose_lines
from .plan import Action, Reason
from .priority import clearable_in, items_goal, tokens_goal
from .strategy_api import CHOICES, STRATEGY_REASONS, Adviser, Choice, Extraction, MeasuredUnit, StrategyBudget
from .view import Rule, View

EXAMPLE = "such as [unit.drop() for unit in units if unit.free]"


class Strategies(Rule):
    """Asks each strategy in turn, if the view exceeds a limit or the strategy's own number of units, and applies its choices."""

    def decide(self, view: View) -> View:
        """Return the view without what strategies give up. Raises StrategyError if one raised, or returned an invalid choice."""
        for adviser in view.limits.advisers:
            view = consult(view, adviser)
        return view


def consult(view: View, adviser: Adviser) -> View:
    """Return the view without what one strategy gives up. Raises StrategyError if it raised, or returned an invalid choice."""
    limits, items = view.limits, sum(view.items)
    exceeds = view.total > limits.trigger or (limits.items_max is not None and items > limits.items_max)
    if not exceeds and (adviser.above_units is None or items <= adviser.above_units):
        return view  # there are at most as many units as items, so units need not be counted
    budget = budget_of(view, limits)
    if not _is_asked(adviser, budget):
        return view
    draft = view.draft()
    _apply(draft, choices_of(view, adviser, budget), budget)
    return draft


def to_summarise(view: View, limits: Limits) -> list[int]:
    """Return the positions of the items that the strategies want summarised, in order. Empty while the view is within the limits.

    The view is the log without limits, or not trimmed yet. Raises StrategyError if a strategy raised, or returned an invalid choice.
    """
    view = view.draft()
    view.limits = limits
    budget = budget_of(view, limits)
    heads = {
        choice.head
        for adviser in limits.advisers
        if _is_asked(adviser, budget)
        for choice in choices_of(view, adviser, budget)
        if isinstance(choice, Choice) and choice.action is Action.SUMMARISE
    }
    return sorted(at for head in heads for at in view.members(head))


def _is_asked(adviser: Adviser, budget: StrategyBudget) -> bool:
    return budget.over or (adviser.above_units is not None and budget.units > adviser.above_units)


# Asking


def choices_of(view: View, adviser: Adviser, budget: StrategyBudget) -> list[Choice | Extraction]:
    """Return the strategy's choices, all of them checked. Raises StrategyError if it raised, or returned an invalid choice."""
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


def _apply(view: View, choices: list[Choice | Extraction], budget: StrategyBudget) -> None:
    """Apply choices: others than `always` and those of lines only while the view is above the goal of a limit that it exceeded."""
    limits = view.limits
    tokens_to_reach = budget.target if budget.total > limits.trigger else None
    items_to_reach = budget.items_target if limits.items_max is not None and budget.items > limits.items_max else None

    def too_many_tokens() -> bool:
        return tokens_to_reach is not None and view.total > tokens_to_reach

    def too_many_items() -> bool:
        return items_to_reach is not None and sum(view.items) > items_to_reach

    for choice in choices:
        if isinstance(choice, Extraction):
            _extract(view, choice)
        elif choice.action is Action.CLEAR:
            for at in list(clearable_in(view, choice.head)):
                if choice.always or too_many_tokens():
                    view.clear(at, choice.reason)
        elif choice.action is Action.DROP and (choice.always or too_many_tokens() or too_many_items()) and view.members(choice.head):
            view.drop(choice.head, choice.reason)  # another drop may have taken reasoning with it


def _extract(view: View, choice: Extraction) -> None:
    """Put the most valuable lines of the units into a digest, and drop those without any.

    A unit with a result that a rule keeps stays as it is.
    """
    heads = [head for head in choice.heads if view.members(head) and not view.has_kept_result(head)]
    remaining = choose_lines(view, heads, choice.tokens)
    excerpts: dict[int, tuple[tuple[int, ...], int]] = {}
    for head in heads:
        excerpts_of_unit = remaining.get(head)
        if excerpts_of_unit is None:
            if view.members(head):
                view.drop(head, Reason.NO_LINES)
        elif excerpts_of_unit:
            view.leave([at for at in view.members(head) if at not in excerpts_of_unit])
            excerpts |= excerpts_of_unit
    if excerpts:
        view.show_lines(excerpts, choice.reason)


# Units as a strategy sees them. A unit is measured when it is looked at: most strategies look at a few of the oldest among many.


class UnitsInView(Sequence[MeasuredUnit]):
    """The units with visible items, in the order in which trims take them. Valid until the view changes."""

    def __init__(self, view: View) -> None:
        self._view = view
        groups = view.log.groups
        self._heads = sorted(_heads_in(view), key=groups.last.__getitem__, reverse=view.limits.newest_first)
        self._in_view = frozenset(self._heads)
        self._measured_units: dict[int, MeasuredUnit] = {}
        self._user_messages = [at for at in view.visible(groups.user_messages) if groups.kind[at] == KIND_USER]

    def __len__(self) -> int:
        return len(self._heads)

    @overload
    def __getitem__(self, index: int) -> MeasuredUnit: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[MeasuredUnit, ...]: ...

    def __getitem__(self, index: int | slice) -> MeasuredUnit | tuple[MeasuredUnit, ...]:
        if isinstance(index, slice):
            return tuple(map(self._measured, self._heads[index]))
        return self._measured(self._heads[index])

    def __iter__(self) -> Iterator[MeasuredUnit]:
        return map(self._measured, self._heads)

    def by_head(self, head: object) -> MeasuredUnit | None:
        """Return the unit with this head, if it is in the view."""
        return self._measured(head) if type(head) is int and head in self._in_view else None

    def _measured(self, head: int) -> MeasuredUnit:
        unit = self._measured_units.get(head)
        if unit is None:
            age = len(self._user_messages) - bisect_right(self._user_messages, self._view.log.groups.last[head])
            unit = self._measured_units[head] = measure_unit(self._view, head, age)
        return unit


def measure_unit(view: View, head: int, age: int) -> MeasuredUnit:
    """Return the unit as a strategy sees it; `age` is the number of newer user messages."""
    groups, indices = view.log.groups, tuple(view.members(head))
    protected = _protection(view, head)
    saves = 0 if protected else sum(view.costs[at] - view.cleared_tokens(at) for at in clearable_in(view, head))
    return MeasuredUnit(
        head,
        indices,
        PRIORITY[groups.rank[head]],
        sum(map(view.costs.__getitem__, indices)),
        saves,
        protected,
        begins_turn=groups.kind[head] == KIND_USER and groups.rank[head] != CONTEXT,
        age=age,
        is_shortened=any(map(view.is_shortened, indices)),
        contents=tuple(map(view.log.items.__getitem__, indices)),
    )


def _protection(view: View, head: int) -> Reason | None:
    """Return why no trim may take the unit: the strongest reason. SYSTEM is the weakest, because `takes_system` lifts it."""
    groups = view.log.groups
    protection = groups.unit_protection[head]
    if protection != FREE and not groups.always_protected.isdisjoint(groups.members(head)):
        return Reason.PINNED
    if protection == SUMMARY:
        return Reason.SUMMARY
    if view.log.in_frontier(head):
        return Reason.FRONTIER
    if view.log.is_waiting(head):
        return Reason.WAITING
    if head == view.first_message and protection == FREE:
        return Reason.FIRST_MESSAGE
    return Reason.SYSTEM if protection == HELD or groups.rank[head] == SYSTEM else None


def budget_of(view: View, limits: Limits) -> StrategyBudget:
    """Return the limits of the view and its use of them, for a strategy."""
    target = tokens_goal(view)
    system, context, dialog, output = (portion(share, target) for share in limits.shares)
    return StrategyBudget(
        total=view.total,
        overhead=view.overhead,
        budget=limits.budget,
        trigger=limits.trigger,
        target=target,
        shares=(system, context, dialog, output),
        units=sum(view.log.groups.rank[head] != SYSTEM for head in _heads_in(view)),
        items=sum(view.items),
        items_max=limits.items_max,
        items_target=items_goal(view),
        kept=None if limits.auto is None else limits.auto.kept,
    )


def _heads_in(view: View) -> dict[int, None]:
    """Return the heads of the units with visible items, in the log's order."""
    return dict.fromkeys(map(view.log.groups.head.__getitem__, view.visible()))
