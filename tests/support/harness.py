"""The engine driven as the manager drives it, with limits that a test chooses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from context_window.counting.measure import Measurer
from context_window.following import Following
from context_window.trimming.limits import Limits
from context_window.trimming.plan import Plan
from session.session import Session
from session.units import grouping, is_answer, request_points
from tests.support.counting import Letters

MEASURER = Measurer(Letters())


@dataclass
class Outcome:
    """What one call gave."""

    log: Session
    view: Session
    plan: Plan
    following: Following

    @property
    def total(self) -> int:
        return self.following.fold.total


def process(session: Session, limits: Limits) -> Outcome:
    """As `process_session` from cold."""
    return again(Following(session, limits, MEASURER), session)


def again(following: Following, session: Session) -> Outcome:
    """As another call of `process_session`."""
    following.catch_up(session)
    return Outcome(session, following.view(session), following.plan(), following)


def can_go_on(log: Session, view: Session) -> bool:
    """Whether a view decides as its log does from then on, where it is the log.

    Not where nothing was decided for good; nor where an output without a call was all that ended a response; nor where the last response
    was reasoning bound to what went, and nothing else.
    """
    if view is log or any(request_points(one)[-1] != len(one.items) for one in (log, view)):
        return False
    groups, shown = grouping(log), {item.id for item in view.items}
    return not groups.starts or any(item.id in shown for item in log.items[groups.starts[-1] :] if is_answer(item))


def trim(session: Session, limits: Limits) -> Outcome:
    """As `trim_session`."""
    return again(Following(session, exact(limits), MEASURER, one_shot=True), session)


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
    empty.restore_seams(session.response_breaks, session.settled, session.settled_tokens)
    return empty
