"""`run_turn` keeps the most valuable lines of what it trims, unless the window says otherwise."""

from __future__ import annotations

from typing import Any

import pytest

from context_window import Action, ContextWindow, DropOldest, Extract, PriorityTrim, Session
from tests.support.looping import ScriptedModel, manager, turn


def coded_session() -> Session:
    """Return a session with outputs of many lines that differ."""
    session = Session()
    session.add_message("user", "Fix the tests.")
    for number in range(12):
        call = session.add_function_call("read_file", {"path": f"src/module_{number}.py"})
        lines = [f"value_{number}_{line} = parse_rows(source, limit={line}00)" for line in range(30)]
        session.add_function_output("read_file", "\n".join(lines), call.call_id)
    return session


@pytest.mark.parametrize(
    ("strategy", "used"),
    [(None, Extract()), (PriorityTrim(), PriorityTrim()), (DropOldest(), DropOldest())],
    ids=["unset", "priority", "drop-oldest"],
)
@pytest.mark.parametrize("before", [False, True], ids=["at once", "after a view"])
def test_the_model_gets_extracts_unless_a_strategy_is_set(strategy: Any, used: Any, before: bool) -> None:
    session, model = coded_session(), ScriptedModel()
    managing = manager(9_000, strategy=strategy, compaction=False)
    if before:
        bare = managing.process_session(session)
        assert list(bare.items) == list(manager(9_000, strategy=strategy or PriorityTrim()).process_session(session).items)
    turn(session, "Go on.", model, limits=managing, tools=())
    log = Session(session.items[:-1])
    expected = manager(9_000, strategy=used).process_session(log)
    assert list(model.views[0].items) == list(expected.items)
    assert (Action.EXTRACT in {decision.action for decision in managing.plan_session(session)}) is (used == Extract())
    managing.use_model({"model": "gpt-5", "max_tokens": 9_000})
    assert (Action.EXTRACT in {decision.action for decision in managing.plan_session(session)}) is (used == Extract())


def test_a_manager_that_runs_no_turn_trims_as_before() -> None:
    session = coded_session()
    unset, none, priority, extract = (
        list(manager(9_000, **window).process_session(session).items)
        for window in ({}, {"strategy": None}, {"strategy": PriorityTrim()}, {"strategy": Extract()})
    )
    assert unset == none == priority != extract
    assert ContextWindow().strategy is None
    assert ContextWindow(strategy=DropOldest()).with_extract().strategy == DropOldest()
