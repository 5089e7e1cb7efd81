"""Guarantee: frontier steps."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from hypothesis import event, given
from hypothesis import strategies as st

from context_window import Action, Reason
from session.items import Message
from session.parts import Image, Text
from tests.support.checks import is_shortest, parts_of
from tests.support.engine import Outcome
from tests.support.harness import ladder, trim
from tests.support.strategies import limits, sessions
from tests.support.twin import Twin, cost, is_summary


@given(st.data())
def test_the_oldest_go_first(data: st.DataObject) -> None:
    """The frontier shrinks only as far as needed: unread CONTEXT is dropped, then images are replaced, the oldest first; the newest
    `images_kept` images stay"""
    log = data.draw(sessions(max_steps=6, ends_in_attachments=True))
    bounds = replace(data.draw(limits(sum(map(cost, log.items)))), binds_thinking=False)
    for outcome in (trim(log, bounds), *ladder(log, bounds)):
        twin, decisions = undecided(outcome), outcome.plan.decisions
        dropped = [decisions[position].reason is Reason.UNREAD_CONTEXT for position in twin.unread_context()]
        assert dropped == sorted(dropped, reverse=True), "a newer item was dropped, and an older one kept"
        images = unread_images(outcome)
        replaced = [image.is_replaced for image in images]
        assert replaced == sorted(replaced, reverse=True), "a newer image was replaced, and an older one kept"
        assert all(dropped) or not any(replaced), "an image was replaced, and unread CONTEXT kept"
        assert all(image.newer >= bounds.images_kept for image in images if image.is_replaced)
        event(f"some dropped: {0 < sum(dropped) < len(dropped)}")
        event(f"some replaced: {0 < sum(replaced) < len(replaced)}")


@given(st.data())
def test_each_step_waits_for_the_one_before_it(data: st.DataObject) -> None:
    """nothing is truncated while unread CONTEXT or an older image is left; no call while an output could be shorter, no message of the
    user while an output or a call could be shorter"""
    outcome = one_trim(data)
    twin, decisions = undecided(outcome), outcome.plan.decisions
    steps = [twin.unread_outputs(), twin.unread_calls(), twin.unread_messages()]
    cuts = [any(decisions[position].cut for position in step) for step in steps]
    if any(cuts):
        assert [position for position in twin.unread_context() if decisions[position].action is not Action.DROP] == []
        assert [image for image in unread_images(outcome) if not image.is_replaced and image.newer >= twin.limits.images_kept] == []
    for number, is_cut in enumerate(cuts):
        if is_cut:
            event(f"truncated in step {number}")
            earlier = [position for step in steps[:number] for position in step]
            assert [position for position in earlier if not is_shortest(outcome, position)] == []


@given(st.data())
def test_words_of_the_user_stay_if_the_window_says_so(data: st.DataObject) -> None:
    """with `clamp_messages=False`, no text of a message is changed"""
    outcome = one_trim(data, spares_messages=True)
    for item in outcome.view.items:
        if isinstance(item, Message):
            before = outcome.log.get_by_id(item.id)
            assert isinstance(before, Message)
            assert all(new is old for old, new in zip(before.content, item.content, strict=True) if isinstance(old, Text))
    event(f"over budget: {outcome.plan.over_budget}")


def one_trim(data: st.DataObject, *, spares_messages: bool = False) -> Outcome:
    """One trim of any log. Without earlier decisions, its plan shows the order of its steps."""
    log = data.draw(sessions())
    bounds = replace(data.draw(limits(sum(map(cost, log.items)))), binds_thinking=False)
    return trim(log, replace(bounds, clamp_messages=bounds.clamp_messages and not spares_messages))


def undecided(outcome: Outcome) -> Twin:
    """The whole log with nothing decided: says what of its frontier may shrink."""
    twin = Twin(list(outcome.log.items), outcome.log.response_breaks, outcome.limits)
    twin.grow(len(twin.items))
    return twin


class UnreadImage(NamedTuple):
    """An image of the frontier that may become a placeholder, and the number of newer images in the view."""

    is_replaced: bool
    newer: int


def unread_images(outcome: Outcome) -> list[UnreadImage]:
    """Return the images of the frontier that may become placeholders, the oldest first."""
    twin = undecided(outcome)
    unread: list[UnreadImage] = []
    visible = 0
    for position, decision in reversed(list(enumerate(outcome.plan))):
        if decision.action in (Action.DROP, Action.CLEAR):
            continue
        for part, content in reversed(list(enumerate(parts_of(twin.items[position])))):
            if isinstance(content, Image):
                is_replaced = part in decision.images
                saves = twin.form(position, images=(part,))[1] < twin.form(position)[1]
                if saves and may_shrink(twin, position):
                    unread.append(UnreadImage(is_replaced, visible))
                visible += not is_replaced
    return unread[::-1]


def may_shrink(twin: Twin, position: int) -> bool:
    unit = twin.units()[position]
    return position in twin.frontier() and not any(map(twin.held, unit)) and not is_summary(twin.items[position])
