"""The strategies of this library: how a full window is trimmed, by name.

Their interface is in `decision/strategy_api.py`. `decision/strategy.py` checks and applies their choices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from inspect import isclass, iscoroutinefunction, signature
from itertools import islice
from operator import attrgetter
from typing import Any

from session.identity import is_digest
from session.items import Message, MessageCategory
from session.summarizers import Summarizer, Summarizing, as_summarizer

from .decision.plan import Reason
from .decision.refused_reads import is_notice
from .decision.strategy_api import (
    Adviser,
    Advisers,
    Choice,
    Extraction,
    MeasuredUnit,
    Strategy,
    StrategyBudget,
    keep_lines,
)
from .decision.working_state import file_in_work
from .errors import BudgetError
from .validation import check_amount, check_ratio

SHORT_MESSAGE = 300
"""Tokens of a user message that `Extract` keeps whole."""
WHOLE_PART = 0.2
"""Part of the window for the first user message, and for other short ones, that `Extract` keeps whole."""
WORK_PART = 0.1
"""Part of the window that the file which was read or edited last may have, so that `Extract` keeps what was read of it whole."""
MOST_FILLED = 0.9
"""Part of the window that may be in use after lines of new units were chosen. Above it, lines of all units are chosen anew."""
LEAST_ROOM = 0.25
"""Part of the window that the chosen lines may have in any case, however much the model has not read yet."""


class Composable:
    """A strategy that can be combined with another one by `|`: the left one is asked first."""

    __slots__ = ()

    def __or__(self, other: Strategy) -> Chain:
        return Chain(_own(self), other)

    def __ror__(self, other: Strategy) -> Chain:
        return Chain(other, _own(self))


@dataclass(frozen=True, slots=True)
class PriorityTrim(Composable):
    """Take the lowest category first and the oldest items first, each category down to its share before any goes below its own.

    In a chain it always comes last, wherever it stands: it follows every other strategy.
    """

    def __call__(self, _units: Sequence[MeasuredUnit], _budget: StrategyBudget, /) -> tuple[Choice, ...]:
        """Return no choices: priority trimming is built into the engine."""
        return ()


@dataclass(frozen=True, slots=True)
class SlidingWindow(Composable):
    """Keep only the newest units, even if there is room for more. If they are still too large, `PriorityTrim` follows.

        ContextWindow(strategy=SlidingWindow(units=40, step=20))  # from 21 to 40 units

    It counts units, not messages or tokens: a response's five calls and their five outputs are one unit. For a limit of messages and
    other items pass `ContextWindow(max_context_items=…)`.

    With `ContextWindow(trigger_ratio=…)` below 1, the window moves only when the view exceeds that part of the budget, or
    `max_context_items`. Until then older units stay.

    A unit is kept or dropped as a whole: a message, or a response's calls with their reasoning and outputs. System messages always stay
    and are not counted. Other protected units are counted first and always stay, even if they are more than the window holds: pinned
    items, summaries, what the model is about to read, and the user message that it answers.

    Attributes:
        units: The largest number of units that stay.
        step: Number of units that leave together. With 1 the window is always full, but every request then begins differently from the
            one before, so the provider's cache is useless. With more, the window holds `units - step + 1` units after it has moved.
    """

    units: int
    step: int = 1

    def __post_init__(self) -> None:
        _set_amount(self, "units", least=1)
        _set_amount(self, "step", least=1)
        if self.step > self.units:
            raise BudgetError("SlidingWindow.step", self.step, f"pass units={self.units} or less")

    @property
    def above_units(self) -> int:
        """The number of units that may stay. With no more than that there is nothing to choose."""
        return self.units

    def __call__(self, units: Sequence[MeasuredUnit], budget: StrategyBudget, /) -> Iterator[Choice]:
        """Drop the oldest units beyond the window."""
        if budget.units <= self.units:
            return iter(())
        older = budget.units - (self.units - self.step + 1)
        return islice((unit.drop(Reason.OUT_OF_WINDOW, always=True) for unit in units if unit.free), older)


@dataclass(frozen=True, slots=True)
class DropOldest(Composable):
    """Drop the oldest units, of whatever category, until the view is down to its target.

    Attributes:
        keep_system: True if system messages stay. False: they are dropped at their age like others, unless they are pinned.
    """

    keep_system: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.keep_system, bool):
            raise BudgetError("DropOldest.keep_system", self.keep_system, "pass True or False")

    @property
    def takes_system(self) -> bool:
        """True if it may drop system messages."""
        return not self.keep_system

    def __call__(self, units: Sequence[MeasuredUnit], budget: StrategyBudget, /) -> Iterator[Choice]:
        """Drop all units that may go, oldest first."""
        for unit in units:
            if unit.free or (self.takes_system and unit.protected is Reason.SYSTEM and unit.tokens):
                yield unit.drop(Reason.OVER_BUDGET if budget.excess else Reason.TOO_MANY_ITEMS)


@dataclass(frozen=True, slots=True)
class Extract(Composable):
    """Keep the most valuable lines of older items, in a digest, instead of whole items. No model is asked.

        ContextWindow(strategy=Extract())

    Whole stay: protected units, the first user message and the first that begins a turn, each up to a fifth of the window, the newest short
    user messages up to another fifth, what was read last of the file in work, up to a tenth, and a tail of the newest units. The tail
    includes what the model is about to read. Of all other units that are still whole, the most valuable lines stay (`keep_lines`), a fifth
    of their tokens. Earlier digests then stay as they are, and so does the request up to there: the provider's cache holds it. If there is
    no room for that, lines are chosen again, from the digests too.

    If the window is chosen by prices (`max_tokens="auto"`), the file in work and the lines share what a trim keeps.

    After a trim a note at the end restates the plan, the last failure and the files under edit, as far as the view lacks them.

    All parts are of the tokens above which a view is trimmed. If the view is still larger than the budget, outputs and calls that the model
    has not read yet are truncated: one large output must not cost everything before it. If even that is not enough, `PriorityTrim` follows.

    Attributes:
        tail: Part of the window for the newest units.
        fresh: Part of the tokens of units that are still whole for their lines that stay.
        room: Part of the window that is in use after all lines have been chosen again. A lower `target_ratio` takes its place.
    """

    tail: float = 0.05
    fresh: float = 0.2
    room: float = 0.5

    def __post_init__(self) -> None:
        for name in ("tail", "fresh", "room"):
            check_ratio(f"Extract.{name}", getattr(self, name), zero=True)

    @property
    def shortens_unread(self) -> bool:
        """True: what it leaves is worth more than the middle of a large output."""
        return True

    @property
    def restates_work(self) -> bool:
        """True: lines are chosen by what they name, and the plan, the last failure and the files under edit are more than names."""
        return True

    def __call__(self, units: Sequence[MeasuredUnit], budget: StrategyBudget, /) -> list[Extraction]:
        """Choose lines of the units that are still whole, or of all."""
        if not budget.excess:
            return []
        window = budget.trigger
        older = self._older_units(units, window)
        work = file_in_work((unit.head, unit.calls) for unit in reversed(units) if not unit.is_shortened and not _is_notice(unit))
        largest = int(WORK_PART * window) if budget.kept is None else budget.kept
        taken = sum(unit.tokens for unit in older if unit.head == work and unit.tokens <= largest)
        older = [unit for unit in older if unit.head != work or unit.tokens > largest]
        boundary = max((number for number, unit in enumerate(older) if unit.is_shortened), default=-1) + 1
        old, fresh = older[:boundary], older[boundary:]
        old_tokens, fresh_tokens = (sum(unit.tokens for unit in part) for part in (old, fresh))
        base = budget.total - old_tokens - fresh_tokens
        fresh_room = int(self.fresh * fresh_tokens)
        if budget.kept is None:
            goal = min(int(self.room * window), budget.target) if budget.target < budget.trigger else budget.target
            room = max(goal - base, int(LEAST_ROOM * window))
            has_room = base + old_tokens + fresh_room <= MOST_FILLED * window and budget.target < budget.trigger
        else:
            most = max(budget.kept // 4, budget.kept - taken)
            room, has_room = most // 2, old_tokens + fresh_room <= most
        chosen = keep_lines(fresh, fresh_room, Reason.OVER_BUDGET) if old and has_room else keep_lines(older, room, Reason.OVER_BUDGET)
        return [chosen]

    def _older_units(self, units: Sequence[MeasuredUnit], window: int) -> list[MeasuredUnit]:
        """Return the units whose lines are chosen from, oldest first."""
        firsts = {next((unit.head for unit in units if is_one(unit)), None) for is_one in (_is_of_user, attrgetter("begins_turn"))}
        older = []
        tail, messages = self.tail * window, WHOLE_PART * window
        is_tail = True
        for unit in reversed(units):
            if unit.protected is Reason.FRONTIER:
                tail -= unit.tokens
            if not unit.free or (unit.head in firsts and unit.tokens <= WHOLE_PART * window):
                continue
            tail -= unit.tokens
            is_tail = is_tail and tail >= 0
            if is_tail:
                continue
            if unit.begins_turn and unit.tokens <= SHORT_MESSAGE and unit.tokens <= messages:
                messages -= unit.tokens
            else:
                older.append(unit)
        return older[::-1]


@dataclass(frozen=True, slots=True, init=False)
class Summarize(Composable):
    """Summarise all but the newest items. `manage` writes the summary; `process_session` trims as `PriorityTrim` does instead.

        ContextWindow(strategy=Summarize(model, keep_recent=20))

    Attributes:
        llm: The summariser: an async function from a prompt to a text, or a `Model`. None for the window's, or the model in use.
        keep_recent: Number of the newest items that stay as they are. A unit stays as a whole if one of its items does.
    """

    llm: Summarizer | Summarizing | None
    keep_recent: int

    def __init__(self, llm: Summarizer | Summarizing | int | None = None, keep_recent: int | None = None) -> None:
        """
        Args:
            llm: As the attribute. A number is taken for `keep_recent`.
            keep_recent: As the attribute; by default 10.

        Raises:
            BudgetError: `llm` is neither a function nor a model, or `keep_recent` is not a whole number of 0 or more.
        """
        if keep_recent is None and llm is not None and as_summarizer(llm) is None:
            llm, keep_recent = None, llm  # checked below
        if llm is not None and as_summarizer(llm) is None:
            raise BudgetError("Summarize.llm", llm, "pass an async function that takes a prompt and returns the summary, or a model")
        object.__setattr__(self, "llm", llm)
        object.__setattr__(self, "keep_recent", 10 if keep_recent is None else keep_recent)
        _set_amount(self, "keep_recent", least=0)

    def __call__(self, units: Sequence[MeasuredUnit], _budget: StrategyBudget, /) -> list[Choice]:
        """Summarise all units older than the newest items. System messages and summaries are not counted among those."""
        end, recent = len(units), 0
        while end and recent < self.keep_recent:
            end -= 1
            is_counted = units[end].category is not MessageCategory.SYSTEM and units[end].protected is not Reason.SUMMARY
            recent += units[end].items if is_counted else 0
        return [unit.summarise() for unit in units[:end] if unit.free]


@dataclass(frozen=True, slots=True)
class NeverTrim(Composable):
    """Take nothing, not even images. For an agent that must never lose history: with `strict=True` a log larger than the budget raises
    `ContextOverflowError` with the figures, before the provider refuses it.

        ContextWindow(strategy=NeverTrim(), strict=True)

    After another strategy it means: nothing but that one's choices may be taken. Items that a `Compaction` in the log replaces are left
    out all the same: the log itself says so.
    """

    @property
    def final(self) -> bool:
        """True: nothing else may be taken."""
        return True

    def __call__(self, _units: Sequence[MeasuredUnit], _budget: StrategyBudget, /) -> tuple[Choice, ...]:
        """Return no choices."""
        return ()


@dataclass(frozen=True, slots=True, init=False)
class Chain(Composable):
    """Ask strategies one after the other, each about the units that those before it have left.

        SlidingWindow(units=40) | DropOldest()

    Attributes:
        parts: The strategies. Chains among them are flattened.
    """

    parts: tuple[Strategy, ...]

    def __init__(self, *parts: Strategy) -> None:
        """
        Args:
            parts: The strategies, in the order in which they are asked.

        Raises:
            BudgetError: One of them is not a strategy.
        """
        flat: list[Strategy] = []
        for part in parts:
            check_strategy("Chain", part)
            flat += part.parts if isinstance(part, Chain) else [part]
        object.__setattr__(self, "parts", tuple(flat))

    def __call__(self, units: Sequence[MeasuredUnit], budget: StrategyBudget, /) -> Iterator[Choice | Extraction]:
        """Return what each would choose of these units if the others took nothing. Trims ask them one by one instead."""
        for part in self.parts:
            yield from part(units, budget)


def _is_notice(unit: MeasuredUnit) -> bool:
    """True if the unit only says that a file has not changed: what it refers to was not put in its place."""
    return unit.tokens < SHORT_MESSAGE and any(map(is_notice, unit.outputs))


def _is_of_user(unit: MeasuredUnit) -> bool:
    """True for a message in the user's role, context included: instructions that a tool sends before the first question."""
    return isinstance(unit.contents[0], Message) and unit.contents[0].role == "user" and not is_digest(unit.contents[0])


