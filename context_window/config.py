"""The limits and policy of one agent's window, checked when they are made. No tokens are counted here."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from numbers import Real
from typing import Any

from session.items import MessageCategory
from session.summarizers import Summarizer

from .errors import BudgetError
from .strategies import PriorityTrim, check_strategy, is_final
from .trimming.choices import Strategy
from .whole import as_whole

ROUNDING = Fraction(1, 10**9)
"""How far floats that were meant to sum to 1 may sum to more: 1/6 and 5/6 do, in the 17th digit."""


@dataclass(frozen=True, slots=True)
class Shares:
    """The part of a budget that each category is trimmed to before others are touched below theirs.

    A share is a floor under pressure, not a wall: while the total fits, a category may hold more. Shares are parts of
    1; they may sum to less.

    Attributes:
        system: Of SYSTEM.
        context: Of CONTEXT.
        dialog: Of DIALOG.
        system_output: Of SYSTEM_OUTPUT.
    """

    system: float = 0.10
    context: float = 0.35
    dialog: float = 0.50
    system_output: float = 0.05

    def __post_init__(self) -> None:
        for name in ("system", "context", "dialog", "system_output"):
            _check_ratio(f"shares.{name}", getattr(self, name), zero=True)
        total = sum(self.exact)
        if total > 1 + ROUNDING:
            raise BudgetError("shares", float(total), "the shares sum to more than 1; lower some of them")

    @property
    def exact(self) -> tuple[Fraction, Fraction, Fraction, Fraction]:
        """By rank, as the decimals that were written."""
        return (_exact(self.system), _exact(self.context), _exact(self.dialog), _exact(self.system_output))


@dataclass(frozen=True, slots=True)
class TokenBudget:
    """What a category may hold and holds.

    Attributes:
        category: The category.
        share: Its part of the whole budget, from 0 to 1.
        tokens: That part in tokens: `floor(share × budget)`.
        used: Tokens in use.
    """

    category: MessageCategory
    share: float
    tokens: int
    used: int

    @property
    def available(self) -> int:
        """Tokens left of the share; negative when the category borrows from others."""
        return self.tokens - self.used


@dataclass(frozen=True, slots=True)
class ContextWindow:
    """How large one agent's window is, and what to do when it is full.

        ContextWindow(max_tokens=40_000, shares=Shares(context=.5, dialog=.35), images_kept=2)

    Attributes:
        max_tokens: Tokens the prompt may have, tool definitions included. None: what the model allows.
        max_context_items: Items a view may have; None for any number.
        keep_recent_turns: Turns that a compaction leaves as they are.
        max_tool_calls_per_turn: Tool calls that a managed loop allows in one turn.
        summary_llm: Who writes summaries, where compaction is wanted.
        shares: Each category's part of the budget.
        trigger_ratio: A prompt above this part of the budget is trimmed …
        target_ratio: … down to this part, so that the next turns change nothing and caches stay warm. Where overhead and what is
            protected take much of that, half of this part of the room they leave stays in use, lest nearly everything else go.
        images_kept: Image parts, the newest, that stay when there are too many.
        images_max: Too many are more than this; None: more than `images_kept`.
        strategy: How to trim: `PriorityTrim()`, another of `context_window.strategies`, or a function of (units, budget).
        warn_at: Parts of the budget at which listeners are warned.
        output_reserve: Tokens of a model's window kept for its answer; None: what suits the model.
        below_price_cliff: Whether to stay below the prompt size from which a model's price rises.
        coverage: Where the provider has reported what requests cost: the part of the next ones that shall cost no more than is
            said here. None: its reports are not gone by.
        strict: Whether a view that cannot be made to fit raises `ContextOverflowError`.
    """

    max_tokens: int | None = None
    max_context_items: int | None = None
    keep_recent_turns: int = 3
    max_tool_calls_per_turn: int = 10
    summary_llm: Summarizer | None = None
    shares: Shares = field(default_factory=Shares, kw_only=True)
    trigger_ratio: float = field(default=1.0, kw_only=True)
    target_ratio: float = field(default=0.65, kw_only=True)
    images_kept: int = field(default=1, kw_only=True)
    images_max: int | None = field(default=None, kw_only=True)
    strategy: Strategy = field(default_factory=PriorityTrim, kw_only=True)
    warn_at: tuple[float, ...] = field(default=(0.5, 0.75, 0.9), kw_only=True)
    output_reserve: int | None = field(default=None, kw_only=True)
    below_price_cliff: bool = field(default=False, kw_only=True)
    coverage: float | None = field(default=0.95, kw_only=True)
    strict: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        for name, least in (
            ("max_tokens", 1),
            ("max_context_items", 1),
            ("images_max", 0),
            ("output_reserve", 0),
        ):
            if getattr(self, name) is not None:
                self._set(name, check_amount(name, getattr(self, name), least=least))
        for name in ("keep_recent_turns", "max_tool_calls_per_turn", "images_kept"):
            self._set(name, check_amount(name, getattr(self, name), least=0))
        if self.images_max is not None and self.images_max < self.images_kept:
            raise BudgetError("images_max", self.images_max, f"pass images_kept={self.images_kept} or more, or lower images_kept")
        if self.summary_llm is not None and not callable(self.summary_llm):
            raise BudgetError("summary_llm", self.summary_llm, "pass an async function that takes a prompt and gives the summary")
        if not isinstance(self.shares, Shares):
            raise BudgetError("shares", self.shares, "pass a Shares(system=…, context=…, dialog=…, system_output=…)")
        check_strategy("strategy", self.strategy)
        if self.max_context_items is not None and is_final(self.strategy):
            raise BudgetError(
                "max_context_items", self.max_context_items, "the strategy lets nothing else be taken to keep to it; leave one of them out"
            )
        for name in ("below_price_cliff", "strict"):
            if not isinstance(getattr(self, name), bool):
                raise BudgetError(name, getattr(self, name), "pass True or False")
        if self.coverage is not None:
            _check_ratio("coverage", self.coverage, zero=False)
        self._check_ratios()

    def _check_ratios(self) -> None:
        _check_ratio("trigger_ratio", self.trigger_ratio, zero=False)
        _check_ratio("target_ratio", self.target_ratio, zero=False)
        if self.target_ratio > self.trigger_ratio:
            raise BudgetError(
                "target_ratio", self.target_ratio, f"a trim would take nothing; pass trigger_ratio={self.trigger_ratio} or less"
            )
        if isinstance(self.warn_at, str) or not isinstance(self.warn_at, Iterable):
            raise BudgetError("warn_at", self.warn_at, "pass several numbers, such as (0.5, 0.9), or () for none")
        self._set("warn_at", tuple(self.warn_at))
        for ratio in self.warn_at:
            _check_ratio("warn_at", ratio, zero=False)

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    @property
    def thousandths(self) -> int:
        """The coverage that is asked for, in thousandths; less than all of them."""
        return 0 if self.coverage is None else min(999, int(_exact(self.coverage) * 1_000))

    @property
    def ratios(self) -> tuple[Fraction, Fraction]:
        """Trigger and target, as the decimals that were written."""
        return _exact(self.trigger_ratio), _exact(self.target_ratio)


def check_amount(name: str, value: object, *, least: int) -> int:
    """The value as an int, where it is a whole number: an int, or what stands for one, as numpy's integers do.

    Args:
        name: What it is, for the error.
        value: The value.
        least: The smallest that makes sense.

    Raises:
        BudgetError: It is no whole number, or below `least`.
    """
    amount = as_whole(value)
    if amount is not None and amount >= least:
        return amount
    raise BudgetError(name, value, f"pass a whole number of {least} or more")


def _check_ratio(name: str, value: object, *, zero: bool) -> None:
    """Raises BudgetError where the value is no number from 0 (itself allowed where `zero`) to 1."""
    if isinstance(value, Real) and not isinstance(value, bool):
        number: Any = value  # `Real` promises no comparison with ints
        if 0 <= number <= 1 and (zero or number):
            return
    raise BudgetError(name, value, f"pass a number {'from 0' if zero else 'above 0, up'} to 1; 1 is the whole")


def _exact(ratio: float) -> Fraction:
    return Fraction(str(ratio))
