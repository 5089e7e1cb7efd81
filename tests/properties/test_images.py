"""Guarantee: images."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import event, given
from hypothesis import strategies as st

from context_window import Action, Reason
from session.items import FunctionCallOutput, Item, Message, MessageCategory
from session.parts import Image, Part, Text
from session.session import Session
from tests.support.checks import frontier
from tests.support.engine import image_placeholder
from tests.support.harness import process, trim
from tests.support.strategies import limits, sessions
from tests.support.twin import category_of, is_summary, unit_of


def parts_of(item: Item | None) -> tuple[Part, ...]:
    if isinstance(item, Message):
        return item.content
    return item.output if isinstance(item, FunctionCallOutput) else ()


def pictures(session: Session) -> list[tuple[str, int]]:
    return [(item.id, index) for item in session.items for index, part in enumerate(parts_of(item)) if isinstance(part, Image)]


@given(st.data())
def test_images(data: st.DataObject) -> None:
    """The newest images stay, older ones become placeholders, and the other parts of their items are untouched. With a budget that
    nothing exceeds, images of the frontier stay too"""
    log = data.draw(sessions())
    bounds = replace(data.draw(limits(1)), budget=10**9, trigger=10**9, target=10**9, items_max=None)
    outcome = process(log, bounds)
    visible = pictures(outcome.view)
    gone = {decision.item_id: decision.reason for decision in outcome.plan if decision.action is Action.DROP}
    older = [picture for picture in pictures(log) if picture[0] not in gone]
    newest = older[len(older) - bounds.images_kept :] if bounds.images_kept else []
    # Where a summary has taken newer images away since, older ones were replaced while those were the newest.
    if all(reason is Reason.ORPHAN for item_id, reason in gone.items() if any(entry == item_id for entry, _ in pictures(log))):
        assert set(newest) <= set(visible), "one of the newest is gone"
    if len(visible) > max(bounds.images_max, bounds.images_kept):
        event("protected images wait")
        assert [picture for picture in visible if picture not in newest and may_go(log, picture[0])] == []
    for item in outcome.view.items:
        before = parts_of(log.get_by_id(item.id))
        assert len(before) == len(parts_of(item))
        for index, (old, new) in enumerate(zip(before, parts_of(item), strict=True)):
            if isinstance(old, Image) and new is not old:
                event("replaced")
                assert new == Text(image_placeholder(item, index, old))
            else:
                assert new is old


@given(st.data())
def test_one_trim_replaces_all_that_may_go_or_none(data: st.DataObject) -> None:
    """Up to `images_max` images none is replaced; of more, all but the newest `images_kept` and the protected ones."""
    log = data.draw(sessions())
    bounds = replace(data.draw(limits(1)), budget=10**9, trigger=10**9, target=10**9, items_max=None)
    outcome = trim(log, bounds)
    gone = {decision.item_id for decision in outcome.plan if decision.action is Action.DROP}
    there = [picture for picture in pictures(log) if picture[0] not in gone]
    due: list[tuple[str, int]] = []
    if len(there) > bounds.images_max:
        event("too many")
        due = [picture for picture in there[: len(there) - bounds.images_kept] if may_go(log, picture[0])]
    assert [picture for picture in there if picture not in due] == pictures(outcome.view)


def may_go(log: Session, item_id: str) -> bool:
    """True if nothing protects the images of the item: neither its position, nor its kind, nor another item of its unit."""
    items, index = list(log.items), log.position(item_id)
    assert index is not None
    if index in frontier(items, log.response_breaks) or is_summary(items[index]):
        return False
    unit = unit_of(items, log.response_breaks)[index]
    system = MessageCategory.SYSTEM
    return category_of(items, unit) is not system and not any(items[entry].pinned or items[entry].category is system for entry in unit)
