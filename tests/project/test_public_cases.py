"""What other projects' users reported, case by case: `benchmarks/public_cases` makes each, and our code must be right."""

from __future__ import annotations

import csv
from functools import partial
from pathlib import Path

import pytest

from benchmarks.public_cases.__main__ import CASES, asked, main
from benchmarks.public_cases.case import Case, verdict_on

KNOWN = {"B087": "the default strategy takes the oldest results first; Extract() takes the large one"}


@pytest.mark.no_cover
@pytest.mark.parametrize("name", CASES)
def test_a_case_is_right(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONTEXT_WINDOW_HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "120")
    verdict, found = verdict_on(CASES[name])
    assert (verdict == "right") == (name not in KNOWN), found


def test_a_list_states_what_is_right(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Names with a price or a window need no recipe; figures of the list replace ours; what nothing makes is said."""
    rows = [
        ("B001", "spend", "(1, 10, 100, 1000, 51)"),
        ("X1", "spend", "claude-opus-4-5@20251101: $5/M"),
        ("X2", "limit", "claude-fable-5: window 1,000,000, less output"),
        ("X3", "spend", "all is well"),
        ("B087", "other", "?"),
    ]
    path = tmp_path / "cases.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("id", "kind", "expected"), *rows])
    monkeypatch.setattr("sys.argv", ["public_cases", str(path), "--only", "i"])
    assert main() == 0
    monkeypatch.setattr("sys.argv", ["public_cases", str(path), "--only", "spend"])
    assert main() == 1
    out = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in out] == [
        ["X2", "right"],
        ["1", "right"],
        ["B001", "rough"],
        ["X1", "right"],
        ["X3", "cannot"],
        ["1", "rough,"],
    ]
    assert [name for name, _, case in asked(str(path), "") if case is None] == ["X3"]


def test_a_verdict_compares_figures_and_a_fault_is_wrong() -> None:
    def fails(_: Path) -> object:
        raise ValueError("no")

    def finds(found: object, _: Path) -> object:
        return found

    cases: list[tuple[object, object]] = [
        (100, 100),
        (105, 100),
        (150, 100),
        ((1, 95), (1, 100)),
        ((1, 2), (1,)),
        (True, False),
        ("a", "b"),
    ]
    verdicts = [verdict_on(Case(partial(finds, found), expected))[0] for found, expected in cases]
    assert verdicts == ["right", "rough", "wrong", "rough", "wrong", "wrong", "wrong"]
    assert verdict_on(Case(fails, 1)) == ("wrong", "ValueError: no")