def _own(strategy: Any) -> Strategy:
    """Return the object as a strategy: `Composable` itself has no `__call__`, its subclasses have."""
    typed: Strategy = strategy
    return typed


# For the settings


def parts_of(strategy: Strategy | None) -> tuple[Strategy, ...]:
    """Return the strategies of a chain, or the strategy itself; nothing for None."""
    if strategy is None:
        return ()
    return strategy.parts if isinstance(strategy, Chain) else (strategy,)


def summarize_of(strategy: Strategy | None) -> Summarize | None:
    """Return the strategy itself or the first one in it that is a `Summarize`; None if there is none."""
    return next((part for part in parts_of(strategy) if isinstance(part, Summarize)), None)


def is_final(strategy: Strategy | None) -> bool:
    """True if nothing but the strategy's choices may be taken."""
    return any(getattr(part, "final", False) for part in parts_of(strategy))


def advisers_of(strategy: Strategy | None, *, waits_for_trigger: bool = False) -> Advisers:
    """Return the strategies that a trim asks, without those that never choose anything.

    `waits_for_trigger` is True if a `SlidingWindow` is to move only when the view exceeds its trigger.
    """
    return tuple(
        Adviser(
            part,
            _name_of(part),
            above_units=None if waits_for_trigger and isinstance(part, SlidingWindow) else getattr(part, "above_units", None),
            takes_system=getattr(part, "takes_system", False),
            shortens_unread=getattr(part, "shortens_unread", False),
            restates_work=getattr(part, "restates_work", False),
        )
        for part in parts_of(strategy)
        if not isinstance(part, PriorityTrim | NeverTrim)
    )


