"""Guarantee: system, pinned, frontier."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from context_window import Action
from tests.support.checks import check_kept
from tests.support.harness import process, trim
from tests.support.strategies import limits, sessions
from tests.support.twin import cost


@given(st.data())
def test_system_pinned_frontier(data: st.DataObject) -> None:
    """SYSTEM, pinned items, the last user message and all from the last response on survive, except for unpinned context
    after it; unpinned items there may be shortened, last of all"""
    log = data.draw(sessions())
    # Reasoning that a model would refuse after an edit goes wherever it stands: docs/provider-rules.md, A5 wins over the frontier.
    bounds = replace(data.draw(limits(sum(map(cost, log.items)))), binds_thinking=False)
    check_kept(log, process(log, bounds).view)
    outcome = trim(log, bounds)
    check_kept(log, outcome.view)
    if any(decision.action is Action.TRUNCATE for decision in outcome.plan):
        assert all(decision.after == 0 or decision.reason.name != "FITS" for decision in outcome.plan if decision.before), (
            "something unprotected is left beside a truncated output"
        )
