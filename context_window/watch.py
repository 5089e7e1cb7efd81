"""What of a view is news to listeners: compared with what they were told of the same session before."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from fractions import Fraction
from typing import TypeAlias

from .events import Event, Kinds, OverBudget, ThresholdCrossed, Trimmed
from .trimming.limits import BOUNDLESS, portion

Marks: TypeAlias = tuple[tuple[float, int], ...]
"""Parts of a budget, from the lowest up, each with the tokens that usage goes above."""


def marks_at(thresholds: Iterable[float], budget: int) -> Marks:
    """The marks at these parts of the budget, each taken as the decimal that was written."""
    return tuple((threshold, portion(Fraction(str(threshold)), budget)) for threshold in sorted(set(thresholds)))


class Watch:
    """What listeners were told of one session, so that nothing is told twice."""

    __slots__ = ("_above", "_out")

    def __init__(self) -> None:
        self._above: set[float] = set()
        self._out = {False: (0, 0), True: (0, 0)}

    def recount(self) -> None:
        """What has been told was counted by another counter: more tokens than then are no news, more items are."""
        self._out = {one_shot: (items, BOUNDLESS) for one_shot, (items, _) in self._out.items()}

    def news(
        self,
        now: Trimmed,
        marks: Marks,
        *,
        lost: bool | None,
        one_shot: bool = False,
        kinds: Callable[[], Kinds] = tuple,
        overhead: int = 0,
    ) -> Iterator[Event]:
        """What is to be told of a view.

        Args:
            now: What is out of it, and what the rest costs.
            marks: Where to warn.
            kinds: The kinds of what is out: asked only where that is told.
            lost: Whether something is out that was not before; None where only the sums can say.
            one_shot: Whether the view is a one-shot trim.
            overhead: What the request costs beside its items.
        """
        before, self._out[one_shot] = self._out[one_shot], (now.items, now.freed)
        if lost is None:
            lost = now.items > before[0] or (now.freed > before[1] and now.items > 0)
        if lost:
            yield replace(now, kinds=kinds())
        for threshold, tokens in marks:
            if now.tokens <= tokens:
                self._above.discard(threshold)
            elif threshold not in self._above:
                self._above.add(threshold)
                yield ThresholdCrossed(now.session_id, now.tokens, now.budget, threshold)
        if now.tokens > now.budget:
            yield OverBudget(now.session_id, now.tokens, now.budget, overhead)
