"""Views by limits that a test chooses: from cold, one-shot, and at ever smaller budgets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from context_window import Action
from session.items import parts_of_item
from session.parts import Image
from session.session import Session
from session.session_log import recorded_total
from session.units import grouping, is_answer, request_points
from tests.support.engine import BOUNDLESS, NONE_REFUSED, Engine, Limits, Outcome, RefusedParts


def process(session: Session, limits: Limits, refused: RefusedParts = NONE_REFUSED) -> Outcome:
    """As `process_session` from cold."""
    return Engine(session, limits, refused=refused).process(session)


def trim(session: Session, limits: Limits, refused: RefusedParts = NONE_REFUSED) -> Outcome:
    """As `trim_session`."""
    return Engine(session, exact(limits), one_shot=True, refused=refused).process(session)


def exact(limits: Limits) -> Limits:
    """The limits of a one-shot trim: exactly to the budget."""
    return replace(limits, trigger=limits.budget, target=limits.budget, items_target=limits.items_max or 0, auto=None)


def is_settled(outcome: Outcome) -> bool:
    """True if the view, used as a log, has to stay as it is.

    Not if it exceeds a limit; nor if it has lost the response that the log ends in, where the line about usage is then due.
    """
    limits, view = outcome.limits, outcome.view
    images = sum(isinstance(part, Image) for item in view.items for part in parts_of_item(item))
    if outcome.total > limits.trigger or (images > limits.images_max and not limits.final):
        return False
    if limits.items_max is not None and sum(decision.action is not Action.DROP for decision in outcome.plan) > limits.items_max:
        return False
    ends_alike = len({request_points(session)[-1] == len(session.items) for session in (outcome.log, view)}) == 1
    return ends_alike or limits.usage_noted_from == BOUNDLESS


def can_go_on(log: Session, view: Session) -> bool:
    """True if a view, used as a log, decides as its log does from then on.

    Not where nothing was decided for good; nor where an output without a call was all that ended a response; nor where the last response
    was reasoning bound to what went, and nothing else.
    """
    if view.items == log.items or any(request_points(session)[-1] != len(session.items) for session in (log, view)):
        return False
    groups, visible_ids = grouping(log), {item.id for item in view.items}
    return not groups.response_starts or any(item.id in visible_ids for item in log.items[groups.response_starts[-1] :] if is_answer(item))


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


def copy_of(session: Session) -> Session:
    """The same log with no items yet."""
    empty = Session(id=session.id)
    empty.restore_seams(session.response_breaks, session.settled, recorded_total(session))
    return empty
