"""Checks of the numbers that users pass."""

from __future__ import annotations

from fractions import Fraction
from numbers import Real
from operator import index
from typing import Any, SupportsIndex

from .errors import BudgetError


def as_whole(value: object) -> int | None:
    """Return the value as an int if it is an integer, including numpy's; None for anything else, including booleans."""
    if isinstance(value, bool) or not isinstance(value, SupportsIndex):
        return None
    try:
        return index(value)
    except TypeError:  # an array with several elements has `__index__` too
        return None


def check_amount(name: str, value: object, *, least: int) -> int:
    """Return the value as an int; it may be another integer type such as numpy's.

    Raises BudgetError, which names the argument, if it is not a whole number, or is below `least`.
    """
    amount = as_whole(value)
    if amount is not None and amount >= least:
        return amount
    raise BudgetError(name, value, f"pass a whole number of {least} or more")


def check_ratio(name: str, value: object, *, zero: bool) -> None:
    """Raise BudgetError unless the value is a number above 0 (or from 0 on, if `zero`) and up to 1."""
    if isinstance(value, Real) and not isinstance(value, bool):
        number: Any = value  # `Real` does not declare comparison with ints
        if 0 <= number <= 1 and (zero or number):
            return
    raise BudgetError(name, value, f"pass a number {'from 0' if zero else 'above 0, up'} to 1; 1 is the whole")


def exact_fraction(ratio: float) -> Fraction:
    """Return the decimal number that was written: 0.1 is exactly a tenth."""
    return Fraction(str(ratio))
