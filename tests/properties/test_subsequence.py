"""Guarantee: subsequence."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.support.checks import check_subsequence
from tests.support.harness import process, trim
from tests.support.strategies import limits, sessions
from tests.support.twin import cost


@given(st.data())
def test_subsequence(data: st.DataObject) -> None:
    """the view's items are the log's, in order; unreplaced ones are the same objects; preambles and synthetic outputs are in
    the payload only"""
    log = data.draw(sessions())
    bounds = data.draw(limits(sum(map(cost, log.items))))
    check_subsequence(log, process(log, bounds).view)
    check_subsequence(log, trim(log, bounds).view)
