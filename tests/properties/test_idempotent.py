"""Guarantee: idempotent."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction

from hypothesis import assume, event, given
from hypothesis import strategies as st

from session.items import Compaction, FunctionCall, FunctionCallOutput, Message, Reasoning
from session.session import Session
from tests.support.engine import MARK, Limits
from tests.support.harness import can_go_on, is_settled, process, trim
from tests.support.strategies import limits, sessions
from tests.support.twin import cost


@given(st.data())
def test_idempotent(data: st.DataObject) -> None:
    """a view within its limits, reprocessed by the same function and policy, is unchanged (responses keep their numbers, so
    that what stood apart does not merge), unless it has lost the response that the log ends in: then it may get the line about usage"""
    log = data.draw(sessions())
    bounds = data.draw(limits(sum(map(cost, log.items))))
    for make in (process, trim):
        outcome = make(log, bounds)
        event(f"settled: {is_settled(outcome)}")
        if is_settled(outcome):
            assert make(outcome.view, bounds).view.items == outcome.view.items
            saved = Session.from_dict(json.loads(json.dumps(outcome.view.to_dict())))
            assert make(saved, bounds).view.items == saved.items


def test_a_unit_whose_reasoning_goes_by_itself_is_as_summarised_as_before() -> None:
    log = Session(id="s")
    log.append(Message("user", "look", id="u"))
    log.append(Reasoning("hm", signature="s" * 40, id="r"))
    call = log.append(FunctionCall("read", "{}", "c", id="c"))
    log.append(FunctionCallOutput("read", "text", call.call_id, id="o"))
    log.append(Message("assistant", "done", id="a"))
    log.append(Message("system", "rules", id="s"))
    log.append(Compaction("it was read", ["c", "o"], id="k"))
    log.append(Message("user", "and?", id="u2"))
    log.append(Message("assistant", "yes", id="a2"))
    log.append(Message("user", "so?", id="u3"))
    bounds = Limits(10_000, 10_000, 6_500, (Fraction(1, 4),) * 4, binds_thinking=True)
    view = process(log, bounds).view
    assert [item.id for item in view.items] == ["u", "k", "a", "s", "u2", "a2", "u3"]
    assert process(view, bounds).view.items == view.items


@given(st.data())
def test_a_view_goes_on_with_its_fold(data: st.DataObject) -> None:
    """a view used as the log from then on goes on with its fold"""
    log = data.draw(sessions())
    bounds = data.draw(limits(sum(map(cost, log.items))))
    view = process(log, bounds).view
    assume(can_go_on(log, view))
    view = Session.from_view(view)
    more = [replace(item, id=f"later {item.id}") for item in data.draw(sessions(max_steps=8)).items if not isinstance(item, Compaction)]
    for session in (log, view):
        session.add_message("assistant", "answer", "answer", 1e6)
        for item in more:
            session.append(item)
    full_log, on = process(log, bounds), process(view, bounds)
    assert list(on.view.items) == list(full_log.view.items)
    assert on.total == full_log.total
    event(f"changed again: {any(MARK in item.extra for item in view.items)}")
