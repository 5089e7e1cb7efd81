"""Decides which events a view causes, by comparing it with the session's previous views."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from fractions import Fraction
from typing import TypeAlias

from ..decision.limits import BOUNDLESS, portion
from .definitions import Event, Kinds, OverBudget, ThresholdCrossed, Trimmed

Thresholds: TypeAlias = tuple[tuple[float, int], ...]
"""Warning thresholds in ascending order: each as a part of the budget, and in tokens."""


def thresholds_at(ratios: Iterable[float], budget: int) -> Thresholds:
    """Return the thresholds at these parts of the budget. Each part is read as the decimal that was written."""
    return tuple((ratio, portion(Fraction(str(ratio)), budget)) for ratio in sorted(set(ratios)))


class ViewChanges:
    """The figures of one session's latest views, so that no event is emitted twice."""

    __slots__ = ("_crossed", "_trimmed")

    def __init__(self) -> None:
        self._crossed: set[float] = set()
        self._trimmed = {False: (0, 0), True: (0, 0)}  # items and tokens taken out, by whether the view was a one-shot trim

    def recount(self) -> None:
        """Ignore the tokens freed so far, which another counter counted: from now on only more items count as a new trim."""
        self._trimmed = {one_shot: (items, BOUNDLESS) for one_shot, (items, _) in self._trimmed.items()}

    def events(
        self,
        trimmed: Trimmed,
        thresholds: Thresholds,
        *,
        has_hidden_more: bool | None,
        one_shot: bool = False,
        kinds: Callable[[], Kinds] = tuple,
        overhead: int = 0,
    ) -> Iterator[Event]:
        """Yield the events of a new view.

        `has_hidden_more` is True if the view hides something that the previous one showed; None to compare the figures instead. `kinds`
        returns the kinds of the items taken out; it is called only if they are emitted. `overhead` are the tokens of the request outside
        its items.
        """
        (items, freed), self._trimmed[one_shot] = self._trimmed[one_shot], (trimmed.items, trimmed.freed)
        if has_hidden_more is None:
            has_hidden_more = trimmed.items > items or (trimmed.freed > freed and trimmed.items > 0)
        if has_hidden_more:
            yield replace(trimmed, kinds=kinds())
        for ratio, tokens in thresholds:
            if trimmed.tokens <= tokens:
                self._crossed.discard(ratio)
            elif ratio not in self._crossed:
                self._crossed.add(ratio)
                yield ThresholdCrossed(trimmed.session_id, trimmed.tokens, trimmed.budget, ratio)
        if trimmed.tokens > trimmed.budget:
            yield OverBudget(trimmed.session_id, trimmed.tokens, trimmed.budget, overhead)
