"""`ViewFigures`: the figures of a session's latest view."""

from __future__ import annotations

from dataclasses import dataclass

from ..events.definitions import Kinds
from ..events.item_kinds import kinds_of
from ..settings.usage_snapshot import Rows, rows_of
from .tracker import SessionTracker


@dataclass(frozen=True, slots=True)
class ViewFigures:
    """The figures of a view. Amounts are tokens.

    Attributes:
        rows: Tokens by category, and of the request outside its items. They sum to the view's total.
        budget: Tokens that the request may cost.
        freed: Tokens by which the view is smaller than the log; without items for which a summary stands.
        kinds: Items that the view hides or shows in a smaller form, by kind.
    """

    rows: Rows
    budget: int
    freed: int
    kinds: Kinds


def figures_of(tracker: SessionTracker) -> ViewFigures:
    """Return the figures of the tracker's last view. Nothing is counted for it."""
    fold = tracker.fold
    rows = rows_of(fold.tally.tokens, fold.overhead, fold.correction)
    return ViewFigures(rows, fold.limits.budget, tracker.freed, kinds_of(tracker.reduced))
