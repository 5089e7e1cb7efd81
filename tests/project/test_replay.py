"""The benchmark of views: its terms, its metric and its limit on small sessions, and the ratios that recorded sessions must keep."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import import_module
from itertools import combinations
from random import Random
from typing import Any

import pytest

from session import Session
from session.items import FunctionCall, FunctionCallOutput, Item, Message
from tests.support.shared import ROOT, needs_transcripts

pytestmark = [
    pytest.mark.skipif(not (ROOT / "benchmarks").is_dir(), reason="the benchmarks are not part of the installed package"),
    pytest.mark.no_cover,
]


def module(name: str) -> Any:
    return import_module(f"benchmarks.replay.{name}")


def recording(*items: Item) -> Any:
    session = Session()
    for item in items:
        session.append(item)
    tokens = sum(map(module("sessions").tokens_of, session.items))
    return module("sessions").Recording("made/up", "test", session, tuple(session.items), tokens)


def output(text: str) -> list[Item]:
    call = FunctionCall("look", "{}", f"c{text}")
    return [call, FunctionCallOutput("look", text, call.call_id)]


def filler(length: int) -> list[Item]:
    return [item for number in range(length) for item in (Message("assistant", f"so be it {number}"), Message("user", "go on"))]


def made_up() -> Any:
    """A file is read, much is said, then the file's line, path and function are used."""
    text = "src/engine/motor.py\n   12\tdef start_motor(self, speed_limit):\n   13\t    raise NotImplementedError(4711)"
    edit = '{"path": "src/engine/motor.py", "old_string": "def start_motor(self, speed_limit):", "new_string": "def start_motor(self):"}'
    return recording(
        Message("user", "Mend it."), *output(text), *filler(4), FunctionCall("edit", edit, "e"), FunctionCallOutput("edit", "ok", "e")
    )


def tally_of(made: Any, view: Callable[[Sequence[Item]], Sequence[Item]], window: int = 10**6) -> Any:
    timeline = module("metric").Timeline(made)
    reading = module("metric").Reading(timeline, window)
    for step in timeline.steps:
        reading.read(step, view(made.items[: step.start]))
    return reading.tally


# Terms


def test_terms_are_paths_identifiers_numbers_and_whole_lines() -> None:
    terms = module("terms").terms_of("see ./src/a.py:12, then call self.view.items(x) 4711 times at deadbeef01; plain words are none")
    assert terms.paths == {"src/a.py"}
    assert terms.identifiers == {"self.view.items", "deadbeef01"}
    assert terms.numbers == {"4711"}
    assert terms.lines == {"see ./src/a.py:12, then call self.view.items(x) 4711 times at deadbeef01; plain words are none"}


def test_a_line_is_the_same_with_and_without_the_number_that_a_tool_put_in_front() -> None:
    lines = module("terms").lines_of
    assert list(lines("   12\tdef start_motor(self):")) == list(lines("def start_motor(self):")) == ["def start_motor(self):"]


# The metric


def test_the_whole_log_shows_everything_at_the_full_cost() -> None:
    tally = tally_of(made_up(), lambda items: items)
    assert (tally.steps, tally.recall, tally.verbatim, tally.cost) == (1, 1, 1, 1)
    assert (tally.edits, tally.blind, tally.path_calls, tally.pathless, tally.taskless, tally.over) == (1, 0, 1, 0, 0, 0)


def test_a_view_without_the_file_is_blind() -> None:
    tally = tally_of(made_up(), lambda items: items[3:])
    assert (tally.recall, tally.verbatim, tally.edits, tally.blind, tally.pathless) == (0, 0, 1, 1, 1)
    assert tally.taskless == tally.requests > 0


def test_a_list_of_identifiers_counts_for_recall_and_not_for_verbatim_recall() -> None:
    made = recording(
        Message("user", "Mend it."), *output("the_first_name = the_other_name"), *filler(4), Message("assistant", "the_first_name")
    )
    listed = tally_of(made, lambda items: [Message("user", "names: the_first_name, the_other_name"), *items[3:]])
    quoted = tally_of(made, lambda items: [Message("user", "a note\nthe_first_name = the_other_name\n…"), *items[3:]])
    assert (listed.recall, listed.verbatim) == (1, 0)
    assert (quoted.recall, quoted.verbatim, quoted.whole) == (1, 1, 0)


def test_what_was_seen_shortly_before_does_not_count() -> None:
    made = recording(Message("user", "Mend it."), *output("the_first_name"), Message("assistant", "the_first_name"))
    assert tally_of(made, lambda items: items).steps == 0


