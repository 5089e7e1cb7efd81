"""The strategy of a turn: the manager's own, or `Extract()` without a manager."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from context_window import (
    Action,
    ContextWindow,
    ContextWindowManager,
    DropOldest,
    Extract,
    PartRefusedError,
    PriorityTrim,
    Session,
    UnknownModelError,
    run_turn,
)
from tests.support.looping import ScriptedModel, cut_off, manager, png, turn
from tests.support.stubs import Say


def coded_session(outputs: int = 12) -> Session:
    """Return a session with outputs of many lines that differ."""
    session = Session()
    session.add_message("user", "Fix the tests.")
    for number in range(outputs):
        call = session.add_function_call("read_file", {"path": f"src/module_{number}.py"})
        lines = [f"value_{number}_{line} = parse_rows(source, limit={line}00)" for line in range(30)]
        session.add_function_output("read_file", "\n".join(lines), call.call_id)
    return session


@pytest.mark.parametrize("strategy", [None, Extract(), DropOldest()], ids=["unset", "extract", "drop-oldest"])
def test_a_turn_leaves_the_managers_strategy_alone(strategy: Any) -> None:
    session, model = coded_session(), ScriptedModel()
    managing = manager(9_000, strategy=strategy, compaction=False)
    turn(session, "Go on.", model, limits=managing, tools=())
    expected = manager(9_000, strategy=strategy).process_session(Session(session.items[:-1]))
    assert list(model.views[0].items) == list(expected.items)
    assert (Action.EXTRACT in {decision.action for decision in managing.plan_session(session)}) is (strategy == Extract())


class NamedModel(ScriptedModel):
    model = "gpt-3.5-turbo"


def test_without_a_manager_a_turn_keeps_the_best_lines_in_the_models_window() -> None:
    session, model = coded_session(60), NamedModel(cut_off("max_tokens"))  # the answer to the request for a summary
    asyncio.run(run_turn(session, "Go on.", model=model))
    expected = ContextWindowManager("gpt-3.5-turbo", strategy=Extract()).process_session(Session(session.items[:-1]))
    assert len(expected.items) < len(session.items) - 1
    assert [item.id for item in model.views[-1].items] == [item.id for item in expected.items]


def test_without_a_manager_an_image_that_was_refused_is_not_sent_again() -> None:
    session = Session()
    images: list[int] = []

    async def refuse(view: Session) -> Any:
        images.append(str(view.to_anthropic_messages()).count("'image'"))
        return PartRefusedError("Could not process image", 400, part_kind="image", place=(0, 1)) if len(images) == 1 else [Say("Fine.")]

    model = NamedModel(refuse, refuse, refuse)
    questions: list[Any] = [["What is this?", png()], "And now?"]
    for question in questions:
        asyncio.run(run_turn(session, question, model=model))
    assert images == [1, 0, 0]


def test_a_model_of_unknown_size_needs_a_manager() -> None:
    model = NamedModel()
    model.model = "frontier-9000"
    with pytest.raises(UnknownModelError, match="frontier-9000"):
        asyncio.run(run_turn(Session(), "Hi", model=model))


def test_a_manager_that_runs_no_turn_trims_as_before() -> None:
    session = coded_session()
    unset, none, priority, extract = (
        list(manager(9_000, **window).process_session(session).items)
        for window in ({}, {"strategy": None}, {"strategy": PriorityTrim()}, {"strategy": Extract()})
    )
    assert unset == none == priority != extract
    assert ContextWindow().strategy is None
    assert ContextWindow(strategy=DropOldest()).with_extract().strategy == DropOldest()
