"""A plan carried out: the view that its decisions describe, made without the engine."""

from __future__ import annotations

from dataclasses import replace

from context_window import Action, Decision, Plan
from session.items import FunctionCall, FunctionCallOutput, Item
from session.session import Session
from tests.support.engine import DigestPart, changed, cleared, cleared_call, digest, without_refused
from tests.support.twin import answers, as_call


def shape(item: Item, decision: Decision, source: Item | None = None) -> Item:
    """Return the item as the decision shows it; the item itself if nothing is changed. Not for dropped items and those in a digest.

    Args:
        item: The item.
        decision: The decision.
        source: The output whose content it restores, if it does.
    """
    if decision.refused:
        item = without_refused(item, decision.refused)
    if decision.action is Action.CLEAR and isinstance(item, FunctionCallOutput):
        return cleared(item)
    if source is not None and isinstance(item, FunctionCallOutput) and isinstance(source, FunctionCallOutput):
        return replace(item, output=source.output)
    if decision.images or decision.cut is not None:
        item = changed(item, decision.images, decision.cut)
    return cleared_call(item) if decision.action is Action.CLEAR and isinstance(item, FunctionCall) else item


def carried_out(plan: Plan, session: Session) -> Session:
    """Return the view that the plan describes; the session itself if the plan changes nothing."""
    if not plan.changes and not plan.summary_places and plan.usage_noted_after == session.usage_noted_after:
        return session
    rows: list[tuple[int, bool, int, Item]] = []  # the position before which an item stands, if it stands at that position, and its own
    digests: dict[int, list[tuple[int, DigestPart]]] = {}
    calls = answers(list(session.items))
    for position, (item, decision) in enumerate(zip(session.items, plan, strict=True)):
        assert decision.item_id == item.id
        if decision.digest_before is not None:
            source = without_refused(item, decision.refused) if decision.refused else item
            call = calls.get(position)
            part = DigestPart(source, decision.lines or (), None if call is None else as_call(session.items[call]))
            digests.setdefault(decision.digest_before, []).append((position, part))
        elif decision.action is not Action.DROP:
            before = plan.summary_places.get(item.id)
            rows.append(
                (
                    position if before is None else before,
                    before is None,
                    position,
                    shape(item, decision, session.get_by_id(decision.restores or "")),
                )
            )
    rows += [(before, False, parts[0][0], digest([part for _, part in parts])) for before, parts in digests.items()]
    if plan.state_note is not None:
        rows.append((plan.state_note.before, False, len(session), plan.state_note.message))
    rows.sort(key=lambda row: row[:3])
    return Session.showing(
        session,
        [row[3] for row in rows],
        breaks=plan.breaks,
        settled=len(rows),
        ends=plan.ends,
        removed=plan.removed,
        usage_noted_after=plan.usage_noted_after,
    )
