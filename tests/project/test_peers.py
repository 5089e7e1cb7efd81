"""The comparison of `python -m benchmarks.peers`: what it counts, and this library's rows at small sizes."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(not (ROOT / "benchmarks").is_dir(), reason="the benchmarks are not part of the installed package")

check: Any = import_module("benchmarks.peers.check")
figures: Any = import_module("benchmarks.peers.figures")
program: Any = import_module("benchmarks.peers.__main__")
worker: Any = import_module("benchmarks.peers.worker")

RUN = figures.Run("default", 1_000, cold=0.2, live=0.001, tokens=9, views=11, over=0, orphaned=0, promptless=0, lost=0)


@pytest.mark.no_cover  # tracing would break the ratios
def test_no_ratio_is_broken(capsys: pytest.CaptureFixture[str]) -> None:
    assert program.main(["--quick"]) == 0, capsys.readouterr().out


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        ({"cold": 0.7}, "cold: 7.0 times bare encoding, more than 6.0"),
        ({"live": 0.03}, "live: 0.150 of a cold call, more than 0.1"),
        ({"live": 0.005}, "live: 5.0 times as long with 1,000 messages as with 250, more than 4.0"),
        ({"over": 2}, "1,000 messages: 2 of 11 views are over the budget"),
        ({"orphaned": 1}, "1,000 messages: 1 of 11 views are orphaned"),
        ({"promptless": 11}, "1,000 messages: 11 of 11 views are without the system prompt"),
    ],
)
def test_a_broken_ratio_or_promise_has_a_sentence(fault: dict[str, float], sentence: str) -> None:
    assert check.broken_ratios([replace(RUN, size=250), RUN], 0.1) == []
    assert sentence in check.broken_ratios([replace(RUN, size=250), replace(RUN, **fault)], 0.1)


class _Careless:
    """Keeps the last messages, whatever they are."""

    def __init__(self, keep: int) -> None:
        self._keep = keep
        self._messages: list[Any] = []

    def read(self, messages: list[Any]) -> list[Any]:
        return messages

    def view(self, new: list[Any]) -> list[Any]:
        self._messages += new
        return self._messages[-self._keep :]

    def write(self, view: list[Any]) -> list[Any]:
        return view


def test_faults_of_views_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    for keep in (10, 1_000):
        monkeypatch.setitem(worker.PEERS, f"last {keep}", lambda _, keep=keep: _Careless(keep))
    views = figures.REQUESTS
    last_ten = figures.grow(check.Here(), "last 10")
    assert (last_ten.views, last_ten.promptless, last_ten.lost) == (views, views, views - 1)
    assert last_ten.orphaned > 0
    whole = figures.grow(check.Here(), "last 1000")
    assert (whole.over, whole.promptless, whole.orphaned, whole.lost) == (views, 0, 0, 0)
    ours = figures.grow(check.Here(), "default")
    assert (ours.over, ours.promptless, ours.orphaned) == (0, 0, 0)
    assert ours.lost < views / 2


def test_tables_and_plot_have_a_row_per_library() -> None:
    runs = [
        replace(RUN, peer=peer, size=size)
        for peer in ("default", "litellm")
        for size in figures.SIZES
        if (peer, size) != ("litellm", 4_000)
    ]
    table = program.times_table(runs, ["default", "litellm"], [0.08, 0.16, 0.32]).splitlines()
    assert table[-3] == "| bare `encode_ordinary` of all texts | 80 | 160 | 320 | | | | | |"
    assert table[-2] == "| context-window | 200 | 200 | 200 | 1.00 | 1.00 | 1.00 | 9 | 0 of 33 |"
    assert table[-1] == "| LiteLLM `trim_messages` | 200 | 200 | – | 1.00 | 1.00 | – | 9 | 0 of 22 |"
    assert program.requests_table([RUN]).splitlines()[-1] == "| context-window | 0 | 0 | 0 | 0 | 9 |"
    root = ET.fromstring(program.plot(runs))
    assert len(root.findall(".//{*}circle")) == 2 * len(runs)
    assert {"context-window", "LiteLLM trim_messages"} <= {element.text for element in root.iter("{http://www.w3.org/2000/svg}text")}


def test_every_library_has_a_label() -> None:
    assert figures.LABELS.keys() == worker.PEERS.keys()
