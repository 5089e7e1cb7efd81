"""What a report is of: the request that was sent, of whichever session the caller holds, whatever was looked at or appended since."""

from __future__ import annotations

from typing import Any

import pytest

from context_window import CalibrationReset, ContextWindow, ContextWindowManager
from context_window.events import Event, ThresholdCrossed, Trimmed
from context_window.model_errors import PromptTooLongError
from session.items import FunctionCall, FunctionCallOutput, Message
from session.session import Session
from session.usage import Usage
from tests.support.counting import Letters

TOO_LONG = PromptTooLongError("too long", 400)


def a_manager(tokens: int = 2_000, counter: Any = None, **more: Any) -> ContextWindowManager:
    return ContextWindowManager(token_counter=counter or Letters(), context_window=ContextWindow(max_tokens=tokens), **more)


def said(role: Any, tokens: int, **more: Any) -> Message:
    return Message(role, "x" * (tokens - 4), **more)


def long_log(turns: int = 20) -> Session:
    """Turns of 160 tokens each, and a question of 100."""
    log = Session(id="s")
    for _ in range(turns):
        log.append(said("user", 100))
        log.append(said("assistant", 60))
    log.append(said("user", 100))
    return log


def total(manager: ContextWindowManager, session: Session) -> int:
    manager.process_session(session)
    return manager.get_token_usage()["total"]


def counted(manager: ContextWindowManager, session: Session) -> int:
    """What the session's view costs by the local count."""
    manager.process_session(session)
    following = manager._state(session).view
    assert following is not None
    return following.fold.counted


def cold(manager: ContextWindowManager, **more: Any) -> ContextWindowManager:
    """Another one that knows the same reports."""
    other = a_manager(**more)
    other.calibration.restore(manager.calibration.to_dict())
    return other


# Views that are gone on with


def test_what_an_answer_is_noted_with_is_of_the_view_that_was_gone_on_with() -> None:
    manager = a_manager()
    view = manager.trim_session(long_log())
    for _ in range(3):
        local = counted(manager, view)
        notes = manager.answer_notes(view)
        assert notes["counted"]["tokens"] == local
        view.append(said("assistant", 60, usage=Usage(local, 0, 0, 60), extra=notes))
        view.append(said("user", 100))
    assert total(manager, view) >= counted(manager, view)


def test_a_late_report_reaches_a_view_that_was_gone_on_with() -> None:
    manager = a_manager(10_000)
    view = manager.trim_session(long_log())
    view.append(said("assistant", 60))
    view.append(said("user", 100))
    sent = total(manager, view)
    view.append(said("assistant", 60))
    manager.process_session(view)
    manager.record_usage(Usage(sent + 300), view)
    assert total(manager, view) == total(cold(manager, tokens=10_000), view) > sent + 300


# Which request


def test_a_report_that_comes_after_the_outputs_is_of_the_request_before_the_answer() -> None:
    manager = a_manager(10_000)
    session = Session([said("user", 1_000)], id="s")
    sent = total(manager, session)
    session.append(FunctionCall("t", "{}", "c"))
    session.append(FunctionCallOutput("t", "x" * 600, "c"))
    manager.record_usage(Usage(sent + 8), session)
    stats = manager.analyze_session(session)
    assert stats["reported_tokens"] == sent + 8
    assert stats["total_tokens"] > sent + 600


def test_a_look_at_another_session_changes_nothing_of_whose_report_it_is() -> None:
    manager = a_manager()
    one, other = (Session([said("user", 50)], id=name) for name in ("one", "other"))
    manager.process_session(one)
    manager.get_token_usage(other)
    manager.record_usage(Usage(90))
    assert list(manager.calibration.to_dict()["sessions"]) == ["one"]


def test_a_report_is_of_the_model_that_was_asked() -> None:
    manager = ContextWindowManager("claude-sonnet-4-5", Letters())
    session = Session([said("user", 50)], id="s")
    manager.process_session(session)
    manager.use_model("gpt-5")
    assert manager.answer_notes(session)["model"] == "claude-sonnet-4-5"
    manager.record_usage(Usage(90), session)
    (report,) = manager.calibration.to_dict()["sessions"]["s"].values()
    assert report["model"] == "claude-sonnet-4-5"


