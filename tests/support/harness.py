"""The engine driven as the manager drives it, with limits that a test chooses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from context_window.counting.item_tokens import Measurer
from context_window.decision.limits import BOUNDLESS, Limits
from context_window.decision.plan import Plan
from context_window.views.item_decisions import ItemDecisions
from context_window.decision.replay import Replay
from session.session import Session
from session.session_log import recorded_total
from session.units import grouping, is_answer, request_points
from tests.support.counting import Letters

MEASURER = Measurer(Letters())


@dataclass
class Outcome:
    """The result of one call."""

    log: Session
    view: Session
    plan: Plan
    tracker: Replay

    @property
    def total(self) -> int:
        return self.tracker.fold.total

    @property
    def is_settled(self) -> bool:
        """True if the view, used as a log, has to stay as it is.

        Not if it exceeds a limit; nor if it has lost the response that the log ends in, where the line about usage is then due.
        """
        fold = self.tracker.fold
        bounds, tally = fold.limits, fold.tally
        if self.total > bounds.trigger or (tally.images > bounds.images_max and not bounds.final):
            return False
        if bounds.items_max is not None and sum(tally.items) > bounds.items_max:
            return False
        ends_alike = len({request_points(session)[-1] == len(session.items) for session in (self.log, self.view)}) == 1
        return ends_alike or bounds.usage_noted_from == BOUNDLESS


def process(session: Session, limits: Limits) -> Outcome:
    """As `process_session` from cold."""
    return again(Replay(session, limits, MEASURER), session)


def again(tracker: Replay, session: Session) -> Outcome:
    """As another call of `process_session`. A plan that goes on from the last one equals one from nothing."""
    tracker.update(session)
    view, earlier = tracker.view(session), tracker._decisions
    is_first = not earlier.untrimmed.costs
    plan = tracker.plan()
    if not is_first:
        tracker._decisions = ItemDecisions(tracker.fold, tracker._measured_items, MEASURER)
        assert plan == tracker.plan()
        tracker._decisions = earlier
    return Outcome(session, view, plan, tracker)


def can_go_on(log: Session, view: Session) -> bool:
    """True if a view, used as a log, decides as its log does from then on.

    Not where nothing was decided for good; nor where an output without a call was all that ended a response; nor where the last response
    was reasoning bound to what went, and nothing else.
    """
    if view is log or any(request_points(session)[-1] != len(session.items) for session in (log, view)):
        return False
    groups, visible_ids = grouping(log), {item.id for item in view.items}
    return not groups.response_starts or any(item.id in visible_ids for item in log.items[groups.response_starts[-1] :] if is_answer(item))


def trim(session: Session, limits: Limits) -> Outcome:
    """As `trim_session`."""
    return again(Replay(session, exact(limits), MEASURER, one_shot=True), session)


def ladder(session: Session, limits: Limits) -> Iterator[Outcome]:
    """One-shot trims to ever smaller budgets, each a token too small for the view before it: a view for every step of clearing and
    dropping. A budget drawn at random passes over most of them, and hardly ever is one that a view fills exactly."""
    budget = limits.budget
    while budget > 0:
        outcome = trim(session, replace(limits, budget=budget))
        yield outcome
        if outcome.total > budget or any(decision.cut for decision in outcome.plan):
            return
        budget = outcome.total - 1


def exact(limits: Limits) -> Limits:
    """The limits of a one-shot trim: exactly to the budget."""
    return replace(limits, trigger=limits.budget, target=limits.budget, items_target=limits.items_max or 0)


def copy_of(session: Session) -> Session:
    """The same log with no items yet."""
    empty = Session(id=session.id)
    empty.restore_seams(session.response_breaks, session.settled, recorded_total(session))
    return empty
