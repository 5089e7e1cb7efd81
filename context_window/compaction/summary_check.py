"""Check that a summary is worth appending: it must be much smaller than its units, and fit into the view. Appends nothing.

The numbered steps are in the package's charter (`__init__.py`); this file is steps 4 and 6.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

from session.items import Compaction, Item, new_id
from session.session import Session

from ..decision.decide import decide
from ..decision.limits import Limits
from ..decision.log import NewItem
from ..decision.replay import SessionReplay
from ..errors import CompactionError
from ..events.definitions import Compacted
from ..settings.resolved import Settings
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

    `settings` and `limits` are those of that time, `total` is the cost of the request without the summary and without a trim, `requests`
    the number of responses in the log, and `length` that of the items that the replay had read.
    """

    units: tuple[SummaryUnit, ...]
    rule: SelectionRule
    settings: Settings
    limits: Limits
    total: int
    requests: int
    replay: SessionReplay
    length: int

    @property
    def max_tokens(self) -> int:
        """Tokens that a summary of all the units may have."""
        return min(sum(unit.tokens for unit in self.units) // SHRINK_FACTOR, self.limits.trigger // TRIGGER_PARTS)


def limits_without_trims(limits: Limits) -> Limits:
    """Return limits that never trim for tokens or items. Images are still replaced, and summarised items still left out."""
    return replace(limits.boundless(), images_max=limits.images_max)


def limits_less(limits: Limits, tokens: int) -> Limits:
    """Return the limits reduced by tokens that are in the provider's reports but that local counts do not have."""
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


def check_units_unchanged(units: Collection[SummaryUnit], replay: SessionReplay, session: Session, plan: SummaryPlan) -> None:
    """Check that a summary of these units of the plan may be appended to the log as it is now.

    Raises CompactionError if an item of the units was removed, changed, pinned or became part of the frontier, or a response is unfinished.
    """
    if replay is plan.replay and len(replay.view) == plan.length:
        return  # nothing was appended or edited since the units were selected
    is_allowed = can_append_summary(replay.decided, is_response_complete=plan.rule.is_forced)
    allowed_units = summarisable_units(replay.decided, session) if is_allowed else ()
    items = {item.id: item for unit in allowed_units for item in unit.items}
    if any(item.id not in items or items[item.id] != item for unit in units for item in unit.items):
        raise CompactionError("while the summary was written, the session was continued or edited")


def checked_summary(
    session: Session, replay: SessionReplay, plan: SummaryPlan, task: SummaryTask, text: str
) -> tuple[Compaction, Compacted]:
    """Return the summary as an item, and the event that reports it.

    Raises CompactionError if the summary saves too little, or has no room in the view.
    """
    summary = _compaction(text, replaced_ids(task.units, replay.items, session), replay.items[-1], session)
    tokens, trigger = plan.settings.measurer.measure(summary).tokens, plan.limits.trigger
    if SHRINK_FACTOR * tokens > task.tokens:
        raise CompactionError(f"the summary has {tokens:,} tokens, more than half of the {task.tokens:,} that it replaces")
    if TRIGGER_PARTS * tokens > trigger:
        raise CompactionError(f"the summary has {tokens:,} tokens, more than a third of the {trigger:,} at which views are trimmed")
    total = check_room(session, replay, plan, summary)
    return summary, Compacted(session.id, total, replay.view.limits.budget, len(summary.replaces), task.tokens, tokens)


def check_room(session: Session, replay: SessionReplay, plan: SummaryPlan, summary: Compaction | None = None) -> int:
    """Return the cost of the trimmed request with the summary, or None for the shortest possible one. The replay is not changed.

    Raises CompactionError if with the summary the request is over the budget, and larger than without it.
    """
    items = replay.items
    if summary is None:
        summary = _compaction(SHORTEST_SUMMARY, replaced_ids(plan.units, items, session), items[-1], session)
    trial = replay.view.draft()
    trial.log = replay.view.log.copy()
    trial.limits = replace(trial.limits, clamp_messages=False)  # a summary is not worth the user's newest words
    positions = [at for at in session.positions(summary.replaces) if at < len(trial)]
    trial.append(NewItem(summary, plan.settings.measurer.measure(summary), replaces=positions), starts=False)
    total = decide(trial).total
    if total > max(trial.limits.budget, replay.decided.total):
        raise CompactionError("the protected items leave no room for a summary")
    return total


def _compaction(text: str, ids: Sequence[str], last: Item, session: Session) -> Compaction:
    """Return the summary as an item of the log. The same log and text give the same item."""
    id = sha256("\n".join((*ids, text)).encode(errors="replace")).hexdigest()[:12]
    return Compaction(text, ids, id=id if session.position(id) is None else new_id(), created_at=last.created_at)
