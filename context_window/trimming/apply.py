"""Carrying a plan out: a view from a session, nothing decided."""

from __future__ import annotations

from session.items import FunctionCallOutput, Item
from session.session import Session

from .placeholders import changed, cleared, without_refused
from .plan import Action, Cut, Plan


def shape(item: Item, action: Action, images: tuple[int, ...] = (), cut: Cut | None = None) -> Item:
    """The item as the view shows it; itself where nothing is changed. Not for dropped items."""
    if action is Action.CLEAR and isinstance(item, FunctionCallOutput):
        return cleared(item)
    if images or cut is not None:
        return changed(item, images, cut)
    return item


def apply(plan: Plan, session: Session) -> Session:
    """The view that the plan describes; the session itself where the plan keeps everything.

    Raises:
        ValueError: The plan was made for another log.
    """
    if [decision.item_id for decision in plan] != [item.id for item in session.items]:
        raise ValueError("the plan was made for another log, or the log has changed since: plan again")
    if not plan.changes:
        return session
    shown = [
        shape(without_refused(item, decision.refused) if decision.refused else item, decision.action, decision.images, decision.cut)
        for item, decision in zip(session.items, plan, strict=True)
        if decision.action is not Action.DROP
    ]
    tokens = plan.after if plan.calibrated else None
    return Session.showing(session, shown, breaks=plan.breaks, settled=len(shown), settled_tokens=tokens)
