"""The accuracy of counts along sessions: the calibration's slow reference, the benchmark that measures it, and the reach itself."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable
from functools import cache
from importlib import import_module
from itertools import count
from pathlib import Path
from random import Random
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_window.counting.counter import CharacterCounter
from context_window.counting.measure import Measurer
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


def reference() -> Any:
    return import_module("calibration_reference")


@cache
def truth() -> tuple[tuple[Any, ...], Any]:
    steps, left_out = steps_module().measure(steps_module().recorded([]))
    return tuple(steps), left_out


# The rule


def exchange(reported: int = 0, output: int = 0, own: int = 0, after: int = 0, ceiling: int = 0, edited: bool = False) -> Any:
    return reference().Exchange(reported, output, own, after, ceiling, edited)


def log_of(added: list[int], seen: list[int], anchor: int = 10_000, **more: Any) -> list[Any]:
    """Exchanges of which so much was counted locally, and so much was seen in the next report."""
    exchanges = []
    for counted, observed in zip(added, seen, strict=True):
        exchanges.append(exchange(anchor, own=counted // 2, after=counted - counted // 2, **{"ceiling": 4 * counted, **more}))
        anchor += observed
    return [*exchanges, exchange(anchor, own=100, after=100, ceiling=800)]


@st.composite
def logs(draw: st.DrawFn) -> list[Any]:
    amounts = st.integers(0, 50_000)
    parts = st.tuples(st.one_of(st.just(0), amounts), amounts, amounts, amounts, amounts, st.integers(0, 9).map(lambda one: one == 0))
    return [exchange(*one) for one in draw(st.lists(parts, max_size=40))]


def test_without_a_report_nothing_is_known() -> None:
    assert reference().estimate([]) is None
    assert reference().estimate([exchange(output=10, own=10)]) is None


def test_the_first_bound_is_the_anchor_what_is_new_and_the_prior_of_the_scale() -> None:
    found = reference().estimate([exchange(10_000, output=300, own=200, after=700)], 200)
    assert (found.anchor, found.added, found.point) == (10_000, 1_000, 11_000)  # of the answer the larger count: 300
    assert found.bound == 11_000 + (1_000 + 500 + 20) * 200 // 1_000


def test_what_came_after_an_answer_without_usage_is_new_too() -> None:
    found = reference().estimate([exchange(5_000, 10, 10, 90), exchange(0, 0, 40, 60)], 0)
    assert (found.anchor, found.added) == (5_000, 200)


def test_one_step_is_scored_by_hand() -> None:
    first = exchange(10_000, own=400, after=600, ceiling=4_000)
    (score,) = reference().scores([first, exchange(11_304)])
    assert score == 200  # 304 more than was counted, of a scale of 1,000 + 500 + 20, rounded up
    (score,) = reference().scores([first, exchange(10_696)])
    assert score == -200


def test_steps_with_an_edit_and_steps_after_which_less_was_reported_teach_nothing() -> None:
    assert not list(reference().scores([exchange(9_000, own=10, edited=True), exchange(9_500)]))
    assert not list(reference().scores([exchange(9_000, own=10), exchange(0, own=5, edited=True), exchange(9_500)]))
    assert not list(reference().scores([exchange(9_000, own=10), exchange(8_999)]))
    assert list(reference().scores([exchange(9_000), exchange(9_000)])) == [0]


def test_what_no_byte_of_the_log_could_have_made_is_not_learned() -> None:
    honest = log_of([500] * 5, [500] * 5)
    hidden = log_of([500] * 5, [500, 500, 9_000, 500, 500])
    before, after = (reference().estimate(one, 50) for one in (honest, hidden))
    assert after.bound - after.anchor - after.added < 2_500  # 8,500 were hidden; 2,000 is what 2,000 bytes can cost
    assert before.bound - before.anchor - before.added < 100


def test_a_count_that_is_wrong_all_along_is_learned_within_a_few_steps() -> None:
    """However wrong it is: a counter that says 1 for everything is bounded by the bytes."""
    for factor in (1.5, 3, 50):
        counted, observed = 100, int(100 * factor)
        exchanges = log_of([counted] * 8, [observed] * 8, ceiling=observed * 2)
        *_, last = exchanges
        found = reference().estimate([*exchanges[:-1], exchange(last.reported, own=counted // 2, after=counted // 2)], 50)
        assert found.bound >= last.reported + observed
        assert found.point >= last.reported + observed * 9 // 10


def test_a_factor_does_not_stick_when_the_content_changes() -> None:
    changed = log_of([1_000] * 30 + [1_000] * 120, [1_500] * 30 + [1_000] * 120)
    found = reference().estimate(changed, 50)
    least = reference().scale_of(found.anchor, found.added) * reference().FLOOR // 1_000
    assert found.bound - found.anchor - found.added <= least + 1


def test_reports_from_long_ago_are_forgotten() -> None:
    new = log_of([1_000] * 110, [1_100] * 110)
    old = log_of([1_000] * 200 + [1_000] * 110, [1_900] * 200 + [1_100] * 110, anchor=10_000)
    added = reference().estimate(old, 0)
    scale = reference().scale_of(added.anchor, added.added)
    assert added.bound - added.anchor - added.added <= scale * max(reference().scores(new)) // 1_000 + 1


@given(logs(), st.integers(0, 1_000))
def test_a_bound_is_at_least_the_point_and_what_was_counted(exchanges: list[Any], prior: int) -> None:
    found = reference().estimate(exchanges, prior)
    if found is not None:
        assert found.bound >= found.point
        assert found.bound >= found.anchor + found.added


@given(logs(), st.integers(1, 998))
def test_who_may_be_missed_less_often_gets_a_bound_as_high(exchanges: list[Any], missed: int) -> None:
    often, seldom = (reference().estimate(exchanges, 0, allowed) for allowed in (missed + 1, missed))
    assert (often is None and seldom is None) or often.bound <= seldom.bound


@given(st.lists(st.integers(-1_000, 5_000), min_size=19, max_size=100), st.integers(50, 950))
def test_the_quantile_leaves_the_stated_part_above_it_as_one_more_score_is_drawn(found: list[int], missed: int) -> None:
    """Split conformal, one-sided: of m + 1 places that a new score may take among m others, a stated part is at or below the quantile."""
    limit = reference().quantile(found, 0, missed)
    needed = min(len(found), -(-(len(found) + 1) * (1_000 - missed) // 1_000))
    assert sum(one <= limit for one in found) >= needed
    assert limit == reference().FLOOR or sum(one < limit for one in found) < needed


def test_of_steps_that_are_alike_as_many_are_covered_as_is_stated() -> None:
    chance = Random(20)
    covered = []
    for _ in range(40):
        added = [chance.randrange(50, 3_000) for _ in range(60)]
        seen = [int(one * chance.lognormvariate(0.2, 0.2)) for one in added]
        exchanges = log_of(added, seen, anchor=3_000_000)  # against which the steps are small, so that their scales are alike
        covered += [
            reference().estimate(exchanges[:place], 200).bound >= exchanges[place].reported for place in range(20, len(added) + 1, 4)
        ]
    assert 0.94 <= statistics.mean(covered) <= 0.99


# The benchmark


def conversation(reports: list[tuple[int, int]], *, model: str = "gpt-4o", session_id: str = "one") -> Session:
    """Turns of a question, a call with its output and an answer; each request has a report of its prompt and its answer."""
    session = Session(id=session_id, metadata={"model": model})
    ids = count()
    for prompt, output in reports:
        session.append(Message("user", "what is in the file? " * 10, id=f"{session_id}{next(ids)}"))
        usage = Usage(prompt, 0, 0, output)
        session.append(Message("assistant", "it is about water " * 10, id=f"{session_id}{next(ids)}", usage=usage))
    return session


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., Path]:
    def write(*sessions: Session) -> Path:
        folder = tmp_path / "logs"
        folder.mkdir(exist_ok=True)
        for session in sessions:
            (folder / f"{session.id}.json").write_text(json.dumps(session.to_dict()), encoding="utf-8")
        return folder

    return write


def test_a_step_goes_from_one_reported_request_to_the_next(written: Any) -> None:
    steps, left_out = steps_module().measure(steps_module().recorded([written(conversation([(5_003, 41), (5_103, 41), (5_203, 41)]))]))
    ours = [step for step in steps if step.counter == "o200k x ratio"]
    assert not left_out
    assert [(step.anchor, step.reported) for step in ours] == [(5_003, 5_103), (5_103, 5_203)]
    assert {(step.provider, step.family, step.id) for step in ours} == {("OpenAI", "to gpt-4.1", "one.json/one")}
    assert ours[1].cold == ours[0].cold + ours[1].added  # nothing left the prompt
    assert all(step.anchor < step.point <= step.bound for step in ours)


def test_what_no_step_can_be_made_of_is_left_out_and_told(written: Any, tmp_path: Path) -> None:
    folder = written(
        conversation([(5_003, 41)], session_id="short"),
        conversation([(4_700, 41), (4_800, 41)], session_id="rounded"),
        conversation([(5_003, 41), (2_001, 41), (2_101, 41)], session_id="fell"),
        conversation([(7_001, 41), (7_101, 41)], session_id="twice"),
        conversation([(7_001, 41), (7_101, 41)], session_id="twin"),
    )
    (folder / "noise.json").write_text("no log at all", encoding="utf-8")
    steps, left_out = steps_module().measure(steps_module().recorded([folder]))
    assert len({(step.id, step.anchor) for step in steps}) == 2  # one of `fell`, one of `twice`
    assert left_out == {
        "a session with fewer than two reported requests": 1,
        "a session whose figures are rounded": 1,
        "a step after which less was reported: the tool took out what the log still has": 1,
        "a session that was read already": 1,
        "a file that no reader takes": 1,
    }


def test_exchanges_are_the_answers_with_what_came_after_each() -> None:
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
    costs = [measurer.measured(item).tokens for item in session.items]
    exchanges, cold = steps_module().exchanges_of(session, measurer)
    assert [(one.reported, one.output, one.own, one.after, one.edited) for one in exchanges] == [
        (1_000, 30, costs[1] + costs[2], costs[3], False),
        (0, 0, costs[4], costs[5] + costs[6], True),
        (700, 5, costs[7], 0, False),
    ]
    assert cold == [costs[0], sum(costs[:4]), sum(costs[1:7])]  # the summary stands for the question
    assert all(one.ceiling >= one.own + one.after for one in exchanges)


def test_figures_are_medians_and_means_of_the_steps() -> None:
    def step(reported: int, point: int, bound: int) -> Any:
        return steps_module().Step("id", "tool", "OpenAI", "family", "ours", 1_000, reported, 500, 100, point, bound)

    steps = [step(1_100, 1_100, 1_210), step(1_200, 1_140, 1_188), step(2_000, 1_980, 2_000)]
    found = benchmark().figures_of(steps, benchmark().CALIBRATED)
    assert (found.steps, found.difference, found.relative, found.total, found.total_p95) == (3, 20, 2, 1, 5)
    assert found.covered == pytest.approx(2 / 3)
    assert found.slack == pytest.approx((10 - 1 + 0) / 3)
    cold = benchmark().figures_of(steps, benchmark().WAYS[0])
    assert (cold.covered, cold.difference) == (0, 100)
    assert benchmark().figures_of([], benchmark().CALIBRATED) is None


def test_the_command_prints_tables_and_json_and_draws(written: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sessions = [conversation([(5_003 + 100 * at, 41) for at in range(4)], session_id=f"s{number}") for number in range(1)]
    folder, drawing = written(*sessions, conversation([(9_003, 41), (9_104, 41)], model="claude-sonnet-4-5")), tmp_path / "bounds.svg"
    assert benchmark().main([str(folder), "--svg", str(drawing)]) == 0
    printed = capsys.readouterr().out
    assert "Held out" in printed
    assert "cannot be known from a transcript" in printed
    assert max(map(len, printed.splitlines())) <= 140
    tables = [line for line in printed.splitlines() if line.startswith("|")]
    assert any(line.startswith("| o200k x ratio | calibrated |") for line in tables)
    root = ET.fromstring(drawing.read_text(encoding="utf-8"))
    assert sum(one.get("r") == "3" for one in root.iter("{http://www.w3.org/2000/svg}circle")) == 4
    assert benchmark().main([str(folder), "--json"]) == 0
    values = json.loads(capsys.readouterr().out)
    assert sum(one["counter"] == "4 characters" for one in values["steps"]) == 4
    assert {one["held_out"] for one in values["steps"]} <= {True, False}
    found = [row for rows in values["tables"].values() for row in rows if (row["counter"], row["way"]) == ("o200k", "anchored")]
    assert sum(row["steps"] for row in found) == 4


def test_where_there_is_nothing_to_measure_that_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert benchmark().main([str(tmp_path)]) == 2
    assert "no session with two reported requests" in capsys.readouterr().err
    assert benchmark().main([str(tmp_path / "nowhere")]) == 2
    assert "there is no" in capsys.readouterr().err


# The reach


@needs_transcripts
def test_the_recorded_sessions_are_all_there() -> None:
    steps, left_out = truth()
    ours = [step for step in steps if step.counter == "o200k x ratio"]
    held, fitted = benchmark().split(ours)
    assert len(ours) > 1_600
    assert 0.25 < len(held) / len(ours) < 0.4
    assert not {step.id for step in held} & {step.id for step in fitted}
    assert left_out["a file that no reader takes"] <= 1


@needs_transcripts
@pytest.mark.parametrize("held_out", [True, False])
def test_calibrated_totals_are_in_reach(held_out: bool) -> None:
    steps = [step for step in truth()[0] if step.counter == "o200k x ratio" and step.held_out is held_out]
    found = benchmark().figures_of(steps, benchmark().CALIBRATED)
    assert found.covered >= 0.97
    assert found.slack <= 2
    assert found.total <= 0.1


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
