"""Guarantee: after a fork or a pin the view is that of the log, although the tracker goes on from what was known before."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace

from hypothesis import event, given
from hypothesis import strategies as st

from context_window import ContextWindow, ContextWindowManager
from context_window.calibration.reports import Reports
from context_window.events.definitions import Event, PartUnusable
from context_window.calibration.rule import CalibrationRule
from context_window.decision.limits import Limits
from context_window.decision.replay import Replay
from context_window.views.tracker_copies import copied_for_fork
from session.items import FunctionCall, FunctionCallOutput, Message, MessageCategory
from session.parts import Image, Text
from session.session import Session
from session.usage import Usage
from tests.support.counting import Letters
from tests.support.extracting import EXTRACTING, coded_sessions
from tests.support.harness import MEASURER, Outcome, again, copy_of, process
from tests.support.strategic import decided_by
from tests.support.strategies import limits, reported, sessions
from tests.support.twin import cost


def same(outcome: Outcome, log: Session) -> bool:
    """True if a tracker that went on has the view, the plan and the sums of one that has read the whole log."""
    fresh = process(deepcopy(log), outcome.tracker.fold.limits)
    figures = [
        (fold.total, fold.tally.tokens, fold.tally.items, fold.log_tokens, fold.overhead, list(fold.visible))
        for fold in (outcome.tracker.fold, fresh.tracker.fold)
    ]
    same_seams = outcome.view.response_breaks == fresh.view.response_breaks and outcome.view.request_ends == fresh.view.request_ends
    return outcome.view.items == fresh.view.items and outcome.plan == fresh.plan and figures[0] == figures[1] and same_seams


def log_and_limits(data: st.DataObject) -> tuple[Session, Limits]:
    has_digests = data.draw(st.booleans())
    log = data.draw(coded_sessions() if has_digests else sessions())
    bounds = data.draw(limits(sum(map(cost, log.items))))
    bounds = decided_by(data.draw(EXTRACTING), bounds) if has_digests else bounds
    if data.draw(st.booleans()):
        log, bounds = data.draw(reported(log)), replace(bounds, calibration=CalibrationRule(prior_score=100))
    return log, bounds


@given(st.data())
def test_a_fork_is_decided_as_its_log_is(data: st.DataObject) -> None:
    """after any appends to either, the views of parent and fork, and their plans, equal those of logs never seen"""
    log, bounds = log_and_limits(data)
    parent = copy_of(log)
    for item in log.items[: data.draw(st.integers(log.settled, len(log.items)))]:  # a view comes as a whole
        parent.append(item)
    tracker = Replay(parent, bounds, MEASURER)
    again(tracker, parent)
    if data.draw(st.booleans()):
        tracker.plan()
    seen = len(parent.items)
    for item in log.items[seen : data.draw(st.integers(seen, len(log.items)))]:
        parent.append(item)
    fork = parent.fork()
    copied = copied_for_fork(tracker, parent, fork, bounds, Reports())
    assert copied is not None
    event(f"trimmed: {bool(tracker.fold.tally.altered)}")
    for session, of_session in data.draw(st.permutations([(parent, tracker), (fork, copied)])):
        for item in log.items[len(session.items) :]:
            session.append(item)
            if data.draw(st.booleans()):
                assert same(again(of_session, session), session)
        assert same(again(of_session, session), session)


@given(st.data())
def test_a_pin_is_decided_as_its_log_is(data: st.DataObject) -> None:
    """after pins, unpins and appends the view and the plan equal those of a log never seen"""
    log, bounds = log_and_limits(data)
    session = copy_of(log)
    tracker = Replay(session, bounds, MEASURER)
    for item in log.items:
        session.append(item)
        if not data.draw(st.booleans()):
            continue
        tracker.update(session)
        if data.draw(st.booleans()):
            assert same(again(tracker, session), session)
        if data.draw(st.booleans()):
            twin = data.draw(st.sampled_from(session.items))
            (session.unpin if twin.pinned else session.pin)(twin.id)
            if tracker.follow_pin(session):
                event("followed")
            else:
                tracker = Replay(session, bounds, MEASURER)
            assert tracker.can_update(session)
    assert same(again(tracker, session), session)


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
