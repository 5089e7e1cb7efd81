"""Guarantee: pairs."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from session.items import Reasoning
from tests.support.checks import check_pairs
from tests.support.harness import ladder, process
from tests.support.strategies import limits, sessions
from tests.support.twin import cost, unit_of


@given(st.data())
def test_pairs(data: st.DataObject) -> None:
    """an answered call and its output are both in or both out, with their response's other calls and reasoning"""
    log = data.draw(sessions())
    bounds = data.draw(limits(sum(map(cost, log.items))))
    for outcome in (process(log, bounds), *ladder(log, bounds)):
        check_pairs(log, outcome.view)
        if bounds.binds_thinking:
            continue  # there reasoning may go before its unit: test_reasoning.py
        visible = {item.id for item in outcome.view.items}
        items = list(log.items)
        for unit in unit_of(items, log.response_breaks).values():
            if any(isinstance(items[position], Reasoning) for position in unit):
                assert len({items[position].id in visible for position in unit}) == 1
