"""`common_start`: how far two lists have the same objects. Knows nothing of their contents."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress, count
from operator import is_not


def common_start(first: Sequence[object], second: Sequence[object]) -> int:
    """Return the number of leading members that are the same objects in both. The comparison runs in C."""
    return next(compress(count(), map(is_not, first, second)), min(len(first), len(second)))
