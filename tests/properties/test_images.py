"""Guarantee: images."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import event, given
from hypothesis import strategies as st

from context_window.trimming.placeholders import image_placeholder
from context_window.trimming.plan import Action, Reason
from session.items import FunctionCallOutput, Item, Message
from session.parts import Image, Part, Text
from session.session import Session
from tests.support.checks import frontier
from tests.support.harness import process
from tests.support.strategies import limits, sessions


def parts_of(item: Item | None) -> tuple[Part, ...]:
    if isinstance(item, Message):
        return item.content
    return item.output if isinstance(item, FunctionCallOutput) else ()


def pictures(session: Session) -> list[tuple[str, int]]:
    return [(item.id, place) for item in session.items for place, part in enumerate(parts_of(item)) if isinstance(part, Image)]


@given(st.data())
def test_images(data: st.DataObject) -> None:
    """the image rule spares the newest `images_kept` and replaces older unprotected ones, the parts beside them untouched"""
    log = data.draw(sessions())
    bounds = replace(data.draw(limits(1)), budget=10**9, trigger=10**9, target=10**9, items_max=None)
    outcome = process(log, bounds)
    shown = pictures(outcome.view)
    gone = {one.item_id: one.reason for one in outcome.plan if one.action is Action.DROP}
    older = [picture for picture in pictures(log) if picture[0] not in gone]
    newest = older[len(older) - bounds.images_kept :] if bounds.images_kept else []
    # Where a summary has taken newer images away since, older ones were replaced while those were the newest.
    if all(reason is Reason.ORPHAN for item_id, reason in gone.items() if any(one == item_id for one, _ in pictures(log))):
        assert set(newest) <= set(shown), "one of the newest is gone"
    ahead = {log.items[place].id for place in frontier(list(log.items), log.response_breaks)}
    if len(shown) > max(bounds.images_max, bounds.images_kept):
        event("protected images wait")
        free = [picture for picture in shown if picture not in newest and may_go(log.get_by_id(picture[0]), ahead)]
        assert free == [] or held_unit(outcome.plan.decisions, {one for one, _ in free})
    for item in outcome.view.items:
        before = parts_of(log.get_by_id(item.id))
        assert len(before) == len(parts_of(item))
        for place, (old, new) in enumerate(zip(before, parts_of(item), strict=True)):
            if isinstance(old, Image) and new is not old:
                event("replaced")
                assert new == Text(image_placeholder(item, place, old))
            else:
                assert new is old


def may_go(item: Item | None, ahead: set[str]) -> bool:
    return item is not None and not (
        item.id in ahead or item.pinned or item.category.value == "SYSTEM" or (isinstance(item, Message) and item.is_summary)
    )


def held_unit(decisions: tuple[object, ...], ids: set[str]) -> bool:
    """Whether these wait because something else of their unit is pinned or SYSTEM."""
    reasons = {getattr(one, "item_id", ""): getattr(one, "reason", None) for one in decisions}
    return all(getattr(reasons[one], "name", "") in ("PINNED", "SYSTEM", "TOO_MANY_IMAGES") for one in ids)
