"""The text and stage of each event, and the kinds of items in a trim."""

from __future__ import annotations

import pickle
from collections import Counter
from typing import Any, get_args

import pytest
from hypothesis import event as label
from hypothesis import given
from hypothesis import strategies as st

from context_window import (
    Action,
    CalibrationReset,
    Compacted,
    CompactionFailed,
    ContextWindow,
    ContextWindowManager,
    PartRefused,
    PartUnusable,
    Session,
    WindowEvent,
)
from context_window.events.definitions import Event, Kinds, Stage, Trimmed
from context_window.usage.view_figures import ORDER, kind_of
from session import Compaction
from tests.support.counting import Letters
from tests.support.managing import session_of
from tests.support.strategies import sessions
from tests.support.twin import cost


def make_manager(events: list[Event], budget: int, **window: Any) -> ContextWindowManager:
    return ContextWindowManager(token_counter=Letters(), context_window=ContextWindow(budget, warn_at=(), **window), on_event=events.append)


def trims(events: list[Event]) -> list[Trimmed]:
    return [event for event in events if isinstance(event, Trimmed)]


# Texts


@pytest.mark.parametrize(
    ("kinds", "text"),
    [
        ((("output", 14),), "trimmed 14 outputs"),
        ((("message", 3), ("output", 14)), "trimmed 3 messages and 14 outputs"),
        ((("message", 1), ("call", 1), ("output", 1_200)), "trimmed 1 message, 1 call and 1,200 outputs"),
        ((("reasoning", 1), ("summary", 2)), "trimmed 1 reasoning item and 2 summaries"),
        ((("reasoning", 2), ("handoff", 1), ("config update", 3)), "trimmed 2 reasoning items, 1 handoff and 3 config updates"),
    ],
)
def test_the_text_of_a_trim_lists_kinds(kinds: Kinds, text: str) -> None:
    event = Trimmed("s", 35_200, 40_000, 14, 12_410, kinds)
    assert str(event) == f"context window at 88% capacity (35,200/40,000 tokens), {text}: 12,410 tokens freed"
    assert pickle.loads(pickle.dumps(event)) == event


@pytest.mark.parametrize(
    ("event", "text"),
    [
        (Compacted("s", 100, 200, 12, 5_000, 410), "summarised 12 items: 5,000 tokens became 410"),
        (Compacted("s", 100, 200, 1, 50, 41), "summarised 1 item: 50 tokens became 41"),
        (CompactionFailed("s", 100, 200, "the summariser took too long"), "not compacted: the summariser took too long"),
        (
            PartRefused("s", 100, 200, "m", 1, "image", "Could not process image"),
            "image m#1 replaced by a note: the provider refused it (Could not process image)",
        ),
        (CalibrationReset("s", 100, 200, "another model"), "calibration restarts: another model"),
        (
            PartUnusable("s", 100, 200, "m1", 2, "image", "damaged: it ends in the middle"),
            "part 2 of item m1 is not sent: image damaged: it ends in the middle",
        ),
    ],
)
def test_texts_of_compaction_and_calibration_events(event: WindowEvent, text: str) -> None:
    assert str(event) == f"context window at 50% capacity (100/200 tokens), {text}"
    assert pickle.loads(pickle.dumps(event)) == event
    with pytest.raises(AttributeError):
        event.tokens = 0  # type: ignore[misc]


def test_every_event_names_its_stage() -> None:
    stages = {kind: kind.stage for kind in get_args(Event)}
    assert set(stages.values()) <= set(get_args(Stage))
    assert {kind.__name__: stage for kind, stage in stages.items()} == {
        "ThresholdCrossed": "count",
        "Trimmed": "trim",
        "OverBudget": "trim",
        "ProviderOverBudget": "request",
        "PartRefused": "request",
        "CounterFellBack": "count",
        "Compacted": "compact",
        "CompactionFailed": "compact",
        "CalibrationReset": "response",
        "PartUnusable": "request",
    }


# Kinds


def test_kinds_of_cleared_outputs_and_dropped_units() -> None:
    events: list[Event] = []
    manager = make_manager(events, 2000, target_ratio=0.9)
    session = session_of(6)
    manager.process_session(session)
    assert trims(events)[-1].kinds == (("output", 3),)
    for _ in range(5):
        session.add_message("user", "q" * 400)
        manager.process_session(session)
    assert dict(trims(events)[-1].kinds).keys() == {"message", "call", "output"}


@given(st.data())
def test_the_kinds_of_a_trim_are_those_of_the_decisions_that_take_something_out(data: st.DataObject) -> None:
    """Regardless of appends, edits and calls between two trims. What a summary replaced does not count: `Compacted` is about it."""
    log = data.draw(sessions(max_steps=16))
    events: list[Event] = []
    manager = make_manager(events, data.draw(st.integers(1, 1 + sum(map(cost, log.items)))))
    session = Session(id=log.id)
    for item in log.items:
        session.append(item)
        ask = data.draw(st.sampled_from(["no", "no", "process", "trim", "edit"]))
        if ask == "edit":
            session.pin(item.id)
        elif ask != "no":
            events.clear()
            call = manager.process_session if ask == "process" else manager.trim_session
            call(session)
            kinds = Counter(
                kind_of(item)
                for item, decision in zip(session.items, manager.plan_session(session, one_shot=ask == "trim"), strict=True)
                if decision.action is not Action.KEEP and not (decision.action is Action.DROP and item.id in replaced(session))
            )
            for event in trims(events):
                label("told")
                assert dict(event.kinds) == kinds
                assert event.items == kinds.total()
                assert [kind for kind, _ in event.kinds] == sorted(kinds, key=ORDER.index)


def replaced(session: Session) -> set[str]:
    """Ids of the items that summaries stand for."""
    return {item_id for item in session.items if isinstance(item, Compaction) for item_id in item.replaces}


def test_a_summary_of_what_was_dropped_before_takes_it_from_the_kinds() -> None:
    events: list[Event] = []
    manager, session = make_manager(events, 1), Session()
    old, _ = session.add_message("user", "long ago"), session.add_message("user", "now")
    for name in ("first", "second"):
        call = session.add_function_call(name, {})
        session.add_function_output(name, "x", call.call_id)
    manager.process_session(session)
    assert trims(events)[-1].kinds == (("message", 1), ("call", 1), ("output", 1))
    session.append(Compaction("it is long ago", [old.id]))
    call = session.add_function_call("third", {})
    session.add_function_output("third", "x", call.call_id)
    manager.process_session(session)
    assert trims(events)[-1].kinds == (("call", 2), ("output", 2))