def test_an_unchanged_beginning_is_billed_at_the_price_of_reading() -> None:
    metric = module("metric")
    bill = metric.Bill()
    bill.add([("a", 2_000)])
    bill.add([("a", 2_000), ("b", 100)])
    assert bill.total == pytest.approx(2_000 * 1.25 + 2_000 * 0.1 + 100 * 1.25)
    bill.add([("b", 100), ("a", 2_000)])
    assert bill.total == pytest.approx(2_000 * 1.25 + 2_000 * 0.1 + 100 * 1.25 + 2_100 * 1.25)


# What an agent needs


def needed_of(made: Any, view: Callable[[Sequence[Item]], Sequence[Item]]) -> Any:
    timeline = module("metric").Timeline(made)
    outcomes = module("outcomes").OutcomeReading(timeline, module("outcomes").Needs(timeline))
    reading = module("metric").Reading(timeline, 10**6, on_read=outcomes.read)
    for step in timeline.steps:
        reading.read(step, view(made.items[: step.start]))
    return outcomes.outcomes


def call_of(name: str, text: str, **arguments: Any) -> list[Item]:
    call = FunctionCall(name, json.dumps(arguments), f"c{text}")
    return [call, FunctionCallOutput(name, text, call.call_id)]


def work() -> Any:
    """A plan, a read, an edit and a failing test; then much is said, and the edited line is edited again."""
    return recording(
        Message("user", "Mend the engine of the motor.\nYou must never change the tests."),
        *call_of("todo_write", "ok", todos=[{"content": "mend the start of the motor", "status": "pending"}]),
        *call_of("read", "def start_motor(self):\nreturn self.start_of_motor", path="src/motor.py"),
        *call_of("edit", "done", path="src/motor.py", old_string="return self.start_of_motor", new_string="return self.motor_start"),
        *call_of("bash", "running the tests\nE   ValueError: no_such_motor_here", command="pytest"),
        *filler(4),
        *call_of("edit", "done again", path="src/motor.py", old_string="return self.motor_start", new_string="return None"),
    )


def test_the_whole_log_has_all_that_an_agent_needs() -> None:
    needed = needed_of(work(), lambda items: items)
    assert {measure: needed.part(measure) for measure in module("outcomes").PARTS} == dict.fromkeys(module("outcomes").PARTS, 1.0)
    assert (needed.whole_bill, needed.recovery) == (1.0, 0.0)


@pytest.mark.parametrize(
    ("without", "lost"),
    [
        (lambda item: isinstance(item, FunctionCallOutput) and item.name == "bash", {"error"}),
        (lambda item: isinstance(item, FunctionCall) and item.name == "todo_write", {"plan"}),
        (lambda item: isinstance(item, FunctionCall) and item.name == "edit", {"files", "edit lines", "at hand"}),
        (lambda item: isinstance(item, FunctionCallOutput) and item.name == "read", {"files"}),
        (lambda item: isinstance(item, Message) and "never" in item.text, {"asked", "constraint"}),
    ],
    ids=["error", "plan", "edit", "read", "task"],
)
def test_what_a_view_lacks_is_what_its_agent_lacks(without: Callable[[Item], bool], lost: set[str]) -> None:
    needed = needed_of(work(), lambda items: [item for item in items if not without(item)])
    assert {measure for measure in module("outcomes").PARTS if needed.part(measure) < 1} == lost
    assert (needed.recovery > 0) == ("edit lines" in lost)


def test_a_file_is_what_was_read_of_it_with_the_edits_made_since() -> None:
    made = work()
    needs = module("outcomes").Needs(module("metric").Timeline(made))
    text = set[str]()
    for change in needs.changes[:2]:
        text = (text - change.removed) | change.added
    assert text == {"def start_motor(self):", "return self.motor_start"}


def test_a_pause_beyond_the_lifetime_of_the_cache_writes_everything_anew() -> None:
    items = [Message("user", "word " * 4_000, created_at=1.0), *output("look"), *output("again")]
    soon, late = (
        needed_of(recording(*(replace(item, created_at=1.0 + pause * number) for number, item in enumerate(items))), lambda items: items)
        for pause in (1, 400)
    )
    assert late.bill > soon.bill > 4_000
    assert soon.whole_bill == late.whole_bill == 1.0


