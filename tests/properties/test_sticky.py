"""Guarantee: sticky."""

from __future__ import annotations

from hypothesis import event, given
from hypothesis import strategies as st

from context_window.following import Following
from session.items import FunctionCallOutput, Item, Message
from tests.support.harness import MEASURER, again, copy_of
from tests.support.strategies import limits, sessions
from tests.support.twin import Twin, answers, cost, responses


@given(st.data())
def test_sticky(data: st.DataObject) -> None:
    """between edits (a trim, an image replaced, a late answer, a SYSTEM item) each confirmed request's messages,
    `cache_control` marks aside, extend the previous one's"""
    whole = data.draw(sessions())
    bounds = data.draw(limits(sum(map(cost, whole.items))))
    points = [response[0] for response in responses(list(whole.items), whole.response_breaks)]
    log = copy_of(whole)
    following = Following(log, bounds, MEASURER)
    before: list[Item] = []
    twin = Twin(list(whole.items), whole.response_breaks, bounds)
    for start, point in zip([0, *points], points, strict=False):
        for item in whole.items[start:point]:
            log.append(item)
        view = list(again(following, log).view.items)
        twin.grow(point)
        taken = (len(twin.dropped), len(twin.cleared), str(twin.replaced), len(twin.cuts), len(twin.unthought))
        twin.trim()
        trimmed = taken != (len(twin.dropped), len(twin.cleared), str(twin.replaced), len(twin.cuts), len(twin.unthought))
        came = list(whole.items[start:point])
        edited = trimmed or any(is_edit(list(whole.items), whole.response_breaks, place) for place in range(start, point))
        event(f"edited: {edited}")
        if not edited:
            orphans = {whole.items[place].id for place, call in answers(list(whole.items)[:point]).items() if call is None}
            assert len(view) == len(before) + sum(item.id not in orphans for item in came)
            assert all(now is then for now, then in zip(view, before, strict=False)), "an item changed without an edit"
        before = view


def is_edit(items: list[Item], breaks: frozenset[str], place: int) -> bool:
    """Whether this item's arrival changes what stands before it: a system message, or an answer that comes late."""
    item = items[place]
    if isinstance(item, Message) and item.role in ("system", "developer"):
        return True
    call = answers(items[: place + 1]).get(place)
    if not isinstance(item, FunctionCallOutput) or call is None:
        return False
    said = responses(items[: place + 1], breaks)
    return call not in said[-1]
