"""Guarantee: sticky."""

from __future__ import annotations

from hypothesis import event, given
from hypothesis import strategies as st

from session.items import Compaction, FunctionCallOutput, Item
from session.removed import Removed
from tests.support.engine import Engine
from tests.support.harness import copy_of
from tests.support.strategies import chosen_limits, sessions
from tests.support.twin import Twin, answers, cost, gives_instructions, never_sent, responses


@given(st.data())
def test_sticky(data: st.DataObject) -> None:
    """Between edits, each request extends the one before it. An edit is a trim that takes or shortens something, the frontier's items
    included, a late output, or a SYSTEM item: what a trim has shortened stays in this form"""
    full_log = data.draw(sessions())
    bounds = data.draw(chosen_limits(sum(map(cost, full_log.items))))
    points = [response[0] for response in responses(list(full_log.items), full_log.response_breaks)]
    log = copy_of(full_log)
    engine = Engine(log, bounds)
    before: list[Item] = []
    line_before: Removed | None = None
    twin = Twin(list(full_log.items), full_log.response_breaks, bounds)
    for start, point in zip([0, *points], points, strict=False):
        for item in full_log.items[start:point]:
            log.append(item)
        visible = engine.process(log).view
        view, line = list(visible.items), visible.removed
        twin.grow(point)
        taken = (len(twin.dropped), len(twin.cleared), str(twin.replaced), str(twin.cuts), len(twin.unthought))
        twin.trim()
        trimmed = taken != (len(twin.dropped), len(twin.cleared), str(twin.replaced), str(twin.cuts), len(twin.unthought))
        came = list(full_log.items[start:point])
        edited = trimmed or any(is_edit(list(full_log.items), full_log.response_breaks, position) for position in range(start, point))
        event(f"edited: {edited}")
        if not edited:
            unsent = {full_log.items[position].id for position in never_sent(list(full_log.items)[:point])}
            assert len(view) == len(before) + sum(item.id not in unsent for item in came)
            assert all(now is then for now, then in zip(view, before, strict=False)), "an item changed without an edit"
            assert line == line_before, "the first line changed without an edit"
        before, line_before = view, line


def is_edit(items: list[Item], breaks: frozenset[str], position: int) -> bool:
    """True if the arrival of this item changes what stands before it: instructions, a summary that is shown before
    the items that it replaces, or a late output."""
    item = items[position]
    if gives_instructions(item) or (isinstance(item, Compaction) and item.replaces):
        return True
    call = answers(items[: position + 1]).get(position)
    if not isinstance(item, FunctionCallOutput) or call is None:
        return False
    content = responses(items[: position + 1], breaks)
    return call not in content[-1]