@pytest.mark.parametrize("place", ["first", "last"])
def test_items_that_report_their_answer_alone_take_nothing_from_what_was_recorded(place: str) -> None:
    manager = ContextWindowManager("claude-sonnet-4-5", Letters(), context_window=ContextWindow(max_tokens=10_000))
    session = Session(id="s")
    alone = Usage(output_tokens=60)
    for _ in range(4):
        session.append(said("user", 100))
        sent = total(manager, session)
        manager.record_usage(Usage(sent + 200), session)
        session.append(said("assistant", 30, usage=alone if place == "first" else None))
        session.append(said("assistant", 30, usage=alone if place == "last" else None))
        assert manager.analyze_session(session)["reported_tokens"] == sent + 200
    assert total(manager, session) > sent + 200


def test_a_one_shot_trim_that_is_made_again_is_noted_as_it_is_then() -> None:
    manager, log = a_manager(), long_log()
    manager.trim_session(log)
    assert manager.accept_refusal(log, TOO_LONG)
    manager.trim_session(log)
    assert manager.answer_notes(log)["counted"]["tokens"] == manager.get_token_usage()["total"]


# After a refusal


def test_the_same_report_again_changes_nothing() -> None:
    """What was decided before a refusal stays, since it was sent so"""
    manager, log = a_manager(), long_log(30)
    manager.process_session(log)
    assert manager.accept_refusal(log, TOO_LONG)
    manager.record_usage(Usage(900), log)
    log.append(said("assistant", 60))
    before = [item.id for item in manager.process_session(log).items]
    manager.record_usage(Usage(900), log)
    assert [item.id for item in manager.process_session(log).items] == before


def test_a_refusal_of_a_view_lowers_the_budget_of_its_log() -> None:
    manager, log = a_manager(), long_log()
    view = manager.process_session(log)
    before = manager.get_token_usage()["total"]
    assert manager.accept_refusal(view, TOO_LONG)
    assert total(manager, log) < before


def test_a_refusal_that_cannot_be_counted_leaves_the_budget_as_it_was() -> None:
    class Failing(Letters):
        fails = False

        def count_text(self, text: str) -> int:
            if self.fails:
                raise RuntimeError("no")
            return super().count_text(text)

    counter = Failing()
    manager, log = a_manager(counter=counter), long_log()
    log.append(FunctionCall("t", "{}", "c"))
    log.append(FunctionCallOutput("t", "word " * 300, "c"))
    before = total(manager, log)
    counter.fails = True
    with pytest.raises(RuntimeError):  # what is to be cut must be counted anew
        manager.accept_refusal(log, PromptTooLongError("too long", 400, tokens=before * 20, limit=before))
    counter.fails = False
    assert total(manager, log) == before


# Read-only sessions


def test_a_read_only_session_is_the_session_that_it_shows() -> None:
    told: list[Event] = []
    manager, log = a_manager(on_event=told.append), long_log()
    before = total(manager, log.read_only())
    assert {Trimmed, ThresholdCrossed} == set(map(type, told))
    told.clear()
    manager.process_session(log.read_only())
    manager.process_session(log)
    assert told == []
    assert manager.accept_refusal(log.read_only(), TOO_LONG)
    assert total(manager, log) == total(manager, log.read_only()) < before
    log.append(said("assistant", 60))
    manager.process_session(log)
    manager.record_usage(Usage(before + 500), log.read_only())
    assert manager.analyze_session(log)["reported_tokens"] == before + 500


# What is told


def test_what_goes_on_is_not_told_to_begin_anew() -> None:
    """More tools: what was reported with the local count of its request is gone by still"""
    told: list[Event] = []
    manager = ContextWindowManager(token_counter=Letters(), context_window=ContextWindow(max_tokens=20_000), on_event=told.append)
    session = Session(id="s")
    session.append(said("user", 100))
    sent = total(manager, session)
    manager.record_usage(Usage(sent + 100), session)
    session.append(said("assistant", 60))
    session.append(said("user", 100))
    manager.process_session(session)
    manager.count_tools([{"name": "look", "description": "d" * 3_000, "input_schema": {"type": "object"}}])
    assert total(manager, session) > 3_000
    assert manager.analyze_session(session)["reported_tokens"] == sent + 100
    assert not any(isinstance(one, CalibrationReset) for one in told)
