"""Guarantee: untouched."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import assume, event, given
from hypothesis import strategies as st

from session.items import Compaction
from session.parts import Image
from session.session import Session
from tests.support.engine import BOUNDLESS
from tests.support.harness import process, trim
from tests.support.strategies import limits, sessions
from tests.support.twin import Twin, cost, never_sent, responses


@given(st.data())
def test_untouched(data: st.DataObject) -> None:
    """a well-formed session exceeding no limit (tokens, images, items) at any request point comes back as the same object"""
    log = data.draw(sessions())
    assume(not any(isinstance(item, Compaction) for item in log.items))  # a compaction is there to be carried out
    bounds = replace(data.draw(limits(sum(map(cost, log.items)))), binds_thinking=False)
    full_log = Twin(list(log.items), log.response_breaks, bounds)
    full_log.grow(0)
    most = max(total_at(full_log, length) for length in asked_at(log))
    assume(not never_sent(list(log.items)))
    images = sum(isinstance(part, Image) for item in log.items for part in getattr(item, "content", getattr(item, "output", ())))
    enough = replace(bounds, budget=max(1, most), trigger=max(1, most), target=0, images_max=images, items_max=len(log.items))
    enough = replace(enough, usage_noted_from=BOUNDLESS)
    assert process(log, enough).view.items == log.items
    assert trim(log, enough).view.items == log.items
    if process(log, replace(enough, budget=max(1, most) - 1, trigger=max(1, most) - 1)).view.items != log.items:
        event("one token less is one too few")


def asked_at(log: Session) -> list[int]:
    """How long the log was at each request point. Its end is taken for one, since the model is about to be called."""
    return [*(response[0] for response in responses(list(log.items), log.response_breaks)), len(log.items)]


def total_at(whole: Twin, length: int) -> int:
    whole.grow(length)
    return whole.total()
