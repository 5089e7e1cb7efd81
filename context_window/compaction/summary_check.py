"""Check that a summary is worth appending: it must be much smaller than its units, and fit into the view. Appends nothing.

The numbered steps are in the package's charter (`__init__.py`); this file is steps 4 and 6.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

from session.items import Compaction, Item, new_id
from session.session import Session

from ..errors import CompactionError
from ..events.definitions import Compacted
from ..settings.resolved import Settings
from ..trimming.fold import Fold
from ..trimming.limits import Limits
from ..trimming.plan import Cut
from ..trimming.view_totals import LinePrice, Measures
from ..views.tracker import SessionTracker
from ..views.tracker_copies import copied_fold
from .summary_writer import SummaryTask
from .unit_selection import SelectionRule, SummaryUnit, can_append_summary, replaced_ids, summarisable_units

SHRINK_FACTOR = 2
"""A summary has at most 1/2 of the tokens of its units. If it saves less, trimming alone is the better choice."""
TRIGGER_PARTS = 3
"""A summary has at most 1/3 of the trigger's tokens. Trims never take a summary, so other items need the rest."""
SHORTEST_SUMMARY = "Earlier in this conversation:"
"""No summary is requested if not even this text has room in the view."""


@dataclass(frozen=True, slots=True)
class SummaryPlan:
    """A summary that is due, with the figures it was decided on. Amounts are tokens.

    Attributes:
        units: The units to summarise.
        rule: The rule that selected them.
        settings: The settings at that time.
        limits: The limits of the session's views.
        total: Cost of the request without the summary and without a trim.
        requests: Number of responses in the log.
        tracker: The log's replay that the units were selected from.
        length: Number of items that it had read.
    """

    units: tuple[SummaryUnit, ...]
    rule: SelectionRule
    settings: Settings
    limits: Limits
    total: int
    requests: int
    tracker: SessionTracker
    length: int

    @property
    def max_tokens(self) -> int:
        """Tokens that a summary of all the units may have."""
        return min(sum(unit.tokens for unit in self.units) // SHRINK_FACTOR, self.limits.trigger // TRIGGER_PARTS)


def limits_without_trims(limits: Limits) -> Limits:
    """Return limits that never trim for tokens or items. Images are still replaced, and summarised items still left out."""
    return replace(limits.boundless(), images_max=limits.images_max)


def limits_less(limits: Limits, tokens: int) -> Limits:
    """Return the limits reduced by tokens that are in the provider's reports but that a fold of local counts does not know of."""
    budget, trigger, target = (max(1, amount - tokens) for amount in (limits.budget, limits.trigger, limits.target))
    return replace(
        limits.boundless(),
        budget=budget,
        trigger=trigger,
        target=target,
        images_max=limits.images_max,
        items_max=limits.items_max,
        advisers=limits.advisers,
    )


def check_units_unchanged(units: Collection[SummaryUnit], tracker: SessionTracker, session: Session, plan: SummaryPlan) -> None:
    """Check that a summary of these units of the plan may be appended to the log as it is now.

    Raises:
        CompactionError: An item of the units was removed, changed, pinned or became part of the frontier, or a response is unfinished.
    """
    if tracker is plan.tracker and len(tracker.fold) == plan.length:
        return  # nothing was appended or edited since the units were selected
    is_allowed = can_append_summary(tracker.fold, tracker.items, is_response_complete=plan.rule.is_forced)
    allowed_units = summarisable_units(tracker, session) if is_allowed else ()
    items = {item.id: item for unit in allowed_units for item in unit.items}
    if any(item.id not in items or items[item.id] != item for unit in units for item in unit.items):
        raise CompactionError("while the summary was written, the session was continued or edited")


def checked_summary(
    session: Session, items: Sequence[Item], view: Fold, plan: SummaryPlan, task: SummaryTask, text: str
) -> tuple[Compaction, Compacted]:
    """Return the summary as an item, and the event that reports it.

    Args:
        session: The log.
        items: Its current items.
        view: The fold of its view.
        plan: The plan of the summary.
        task: The task that the summariser was given.
        text: The summariser's text.

    Raises:
        CompactionError: The summary saves too little, or has no room in the view.
    """
    summary = _compaction(text, replaced_ids(task.units, items, session), items[-1], session)
    tokens, trigger = plan.settings.measurer.measure(summary).tokens, plan.limits.trigger
    if SHRINK_FACTOR * tokens > task.tokens:
        raise CompactionError(f"the summary has {tokens:,} tokens, more than half of the {task.tokens:,} that it replaces")
    if TRIGGER_PARTS * tokens > trigger:
        raise CompactionError(f"the summary has {tokens:,} tokens, more than a third of the {trigger:,} at which views are trimmed")
    total = check_room(session, items, view, plan, summary)
    return summary, Compacted(session.id, total, view.limits.budget, len(summary.replaces), task.tokens, tokens)


def has_ample_room(tracker: SessionTracker, session: Session, plan: SummaryPlan) -> bool:
    """True if the request is within the trigger with the shortest summary, whatever else is trimmed. `check_room` then need not try it.

    Adds up an upper bound. Where the bound is not certain, the answer is False: a strategy may have its say, images may be replaced, bound
    reasoning may leave the view, or the log has grown since the units were selected.

    Args:
        tracker: The log's view.
        session: The log.
        plan: The plan of the summary.
    """
    fold, limits, tally = tracker.fold, tracker.fold.limits, tracker.fold.final_tally
    is_same_log = tracker.lineage is plan.tracker.lineage and len(fold) == len(plan.tracker.fold) == plan.length
    if not is_same_log or limits.advisers or tally.thoughts or max(tally.images, fold.tally.images) > limits.images_max:
        return False
    places = session.positions(item.id for unit in plan.units for item in unit.items)
    places = places[: bisect_left(places, len(fold))]
    if not places or (tracker.report_feed.is_anchored and places[-1] >= fold.mark):
        return False
    tokens = plan.settings.measurer.measure(Compaction(SHORTEST_SUMMARY)).tokens
    taken = sum(map(fold.tokens, places))  # too few after a provisional trim
    items = sum(tally.items) - len(fold.visible_among(places)) + 1
    removed = fold.tokens_at_mark - (tally.total - tally.newer) + taken
    correction = fold.totals.correction(fold, tally.newer + tokens, removed)
    additions = max(limits.note, limits.preamble) + limits.closing + limits.usage_note
    additions += limits.synthetic * tally.unanswered + limits.digest * tally.digests
    total = limits.overhead + additions + tally.total - taken + tokens + correction
    return total <= min(limits.trigger, limits.budget) and (limits.items_max is None or items <= limits.items_max)


def check_room(session: Session, items: Sequence[Item], view: Fold, plan: SummaryPlan, summary: Compaction | None = None) -> int:
    """Return the cost of the trimmed request with the summary.

    Args:
        session: The log.
        items: Its current items.
        view: The fold of its view. It is not changed.
        plan: The plan of the summary.
        summary: The summary; None for the shortest possible one.

    Raises:
        CompactionError: With the summary the request is over the budget, and larger than without it.
    """
    if summary is None:
        summary = _compaction(SHORTEST_SUMMARY, replaced_ids(plan.units, items, session), items[-1], session)
    trial = copied_fold(view)
    trial.limits = replace(trial.limits, clamp_messages=False)  # a summary is not worth the user's newest words
    measured = plan.settings.measurer.measure(summary)
    trial.measures = _MeasuresWithSummary(view.measures, len(view), summary, measured.tokens)
    places = session.positions(summary.replaces)
    trial.add(summary, measured, replaces=places[: bisect_left(places, len(view))])
    trial.conclude()
    if trial.total > max(view.limits.budget, view.total):
        raise CompactionError("the protected items leave no room for a summary")
    return trial.total


class _MeasuresWithSummary:
    """The items of a log and one that it does not have yet: strategies look at all items of a view."""

    def __init__(self, measures: Measures, length: int, summary: Compaction, tokens: int) -> None:
        self._measures = measures
        self._length = length
        self._summary = summary
        self._tokens = tokens

    def __getitem__(self, place: int) -> Item:
        return self._summary if place == self._length else self._measures[place]

    def unchanged(self, place: int) -> int:
        return self._tokens if place == self._length else self._measures.unchanged(place)

    def cleared(self, place: int, cut: Cut | None = None) -> int:
        return self._measures.cleared(place, cut)

    def line_price(self, place: int) -> LinePrice:
        return self._measures.line_price(place)

    def section(self, place: int, lines: Sequence[int]) -> int:
        return self._measures.section(place, lines)

    def shortened(self, place: int, limit: int) -> Cut:
        return self._measures.shortened(place, limit)


def _compaction(text: str, ids: Sequence[str], last: Item, session: Session) -> Compaction:
    """Return the summary as an item of the log. The same log and text give the same item."""
    id = sha256("\n".join((*ids, text)).encode(errors="replace")).hexdigest()[:12]
    return Compaction(text, ids, id=id if session.position(id) is None else new_id(), created_at=last.created_at)
