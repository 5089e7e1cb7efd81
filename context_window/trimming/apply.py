"""Applies a plan: makes a view of a session. Decides nothing."""

from __future__ import annotations

from session.items import FunctionCall, FunctionCallOutput, Item
from session.session import Session

from .extracts import extracted
from .placeholders import changed, cleared, cleared_call, without_refused
from .plan import Action, Cut, Plan


def shape(item: Item, action: Action, images: tuple[int, ...] = (), cut: Cut | None = None, lines: tuple[int, ...] | None = None) -> Item:
    """Return the item as the view shows it; the item itself if nothing is changed. Not for dropped items."""
    if action is Action.CLEAR and isinstance(item, FunctionCallOutput):
        return cleared(item)
    if action is Action.EXTRACT and lines is not None:
        return extracted(item, lines)
    if images or cut is not None:
        item = changed(item, images, cut)
    return cleared_call(item) if action is Action.CLEAR and isinstance(item, FunctionCall) else item


def apply(plan: Plan, session: Session) -> Session:
    """Return the view that the plan describes; the session itself if the plan keeps everything.

    Raises:
        ValueError: The plan was made for another log.
    """
    if [decision.item_id for decision in plan] != [item.id for item in session.items]:
        raise ValueError("the plan was made for another log, or the log has changed since: plan again")
    if not plan.changes and not plan.summary_places and plan.usage_noted_after == session.usage_noted_after:
        return session
    rows = [(item, decision) for item, decision in zip(session.items, plan, strict=True) if decision.action is not Action.DROP]
    if plan.summary_places:
        places = {item.id: (place, 1) for place, item in enumerate(session.items)}
        places |= {item_id: (place, 0) for item_id, place in plan.summary_places.items()}
        rows.sort(key=lambda row: places[row[0].id])
    items = [
        shape(
            without_refused(item, decision.refused) if decision.refused else item,
            decision.action,
            decision.images,
            decision.cut,
            decision.lines,
        )
        for item, decision in rows
    ]
    tokens = plan.after if plan.calibrated else None
    return Session.showing(
        session,
        items,
        breaks=plan.breaks,
        settled=len(items),
        settled_tokens=tokens,
        ends=plan.ends,
        removed=plan.removed,
        usage_noted_after=plan.usage_noted_after,
    )
