"""What is taken for a whole number, wherever users pass one."""

from __future__ import annotations

from operator import index
from typing import SupportsIndex


def as_whole(value: object) -> int | None:
    """The value as an int, where it is one or stands for one, as numpy's integers do; None for all else, booleans too."""
    if isinstance(value, bool) or not isinstance(value, SupportsIndex):
        return None
    try:
        return index(value)
    except TypeError:  # an array of several has `__index__` too
        return None
