"""Guarantee: idempotent."""

from __future__ import annotations

import json

from hypothesis import assume, event, given
from hypothesis import strategies as st

from session.session import Session
from session.units import request_points
from tests.support.harness import process, trim
from tests.support.strategies import limits, sessions
from tests.support.twin import cost


@given(st.data())
def test_idempotent(data: st.DataObject) -> None:
    """a view within its limits, reprocessed by the same function and policy, is unchanged (responses keep their numbers, so
    that what stood apart does not merge)"""
    log = data.draw(sessions())
    bounds = data.draw(limits(sum(map(cost, log.items))))
    for make in (process, trim):
        outcome = make(log, bounds)
        tally = outcome.following.fold.tally
        within = outcome.total <= bounds.trigger and tally.images <= bounds.images_max
        within = within and (bounds.items_max is None or sum(tally.items) <= bounds.items_max)
        event(f"within its limits: {within}")
        if within:
            assert make(outcome.view, bounds).view is outcome.view
            saved = Session.from_dict(json.loads(json.dumps(outcome.view.to_dict())))
            assert make(saved, bounds).view is saved


@given(st.data())
def test_a_view_goes_on_with_its_fold(data: st.DataObject) -> None:
    """a view used as the log from then on goes on with its fold"""
    log = data.draw(sessions())
    bounds = data.draw(limits(sum(map(cost, log.items))))
    assume(request_points(log)[-1] == len(log.items))  # what a call decides elsewhere is never final
    view = process(log, bounds).view
    assume(view is not log)
    assume(request_points(view)[-1] == len(view.items))  # nor where an output without a call was all that ended a response
    for session in (log, view):
        session.add_message("assistant", "answer", "answer", 1e6)
        session.add_message("user", "and then?", "then", 1e6)
    assert [item.id for item in process(view, bounds).view.items] == [item.id for item in process(log, bounds).view.items]
