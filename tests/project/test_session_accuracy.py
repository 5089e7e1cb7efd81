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

from session import Session
from session.items import Message
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
    steps, left_out = steps_module().measure(steps_module().log_files([]), ("4 characters", "o200k", "ours"))
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


def test_the_command_prints_tables_and_json_and_draws(write_logs: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sessions = [conversation([(5_003 + 100 * at, 41) for at in range(4)], session_id=f"s{number}") for number in range(1)]
    folder, drawing = write_logs(*sessions, conversation([(9_003, 41), (9_104, 41)], model="claude-sonnet-4-5")), tmp_path / "bounds.svg"
    assert benchmark().main([str(folder), "--svg", str(drawing)]) == 0
    printed = capsys.readouterr().out
    assert "Held out" in printed
    assert "cannot be known from a transcript" in printed
    assert max(map(len, printed.splitlines())) <= 140
    tables = [line for line in printed.splitlines() if line.startswith("|")]
    assert any(line.startswith("| ours | calibrated |") for line in tables)
    root = ET.fromstring(drawing.read_text(encoding="utf-8"))
    assert sum(element.get("r") == "3" for element in root.iter("{http://www.w3.org/2000/svg}circle")) == 4
    assert benchmark().main([str(folder), "--json"]) == 0
    values = json.loads(capsys.readouterr().out)
    assert sum(element["counter"] == "4 characters" for element in values["steps"]) == 4
    assert {element["held_out"] for element in values["steps"]} <= {True, False}
    matching_rows = [row for rows in values["tables"].values() for row in rows if (row["counter"], row["way"]) == ("o200k", "anchored")]
    assert sum(row["steps"] for row in matching_rows) == 4


# The results


@needs_transcripts
def test_the_recorded_sessions_are_all_there() -> None:
    steps, left_out = truth()
    ours = [step for step in steps if step.counter == "ours"]
    held_out, fitted = benchmark().split(ours)
    assert len(ours) > 1_600
    assert 0.25 < len(held_out) / len(ours) < 0.4
    assert not {step.id for step in held_out} & {step.id for step in fitted}
    assert left_out["a file that no reader accepts"] <= 1


@needs_transcripts
@pytest.mark.parametrize("held_out", [True, False])
def test_calibrated_totals_stay_within_bounds(held_out: bool) -> None:
    steps = [step for step in truth()[0] if step.counter == "ours" and step.held_out is held_out]
    figures = benchmark().figures_of(steps, benchmark().CALIBRATED)
    assert figures.covered >= 0.965
    assert figures.slack <= 2.1
    assert figures.total <= 0.1


@needs_transcripts
@pytest.mark.parametrize("counter", ["4 characters", "o200k", "ours"])
def test_calibration_makes_every_counter_better(counter: str) -> None:
    cold, anchored, calibrated = (
        benchmark().figures_of([step for step in truth()[0] if step.counter == counter], way) for way in benchmark().WAYS
    )
    assert cold.total > 10 * anchored.total
    assert anchored.total > 1.4 * calibrated.total
    assert anchored.covered < 0.5
    assert calibrated.covered > 0.96