def test_the_sentence_for_users_compares_with_dropping_the_oldest() -> None:
    outcome = module("replay").Outcome
    shares = {name: module("outcomes").Outcomes(bill=60.0, plain_bill=100.0, recovery=8.0) for name in ("extract", "drop-oldest")}
    for name, is_lost in (("extract", False), ("drop-oldest", True)):
        shares[name].add("at hand", [not is_lost])
    outcomes = [outcome("a", "test", False, 25, 1.0, 1.0, {}, shares)]
    assert module("table").sentence(outcomes, "extract", "drop-oldest", 25) == (
        "With a window of 25 % of the session, in 100 of 100 requests everything the agent used again was in view "
        "(dropping the oldest: 0), for 68% of the bill."
    )
    assert module("table").sentence(outcomes, "extract", "drop-oldest", 10) is None


def test_an_extract_that_knows_the_future_values_terms_by_their_next_use() -> None:
    """Rules of the user, which are no terms of the metric, are worth nothing to it."""
    texts = [f"src/file_{letter}.py has the_name_{letter}\nplain words {'and more ' * 60}" for letter in "abcdefghijklmnopqrstuvwxyz"]
    used = Message("assistant", "the_name_h is in src/file_h.py")
    made = recording(Message("user", "You must never guess."), *(item for text in texts for item in output(text)), *filler(4), used)
    timeline = module("metric").Timeline(made)
    log = Session(made.items[:-1])
    shown = module("losses").knowing(timeline)(1_500)(log)
    assert len(shown) < len(log.items)
    assert "the_name_h" in str(shown)
    assert "the_name_i" not in str(shown)


# The limit


def random_recording(chance: Random) -> Any:
    """A session of texts with names, in which later texts use earlier names."""
    items: list[Item] = []
    for number in range(9):
        names = [f"name_{chance.randrange(12)}" for _ in range(chance.randrange(1, 4))]
        items += [Message("user", f"{number} " + " ".join(names) + " word" * chance.randrange(1, 40)), *filler(2)]
        items.append(Message("assistant", f"name_{chance.randrange(12)} and name_{chance.randrange(12)}"))
    return recording(*items)


def best_of_two(timeline: Any, window: int) -> float:
    """Return the best recall of views that show the same one or two earlier items at every request, besides those of every view."""
    forced = [module("limit")._forced(timeline, step) for step in timeline.steps]
    positions = sorted({position for step in timeline.steps for term in step.uses for position in timeline.places[term]})
    best = 0.0
    for chosen in [*combinations(positions, 2), *((position,) for position in positions)]:
        views = [{position for position in chosen if position < step.start} | forced[at] for at, step in enumerate(timeline.steps)]
        if all(sum(timeline.tokens[position] for position in view) <= window for view in views):
            parts = (
                sum(not view.isdisjoint(timeline.places[term]) for term in step.uses) / (len(step.uses) or 1)
                for view, step in zip(views, timeline.steps, strict=True)
            )
            best = max(best, sum(parts))
    return best


def test_no_choice_of_whole_items_is_above_the_limit() -> None:
    pytest.importorskip("scipy")
    gaps = []
    for seed in range(4):
        timeline = module("metric").Timeline(random_recording(Random(seed)))
        window = sum(timeline.tokens) // 4
        limit, _ = module("limit").limits(timeline, window)
        best = best_of_two(timeline, window)
        assert 0 < best <= limit + 1e-9 <= sum(bool(step.uses) for step in timeline.steps) + 1e-6
        gaps.append(limit - best)
    assert min(gaps) < 2  # and it is near what can be done


def test_with_room_for_all_the_limit_is_everything() -> None:
    pytest.importorskip("scipy")
    timeline = module("metric").Timeline(made_up())
    assert module("limit").limits(timeline, 10**6) == (1, 1)


# The ratios


@needs_transcripts
def test_recorded_sessions_keep_the_ratios(request: pytest.FixtureRequest) -> None:
    """No view of ours is over the window, none keeps more whole items than the limit, and the default keeps more than `DropOldest`."""
    pytest.importorskip("scipy")
    quick = module("__main__")
    recordings = [made for made in module("sessions").recordings() if made.tokens <= quick.QUICK_TOKENS]
    windows = [int(percent) for percent in quick.QUICK_WINDOWS.split(",")][: None if request.config.getoption("--long") else 1]
    candidates = module("policies").known_policies()
    policies = {name: candidates[name].policy for name in ("default", "extract", "drop-oldest", "oldest-first") if name in candidates}
    outcomes = [entry for made in recordings for entry in module("replay").replay(made, windows, policies)]
    assert len(outcomes) > 4 * len(windows)
    assert module("check").broken_ratios(outcomes) == []


# Printed tables, pictures, and questions to others
