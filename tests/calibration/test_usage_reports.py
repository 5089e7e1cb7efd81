"""Reported usage is matched to the request that was sent, no matter which session the caller passes or which items were appended since."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from context_window import CalibrationReset, ContextWindow, ContextWindowManager
from context_window.events.definitions import Event, ThresholdCrossed, Trimmed
from context_window.model_errors import PromptTooLongError
from session.items import FunctionCall, FunctionCallOutput, Message
from session.session import Session
from session.transcripts import read_transcript
from session.usage import Usage
from tests.support.counting import Letters

TOO_LONG = PromptTooLongError("too long", 400)


def a_manager(tokens: int = 2_000, counter: Any = None, **arguments: Any) -> ContextWindowManager:
    return ContextWindowManager(token_counter=counter or Letters(), context_window=ContextWindow(max_tokens=tokens), **arguments)


def message(role: Any, tokens: int, **fields: Any) -> Message:
    return Message(role, "x" * (tokens - 4), **fields)


def long_log(turns: int = 20) -> Session:
    """A log with turns of 160 tokens each, and a question of 100."""
    log = Session(id="s")
    for _ in range(turns):
        log.append(message("user", 100))
        log.append(message("assistant", 60))
    log.append(message("user", 100))
    return log


def total(manager: ContextWindowManager, session: Session) -> int:
    manager.process_session(session)
    return manager.get_token_usage()["total"]


def counted(manager: ContextWindowManager, session: Session) -> int:
    """Return the local count of the items in the session's view."""
    manager.process_session(session)
    return sum(decision.after for decision in manager.plan_session(session))


def cold(manager: ContextWindowManager, **arguments: Any) -> ContextWindowManager:
    """Return another manager with the same reports."""
    other = a_manager(**arguments)
    other.calibration.restore(manager.calibration.to_dict())
    return other


# Continued views


def test_answer_notes_are_about_the_view_that_was_continued() -> None:
    manager = a_manager()
    view = Session.from_view(manager.trim_session(long_log()))
    for _ in range(3):
        local = counted(manager, view)
        notes = manager.answer_notes(view)
        assert local <= notes["counted"]["tokens"] < local + 150  # with the frame of a request
        view.append(message("assistant", 60, usage=Usage(notes["counted"]["tokens"], 0, 0, 60), extra=notes))
        view.append(message("user", 100))
    assert total(manager, view) >= counted(manager, view)


def test_a_late_report_reaches_a_continued_view() -> None:
    manager = a_manager(10_000)
    view = Session.from_view(manager.trim_session(long_log()))
    view.append(message("assistant", 60))
    view.append(message("user", 100))
    sent_tokens = total(manager, view)
    view.append(message("assistant", 60))
    manager.process_session(view)
    manager.record_usage(Usage(sent_tokens + 300), view)
    assert total(manager, view) == total(cold(manager, tokens=10_000), view) > sent_tokens + 300


# The matching request


def test_a_report_after_the_outputs_is_about_the_request_before_the_answer() -> None:
    manager = a_manager(10_000)
    session = Session([message("user", 1_000)], id="s")
    sent_tokens = total(manager, session)
    session.append(FunctionCall("t", "{}", "c"))
    session.append(FunctionCallOutput("t", "x" * 600, "c"))
    manager.record_usage(Usage(sent_tokens + 8), session)
    stats = manager.analyze_session(session)
    assert stats["reported_tokens"] == sent_tokens + 8
    assert stats["total_tokens"] > sent_tokens + 600


def test_the_total_of_a_log_that_was_sent_untrimmed_starts_from_its_last_report() -> None:
    """Views of this log are smaller than the requests that were reported, so the reports are not of them"""
    manager, log = a_manager(2_000), Session(id="s")
    sent_tokens = 50
    for _ in range(20):
        log.append(message("user", 100))
        sent_tokens += 100
        log.append(message("assistant", 60, usage=Usage(sent_tokens, 0, 0, 60)))
        sent_tokens += 60
    stats = manager.analyze_session(log)
    assert total(manager, log) < 2_000 < sent_tokens
    assert stats["reported_tokens"] == sent_tokens - 60
    assert sent_tokens <= stats["total_tokens"] <= sent_tokens + 100


def test_a_look_at_another_session_changes_nothing_of_whose_report_it_is() -> None:
    manager = a_manager()
    first, other = (Session([message("user", 50)], id=name) for name in ("one", "other"))
    manager.process_session(first)
    manager.get_token_usage(other)
    manager.record_usage(Usage(90))
    assert list(manager.calibration.to_dict()["sessions"]) == ["one"]


def test_a_report_belongs_to_the_model_that_was_called() -> None:
    manager = ContextWindowManager("claude-sonnet-4-5", Letters())
    session = Session([message("user", 50)], id="s")
    manager.process_session(session)
    manager.use_model("gpt-5")
    assert manager.answer_notes(session)["model"] == "claude-sonnet-4-5"
    manager.record_usage(Usage(90), session)
    (report,) = manager.calibration.to_dict()["sessions"]["s"].values()
    assert report["model"] == "claude-sonnet-4-5"


@pytest.mark.parametrize("bearer", ["first", "last"])
def test_items_with_only_output_tokens_do_not_replace_a_recorded_report(bearer: str) -> None:
    manager = ContextWindowManager("claude-sonnet-4-5", Letters(), context_window=ContextWindow(max_tokens=10_000))
    session = Session(id="s")
    alone = Usage(output_tokens=60)
    for _ in range(4):
        session.append(message("user", 100))
        sent_tokens = total(manager, session)
        manager.record_usage(Usage(sent_tokens + 200), session)
        session.append(message("assistant", 30, usage=alone if bearer == "first" else None))
        session.append(message("assistant", 30, usage=alone if bearer == "last" else None))
        assert manager.analyze_session(session)["reported_tokens"] == sent_tokens + 200
    assert total(manager, session) > sent_tokens + 200


