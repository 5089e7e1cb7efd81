"""Guarantee: a request that goes on from the last one is the request that a conversion from nothing makes."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from typing import Any

from hypothesis import event, given
from hypothesis import strategies as st

from session.items import Item
from session.providers.anthropic import to_anthropic
from session.providers.google import to_google
from session.providers.openai_chat import to_openai_chat
from session.providers.openai_responses import to_openai_responses
from session.session import Session
from tests.support.any_logs import ITEMS, logs
from tests.support.engine import Engine
from tests.support.harness import copy_of, process
from tests.support.strategies import limits, sessions
from tests.support.twin import cost

FORMATS: dict[str, Callable[[Session], Any]] = {
    "anthropic": to_anthropic,
    "anthropic with marks": lambda session: to_anthropic(session, caching=True),
    "openai chat": to_openai_chat,
    "openai chat, reasoning": lambda session: to_openai_chat(session, reasoning_model=True),
    "openai responses": to_openai_responses,
    "google": to_google,
}
EDITS: dict[str, Callable[[Session, st.DataObject], object]] = {
    "append": lambda session, data: session.append(data.draw(ITEMS)),
    "append more": lambda session, data: [session.append(item) for item in data.draw(st.lists(ITEMS, min_size=2, max_size=5))],
    "pin": lambda session, data: session.pin(one_item(session, data).id) if session.items else None,
    "insert": lambda session, data: session.insert(data.draw(ITEMS)),
    "truncate": lambda session, data: session.truncate(max_items=data.draw(st.integers(0, 12))),
    "break": lambda session, data: add_break(session, one_item(session, data)) if session.items else None,
}
CHOICES = ["append"] * 6 + ["append more"] * 3 + [*EDITS]


def one_item(session: Session, data: st.DataObject) -> Item:
    return data.draw(st.sampled_from(session.items))


def add_break(session: Session, item: Item) -> None:
    session.restore_seams(session.response_breaks | {item.id}, session.settled)


def check(session: Session, name: str) -> None:
    """Compare with a copy, for which nothing is kept; then do to the request what a caller might do."""
    convert, before = FORMATS[name], session.to_dict()
    request = convert(session)
    assert json.dumps(request) == json.dumps(convert(deepcopy(session)))
    spoil(request)
    assert session.to_dict() == before


def spoil(value: Any) -> None:
    """Change everything that can be changed in a request."""
    if isinstance(value, dict):
        for member in value.values():
            spoil(member)
        value["cache_control"] = {"type": "ephemeral"}
        value.pop("role", None)
    elif isinstance(value, list | tuple):
        for member in value:
            spoil(member)
        if isinstance(value, list):
            value.append("spoilt")


@given(st.data())
def test_a_log_that_grows_and_is_edited(data: st.DataObject) -> None:
    """after any appends, edits and forks a request equals one that is converted from nothing, whatever callers did to earlier ones"""
    name = data.draw(st.sampled_from(sorted(FORMATS)))
    session = data.draw(st.one_of(logs(), sessions()))
    check(session, name)
    for edit in data.draw(st.lists(st.sampled_from(CHOICES), max_size=8)):
        event(edit)
        EDITS[edit](session, data)
        if data.draw(st.booleans()):
            other = session.fork()
            session, other = (other, session) if data.draw(st.booleans()) else (session, other)
            check(other, name)
        check(session, name)


@given(st.data())
def test_views_of_a_log_that_grows(data: st.DataObject) -> None:
    """the request of every view equals one that is converted from nothing: after each item, with any trims between.
    A plan that goes on from an earlier one equals a first plan"""
    name = data.draw(st.sampled_from(sorted(FORMATS)))
    log = data.draw(sessions())
    bounds = data.draw(limits(sum(map(cost, log.items))))
    session, steps = copy_of(log), data.draw(st.integers(1, 4))
    engine = Engine(session, bounds)
    for place, item in enumerate(log.items, 1):
        session.append(item)
        if place % steps == 0:
            outcome = engine.process(session)
            event(f"the view is the log: {outcome.view is session}")
            check(outcome.view, name)
            assert outcome.plan == process(session, bounds).plan
