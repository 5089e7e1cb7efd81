"""Guarantee: pure."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from session import Session
from tests.support.harness import process, trim
from tests.support.strategies import chosen_limits, sessions
from tests.support.twin import cost


@given(st.data())
def test_pure(data: st.DataObject) -> None:
    """the input session is byte-identical after any call"""
    log = data.draw(sessions())
    bounds = data.draw(chosen_limits(sum(map(cost, log.items))))
    saved, objects = json.dumps(log.to_dict()), list(log.items)
    for outcome in (process(log, bounds), trim(log, bounds)):
        if outcome.view.items != log.items:
            Session.from_view(outcome.view).add_message("user", "a log of its own")
        assert json.dumps(log.to_dict()) == saved
        assert all(mine is theirs for mine, theirs in zip(log.items, objects, strict=True))