def test_a_repeated_one_shot_trim_replaces_its_earlier_count() -> None:
    manager, log = a_manager(), long_log()
    manager.trim_session(log)
    assert manager.accept_refusal(log, TOO_LONG)
    manager.trim_session(log)
    assert manager.answer_notes(log)["counted"]["tokens"] == manager.get_token_usage()["total"]


# After a refusal


def test_the_same_report_again_changes_nothing() -> None:
    """Decisions before a refusal stay, since those requests were sent"""
    manager, log = a_manager(), long_log(30)
    manager.process_session(log)
    assert manager.accept_refusal(log, TOO_LONG)
    manager.record_usage(Usage(900), log)
    log.append(message("assistant", 60))
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
    with pytest.raises(RuntimeError):  # the part to cut must be counted again
        manager.accept_refusal(log, PromptTooLongError("too long", 400, tokens=before * 20, limit=before))
    counter.fails = False
    assert total(manager, log) == before


# Read-only sessions


def test_a_read_only_session_is_the_session_that_it_shows() -> None:
    events: list[Event] = []
    manager, log = a_manager(on_event=events.append), long_log()
    before = total(manager, log.read_only())
    assert {Trimmed, ThresholdCrossed} == set(map(type, events))
    events.clear()
    manager.process_session(log.read_only())
    manager.process_session(log)
    assert events == []
    assert manager.accept_refusal(log.read_only(), TOO_LONG)
    assert total(manager, log) == total(manager, log.read_only()) < before
    log.append(message("assistant", 60))
    manager.process_session(log)
    manager.record_usage(Usage(before + 500), log.read_only())
    assert manager.analyze_session(log)["reported_tokens"] == before + 500


# Events


def test_continued_calibration_emits_no_reset() -> None:
    """After more tools, a report that carries the local count of its request is still used"""
    events: list[Event] = []
    manager = ContextWindowManager(token_counter=Letters(), context_window=ContextWindow(max_tokens=20_000), on_event=events.append)
    session = Session(id="s")
    session.append(message("user", 100))
    sent_tokens = total(manager, session)
    manager.record_usage(Usage(sent_tokens + 100), session)
    session.append(message("assistant", 60))
    session.append(message("user", 100))
    manager.process_session(session)
    manager.count_tools([{"name": "look", "description": "d" * 3_000, "input_schema": {"type": "object"}}])
    assert total(manager, session) > 3_000
    assert manager.analyze_session(session)["reported_tokens"] == sent_tokens + 100
    assert not any(isinstance(event, CalibrationReset) for event in events)


# Several prompts for one answer


def iteration(kind: str, tokens: int, output: int, **fields: Any) -> dict[str, Any]:
    tokens_by_kind = {"input_tokens": 3, "cache_read_input_tokens": tokens - 3, "cache_creation_input_tokens": 0, "output_tokens": output}
    return {"type": kind, **tokens_by_kind, **fields}


SEARCHED: dict[str, Any] = {  # an advisor's tokens are not in the sums
    "input_tokens": 6,
    "cache_read_input_tokens": 234_994,
    "cache_creation_input_tokens": 0,
    "output_tokens": 1_500,
    "iterations": [
        iteration("message", 117_000, 500),
        iteration("advisor_message", 80_000, 2_000, model="claude-opus-5"),
        iteration("message", 118_000, 1_000),
    ],
}
CONTENT = [{"type": "text", "text": "x"}]
ANSWER = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": CONTENT, "usage": SEARCHED}


def add_answer(manager: ContextWindowManager, log: Session, folder: Path) -> None:
    log.add_response(ANSWER)


def record_its_usage(manager: ContextWindowManager, log: Session, folder: Path) -> None:
    manager.process_session(log)
    manager.record_usage(SEARCHED, log)
    log.add_message("assistant", "x")


def read_it_with_its_request(manager: ContextWindowManager, log: Session, folder: Path) -> None:
    log.append(Session.from_anthropic([{"role": "user", "content": "x"}, ANSWER]).items[1])


def read_it_from_a_log(manager: ContextWindowManager, log: Session, folder: Path) -> None:
    lines = [{"type": "user", "message": {"role": "user", "content": "x"}}, {"type": "assistant", "message": ANSWER}]
    records = [json.dumps({"uuid": str(index), "sessionId": "s", "version": "2.1.0", **line}) for index, line in enumerate(lines)]
    (folder / "s.jsonl").write_text("\n".join(records))
    log.append(read_transcript(folder / "s.jsonl").items[-1])


@pytest.mark.parametrize("answer", [add_answer, record_its_usage, read_it_with_its_request, read_it_from_a_log])
@pytest.mark.parametrize("is_saved", [False, True])
def test_of_several_prompts_for_one_answer_the_last_one_fills_the_window(answer: Any, is_saved: bool, tmp_path: Path) -> None:
    log, manager = Session(id="s"), a_manager(180_000)
    for role in ["user", "assistant"] * 29:
        log.append(message(role, 2_000))
    log.append(message("user", 1_000))
    answer(manager, log, tmp_path)
    log.append(message("user", 100))
    if is_saved:
        log, manager = Session.from_dict(log.to_dict()), cold(manager, tokens=180_000)
    assert len(manager.process_session(log)) == len(log.items)
    assert 118_000 < total(manager, log) < 125_000
    paid = [item.usage for item in log.items if item.usage is not None]
    assert [(usage.total_input, usage.output_tokens) for usage in paid] in ([], [(235_000, 1_500)])
