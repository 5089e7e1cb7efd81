"""The quick form of `python -m tests.fuzz`: some thousand mutants of every kind of input. And the fuzz itself: does it find faults?"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any

import pytest

pytest.importorskip("resource", reason="needs the timers and limits of Unix")

from context_window import statusline
from context_window.gateway import relay
from context_window.integrations import mcp_lines
from context_window.recall import Recalled
from session.transcripts import draft
from session.transcripts.detect import FORMATS, GENERIC_FORMATS, TEXT_FORMATS
from session.transcripts.record import Record
from tests.fuzz import programs, running
from tests.fuzz.checks import READERS, REFUSED, check_file, check_value
from tests.fuzz.mutations import Mutator
from tests.fuzz.seeds import make_seed, seeds
from tests.fuzz.targets import CHECKS, CORPUS, inputs, kept

MUTANTS, WORKERS = 2_000, 8
"""Mutants of one run, and the tests that share them, so that `-n` can spread them."""


def test_every_format_and_every_reader_has_an_input(tmp_path: Path) -> None:
    formats = set()
    for number, seed in enumerate(seeds(recorded=False)):
        if seed.reader == "file":
            raw = Mutator(Random(number)).written(seed.value(), seed.layout)
            formats.add(check_file(tmp_path / "log", raw.encode("utf-8", "surrogatepass")))
        else:
            assert check_value(seed.reader, seed.value()) != REFUSED
    assert formats == {form.NAME for form in (*FORMATS, *GENERIC_FORMATS, *TEXT_FORMATS)}
    assert {seed.reader for seed in seeds(recorded=False)} == {"file", *READERS}


@pytest.mark.no_cover  # the mutations are drawn
@pytest.mark.parametrize("worker", range(WORKERS))
def test_no_mutant_breaks_the_promise(worker: int) -> None:
    """whatever the bytes, a reader returns sessions with every record accounted for or raises TranscriptError (for JSON values,
    FormatError), within bounded time and memory; the result can be saved, loads again as an equal session, and converts to all
    four wire formats"""
    tally = running.run(worker, range(MUTANTS // WORKERS), recorded=False)
    assert tally.faults == {}  # CONTEXT_WINDOW_TRANSCRIPTS= python -m tests.fuzz --reproduce NAME
    assert tally.outcomes[REFUSED] < tally.mutants * 0.6


def test_a_mutant_is_the_same_every_time() -> None:
    assert running.mutant(7, 11, recorded=False) == running.mutant(7, 11, recorded=False)
    assert running.mutant(7, 11, recorded=False) != running.mutant(8, 11, recorded=False)


def test_a_foreign_error_and_an_endless_loop_are_faults(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "SECONDS_MAX", 0.2)
    monkeypatch.setattr(draft, "clean", lambda _: 1 / 0)
    assert any("ZeroDivisionError" in kind for kind in running.run(0, range(30), recorded=False).faults)
    monkeypatch.setattr(draft, "clean", _endless)
    tally = running.run(0, range(12), recorded=False)
    assert any("TooSlowError" in kind for kind in tally.faults)
    assert tally.mutants == 12


def _endless(_: str) -> str:
    until = time.process_time() + 60
    while time.process_time() < until:
        pass
    return ""


def test_a_record_without_a_reason_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Record, "skip", lambda *_: None)
    assert any("AssertionError" in kind for kind in running.run(0, range(60), recorded=False).faults)


async def _cut_off(answer: relay.OpenAnswer) -> AsyncIterator[bytes]:
    async for piece in answer._rest:
        yield piece[:-1]


PLANTED: dict[str, tuple[Any, str, Any]] = {
    "requests": (relay, "forwarded", lambda *_: 1 / 0),
    "answers": (relay.OpenAnswer, "pieces", _cut_off),
    "statusline": (statusline, "short_name", lambda name, _: "\x1b[2J" + name),
    "mcp": (mcp_lines, "cleaned", lambda line: line.replace(b"ping", b"pong")),
    "recall": (Recalled, "text", property(lambda _: "x" * 100_000)),
    "outputs": (import_module("context_window.cli.spend_tables"), "printable", str),
}
"""For each target a fault: where it is planted, and what stands there then."""


@pytest.mark.parametrize("target", PLANTED)
def test_a_planted_fault_is_found(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    where, name, fault = PLANTED[target]
    monkeypatch.setattr(programs, "PATIENCE", 1)
    monkeypatch.setattr(where, name, fault)
    choices = inputs(recorded=False)
    numbers = (number for number in range(2_000) if choices[number % len(choices)].target == target)
    assert any(running.run(0, [number], recorded=False).faults for number in numbers)


@pytest.mark.long
def test_the_command_counts_and_reproduces(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.fuzz.__main__ import main

    monkeypatch.delenv("CONTEXT_WINDOW_TRANSCRIPTS", raising=False)
    assert main(["--mutants", "600", "--processes", "2", "--seed", "3"]) == 0
    assert "600 mutants in" in capfd.readouterr().out
    assert main(["--reproduce", "3.5"]) == 0
    assert "3.5: from " in capfd.readouterr().out


@pytest.mark.parametrize("name", [path.name for path in sorted(CORPUS.glob("*.mutant"))])
def test_what_broke_the_promise_once_keeps_it(name: str) -> None:
    """The corpus: each file is the mutant that showed a fault. Its number decided what was sent around it."""
    (seed,) = (seed for seed in kept() if seed.data == make_seed("", "file", "bytes", (CORPUS / name).read_bytes(), "").data)
    for number in (*range(4), int(name.split(".")[-2]) // 7):
        CHECKS[seed.target](seed, (CORPUS / name).read_bytes(), number)