def check_strategy(name: str, strategy: object) -> None:
    """Raise BudgetError, which names the setting, unless the value is a strategy."""
    if isclass(strategy) or not callable(strategy):
        raise BudgetError(name, strategy, "pass a PriorityTrim(), another strategy, or a function of (units, budget)")
    if iscoroutinefunction(strategy) or iscoroutinefunction(type(strategy).__call__):
        raise BudgetError(name, strategy, "pass a plain function: a strategy waits for nothing")
    if not _takes_two(strategy):
        raise BudgetError(name, strategy, "pass a function that can be called with (units, budget)")
    try:
        hash(strategy)
    except TypeError as error:
        raise BudgetError(name, strategy, "pass a hashable one, such as a frozen dataclass: a strategy must not change") from error
    units = getattr(strategy, "above_units", None)
    if units is not None and (type(units) is not int or units < 0):
        raise BudgetError(f"{name}.above_units", units, "make it None, or a whole number of 0 or more")
    for attribute in ("final", "takes_system", "shortens_unread", "restates_work"):
        if not isinstance(value := getattr(strategy, attribute, False), bool):
            raise BudgetError(f"{name}.{attribute}", value, "make it True or False")


def _takes_two(strategy: Callable[..., Iterable[Choice]]) -> bool:
    try:
        parameters = signature(strategy)
    except (TypeError, ValueError):  # a builtin without a signature: a wrong one fails when it is asked
        return True
    try:
        parameters.bind(None, None)
    except TypeError:
        return False
    return True


def _name_of(strategy: Strategy) -> str:
    return str(getattr(strategy, "__name__", None) or type(strategy).__name__)


def _set_amount(strategy: object, field: str, *, least: int) -> None:
    """Convert the field to a plain int. Raises BudgetError if it is not a whole number, or is below `least`."""
    amount = check_amount(f"{type(strategy).__name__}.{field}", getattr(strategy, field), least=least)
    object.__setattr__(strategy, field, amount)
