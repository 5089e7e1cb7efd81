"""Guarantee: after a fork or a pin the view is that of the log, whatever the manager has seen before."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy

from hypothesis import event, given
from hypothesis import strategies as st

from context_window import ContextWindow, ContextWindowManager, Extract
from context_window.events.definitions import Event, PartUnusable
from session.items import FunctionCall, FunctionCallOutput, Message, MessageCategory
from session.parts import Image, Text
from session.session import Session
from session.usage import Usage
from tests.support.counting import Letters
from tests.support.extracting import coded_sessions
from tests.support.harness import copy_of
from tests.support.strategies import reported, sessions
from tests.support.twin import cost


@given(st.data())
def test_a_log_with_forks_and_pins_is_decided_as_one_never_seen(data: st.DataObject) -> None:
    """after any appends, pins and forks the manager's view and plan equal those of another manager"""
    full_log = data.draw(coded_sessions() if data.draw(st.booleans()) else sessions())
    if data.draw(st.booleans()):
        full_log = data.draw(reported(full_log))
    budget = max(1, sum(map(cost, full_log.items)) * data.draw(st.integers(20, 120)) // 100)
    window = ContextWindow(
        max_tokens=budget,
        strategy=data.draw(st.sampled_from((None, Extract()))),
        note_usage_at=data.draw(st.sampled_from((None, 0.8))),
        keep_first_message=data.draw(st.booleans()),
    )

    def managed_by() -> ContextWindowManager:
        return ContextWindowManager("gpt-5", token_counter=Letters(), context_window=window)

    manager, sessions_so_far = managed_by(), [copy_of(full_log)]
    for item in full_log.items:
        session = sessions_so_far[-1]
        session.append(item)
        match data.draw(EDITS):
            case "fork":
                sessions_so_far.append(session.fork())
            case "pin":
                other = data.draw(st.sampled_from(session.items))
                (session.unpin if other.pinned else session.pin)(other.id)
            case "parent":
                sessions_so_far[0].add_message("user", f"beside {len(session.items)}")
        if not data.draw(st.integers(0, 3)):
            same(manager, managed_by(), data.draw(st.sampled_from(sessions_so_far)))
    for session in sessions_so_far:
        same(manager, managed_by(), session)


EDITS = st.sampled_from(("none", "none", "none", "none", "fork", "pin", "parent"))


def same(manager: ContextWindowManager, other: ContextWindowManager, session: Session) -> None:
    """Check that two managers decide alike, whatever one of them has seen before."""
    twin = deepcopy(session)
    view, expected = manager.process_session(session), other.process_session(twin)
    assert view.items == expected.items
    assert (view.response_breaks, view.request_ends) == (expected.response_breaks, expected.request_ends)
    plan = manager.plan_session(session)
    assert plan == other.plan_session(twin)
    event(f"changes: {bool(plan.changes)}")


def managed(budget: int = 400, on_event: Callable[[Event], None] | None = None) -> ContextWindowManager:
    window = ContextWindow(max_tokens=budget)
    return ContextWindowManager("gpt-5", token_counter=Letters(), context_window=window, on_event=on_event)


def long_session() -> Session:
    session = Session()
    for number in range(40):
        session.add_message("user", f"question {number} " * 3)
        session.append(Message("assistant", "answer " * 8, usage=Usage(input_tokens=100 + number, output_tokens=5)))
    return session


def test_figures_of_a_fork_are_those_of_its_log() -> None:
    session, manager = long_session(), managed()
    manager.process_session(session)
    manager.analyze_session(session)
    fork = session.fork()
    fork.add_message("user", "beside")
    other = managed()
    assert manager.analyze_session(fork) == other.analyze_session(fork)
    assert manager.process_session(fork).items == other.process_session(fork).items
    assert manager.plan_session(fork) == other.plan_session(fork)
    assert manager.usage(fork) == other.usage(fork)


def test_reports_of_the_parent_do_not_count_for_its_fork() -> None:
    session, manager = Session(), managed()
    session.add_message("user", "question " * 5)
    manager.process_session(session)
    session.add_message("assistant", "answer")
    manager.record_usage(Usage(input_tokens=300, output_tokens=5), session)
    session.add_message("user", "and " * 5)
    manager.process_session(session)
    fork = session.fork()
    assert manager.plan_session(session).calibrated
    assert not manager.plan_session(fork).calibrated
    assert manager.plan_session(fork) == managed().plan_session(fork)


def test_a_fork_whose_parent_has_moved_on_is_read_anew() -> None:
    session, manager = long_session(), managed()
    fork = session.fork()
    session.add_message("user", "here")
    manager.process_session(session)
    fork.add_message("user", "there")
    assert manager.process_session(fork).items == managed().process_session(fork).items


def test_a_fork_that_was_edited_is_read_anew() -> None:
    session, manager = long_session(), managed()
    manager.process_session(session)
    fork = session.fork()
    fork.pin(fork.items[0].id)
    assert manager.process_session(fork).items == managed().process_session(fork).items
    assert manager.process_session(fork).items[0] is fork.items[0]


def test_unusable_media_of_the_parent_is_reported_of_its_fork_too() -> None:
    events: list[Event] = []
    session, manager = long_session(), managed(10_000, events.append)
    for _ in range(2):
        session.add_message("user", [Text("look"), Image(data=b"no picture")])
        manager.process_session(session)
    fork = session.fork()
    fork.add_message("user", [Text("and here"), Image(data=b"nor this")])
    manager.process_session(fork)
    ids = [item.id for item in fork.items[-3:]]
    assert [(event.session_id, event.item_id) for event in events if isinstance(event, PartUnusable)] == [
        *((session.id, id) for id in ids[:2]),
        *((fork.id, id) for id in ids),
    ]


def test_an_output_of_category_system_stays_when_it_is_unpinned() -> None:
    """Its category protects it, although its unit has the category of the call."""
    session, manager = Session(), managed()
    session.add_message("user", "Read the rules.")
    session.append(FunctionCall("rules", "{}", "c"))
    session.append(FunctionCallOutput("rules", "rule " * 10, "c", category=MessageCategory.SYSTEM, pinned=True))
    manager.process_session(session)
    session.unpin(session.items[2].id)
    manager.process_session(session)
    for number in range(40):
        session.add_message("user", f"question {number} " * 3)
        session.add_message("assistant", "answer " * 8)
        view = manager.process_session(session)
    assert session.items[2] in view.items
    assert view.items == managed().process_session(session).items
