"""The benchmark of sessions, and bounds on its results, so that no change makes calibrated totals worse unnoticed."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from context_window import ContextWindow, ContextWindowManager
from context_window.counting.counter import CharacterCounter
from context_window.counting.item_tokens import Measurer
from context_window.settings.budget import calibration_of
from session import Session
from session.items import Compaction, FunctionCall, FunctionCallOutput, Message, Reasoning
from session.usage import Usage
from tests.support.shared import ROOT, needs_transcripts

BENCHMARKS = ROOT / "benchmarks"

pytestmark = pytest.mark.skipif(not BENCHMARKS.is_dir(), reason="the benchmarks are not part of the installed package")


@pytest.fixture(autouse=True)
def _beside_the_benchmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))


def benchmark() -> Any:
    return import_module("session_accuracy")


def steps_module() -> Any:
    return import_module("session_steps")


@cache
def truth() -> tuple[tuple[Any, ...], Any]:
    steps, left_out = steps_module().measure(steps_module().log_files([]), ("4 characters", "o200k", "o200k x ratio"))
    return tuple(steps), left_out


# The benchmark


def conversation(reports: list[tuple[int, int]], *, model: str = "gpt-4o", session_id: str = "one") -> Session:
    """Return turns of a question and an answer. Each request has reported usage."""
    session = Session(id=session_id, metadata={"model": model})
    ids = count()
    for prompt, output in reports:
        session.append(Message("user", "what is in the file? " * 10, id=f"{session_id}{next(ids)}"))
        usage = Usage(prompt, 0, 0, output)
        session.append(Message("assistant", "it is about water " * 10, id=f"{session_id}{next(ids)}", usage=usage))
    return session


@pytest.fixture
def write_logs(tmp_path: Path) -> Callable[..., Path]:
    def write(*sessions: Session) -> Path:
        folder = tmp_path / "logs"
        folder.mkdir(exist_ok=True)
        for session in sessions:
            (folder / f"{session.id}.json").write_text(json.dumps(session.to_dict()), encoding="utf-8")
        return folder

    return write


def test_a_step_goes_from_one_reported_request_to_the_next(write_logs: Any) -> None:
    steps, left_out = steps_module().measure(steps_module().log_files([write_logs(conversation([(5_003, 41), (5_103, 41), (5_203, 41)]))]))
    ours = [step for step in steps if step.counter == "o200k x ratio"]
    assert not left_out
    assert [(step.anchor, step.reported) for step in ours] == [(5_003, 5_103), (5_103, 5_203)]
    assert {(step.provider, step.family, step.id) for step in ours} == {("OpenAI", "to gpt-4.1", "one.json/one")}
    assert ours[1].cold == ours[0].cold + ours[1].added  # nothing left the prompt
    assert all(step.anchor < step.point <= step.bound for step in ours)


def test_unusable_steps_are_left_out_with_a_reason(write_logs: Any, tmp_path: Path) -> None:
    folder = write_logs(
        conversation([(5_003, 41)], session_id="short"),
        conversation([(4_700, 41), (4_800, 41)], session_id="rounded"),
        conversation([(5_003, 41), (2_001, 41), (2_101, 41)], session_id="fell"),
        conversation([(7_001, 41), (7_101, 41)], session_id="twice"),
        conversation([(7_001, 41), (7_101, 41)], session_id="twin"),
    )
    (folder / "noise.json").write_text("no log at all", encoding="utf-8")
    steps, left_out = steps_module().measure(steps_module().log_files([folder]))
    assert len({(step.id, step.anchor) for step in steps}) == 2  # one of `fell`, one of `twice`
    assert left_out == {
        "a session with fewer than two reported requests": 1,
        "a session whose figures are rounded": 1,
        "a step with a smaller report: the tool removed something that the log still has": 1,
        "a session that was read already": 1,
        "a file that no reader accepts": 1,
    }


def test_exchanges_are_the_responses_with_the_items_after_each() -> None:
    session = Session()
    question = session.append(Message("user", "look " * 40))
    for item in (
        Reasoning("thinking " * 10, usage=Usage(900, 50, 50, 30)),
        FunctionCall("read", '{"path": "a"}', "c1"),
        FunctionCallOutput("read", "line\n" * 100, "c1"),
        Message("assistant", "done"),
        Compaction("all of it, in short", (question.id,)),
        Message("user", "and now?"),
        Message("assistant", "more", usage=Usage(700, 0, 0, 5)),
    ):
        session.append(item)
    measurer = Measurer(CharacterCounter())
    costs = [measurer.measure(item).tokens for item in session.items]
    exchanges = steps_module().exchanges_of(session, measurer)
    assert [(exchange.reported, exchange.output, exchange.response, exchange.after, exchange.edited) for exchange in exchanges] == [
        (1_000, 30, costs[1] + costs[2], costs[3], False),
        (0, 0, costs[4], costs[5] + costs[6], True),
        (700, 5, costs[7], 0, False),
    ]
    assert [exchange.cold for exchange in exchanges] == [costs[0], sum(costs[:4]), sum(costs[1:7])]  # the summary replaces the question


def test_the_measured_bounds_are_those_of_the_manager() -> None:
    session = conversation([(5_003 + 97 * at * at, 41) for at in range(8)])
    manager = ContextWindowManager("gpt-4o", context_window=ContextWindow(max_tokens=10**6))
    measurer = Measurer(steps_module().counters_for("gpt-4o")["o200k x ratio"])
    predictions = list(steps_module().predictions(session, measurer, calibration_of("openai")))
    log, totals = Session(metadata=dict(session.metadata)), []
    for item in session.items:
        if item.usage is not None:
            totals.append(manager.analyze_session(log)["total_tokens"])
        log.append(item)
    assert predictions[0] is None  # nothing was reported yet
    assert totals[1:] == [prediction.bound for prediction in predictions[1:]]


def test_figures_are_medians_and_means_of_the_steps() -> None:
    def step(reported: int, point: int, bound: int) -> Any:
        return steps_module().Step("id", "tool", "OpenAI", "family", "ours", 1_000, reported, 500, 100, point, bound)

    steps = [step(1_100, 1_100, 1_210), step(1_200, 1_140, 1_188), step(2_000, 1_980, 2_000)]
    figures = benchmark().figures_of(steps, benchmark().CALIBRATED)
    assert (figures.steps, figures.difference, figures.relative, figures.total, figures.total_p95) == (3, 20, 2, 1, 5)
    assert figures.covered == pytest.approx(2 / 3)
    assert figures.slack == pytest.approx(10 / 3)
    cold = benchmark().figures_of(steps, benchmark().WAYS[0])
    assert (cold.covered, cold.difference) == (0, 100)
    assert benchmark().figures_of([], benchmark().CALIBRATED) is None


def test_the_command_prints_tables_and_json_and_draws(write_logs: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sessions = [conversation([(5_003 + 100 * at, 41) for at in range(4)], session_id=f"s{number}") for number in range(1)]
    folder, drawing = write_logs(*sessions, conversation([(9_003, 41), (9_104, 41)], model="claude-sonnet-4-5")), tmp_path / "bounds.svg"
    assert benchmark().main([str(folder), "--svg", str(drawing)]) == 0
    printed = capsys.readouterr().out
    assert "Held out" in printed
    assert "cannot be known from a transcript" in printed
    assert max(map(len, printed.splitlines())) <= 140
    tables = [line for line in printed.splitlines() if line.startswith("|")]
    assert any(line.startswith("| o200k x ratio | calibrated |") for line in tables)
    root = ET.fromstring(drawing.read_text(encoding="utf-8"))
    assert sum(element.get("r") == "3" for element in root.iter("{http://www.w3.org/2000/svg}circle")) == 4
    assert benchmark().main([str(folder), "--json"]) == 0
    values = json.loads(capsys.readouterr().out)
    assert sum(element["counter"] == "4 characters" for element in values["steps"]) == 4
    assert {element["held_out"] for element in values["steps"]} <= {True, False}
    matching_rows = [row for rows in values["tables"].values() for row in rows if (row["counter"], row["way"]) == ("o200k", "anchored")]
    assert sum(row["steps"] for row in matching_rows) == 4


def test_nothing_to_measure_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert benchmark().main([str(tmp_path)]) == 2
    assert "no session with two reported requests" in capsys.readouterr().err
    assert benchmark().main([str(tmp_path / "nowhere")]) == 2
    assert "there is no" in capsys.readouterr().err


# The results


@needs_transcripts
def test_the_recorded_sessions_are_all_there() -> None:
    steps, left_out = truth()
    ours = [step for step in steps if step.counter == "o200k x ratio"]
    held_out, fitted = benchmark().split(ours)
    assert len(ours) > 1_600
    assert 0.25 < len(held_out) / len(ours) < 0.4
    assert not {step.id for step in held_out} & {step.id for step in fitted}
    assert left_out["a file that no reader accepts"] <= 1


@needs_transcripts
@pytest.mark.parametrize("held_out", [True, False])
def test_calibrated_totals_stay_within_bounds(held_out: bool) -> None:
    steps = [step for step in truth()[0] if step.counter == "o200k x ratio" and step.held_out is held_out]
    figures = benchmark().figures_of(steps, benchmark().CALIBRATED)
    assert figures.covered >= 0.97
    assert figures.slack <= 2.1
    assert figures.total <= 0.1


@needs_transcripts
@pytest.mark.parametrize("counter", ["4 characters", "o200k", "o200k x ratio"])
def test_calibration_makes_every_counter_better(counter: str) -> None:
    cold, anchored, calibrated = (
        benchmark().figures_of([step for step in truth()[0] if step.counter == counter], way) for way in benchmark().WAYS
    )
    assert cold.total > 10 * anchored.total
    assert anchored.total > 1.4 * calibrated.total
    assert anchored.covered < 0.5
    assert calibrated.covered > 0.96
