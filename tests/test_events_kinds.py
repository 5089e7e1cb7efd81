"""What events say: each with its stage, and a trim with the kinds of what it took."""

from __future__ import annotations

import pickle
from collections import Counter
from typing import Any, get_args

import pytest
from hypothesis import event, given
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
from context_window.events import Event, Kind, Kinds, Stage, Trimmed
from context_window.kinds import ORDER, kind_of
from session import Item
from tests.support.counting import Letters
from tests.support.managing import session_of
from tests.support.strategies import sessions
from tests.support.twin import cost


def manager(told: list[Event], budget: int, **window: Any) -> ContextWindowManager:
    return ContextWindowManager(token_counter=Letters(), context_window=ContextWindow(budget, warn_at=(), **window), on_event=told.append)


def trims(told: list[Event]) -> list[Trimmed]:
    return [one for one in told if isinstance(one, Trimmed)]


# Words


@pytest.mark.parametrize(
    ("kinds", "said"),
    [
        ((("output", 14),), "trimmed 14 outputs"),
        ((("message", 3), ("output", 14)), "trimmed 3 messages and 14 outputs"),
        ((("message", 1), ("call", 1), ("output", 1_200)), "trimmed 1 message, 1 call and 1,200 outputs"),
        ((("reasoning", 1), ("summary", 2)), "trimmed 1 reasoning item and 2 summaries"),
        ((("reasoning", 2), ("handoff", 1), ("config update", 3)), "trimmed 2 reasoning items, 1 handoff and 3 config updates"),
    ],
)
def test_a_trim_says_what_it_took(kinds: Kinds, said: str) -> None:
    one = Trimmed("s", 35_200, 40_000, 14, 12_410, kinds)
    assert str(one) == f"context window at 88% capacity (35,200/40,000 tokens), {said}: 12,410 tokens freed"
    assert pickle.loads(pickle.dumps(one)) == one


@pytest.mark.parametrize(
    ("one", "said"),
    [
        (Compacted("s", 100, 200, 12, 5_000, 410), "summed up 12 items: 5,000 tokens became 410"),
        (Compacted("s", 100, 200, 1, 50, 41), "summed up 1 item: 50 tokens became 41"),
        (CompactionFailed("s", 100, 200, "the summariser took too long"), "not compacted: the summariser took too long"),
        (
            PartRefused("s", 100, 200, "m", 1, "image", "Could not process image"),
            "image m#1 replaced by a note: the provider refused it (Could not process image)",
        ),
        (CalibrationReset("s", 100, 200, "another model"), "calibration begins anew: another model"),
        (
            PartUnusable("s", 100, 200, "m1", 2, "image", "damaged: it ends in the middle"),
            "part 2 of item m1 is not sent: image damaged: it ends in the middle",
        ),
    ],
)
def test_events_of_compaction_and_calibration_say_what_happened(one: WindowEvent, said: str) -> None:
    assert str(one) == f"context window at 50% capacity (100/200 tokens), {said}"
    assert pickle.loads(pickle.dumps(one)) == one
    with pytest.raises(AttributeError):
        one.tokens = 0  # type: ignore[misc]


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


def test_cleared_outputs_are_told_as_outputs_and_dropped_units_as_calls_too() -> None:
    told: list[Event] = []
    asked = manager(told, 2000, target_ratio=0.9)
    session = session_of(6)
    asked.process_session(session)
    assert trims(told)[-1].kinds == (("output", 3),)
    for _ in range(5):
        session.add_message("user", "q" * 400)
        asked.process_session(session)
    assert dict(trims(told)[-1].kinds).keys() == {"message", "call", "output"}


@given(st.data())
def test_the_kinds_of_a_trim_are_those_of_the_decisions_that_take_something_out(data: st.DataObject) -> None:
    """However the log grew, was edited or asked about between two trims."""
    log = data.draw(sessions(max_steps=16))
    told: list[Event] = []
    asked = manager(told, data.draw(st.integers(1, 1 + sum(map(cost, log.items)))))
    session = Session(id=log.id)
    for item in log.items:
        session.append(item)
        ask = data.draw(st.sampled_from(["no", "no", "process", "trim", "edit"]))
        if ask == "edit":
            session.pin(item.id)
        elif ask != "no":
            told.clear()
            call = asked.process_session if ask == "process" else asked.trim_session
            call(session)
            kinds = Counter(
                kind_of(item)
                for item, one in zip(session.items, asked.plan_session(session, one_shot=ask == "trim"), strict=True)
                if one.action is not Action.KEEP
            )
            for one in trims(told):
                event("told")
                assert dict(one.kinds) == kinds
                assert one.items == kinds.total()
                assert [kind for kind, _ in one.kinds] == sorted(kinds, key=ORDER.index)


def test_counting_kinds_looks_at_items_that_enter_leave_or_change_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A trim of a long log must not cost what the log is long, nor what the view is."""
    looked: list[Item] = []

    def watched(item: Item) -> Kind:
        looked.append(item)
        return kind_of(item)

    told: list[Event] = []
    asked, session = manager(told, 20_000), session_of(400)
    asked.process_session(session)
    monkeypatch.setattr("context_window.shown.kind_of", watched)
    before = told.copy()
    while told == before:
        session.add_message("user", "q" * 40)
        looked.clear()
        asked.process_session(session)
    following = asked._state(session).view
    assert following is not None
    changes = [one for one in asked.plan_session(session) if one.action is not Action.KEEP]
    assert 0 < len(looked) < len(changes) // 4
    assert len(looked) < len(following.fold.shown) // 2
