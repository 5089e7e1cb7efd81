"""Applies a plan: makes a view of a session. Decides nothing."""

from __future__ import annotations

from collections.abc import Iterator

from session.items import FunctionCall, FunctionCallOutput, Item
from session.session import Session

from .extracts import digest
from .placeholders import changed, cleared, cleared_call, without_refused
from .plan import Action, Cut, Plan


def shape(item: Item, action: Action, images: tuple[int, ...] = (), cut: Cut | None = None) -> Item:
    """Return the item as the view shows it; the item itself if nothing is changed. Not for dropped items and those in a digest."""
    if action is Action.CLEAR and isinstance(item, FunctionCallOutput):
        return cleared(item)
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
    rows = list(_rows(plan, session))
    rows.sort(key=lambda row: row[:3])
    items = [item for *_, item in rows]
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


def _rows(plan: Plan, session: Session) -> Iterator[tuple[int, bool, int, Item]]:
    """Yield the items of the view, each with the position before which it stands, if it stands at that position, and its own."""
    digests: dict[int, list[tuple[int, Item, tuple[int, ...]]]] = {}
    for place, (item, decision) in enumerate(zip(session.items, plan, strict=True)):
        if decision.action is Action.DROP:
            continue
        original = without_refused(item, decision.refused) if decision.refused else item
        if decision.digest_before is not None:
            digests.setdefault(decision.digest_before, []).append((place, original, decision.lines or ()))
            continue
        before = plan.summary_places.get(item.id)
        yield place if before is None else before, before is None, place, shape(original, decision.action, decision.images, decision.cut)
    for before, sources in digests.items():
        yield before, False, sources[0][0], digest([(item, lines) for _, item, lines in sources])
